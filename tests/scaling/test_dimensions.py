"""The shape of a model, read off its tree."""

from __future__ import annotations

import importlib
from typing import Any

import paramcalc
from paramcalc.components import SUBMODULES
from paramcalc.scaling.dimensions import model_shape
from paramcalc.tree.component import Component
from tests.goldens.store import COUNT


def shaped(source: Any) -> dict[str, Any]:
    return {name: value for name, value in model_shape(paramcalc.load(source).tree).items() if value is not None}


def test_the_shape_of_a_mixture_of_experts() -> None:
    """DeepSeek-V3 (2412.19437), section 4.2."""
    found = shaped("deepseek-v3")

    assert found.items() >= dict(layers=61, d_model=7168, heads=128, d_ff=18432, shared_expert_d_ff=2048).items()
    assert found.items() >= dict(experts=256, experts_per_token=8, expert_d_ff=2048, head_dim=192).items()
    assert "kv_heads" not in found


def test_a_model_without_attention_has_no_heads() -> None:
    """Mamba 130M (2312.00752), table 12: 24 layers of width 768."""
    assert shaped("mamba-130m") == {"layers": 24, "sequential_steps": 24, "d_model": 768, "aspect_ratio": 32}


def test_both_stacks_of_an_encoder_decoder() -> None:
    """T5-base (1910.10683), section 3.1.2: 12 blocks each, 768, 3072, 12 heads of 64."""
    found = shaped("t5-base")

    assert found.items() >= dict(layers=24, encoder_layers=12, decoder_layers=12, sequential_steps=24).items()
    assert found.items() >= dict(d_model=768, aspect_ratio=32, heads=12, head_dim=64, d_ff=3072, ffn_ratio=4).items()


def test_a_shared_layer_is_one_and_runs_often() -> None:
    """ALBERT base (1909.11942), table 1: 12 layers of 768 share their parameters; the embedding is 128 wide."""
    found = shaped("albert-base-v2")

    assert (found["layers"], found["sequential_steps"], found["d_model"], found["aspect_ratio"]) == (1, 12, 768, 64)


def test_a_tower_is_not_the_shape_of_its_model() -> None:
    """LLaVA 1.5's default: Llama-7B behind a CLIP tower of 24 layers of 1024."""
    assert shaped({"model_type": "llava"}).items() >= dict(layers=32, d_model=4096, heads=32, d_ff=11008).items()


def test_layers_that_differ_are_told_apart() -> None:
    layers = [{"repeat": 2, "n_heads": 4, "head_dim": 8}, {"n_heads": 8, "head_dim": 8, "d_ff": 96}]
    found = shaped({"model_type": "transformer", "d_model": 64, "n_heads": 4, "vocab_size": 10, "layers": layers})

    assert (found["heads"], found["kv_heads"], found["head_dim"]) == ((4, 8), (4, 8), 8)
    assert (found["d_ff"], found["ffn_ratio"]) == ((96, 256), (1.5, 4))


def test_experts_behind_a_latent_say_nothing_of_the_width() -> None:
    config = COUNT["nemotron_h/odd-5"]["config"]

    assert (config["moe_latent_size"], shaped(config)["d_model"]) == (32, 64)


def test_every_mixer_and_ffn_states_its_sizes() -> None:
    """A component with a name in layer patterns states the width of the model."""
    modules = [importlib.import_module(f"paramcalc.components.{name}") for name in SUBMODULES]
    named = {
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, Component)
        and "label" in vars(cls)
        and cls.__name__ not in ("Component", "SharedReference")
    }

    assert len(named) > 15
    assert [cls.__name__ for cls in named if cls.dimensions is Component.dimensions and "items" not in cls.fields] == []
