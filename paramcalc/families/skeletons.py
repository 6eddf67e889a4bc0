"""What recipes share: attention, feed-forward and experts from canonical fields, and whole-model skeletons.

Everything here reads a Config and returns components. A helper moves here when a second family needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from paramcalc.components import Attention, Mlp, Moe
from paramcalc.components.attention import Kind
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.heads import decoder_head
from paramcalc.spec import Block, Category, Component, Embedding, Layers, Linear, Mtp, Norm, Run, block, stack

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
DENSE, SPARSE = "dense", "sparse"

K = TypeVar("K", bound=Hashable)


def sizes(
    vocab: int,
    width: int,
    ffn: int | None,
    layers: int,
    heads: int,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    **others: Any,
) -> dict[str, Any]:
    """A decoder's defaults, in the order in which one names its sizes; `ffn` None: there is no such field."""
    hidden = {} if ffn is None else {"intermediate_size": ffn}
    return dict(vocab_size=vocab, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads) | dict(
        num_key_value_heads=kv_heads, head_dim=head_dim, **hidden, **others
    )


# -- sizes --------------------------------------------------------------------------------------------------------


def head_dim(c: Config) -> int:
    """Channels per head: stated, or d / h, which must divide."""
    return c.head_dim or equal_heads(c)


def equal_heads(c: Config) -> int:
    """Channels per head where the family always cuts the width into equal heads: d / h."""
    d, h = c.hidden_size, c.num_attention_heads
    if d % h:
        raise c.error(
            "hidden_size",
            f"({d}) is not divisible by {c.key('num_attention_heads')} ({h})",
            "the width is cut into equal heads",
        )
    return named("d_h", d // h, origin="d / h")


def kv_heads(c: Config) -> int:
    """Key/value heads: stated, or as many as query heads; must divide them."""
    h, g = c.num_attention_heads, c.num_key_value_heads or c.num_attention_heads
    if h % g:
        raise c.error(
            "num_attention_heads",
            f"({h}) is not divisible by {c.key('num_key_value_heads')} ({g})",
            "query heads share key/value heads in equal groups",
        )
    return g  # type: ignore[no-any-return]


# -- layers -------------------------------------------------------------------------------------------------------


def rms(c: Config) -> Norm:
    """RMSNorm over the width: a scale, no bias (Zhang and Sennrich 2019)."""
    return Norm(width=c.hidden_size)


def layer_norm(c: Config) -> Norm:
    """LayerNorm over the width, with scale and bias."""
    return Norm(width=c.hidden_size, bias=True)


def positions(c: Config, extra_rows: int = 0) -> Embedding:
    """Learned absolute positions, perhaps with rows to spare."""
    rows = c.max_position_embeddings
    return Embedding(rows=rows + extra_rows if extra_rows else rows, width=c.hidden_size, divided=False)


def gqa(
    c: Config,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    q_norm: Norm | None = None,
    k_norm: Norm | None = None,
    window: int | None = None,
    sinks: bool = False,
    inner: Component | None = None,
    out_in: int | None = None,
    indexer: Component | None = None,
    d_h: int | None = None,
) -> Attention:
    """Grouped-query attention from hidden_size, num_attention_heads, num_key_value_heads and head_dim."""
    return Attention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        kv_heads=kv_heads(c),
        head_dim=d_h or head_dim(c),
        q_bias=qkv_bias,
        k_bias=qkv_bias,
        v_bias=qkv_bias,
        out_bias=out_bias,
        q_norm=q_norm,
        k_norm=k_norm,
        window=window,
        sinks=sinks,
        inner=inner,
        out_in=out_in,
        indexer=indexer,
    )


def norm_per_head(c: Config) -> tuple[Norm, Norm]:
    """Norms for queries and keys with weights of their own for each head (Cohere, StableLM)."""
    d_h = head_dim(c)
    return Norm(width=d_h, count=c.num_attention_heads), Norm(width=d_h, count=kv_heads(c))


