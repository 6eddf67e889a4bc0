"""The type of each layer, from lists, periods and flags of the config."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paramcalc.config.view import Config

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
DENSE, SPARSE = "dense", "sparse"


def attention_types(c: Config, default: list[str]) -> list[str]:
    """The attention of each layer: `layer_types` if present, else the family's default pattern."""
    return c.layer_words("layer_types", (FULL, SLIDING)) or default


def every(period: int, word: str, *, otherwise: str, layers: int) -> list[str]:
    """`word` on each period-th layer (the last of each group), `otherwise` on the others."""
    return repeated([otherwise] * (period - 1) + [word], layers)


def repeated(group: list[str], layers: int) -> list[str]:
    """The group of types, repeated to this number of layers."""
    return (group * (layers // len(group) + 1))[:layers]


def full_every(c: Config, period: int) -> list[str]:
    """The attention of each layer: `layer_types`, or full attention in each period-th layer, sliding in the others."""
    return attention_types(c, every(period, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))


def full_first(c: Config, period: int) -> list[str]:
    """Full attention in every period-th layer from the first one on, sliding attention in the others."""
    return repeated([FULL] + [SLIDING] * (period - 1), c.num_hidden_layers)


def mixer_types(
    c: Config,
    default: list[str],
    words: tuple[str, ...] = (FULL, LINEAR),
    *,
    name: str = "layer_types",
    any_length: bool = False,
) -> list[str]:
    """The mixer of each layer: the list `name` if present, else the family's default pattern.

    The names of transformers 4, `attention` and `mamba`, are translated as transformers 5 does.
    """
    renamed = {word: word for word in words} | {"attention": FULL, "mamba": LINEAR}
    stated = c.layer_words(name, tuple(renamed), any_length=any_length)
    return default if stated is None else [renamed[word] for word in stated]


def mlp_types(c: Config, default: list[str]) -> list[str]:
    """The FFN of each layer, dense or sparse: `mlp_layer_types` if present, else the default."""
    return c.layer_words("mlp_layer_types", (DENSE, SPARSE)) or default


def per_layer_overrides(c: Config, allowed: Collection[str]) -> list[dict[str, int]] | None:
    """The sizes of each layer in per_layer_config ({"05": {"head_dim": 512}}); None if the field is absent.

    An explicit null means that no layer has sizes of its own.
    """
    if not c.has("per_layer_config"):
        return None
    given = c.raw("per_layer_config") or {}
    nested = isinstance(given, Mapping) and all(isinstance(sizes, Mapping) for sizes in given.values())
    c.require(nested, "per_layer_config must map layer numbers to mappings")
    c.require(all(str(number).isdecimal() for number in given), "per_layer_config has a key that is not a layer number")
    numbered: dict[int, dict[str, int]] = {i: {} for i in range(c.num_hidden_layers)}
    numbered |= {int(number): sizes for number, sizes in given.items()}
    c.require(len(numbered) == c.num_hidden_layers, "per_layer_config has a layer that the model has not")
    named_sizes = {name for sizes in numbered.values() for name in sizes}
    c.require(named_sizes <= set(allowed), f"per_layer_config has {', '.join(sorted(named_sizes - set(allowed)))}")
    return [{name: c.size(name, size) for name, size in sizes.items()} for sizes in numbered.values()]


def first_dense(c: Config, first: int) -> list[str]:
    """`first` dense layers, then sparse ones."""
    layers = c.num_hidden_layers
    return ([DENSE] * first + [SPARSE] * (layers - first))[:layers]


def sparse_step_types(c: Config) -> list[str]:
    """Qwen's rule: every decoder_sparse_step-th layer has experts unless mlp_only_layers lists it."""
    layers = c.num_hidden_layers
    words = every(c.decoder_sparse_step, SPARSE, otherwise=DENSE, layers=layers) if c.num_experts else [DENSE] * layers
    for i in c.layer_indices("mlp_only_layers"):
        if 0 <= i < layers:
            words[i] = DENSE
    return words


def ignored_frequency(c: Config) -> None:
    """A doubt if moe_layer_freq asks for experts in some layers only: the class ignores it."""
    if c.raw("moe_layer_freq") not in (None, 1):
        c.doubts.append(f"{c.family}: moe_layer_freq is not 1; {c.architecture} ignores it and so does this count")


def dense_then_sparse(c: Config) -> list[str]:
    """first_k_dense_replace dense layers, then sparse ones. The class ignores moe_layer_freq."""
    ignored_frequency(c)
    return first_dense(c, c.first_k_dense_replace)
