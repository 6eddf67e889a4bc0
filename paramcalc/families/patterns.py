"""Which layer has what: words for each layer, from lists, periods and flags of the config."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from paramcalc.config import Config
from paramcalc.families.skeletons import DENSE, FULL, LINEAR, SLIDING, SPARSE, kinds, pre_norm, rms
from paramcalc.spec import Block, Component, Run


def mixers(
    c: Config,
    default: list[str],
    words: tuple[str, ...] = (FULL, LINEAR),
    *,
    name: str = "layer_types",
    any_length: bool = False,
) -> list[str]:
    """The word for each layer's mixer: the list `name` where the file says so, else the family's default pattern.

    The names of transformers 4, `attention` and `mamba`, are understood as it renames them.
    """
    renamed = {word: word for word in words} | {"attention": FULL, "mamba": LINEAR}
    stated = c.words(name, tuple(renamed), any_length=any_length)
    return default if stated is None else [renamed[word] for word in stated]


def every(period: int, word: str, *, otherwise: str, layers: int) -> list[str]:
    """`word` on each period-th layer (the last of each group), `otherwise` on the others."""
    return [word if (i + 1) % period == 0 else otherwise for i in range(layers)]


def windowed(c: Config, layer: Callable[[int | None], Component], default: list[str]) -> list[Component]:
    """The layers of `layer_types`, in order: `layer` builds one for a window, None standing for full attention."""
    layers = by_window(c.sliding_window, layer)
    return [layers[word] for word in kinds(c, default)]


def by_window(window: int | None, part: Callable[[int | None], Component]) -> dict[str, Component]:
    """What is full and what slides under their words: `part` builds one for a window, None for full attention."""
    return {FULL: part(None), SLIDING: part(window)}


def by_ffn(c: Config, attn: Component, ffn: Mapping[str, Component], words: list[str]) -> list[Block]:
    """A pre-norm layer for each word, with its FFN; attention is the same in all."""
    layers = {word: pre_norm(rms(c), attn, part) for word, part in ffn.items()}
    return [layers[word] for word in words]


def mlp_words(c: Config, default: list[str]) -> list[str]:
    """The word for each layer's FFN, dense or sparse: `mlp_layer_types` where the file says so, else the default."""
    return c.words("mlp_layer_types", (DENSE, SPARSE)) or default


def per_layer_overrides(c: Config, allowed: Collection[str]) -> list[dict[str, int]] | None:
    """The sizes that per_layer_config ({"05": {"head_dim": 512}}) states of each layer; None where there is none."""
    given = c.raw("per_layer_config")
    if given is None:
        return None
    nested = isinstance(given, Mapping) and all(isinstance(sizes, Mapping) for sizes in given.values())
    c.require(nested, "per_layer_config must map layer numbers to mappings")
    c.require(all(str(number).isdecimal() for number in given), "per_layer_config has a key that is not a layer number")
    numbered: dict[int, dict[str, int]] = {i: {} for i in range(c.num_hidden_layers)}
    numbered |= {int(number): sizes for number, sizes in given.items()}
    c.require(len(numbered) == c.num_hidden_layers, "per_layer_config has a layer that the model has not")
    named_sizes = {name for sizes in numbered.values() for name in sizes}
    c.require(named_sizes <= set(allowed), f"per_layer_config has {', '.join(sorted(named_sizes - set(allowed)))}")
    return [{name: c.whole(name, size) for name, size in sizes.items()} for sizes in numbered.values()]


def first_dense(c: Config, first: int) -> list[str]:
    """`first` dense layers, then sparse ones."""
    return [DENSE if i < first else SPARSE for i in range(c.num_hidden_layers)]


def stepped(c: Config) -> list[str]:
    """Qwen's rule: every decoder_sparse_step-th layer has experts unless mlp_only_layers lists it."""
    dense = set(c.numbers("mlp_only_layers"))
    step = c.decoder_sparse_step
    sparse = [c.num_experts > 0 and i not in dense and (i + 1) % step == 0 for i in range(c.num_hidden_layers)]
    return [SPARSE if has else DENSE for has in sparse]


def ignored_frequency(c: Config) -> None:
    """A doubt where moe_layer_freq asks for experts in some layers only: the class does not look at it."""
    if c.raw("moe_layer_freq") not in (None, 1):
        c.doubts.append(f"{c.family}: moe_layer_freq is not 1; {c.architecture} ignores it and so does this count")


def dense_then_sparse(c: Config, dense: Component, sparse: Component) -> list[Run]:
    """first_k_dense_replace dense layers, then sparse ones. The class does not look at moe_layer_freq."""
    ignored_frequency(c)
    first = min(c.first_k_dense_replace, c.num_hidden_layers)
    return [Run(first, dense), Run(c.num_hidden_layers - first, sparse)]