def mha(
    c: Config,
    *,
    qkv_bias: bool = True,
    out_bias: bool = True,
    window: int | None = None,
    kv: int | None = None,
    source: Kind = "self",
    inner: Component | None = None,
) -> Attention:
    """Attention whose heads cut the width into equal parts (GPT-2 and its kin); as many key/value heads unless `kv`."""
    h = c.num_attention_heads
    return Attention(
        width=c.hidden_size,
        heads=h,
        kv_heads=kv or h,
        head_dim=equal_heads(c),
        q_bias=qkv_bias,
        k_bias=qkv_bias,
        v_bias=qkv_bias,
        out_bias=out_bias,
        window=window,
        source=source,
        inner=inner,
    )


def biased(attn: Attention) -> Attention:
    """The same attention with a bias on each of its projections."""
    with_biases: Attention = attn.but(q_bias=True, k_bias=True, v_bias=True, out_bias=True)
    return with_biases


def glu(c: Config, hidden: int | None = None, *, bias: bool = False, category: Category = "ffn") -> Mlp:
    """A gated feed-forward network of three matrices."""
    width = c.intermediate_size if hidden is None else hidden
    return Mlp(width=c.hidden_size, hidden=width, gated=True, bias=bias, category=category)


def mlp(c: Config, hidden: int | None, *, bias: bool = True) -> Mlp:
    """A plain feed-forward network of two matrices; four times as wide as the model where `hidden` is None."""
    return Mlp(width=c.hidden_size, hidden=hidden or 4 * c.hidden_size, gated=False, bias=bias)


def moe(
    c: Config,
    hidden: int,
    *,
    experts: int,
    shared: int | None = None,
    shared_count: int = 1,
    shared_gate: bool = False,
    router_bias: bool = False,
    correction: bool = False,
    correction_counted: bool = False,
    bias: bool = False,
    shared_bias: bool = False,
    router: Component | None = None,
    top_k: int | None = None,
) -> Moe:
    """Routed experts of width `hidden`, num_experts_per_tok of them for each token, perhaps beside shared ones."""
    top_k = top_k or c.num_experts_per_tok
    if top_k is None:
        c.doubts.append(f"{c.family}: {c.key('num_experts_per_tok')} is not stated; active counts every expert")
        top_k = experts
    if top_k > experts > 0:
        raise c.error("num_experts_per_tok", f"({top_k}) is more than there are experts ({experts})")
    return Moe(
        width=c.hidden_size,
        expert=glu(c, hidden, bias=bias),
        experts=experts,
        top_k=top_k,
        router_bias=router_bias,
        router_correction=correction,
        correction_counted=correction_counted,
        router=router,
        shared=None if shared is None else glu(c, shared, bias=shared_bias, category="shared_experts"),
        shared_count=shared_count,
        shared_gate=shared_gate,
    )


def pre_norm(norm: Component, attn: Component, ffn: Component) -> Block:
    """Llama's layer: norm, attention, norm, feed-forward, each pair with its residual."""
    return block(input_norm=norm, attn=attn, post_norm=norm, ffn=ffn)


def norms_around(norm: Component, attn: Component, ffn: Component) -> Block:
    """A norm before and after attention, and before and after the FFN (Gemma 2, AFMoE)."""
    return block(input_norm=norm, attn=attn, post_attn_norm=norm, pre_ffn_norm=norm, ffn=ffn, post_ffn_norm=norm)


def norms_after(norm: Component, attn: Component, ffn: Component) -> Block:
    """A norm after attention, and one after the FFN (OLMo 2, EXAONE 4)."""
    return block(attn=attn, post_attn_norm=norm, ffn=ffn, post_ffn_norm=norm)


# -- layer patterns -----------------------------------------------------------------------------------------------


def kinds(c: Config, default: list[str]) -> list[str]:
    """The word for each layer: `layer_types` where the file says so, else the family's default pattern."""
    return c.words("layer_types", (FULL, SLIDING)) or default


