"""State space models, RWKV and xLSTM, and the hybrids of Mamba with attention."""

from __future__ import annotations

from paramcalc.components import Adapters, Attention, Mamba2, Mlp, Mlstm, Moe, Reused, RwkvChannelMix, RwkvTimeMix
from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.families.heads import decoder_head
from paramcalc.families.mixers import mamba
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    FULL,
    LINEAR,
    causal_lm,
    glu,
    gqa,
    kv_heads,
    layer_norm,
    mixers,
    moe,
    pre_norm,
    rms,
    unbuilt_mtp,
)
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Run, block, stack

HYBRID = "hybrid"

MAMBA = dict(
    vocab_size=50280,
    hidden_size=768,
    num_hidden_layers=32,
    state_size=16,
    conv_kernel=4,
    expand=2,
    use_bias=False,
    use_conv_bias=True,
    tie_word_embeddings=True,
)
MAMBA1 = MAMBA | dict(intermediate_size=None, time_step_rank="auto")


@family("mamba", "MambaForCausalLM", defaults=MAMBA1)
@family("falcon_mamba", "FalconMambaForCausalLM", defaults=MAMBA1)
def mamba_lm(c: Config) -> Block:
    """A stack of selective state space mixers, each behind a norm, without FFNs (MambaForCausalLM)."""
    mixer = mamba(
        c,
        inner=c.intermediate_size or c.expand * c.hidden_size,
        state=c.state_size,
        kernel=c.conv_kernel,
        dt_rank="time_step_rank",
        bias=c.use_bias,
        conv_bias=c.use_conv_bias,
    )
    return causal_lm(c, Run(c.num_hidden_layers, block(norm=rms(c), mixer=mixer)), norm=rms(c))


@family(
    "mamba2",
    "Mamba2ForCausalLM",
    defaults=MAMBA
    | dict(
        vocab_size=32768,
        hidden_size=4096,
        num_hidden_layers=64,
        num_heads=128,
        head_dim=64,
        state_size=128,
        n_groups=8,
        tie_word_embeddings=False,
    ),
    # Fields of the original implementation that stand in published files; the class fixes or derives them.
    unused=["time_step_rank", "intermediate_size", "rms_norm", "norm_before_gate"],
)
def mamba2_lm(c: Config) -> Block:
    """A stack of Mamba-2 mixers, each behind a norm, without FFNs (Mamba2ForCausalLM)."""
    inner = c.expand * c.hidden_size
    c.require(
        inner == c.num_heads * c.head_dim,
        f"expand x hidden_size ({inner}) is not num_heads x head_dim ({c.num_heads * c.head_dim})",
    )
    mixer = Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=c.num_heads,
        head_dim=c.head_dim,
        state=c.state_size,
        groups=c.n_groups,
        kernel=c.conv_kernel,
        conv_bias=c.use_conv_bias,
        bias=c.use_bias,
        out_bias=c.use_bias,
    )
    return causal_lm(c, Run(c.num_hidden_layers, block(norm=rms(c), mixer=mixer)), norm=rms(c))


@family(
    "jamba",
    "JambaForCausalLM",
    names=dict(num_local_experts="num_experts"),
    defaults=dict(
        vocab_size=65536,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=None,
        num_experts=16,
        num_experts_per_tok=2,
        expert_layer_period=2,
        expert_layer_offset=1,
        attn_layer_period=8,
        attn_layer_offset=4,
        mamba_d_state=16,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_dt_rank="auto",
        mamba_conv_bias=True,
        mamba_proj_bias=False,
    ),
)
def jamba(c: Config) -> Block:
    """Mamba with attention in every eighth layer, experts in every second (JambaForCausalLM)."""
    for kind in ("attn", "expert"):
        period, offset = f"{kind}_layer_period", f"{kind}_layer_offset"
        c.require(getattr(c, offset) < getattr(c, period), f"{offset} must be smaller than {period}")
    attn: Component = gqa(c)
    ssm = mamba(
        c,
        inner=c.mamba_expand * c.hidden_size,
        state=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        dt_rank="mamba_dt_rank",
        bias=c.mamba_proj_bias,
        conv_bias=c.mamba_conv_bias,
        inner_norms=True,
    )
    dense = glu(c)
    sparse: Component = moe(c, c.intermediate_size, experts=c.num_experts) if c.num_experts > 1 else dense

    def layer(i: int) -> tuple[bool, bool]:
        is_attention = i % c.attn_layer_period == c.attn_layer_offset
        return is_attention, i % c.expert_layer_period == c.expert_layer_offset

    layers = {
        (a, e): pre_norm(rms(c), attn if a else ssm, sparse if e else dense)
        for a in (True, False)
        for e in (True, False)
    }
    return causal_lm(c, [layers[layer(i)] for i in range(c.num_hidden_layers)], norm=rms(c))


