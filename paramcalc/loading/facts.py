"""Facts for the engine: of a config, and of the checkpoints of a family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from paramcalc import families
from paramcalc.model import CheckpointFacts, ConfigFacts, MaxPositions

# The keys that vLLM reads (ModelConfig, _get_and_verify_max_len); they name one thing in many families.
MAX_POSITION_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
LANGUAGE_SECTIONS = ("text_config", "llm_config", "language_config")
EXPERT_COUNT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def config_facts(fields: Mapping[str, Any]) -> ConfigFacts:
    """The facts that a config states, as its file spells them."""
    kv_heads, mtp_layers = fields.get("num_key_value_heads"), fields.get("num_nextn_predict_layers")
    experts = (fields.get(key) for key in EXPERT_COUNT_KEYS)
    return ConfigFacts(
        max_positions=_max_positions(fields),
        kv_heads=kv_heads if isinstance(kv_heads, int) else None,
        experts=max((n for n in experts if isinstance(n, int)), default=0),
        mtp_layers=mtp_layers if isinstance(mtp_layers, int) else None,
        rope_scaling=_rope_scaling(fields),
        flags={key: value for key, value in fields.items() if isinstance(value, bool)},
        transformers_version=str(fields.get("transformers_version") or ""),
    )


def _max_positions(fields: Mapping[str, Any]) -> MaxPositions | None:
    """The longest context stated for the language model."""
    sections = [section for name in LANGUAGE_SECTIONS if isinstance(section := fields.get(name), Mapping)]
    for place in (*sections, fields):
        for key in MAX_POSITION_KEYS:
            value = place.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return MaxPositions(key, value)
    return None


def _rope_scaling(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scaling of the language model's rotary positions, under its old key or its new one."""
    text = fields.get("text_config")
    place = text if isinstance(text, Mapping) else fields
    rope = place.get("rope_scaling") or place.get("rope_parameters") or {}
    full = rope.get("full_attention", rope) if isinstance(rope, Mapping) else {}
    return full if isinstance(full, Mapping) else {}


@cache
def checkpoint_facts(family: str) -> CheckpointFacts:
    """The facts of a family's checkpoints."""
    known = _data("checkpoints")
    widths = {"fp8_scales_float32": 32, "fp8_scales_16_bits": 16}
    return CheckpointFacts(
        mtp_tables=family in known["mtp_tables"],
        fp8_scale_bits=next((bits for key, bits in widths.items() if family in known[key]), None),
        fp8_doubt=known["fp8_doubts"].get(family, ""),
        conv1d_matrices=family in known["conv1d_matrices"],
        verified_linears=family in verified_linears(),
        convertible_experts=tuple(known["convertible_experts"].get(family, ())),
    )


def verified_linears() -> frozenset[str]:
    """Families whose matrices are torch.nn.Linear but for tables, routers and experts (tests/goldens/linear)."""
    return frozenset(_data("linear_modules"))


@cache
def _data(name: str) -> Any:
    path = Path(families.__path__[0]) / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))