def interleaved(
    c: Config,
    attn: Mapping[K, Component],
    words: list[K],
    ffn: Mapping[str, Component],
    ffn_words: list[str],
    *,
    layer: Callable[[Component, Component, Component], Block] = pre_norm,
) -> list[Block]:
    """A layer for each pair of words (or other keys): its attention's and its FFN's. `layer` joins them with a norm."""
    built = {(a, f): layer(rms(c), attn[a], ffn[f]) for a in attn for f in ffn}
    return [built[pair] for pair in zip(words, ffn_words, strict=True)]


# -- whole models -------------------------------------------------------------------------------------------------


def llama_like(c: Config, attn: Component, ffn: Component) -> Block:
    """A decoder of equal pre-norm layers with RMS norms."""
    return causal_lm(c, Run(c.num_hidden_layers, pre_norm(rms(c), attn, ffn)), norm=rms(c))


def ignored(c: Config, **built: Any) -> None:
    """Fields of other code that the class ignores, with what it builds: a doubt where the file wants other things."""
    for key, value in built.items():
        if c.raw(key) not in (None, value):
            c.doubts.append(f"{c.family}: {key} asks for what {c.architecture} does not build; it is not counted")


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
    """A decoder: token embedding, whatever comes `before` the layers, the layers, a final norm, and the head."""
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        **(before or {}),
        layers=stack("decoder", layers),
        norm=norm,
        **decoder_head(c, c.hidden_size, bias=head_bias, rows=head_rows),
        mtp=mtp if mtp and mtp.count and c.head in ("lm", "seq2seq_lm") else None,
    )


# -- encoders -----------------------------------------------------------------------------------------------------


def embeddings(
    c: Config, width: int, *, rows: int | None = None, types: bool = True, norm: bool = True
) -> dict[str, Component]:
    """Token, position and segment tables of one width, summed and normalised; no positions where `rows` is 0."""
    tables: dict[str, Component] = {"embed_tokens": Embedding(rows=c.vocab_size, width=width)}
    if rows != 0:
        tables["positions"] = Embedding(rows=rows or c.max_position_embeddings, width=width)
    if types and c.type_vocab_size:
        tables["token_types"] = Embedding(rows=c.type_vocab_size, width=width)
    return tables | ({"embed_norm": Norm(width=width, bias=True)} if norm else {})


def projected(c: Config, width: int, *, bias: bool = True) -> dict[str, Component]:
    """From the width of the embeddings to that of the layers."""
    return {"embed_proj": Linear(d_in=width, d_out=c.hidden_size, bias=bias, category="embedding")}


def encoder_layer(
    c: Config, *, attn: Component | None = None, ffn: Component | None = None, norm_first: bool = False
) -> Block:
    """Attention, norm, FFN, norm (Vaswani et al. 2017), or norms first; cross attention where a decoder asks for it."""
    mixer = mha(c) if attn is None else attn
    steps: dict[str, Component] = {"attn": mixer}
    if c.add_cross_attention:
        c.require(c.is_decoder, "add_cross_attention needs is_decoder", "set is_decoder to true")
        steps["cross_attn"] = mixer.but(source="cross")
    steps["ffn"] = mlp(c, c.intermediate_size) if ffn is None else ffn
    parts: dict[str, Component] = {}
    for name, step in steps.items():
        norm: dict[str, Component] = {f"{name}_norm": layer_norm(c)}
        parts |= norm | {name: step} if norm_first else {name: step} | norm
    return block(**parts)


def encoder(
    c: Config,
    before: Mapping[str, Component],
    layers: Component | Layers,
    heads: Mapping[str, Component],
    **after: Component,
) -> Block:
    """Embeddings, layers (one for all, or a list), whatever comes `after` them, and heads."""
    equal = Run(c.num_hidden_layers, layers) if isinstance(layers, Component) else layers
    return block(**before, layers=stack("encoder", equal), **after, **heads)