# -- Mamba-2 and attention ---------------------------------------------------------------------------------------

BAMBA = dict(
    vocab_size=128000,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=None,
    attention_bias=False,
    mlp_bias=False,
    mamba_n_heads=128,
    mamba_d_head=None,
    mamba_n_groups=1,
    mamba_d_state=256,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_conv_bias=True,
    mamba_proj_bias=False,
)


def mamba2(c: Config, *, inner: int | None = None, out_bias: bool | None = None, gated_norm: bool = True) -> Mamba2:
    """Mamba-2 from the mamba_ fields; its heads cut `inner`, by default mamba_expand times the width."""
    inner = c.mamba_expand * c.hidden_size if inner is None else inner
    heads, stated = c.mamba_n_heads, c.raw("mamba_d_head")
    channels = inner // heads if stated in (None, "auto") else c.whole("mamba_d_head", stated)
    c.require(heads * channels == inner, f"mamba_n_heads x mamba_d_head ({heads} x {channels}) is not {inner}")
    return Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=heads,
        head_dim=channels,
        state=c.mamba_d_state,
        groups=c.mamba_n_groups,
        kernel=c.mamba_d_conv,
        conv_bias=c.mamba_conv_bias,
        bias=c.mamba_proj_bias,
        out_bias=c.mamba_proj_bias if out_bias is None else out_bias,
        gated_norm=gated_norm,
    )


@family(
    "bamba",
    "BambaForCausalLM",
    defaults=BAMBA | dict(attn_layer_indices=None),
    nullable=["num_key_value_heads"],
    unused=["attn_rotary_emb"],  # channels with rotary positions
)
def bamba(c: Config) -> Block:
    """Mamba-2 with attention in the layers that attn_layer_indices lists, each with an FFN (BambaForCausalLM)."""
    bias, chosen, ffn = c.attention_bias, set(c.numbers("attn_layer_indices")), glu(c, bias=c.mlp_bias)
    attn, ssm = pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), ffn), pre_norm(rms(c), mamba2(c), ffn)
    return causal_lm(c, [attn if i in chosen else ssm for i in range(c.num_hidden_layers)], norm=rms(c))


@family(
    "falcon_h1",
    "FalconH1ForCausalLM",
    defaults=BAMBA | dict(mamba_d_ssm=1024, mamba_rms_norm=False, projectors_bias=False),
    nullable=["mamba_d_ssm", "num_key_value_heads"],
    unused=["mamba_use_mlp", "mlp_expansion_factor"],  # stand in published files
)
def falcon_h1(c: Config) -> Block:
    """Mamba-2 and attention side by side behind one norm in every layer, then an FFN (FalconH1ForCausalLM)."""
    bias = c.attention_bias
    layer = block(
        input_norm=rms(c),
        mixer=mamba2(c, inner=c.mamba_d_ssm, out_bias=c.projectors_bias, gated_norm=c.mamba_rms_norm),
        attn=gqa(c, qkv_bias=bias, out_bias=bias),
        post_norm=rms(c),
        ffn=glu(c, bias=c.mlp_bias),
    )
    return causal_lm(c, Run(c.num_hidden_layers, layer), norm=rms(c))


@family(
    "granitemoehybrid",
    "GraniteMoeHybridForCausalLM",
    names=dict(layers_block_type="layer_types"),
    defaults={field: value for field, value in BAMBA.items() if field != "mlp_bias"}
    | dict(
        vocab_size=32000,
        intermediate_size=11008,
        num_key_value_heads=None,
        num_local_experts=8,
        num_experts_per_tok=2,
        shared_intermediate_size=1024,
        layer_types=None,
    ),
    unused=["normalization_function"],  # named in published files, fixed in the class
)
def granitemoehybrid(c: Config) -> Block:
    """Granite with Mamba-2 in most layers, and routed experts beside a shared MLP (GraniteMoeHybridForCausalLM)."""
    bias, shared = c.attention_bias, c.shared_intermediate_size
    ffn: Component = glu(c, shared)
    if c.num_local_experts:
        ffn = moe(c, c.intermediate_size, experts=c.num_local_experts, shared=shared)
    layers = {
        FULL: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias), ffn),
        LINEAR: pre_norm(rms(c), mamba2(c), ffn),
    }
    return causal_lm(c, [layers[word] for word in mixers(c, [LINEAR] * c.num_hidden_layers)], norm=rms(c))


