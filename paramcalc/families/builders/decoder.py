"""Parts of decoders: norms, layouts of a layer, and whole models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import decoder_head
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, LayerPattern, Layers, Mtp, Run, block, stack
from paramcalc.tree.leaves import Embedding, Norm, Param


def rms(c: Config) -> Norm:
    """RMSNorm over the width: a scale, no bias (Zhang and Sennrich 2019)."""
    return Norm(width=c.hidden_size)


def layer_norm(c: Config) -> Norm:
    """LayerNorm over the width, with scale and bias."""
    return Norm(width=c.hidden_size, bias=True)


def batch_norm(width: int) -> Block:
    """BatchNorm in a tower, for any number of dimensions.

    Scale and bias; running mean, variance and one counter are buffers.
    """
    statistic = Param(shape=(width,), buffer=True)
    norm = Norm(width=width, bias=True, category=None)
    return block(norm=norm, mean=statistic, variance=statistic, batches=Param(shape=(1,), buffer=True))


def learned_positions(c: Config, extra_rows: int = 0) -> Embedding:
    """Learned absolute positions, with optional spare rows."""
    rows = c.max_position_embeddings
    return Embedding(rows=rows + extra_rows if extra_rows else rows, width=c.hidden_size, sharded=False)


# -- layouts of a layer -----------------------------------------------------------------------------------------


def pre_norm(norm: Component, attn: Component, ffn: Component) -> Block:
    """Llama's layer: norm, attention, norm, feed-forward; a residual connection around each pair."""
    return block(input_norm=norm, attn=attn, post_norm=norm, ffn=ffn)


def layer_scaled(norm: Norm, attn: Component, ffn: Component) -> Block:
    """Llama's layer with one scale per channel after attention and after the FFN (LayerScale, 2103.17239)."""
    scale = Param(shape=(norm.width,))
    return block(input_norm=norm, attn=attn, attn_scale=scale, post_norm=norm, ffn=ffn, ffn_scale=scale)


def norms_around(norm: Component, attn: Component, ffn: Component) -> Block:
    """A norm before and after attention, and before and after the FFN (Gemma 2, AFMoE)."""
    return block(input_norm=norm, attn=attn, post_attn_norm=norm, pre_ffn_norm=norm, ffn=ffn, post_ffn_norm=norm)


def parallel(norm: Component, attn: Component, ffn: Component) -> Block:
    """Attention and FFN in parallel behind one norm (GPT-J, Cohere)."""
    return block(input_norm=norm, attn=attn, ffn=ffn).replace(residual="together")


def norms_after(norm: Component, attn: Component, ffn: Component) -> Block:
    """A norm after attention, and one after the FFN (OLMo 2, EXAONE 4)."""
    return block(attn=attn, post_attn_norm=norm, ffn=ffn, post_ffn_norm=norm).replace(residual="normed")


def post_norm_layer(c: Config, hidden: int | None) -> Block:
    """Attention, norm, plain FFN, norm, with biases."""
    return block(attn=mha(c), attn_norm=layer_norm(c), ffn=mlp(c, hidden), ffn_norm=layer_norm(c))


# -- whole models -------------------------------------------------------------------------------------------------

Parts = Component | Mapping[Any, Component]
# Lists of sizes for each layer of a pruned model, which no class of transformers reads (its pull request 40840).
HEADS_KEY = "layer_head_num"
WIDTH_KEYS = ("layer_inter_size", "layer_intermediate_sizes")
PRUNED_KEYS = frozenset((HEADS_KEY, *WIDTH_KEYS))


def decoder(
    c: Config,
    attn: Parts,
    ffn: Parts,
    words: Sequence[Any] | None = None,
    ffn_words: Sequence[Any] | None = None,
    *,
    layer: Callable[[Any, Any, Any], Block] = pre_norm,
    norm: Component | None = None,
    **around: Any,
) -> Block:
    """A decoder of layers with attention, FFN and a norm (RMS by default) that also follows the last layer.

    If layers differ, `attn` or `ffn` maps each layer type to a component, and `words` or `ffn_words` lists the type of
    each layer. `around`: other arguments of causal_lm.
    """
    norm = norm or rms(c)
    if not PRUNED_KEYS.isdisjoint(c.fields):
        from paramcalc.families.builders.pruned import pruned_parts

        attn, words = pruned_parts(c, attn, words)
        ffn, ffn_words = pruned_parts(c, ffn, ffn_words)
    if words is None and ffn_words is None:
        return causal_lm(c, Run(c.num_hidden_layers, layer(norm, attn, ffn)), norm=norm, **around)
    kinds, order = word_pairs(tuple(words or ()), tuple(ffn_words or ()))
    mixers, ffns = ({"": part} if isinstance(part, Component) else part for part in (attn, ffn))
    layers = [layer(norm, mixers[word], ffns[ffn_word]) for word, ffn_word in kinds]
    return causal_lm(c, LayerPattern(layers, order), norm=norm, **around)


@lru_cache(maxsize=256)
def word_pairs(words: tuple[Any, ...], ffn_words: tuple[Any, ...]) -> tuple[list[tuple[Any, Any]], tuple[int, ...]]:
    """The distinct pairs of layer types, and for each layer the index of its pair; "" for a list that is not given.

    Cached: the result is the same at every width.
    """
    both = list(zip(words or repeat(""), ffn_words or repeat(""), strict=bool(words and ffn_words)))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(both))}
    return list(numbers), tuple(map(numbers.__getitem__, both))


def ignored_fields(c: Config, **built: Any) -> None:
    """A doubt for each field that the class ignores, if the file's value differs from what the class builds."""
    for key, value in built.items():
        if c.raw(key) not in (None, value):
            c.doubts.append(f"{c.family}: {key} asks for what {c.architecture} does not build; it is not counted")


def unpublished(c: Config) -> None:
    """Mark a family as approximate because no published total confirms its recipe."""
    c.doubts.append(f"{c.family}: counted from its published code; no total is published to the parameter")


def causal_lm(
    c: Config,
    layers: Layers,
    *,
    norm: Component | None,
    before: Mapping[str, Component | None] | None = None,
    head_bias: bool = False,
    head_rows: int | None = None,
    mtp: Mtp | None = None,
) -> Block:
    """A decoder: token embedding, optional parts `before` the layers, the layers, a final norm, and the head."""
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        **(before or {}),
        layers=stack("decoder", layers),
        norm=norm,
        **decoder_head(c, c.hidden_size, bias=head_bias, rows=head_rows),
        mtp=mtp if mtp and mtp.count and c.head in ("lm", "seq2seq_lm") else None,
    )
