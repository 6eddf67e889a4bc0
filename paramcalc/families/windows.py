"""Recent dense decoders with sliding windows in some layers."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, qk_norm_all_heads, qk_norm_per_head, sliding
from paramcalc.families.builders.decoder import decoder, norms_after, parallel
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.heads import decoder_head, num_labels
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types, full_every, full_first
from paramcalc.families.builders.mtp import unbuilt_mtp
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm


@family("cwm")
def cwm(c: Config) -> Block:
    """Llama with full attention in every fourth layer from the first on (CwmForCausalLM)."""
    return decoder(c, sliding(gqa(c), c.sliding_window), glu(c, bias=c.mlp_bias), attention_types(c, full_first(c, 4)))


@family("granite_swa")
def granite_swa(c: Config) -> Block:
    """Granite with a sink per head, full attention in every fourth layer from the first on (GraniteSWAForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias, sinks=True), c.sliding_window)
    return decoder(c, attn, glu(c, bias=c.mlp_bias), attention_types(c, full_first(c, 4)))


@family("smollm3")
def smollm3(c: Config) -> Block:
    """Llama; windows, if used, in the layers without rotary positions, every fourth (SmolLM3ForCausalLM)."""
    window = c.sliding_window if c.use_sliding_window else None
    ropes = c.per_layer("no_rope_layers") or [(i + 1) % c.no_rope_layer_interval for i in range(c.num_hidden_layers)]
    words = attention_types(c, [SLIDING if window and not rope else FULL for rope in ropes])
    return decoder(c, sliding(gqa(c, bias=c.attention_bias), window), glu(c, bias=c.mlp_bias), words)


@family("ministral")
def ministral(c: Config) -> Block:
    """Mistral with a word for each layer's attention, by default sliding (MinistralForCausalLM)."""
    c.required("head_dim")
    default = [SLIDING if c.sliding_window else FULL] * c.num_hidden_layers
    return decoder(c, sliding(gqa(c), c.sliding_window), glu(c), attention_types(c, default))


@family("vaultgemma")
def vaultgemma(c: Config) -> Block:
    """Gemma 2 without the norms after attention and FFN (VaultGemmaForCausalLM)."""
    return decoder(c, sliding(gqa(c, bias=c.attention_bias), c.sliding_window), glu(c), full_every(c, 2))


@family("olmo3")
def olmo3(c: Config) -> Block:
    """OLMo 2 with full attention in every fourth layer (Olmo3ForCausalLM)."""
    attn = sliding(qk_norm_all_heads(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, 4), layer=norms_after)


@family("exaone4")
def exaone4(c: Config) -> Block:
    """Norms after attention and FFN, QK norms; full attention in every fourth layer (Exaone4ForCausalLM)."""
    unbuilt_mtp(c)
    unasked = c.raw("layer_types") is not None or c.sliding_window is None
    words = full_every(c, 1 if unasked else c.sliding_window_pattern)
    return decoder(c, sliding(qk_norm_per_head(c), c.sliding_window), glu(c), words, layer=norms_after)


@family("cohere2")
def cohere2(c: Config) -> Block:
    """Cohere without QK norms; full attention in every fourth layer (Cohere2ForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, c.sliding_window_pattern), layer=parallel)


@family("cohere_compass_text")
def cohere_compass_text(c: Config) -> Block:
    """Cohere 2 with full attention in every layer unless layer_types says otherwise (CohereCompassForCausalLM)."""
    attn = sliding(gqa(c, bias=c.attention_bias), c.sliding_window)
    return decoder(c, attn, glu(c), full_every(c, 1), layer=parallel)


@family("modernbert-decoder")
def modernbert_decoder(c: Config) -> Block:
    """ModernBERT that looks back only: no norm before the first attention (ModernBertDecoderForCausalLM)."""
    bias, norm, period = c.attention_bias, Norm(width=c.hidden_size, bias=c.norm_bias), c.global_attn_every_n_layers

    def layer(i: int, word: str) -> Block:
        window = c.local_attention // 2 if word == SLIDING else None
        attn = mha(c, bias=bias, window=window)
        return block(attn_norm=norm if i else None, attn=attn, ffn_norm=norm, ffn=glu(c, bias=c.mlp_bias))

    words = attention_types(c, [SLIDING if i % period else FULL for i in range(c.num_hidden_layers)])
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        embed_norm=norm,
        layers=stack("decoder", [layer(i, word) for i, word in enumerate(words)]),
        norm=norm,
        **modernbert_decoder_head(c, norm),
    )


def modernbert_decoder_head(c: Config, norm: Norm) -> dict[str, Component]:
    """A transform and a norm before the output matrix or the classifier."""
    d, bias = c.hidden_size, c.classifier_bias
    transform = {"transform": Linear(d_in=d, d_out=d, bias=bias, category="head"), "head_norm": norm}
    match c.head:
        case "lm":
            return transform | decoder_head(c, d, bias=c.decoder_bias)
        case "sequence_classification":
            return transform | {"classifier": Linear(d_in=d, d_out=num_labels(c), bias=bias, category="head")}
    return decoder_head(c, d)