NEMOTRON_LETTERS = {"M": LINEAR, "E": "moe", "*": FULL, "-": "mlp"}


@family(
    "nemotron_h",
    "NemotronHForCausalLM",
    names=dict(
        layer_types="layers_block_type",
        num_local_experts="n_routed_experts",
        mamba_n_groups="n_groups",  # other spellings of checkpoints
        mamba_d_conv="conv_kernel",
        mamba_conv_bias="use_conv_bias",
    ),
    fixed=dict(tie_word_embeddings=False),  # the class does not tie, whatever the file says
    defaults=dict(
        vocab_size=131072,
        hidden_size=4096,
        layer_types=None,
        hybrid_override_pattern="ME*-",
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=21504,
        mlp_bias=False,
        ssm_state_size=128,
        mamba_num_heads=128,
        mamba_head_dim=64,
        n_groups=8,
        conv_kernel=4,
        use_conv_bias=True,
        use_bias=False,
        num_local_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=7688,
        moe_shared_expert_intermediate_size=7688,
        moe_latent_size=None,
    ),
    nullable=["num_key_value_heads"],
    unused=[
        "num_hidden_layers",  # the list of layers decides the depth
        "attention_bias",  # attention has none
        "mamba_proj_bias",  # use_bias instead
        "expand",  # heads and their channels decide
        "n_shared_experts",  # one, of the stated width
        "mtp_layers_block_type",
        "mtp_hybrid_override_pattern",
    ],
)
def nemotron_h(c: Config) -> Block:
    """One mixer in each layer: Mamba-2, attention, a plain FFN, or experts in a latent (NemotronHForCausalLM)."""
    mixer: dict[str, Component] = {
        LINEAR: Mamba2(
            width=c.hidden_size,
            inner=c.mamba_num_heads * c.mamba_head_dim,
            heads=c.mamba_num_heads,
            head_dim=c.mamba_head_dim,
            state=c.ssm_state_size,
            groups=c.n_groups,
            kernel=c.conv_kernel,
            conv_bias=c.use_conv_bias,
            bias=c.use_bias,
            out_bias=c.use_bias,
        ),
        FULL: gqa(c),
        "mlp": Mlp(width=c.hidden_size, hidden=c.intermediate_size, gated=False, bias=c.mlp_bias),
        "moe": nemotron_experts(c),
    }
    unbuilt_mtp(c)
    return causal_lm(c, [block(norm=rms(c), mixer=mixer[word]) for word in nemotron_words(c)], norm=rms(c))


def nemotron_words(c: Config) -> list[str]:
    """The word for each layer: from the list, else from the letters of older files; by default four layers."""
    letters = c.hybrid_override_pattern
    unknown = sorted(set(letters) - set(NEMOTRON_LETTERS))
    c.require(not unknown, f"hybrid_override_pattern has the unknown letters {unknown}", "known: M E * -")
    default = [NEMOTRON_LETTERS[letter] for letter in letters]
    return mixers(c, default, tuple(NEMOTRON_LETTERS.values()), any_length=True)


def nemotron_experts(c: Config) -> Component:
    """Experts of two matrices beside a shared one, in a latent of moe_latent_size channels where that is stated."""
    d, latent, bias = c.hidden_size, c.moe_latent_size, c.mlp_bias
    shared = c.moe_shared_expert_intermediate_size
    experts = Moe(
        width=d,
        expert=Mlp(width=latent or d, hidden=c.moe_intermediate_size, gated=False),
        experts=c.num_local_experts,
        top_k=c.num_experts_per_tok,
        router_correction=True,
        shared=Mlp(width=d, hidden=shared, gated=False, bias=bias, category="shared_experts"),
    )
    if latent is None:
        return experts
    return block(
        latent_in=Linear(d_in=d, d_out=latent, bias=bias, category="other"),
        moe=experts,
        latent_out=Linear(d_in=latent, d_out=d, bias=bias, category="other"),
    )


# -- shared transformer blocks -----------------------------------------------------------------------------------


def zamba_layers(c: Config, words: list[str], mixer: Component, shared: list[Block]) -> list[Block]:
    """Mamba layers; hybrid ones first run one of the `shared` transformer blocks, in turn.

    The first layer to run a block holds it. Where the head is not tied, the class does not tie the blocks either.
    """
    layers = [block(input_norm=rms(c), mixer=mixer)] * len(words)
    linear = Linear(d_in=c.hidden_size, d_out=c.hidden_size, category="other")
    hybrids = [i for i, word in enumerate(words) if word == HYBRID]
    for n, i in enumerate(hybrids):
        turn = n % len(shared)
        part: Component = shared[turn]
        if n >= len(shared) and c.tie_word_embeddings:
            part = Reused(part=part, owner=f"layers.{hybrids[turn]}.shared")
        layers[i] = block(shared=part, linear=linear, input_norm=rms(c), mixer=mixer)
    return layers


