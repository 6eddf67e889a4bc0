"""Dense decoders with Llama's layer or a close variant."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, qk_norm_all_heads, qk_norm_per_head, qk_norm_separate, sliding
from paramcalc.families.builders.decoder import (
    causal_lm,
    decoder,
    layer_norm,
    norms_after,
    norms_around,
    parallel,
    pre_norm,
    rms,
    unpublished,
)
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types, full_first
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Mtp, Run, block
from paramcalc.tree.leaves import Embedding, Linear, Norm


@family("aquila", "skywork")
def aquila(c: Config) -> Block:
    """Llama under another name (AquilaForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c), glu(c))


@family("arcee", "cosmos3_edge_text")
def arcee(c: Config) -> Block:
    """Llama with a plain FFN (ArceeForCausalLM)."""
    return decoder(c, gqa(c, bias=c.attention_bias), mlp(c, c.intermediate_size, bias=c.mlp_bias))


@family("bitnet")
def bitnet(c: Config) -> Block:
    """Llama with a norm before each output projection (BitNetForCausalLM)."""
    ffn = glu(c).replace(inner=Norm(width=c.intermediate_size))
    return decoder(c, gqa(c, bias=c.attention_bias, inner=rms(c)), ffn)


@family("cwm")
def cwm(c: Config) -> Block:
    """Llama with full attention in every fourth layer from the first on (CwmForCausalLM)."""
    return decoder(c, sliding(gqa(c), c.sliding_window), glu(c, bias=c.mlp_bias), attention_types(c, full_first(c, 4)))


@family("helium")
def helium(c: Config) -> Block:
    """Llama whose output projection is always square and without a bias (HeliumForCausalLM)."""
    return decoder(c, gqa(c, qkv_bias=c.attention_bias, out_in=c.hidden_size), glu(c, bias=c.mlp_bias))


@family("hyperclovax")
def hyperclovax(c: Config) -> Block:
    """Llama with optional norms after each sublayer (HyperCLOVAXForCausalLM)."""
    layer = norms_around if c.use_post_norm else pre_norm
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c, bias=c.mlp_bias), layer=layer)


@family("mimo")
def mimo(c: Config) -> Block:
    """Qwen2 with layers for multi-token prediction (MiMoForCausalLM, 2505.07608)."""
    unpublished(c)
    attn, ffn, d = gqa(c, qkv_bias=c.attention_bias), glu(c), c.hidden_size
    ahead = Mtp(
        count=c.num_nextn_predict_layers or 0,
        items={
            "token_norm": rms(c),
            "hidden_norm": rms(c),
            "proj": Linear(d_in=2 * d, d_out=d, category="other"),
            "layer": pre_norm(rms(c), attn, ffn),
            "norm": rms(c),
        },
    )
    return block(**decoder(c, attn, ffn).items, mtp=ahead if c.num_nextn_predict_layers else None)


@family("molmo2_text")
def molmo2_text(c: Config) -> Block:
    """Llama with QK norms and extra embedding rows for input-only tokens (Molmo 2; Molmo2TextModel)."""
    kind, norm = c.qk_norm_type, rms(c)
    c.require(kind in ("qwen3", "olmo"), f"qk_norm_type {kind!r} is neither qwen3 nor olmo")
    attn = (qk_norm_per_head if kind == "qwen3" else qk_norm_all_heads)(c, qkv_bias=c.attention_bias)
    layer = (norms_after if c.norm_after else pre_norm)(norm, attn, glu(c))
    parts = dict(causal_lm(c, Run(c.num_hidden_layers, layer), norm=norm).items)
    rows = c.vocab_size + c.additional_vocab_size
    return block(**parts | {"embed_tokens": Embedding(rows=rows, width=c.hidden_size)})


@family("nanochat")
def nanochat(c: Config) -> Block:
    """Norms without weights, QK norms included, and a plain FFN (NanoChatForCausalLM)."""
    ffn, norm = mlp(c, c.intermediate_size, bias=False), Norm(width=c.hidden_size, scale=False)
    return decoder(c, gqa(c, bias=c.attention_bias), ffn, norm=norm)


@family("orion")
def orion(c: Config) -> Block:
    """Llama with LayerNorms (OrionForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c), glu(c), norm=layer_norm(c))


@family("paddleocr_vl_text")
def paddleocr_vl_text(c: Config) -> Block:
    """Llama with biases everywhere or nowhere (PaddleOCRTextModel)."""
    return decoder(c, gqa(c, qkv_bias=c.use_bias, out_bias=c.use_bias), glu(c, bias=c.use_bias))


@family("seed_oss")
def seed_oss(c: Config) -> Block:
    """Llama with separate flags for the biases of q, k, v and of the output (SeedOssForCausalLM)."""
    attn = gqa(c, qkv_bias=c.attention_bias, out_bias=c.attention_out_bias)
    return decoder(c, attn, glu(c, bias=c.mlp_bias))


@family("smollm3")
def smollm3(c: Config) -> Block:
    """Llama; optional windows in the layers without rotary positions, every fourth (SmolLM3ForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    ropes = c.per_layer("no_rope_layers") or [(i + 1) % c.no_rope_layer_interval for i in range(c.num_hidden_layers)]
    words = attention_types(c, [SLIDING if window and not rope else FULL for rope in ropes])
    return decoder(c, sliding(gqa(c, bias=c.attention_bias), window), glu(c, bias=c.mlp_bias), words)


@family("solar")
def solar(c: Config) -> Block:
    """Llama with residual connections that skip blocks of layers, without weights (SolarForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c, bias=c.attention_bias), glu(c, bias=c.mlp_bias))


@family("stablelm", "stablelm_epoch")
def stablelm(c: Config) -> Block:
    """LayerNorms, gated FFN, optional q/k/v biases and QK norms per head; parallel or not (StableLmForCausalLM)."""
    attn = (qk_norm_separate if c.qk_layernorm else gqa)(c, qkv_bias=c.use_qkv_bias)
    return decoder(c, attn, glu(c), layer=parallel if c.use_parallel_residual else pre_norm, norm=layer_norm(c))


@family("starcoder2")
def starcoder2(c: Config) -> Block:
    """Pre-norm decoder with LayerNorms, biases and a plain FFN (Starcoder2ForCausalLM)."""
    attn, ffn = gqa(c, bias=c.use_bias, window=c.sliding_window), mlp(c, c.intermediate_size, bias=c.use_bias)
    return decoder(c, attn, ffn, norm=layer_norm(c))


@family("telechat")
def telechat(c: Config) -> Block:
    """Llama with biases on the output projections and an optional embedding norm (TelechatForCausalLM)."""
    if c.num_key_value_heads not in (None, c.num_attention_heads):
        c.doubts.append("telechat: num_key_value_heads is counted as TeleChat2's code reads it; the first ignored it")
    before = {"embed_norm": rms(c) if c.embed_layernorm else None}
    return decoder(c, gqa(c, out_bias=True), glu(c, c.ffn_hidden_size).replace(down_bias=True), before=before)


@family("xverse")
def xverse(c: Config) -> Block:
    """Llama without grouped heads (XverseForCausalLM)."""
    unpublished(c)
    return decoder(c, gqa(c), glu(c))
