"""What recipes share: attention, feed-forward and experts from canonical fields, and whole-model skeletons.

Everything here reads a Config and returns components. A helper moves here when a second family needs it.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.components import Attention, Mamba, Mlp, Moe
from paramcalc.components.attention import Kind
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.heads import decoder_head
from paramcalc.spec import Block, Category, Component, Embedding, Layers, Mtp, Norm, block, stack

FULL, SLIDING = "full_attention", "sliding_attention"

# -- sizes -------------------------------------------------------------------------------------------------------


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


# -- layers ------------------------------------------------------------------------------------------------------


def rms(c: Config) -> Norm:
    """RMSNorm over the width: a scale, no bias (Zhang and Sennrich 2019)."""
    return Norm(width=c.hidden_size)


def layer_norm(c: Config) -> Norm:
    """LayerNorm over the width, with scale and bias."""
    return Norm(width=c.hidden_size, bias=True)


def gqa(
    c: Config,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    q_norm: Norm | None = None,
    k_norm: Norm | None = None,
    window: int | None = None,
    sinks: bool = False,
) -> Attention:
    """Grouped-query attention from hidden_size, num_attention_heads, num_key_value_heads and head_dim."""
    return Attention(
        width=c.hidden_size,
        heads=c.num_attention_heads,
        kv_heads=kv_heads(c),
        head_dim=head_dim(c),
        q_bias=qkv_bias,
        k_bias=qkv_bias,
        v_bias=qkv_bias,
        out_bias=out_bias,
        q_norm=q_norm,
        k_norm=k_norm,
        window=window,
        sinks=sinks,
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
    )


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
    bias: bool = False,
    shared_bias: bool = False,
) -> Moe:
    """Routed experts of width `hidden`, num_experts_per_tok of them for each token, perhaps beside shared ones."""
    top_k = c.num_experts_per_tok
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
        shared=None if shared is None else glu(c, shared, bias=shared_bias, category="shared_experts"),
        shared_count=shared_count,
        shared_gate=shared_gate,
    )


def mamba(
    c: Config,
    *,
    inner: int,
    state: int,
    kernel: int,
    dt_rank: str,
    bias: bool,
    conv_bias: bool,
    inner_norms: bool = False,
) -> Mamba:
    """A Mamba mixer; `dt_rank` names the field that holds the rank of the time step, by default d / 16."""
    rank = c.raw(dt_rank)
    by_width = named("r", -(-c.hidden_size // 16), origin="d / 16, rounded up")
    return Mamba(
        width=c.hidden_size,
        inner=inner,
        state=state,
        kernel=kernel,
        dt_rank=by_width if rank in (None, "auto") else named("r", c.whole(dt_rank, rank), origin=c.key(dt_rank)),
        conv_bias=conv_bias,
        bias=bias,
        inner_norms=inner_norms,
    )


def pre_norm(norm: Component, attn: Component, ffn: Component) -> Block:
    """Llama's layer: norm, attention, norm, feed-forward, each pair with its residual."""
    return block(input_norm=norm, attn=attn, post_norm=norm, ffn=ffn)


# -- layer patterns ----------------------------------------------------------------------------------------------


def kinds(c: Config, default: list[str]) -> list[str]:
    """The word for each layer: `layer_types` where the file says so, else the family's default pattern."""
    return c.words("layer_types", (FULL, SLIDING)) or default


def every(period: int, word: str, *, otherwise: str, layers: int) -> list[str]:
    """`word` on each period-th layer (the last of each group), `otherwise` on the others."""
    return [word if (i + 1) % period == 0 else otherwise for i in range(layers)]


# -- whole models ------------------------------------------------------------------------------------------------


def causal_lm(
    c: Config,
    layers: Layers,
    *,
    norm: Component | None,
    before: Mapping[str, Component | None] | None = None,
    head_bias: bool = False,
    mtp: Mtp | None = None,
) -> Block:
    """A decoder: token embedding, whatever comes `before` the layers, the layers, a final norm, and the head."""
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        **(before or {}),
        layers=stack("decoder", layers),
        norm=norm,
        **decoder_head(c, c.hidden_size, bias=head_bias),
        mtp=mtp if mtp and mtp.count and c.head in ("lm", "seq2seq_lm") else None,
    )