def zamba_attention(c: Config, width: int, head_dim: int, inner: Component | None = None) -> Attention:
    """Attention over the hidden state and the embedding side by side, of which only d channels come out."""
    return Attention(
        width=width,
        out_width=c.hidden_size,
        heads=c.num_attention_heads,
        kv_heads=kv_heads(c),
        head_dim=head_dim,
        inner=inner,
    )


@family(
    "zamba",
    "ZambaForCausalLM",
    names=dict(layer_types="layers_block_type", head_dim="attention_head_dim"),
    defaults=dict(
        vocab_size=32000,
        hidden_size=3712,
        intermediate_size=14848,
        num_hidden_layers=76,
        num_attention_heads=16,
        num_key_value_heads=16,
        attention_hidden_size=None,
        head_dim=None,
        attn_layer_period=6,
        attn_layer_offset=4,
        layer_types=None,
        n_mamba_heads=2,
        mamba_d_state=16,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_dt_rank=None,
        mamba_conv_bias=True,
        mamba_proj_bias=False,
        tie_word_embeddings=True,
    ),
)
def zamba(c: Config) -> Block:
    """Mamba layers, and one transformer block that every sixth of them runs first (ZambaForCausalLM)."""
    inner = c.mamba_expand * c.hidden_size
    c.require(inner % c.n_mamba_heads == 0, f"the inner width ({inner}) is not divisible by n_mamba_heads")
    mixer = mamba(
        c,
        inner=inner,
        state=c.mamba_d_state,
        kernel=c.mamba_d_conv,
        dt_rank="mamba_dt_rank",
        bias=c.mamba_proj_bias,
        conv_bias=c.mamba_conv_bias,
    )
    period, offset = c.attn_layer_period, c.attn_layer_offset
    later = [HYBRID if i % period == offset else LINEAR for i in range(c.num_hidden_layers - 3)]
    words = mixers(c, [LINEAR, LINEAR, HYBRID, *later], (LINEAR, HYBRID))
    c.require(len(words) == c.num_hidden_layers, "the default order needs three layers or more")
    shares = words.count(HYBRID) != 1 or not c.tie_word_embeddings
    c.require(shares, "the class cannot tie a block that a single layer runs", "two hybrid layers, or none")
    width = c.attention_hidden_size or 2 * c.hidden_size
    attn = zamba_attention(c, width, c.head_dim or doubled_heads(c))
    shared = block(input_norm=Norm(width=width), attn=attn, post_norm=rms(c), ffn=glu(c))
    return causal_lm(c, zamba_layers(c, words, mixer, [shared]), norm=rms(c))


def doubled_heads(c: Config) -> int:
    """Channels per head where heads cut twice the width."""
    return named("d_h", 2 * c.hidden_size // c.num_attention_heads, origin="2 d / h, rounded down")


ZAMBA2_PATTERN = [LINEAR, *([LINEAR] * 5 + [HYBRID]) * 7, *[LINEAR] * 4, HYBRID, *[LINEAR] * 3, HYBRID, LINEAR, LINEAR]


@family(
    "zamba2",
    "Zamba2ForCausalLM",
    names=dict(layer_types="layers_block_type", head_dim="attention_head_dim"),
    defaults=dict(
        vocab_size=32000,
        hidden_size=2560,
        intermediate_size=None,
        num_hidden_layers=54,
        num_attention_heads=32,
        num_key_value_heads=None,
        attention_hidden_size=None,
        head_dim=None,
        layer_types=None,
        hybrid_layer_ids=None,
        num_mem_blocks=1,
        use_shared_attention_adapter=False,
        adapter_rank=128,
        n_mamba_heads=8,
        mamba_d_state=64,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_ngroups=1,
        add_bias_linear=False,
        tie_word_embeddings=True,
    ),
    # What the class derives, or does not look at: its convolution has a bias, its MLP adapters, always.
    unused=["mamba_headdim", "kv_channels", "num_query_groups", "use_conv_bias", "use_shared_mlp_adapter"],
)
def zamba2(c: Config) -> Block:
    """Mamba-2 layers, and transformer blocks that hybrid layers run in turn, adapted for each (Zamba2ForCausalLM)."""
    inner, heads = c.mamba_expand * c.hidden_size, c.n_mamba_heads
    mixer = Mamba2(
        width=c.hidden_size,
        inner=inner,
        heads=heads,
        head_dim=inner // heads,
        state=c.mamba_d_state,
        groups=c.mamba_ngroups,
        kernel=c.mamba_d_conv,
        bias=c.add_bias_linear,
        out_bias=c.add_bias_linear,
    )
    words = mixers(c, ZAMBA2_PATTERN, (LINEAR, HYBRID))
    c.require(len(words) == c.num_hidden_layers, "a depth other than 54 needs layers_block_type")
    hybrids, blocks = [i for i, word in enumerate(words) if word == HYBRID], c.num_mem_blocks
    listed = c.listed("hybrid_layer_ids")
    c.require(listed in (None, hybrids), "hybrid_layer_ids and layers_block_type disagree")
    # Each block holds the adapters of the layers whose turn it is.
    shared = [adapted_block(c, len(hybrids[turn::blocks])) for turn in range(min(blocks, len(hybrids)))]
    return causal_lm(c, zamba_layers(c, words, mixer, shared), norm=rms(c))


def adapted_block(c: Config, passes: int) -> Block:
    """A transformer block for two vectors side by side, with adapters for each of its passes."""
    width, rank = c.attention_hidden_size or 2 * c.hidden_size, c.adapter_rank
    hidden = c.intermediate_size or 4 * c.hidden_size
    corrected = Adapters(d_in=width, d_out=width, rank=rank, count=passes)
    adapters = block(q=corrected, k=corrected, v=corrected) if c.use_shared_attention_adapter else None
    return block(
        input_norm=Norm(width=width),
        attn=zamba_attention(c, width, c.head_dim or doubled_heads(c), adapters),
        post_norm=rms(c),
        ffn=Mlp(
            width=c.hidden_size,
            hidden=hidden,
            gated=True,
            fused=True,
            bias=c.add_bias_linear,
            inner=Adapters(d_in=c.hidden_size, d_out=2 * hidden, rank=rank, count=passes),
        ),
    )


# -- RWKV and xLSTM ----------------------------------------------------------------------------------------------


@family(
    "rwkv",
    "RwkvForCausalLM",
    names=dict(max_position_embeddings="context_length"),
    defaults=dict(
        vocab_size=50277,
        hidden_size=4096,
        num_hidden_layers=32,
        attention_hidden_size=None,
        intermediate_size=None,
    ),
)
def rwkv(c: Config) -> Block:
    """RWKV-4: time mixing and channel mixing behind LayerNorms, one more before the first layer (RwkvForCausalLM)."""
    d = c.hidden_size
    mixer = RwkvTimeMix(width=d, inner=c.attention_hidden_size or d)
    layer = pre_norm(layer_norm(c), mixer, RwkvChannelMix(width=d, hidden=c.intermediate_size or 4 * d))
    first = block(pre_norm=layer_norm(c), **layer.items)
    return causal_lm(c, [first, Run(c.num_hidden_layers - 1, layer)], norm=layer_norm(c))


@family(
    "xlstm",
    "xLSTMForCausalLM",
    fixed=dict(tie_word_embeddings=False),  # the class does not tie, whatever the file says
    defaults=dict(
        vocab_size=50304,
        hidden_size=4096,
        embedding_dim=None,
        num_hidden_layers=32,
        num_blocks=None,
        num_heads=8,
        use_bias=False,
        qk_dim_factor=0.5,
        v_dim_factor=1.0,
        ffn_proj_factor=2.667,
        ffn_round_up_to_multiple_of=64,
    ),
    unused=["add_out_norm", "weight_mode", "mode", "eps"],  # it has that norm always; fused matrices hold the same
)
def xlstm(c: Config) -> Block:
    """Matrix memories with exponential gates, and gated FFNs (xLSTMForCausalLM)."""
    d, depth, bias = c.hidden_size, c.num_blocks or c.num_hidden_layers, c.use_bias
    multiple, wanted = c.ffn_round_up_to_multiple_of, d * c.ffn_proj_factor
    hidden = named(
        "d_ff", int((wanted + multiple - 1) // multiple * multiple), origin="d x ffn_proj_factor, rounded up"
    )
    mixer = Mlstm(
        width=d,
        heads=c.num_heads,
        qk_width=named("d_qk", int(d * c.qk_dim_factor), origin="d x qk_dim_factor"),
        value_width=named("d_v", int(d * c.v_dim_factor), origin="d x v_dim_factor"),
        bias=bias,
    )
    norm = Norm(width=d, bias=bias)
    layer = pre_norm(norm, mixer, Mlp(width=d, hidden=hidden, gated=True, bias=bias))
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.embedding_dim or d),
        layers=stack("decoder", Run(depth, layer)),
        norm=Norm(width=d),
        **decoder_head(c, d),
    )
