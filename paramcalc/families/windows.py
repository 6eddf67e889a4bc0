"""Recent dense decoders with sliding windows in some layers."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.heads import decoder_head, labels
from paramcalc.families.normed import normed, normed_at_once
from paramcalc.families.patterns import by_window, every, windowed
from paramcalc.families.registry import family
from paramcalc.families.skeletons import (
    FULL,
    SLIDING,
    causal_lm,
    glu,
    gqa,
    kinds,
    mha,
    norms_after,
    pre_norm,
    rms,
)
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, block, stack


@family("cwm")
def cwm(c: Config) -> Block:
    """Llama with full attention in every fourth layer from the first on (CwmForCausalLM)."""
    words = [SLIDING if i % 4 else FULL for i in range(c.num_hidden_layers)]
    layers = windowed(c, lambda window: pre_norm(rms(c), gqa(c, window=window), glu(c, bias=c.mlp_bias)), words)
    return causal_lm(c, layers, norm=rms(c))


@family("granite_swa")
def granite_swa(c: Config) -> Block:
    """Granite with a sink per head, full attention in every fourth layer from the first on (GraniteSWAForCausalLM)."""
    bias = c.attention_bias

    def layer(window: int | None) -> Block:
        attn = gqa(c, qkv_bias=bias, out_bias=bias, sinks=True, window=window)
        return pre_norm(rms(c), attn, glu(c, bias=c.mlp_bias))

    words = [SLIDING if i % 4 else FULL for i in range(c.num_hidden_layers)]
    return causal_lm(c, windowed(c, layer, words), norm=rms(c))


@family("smollm3")
def smollm3(c: Config) -> Block:
    """Llama; windows, if used, in the layers without rotary positions, every fourth (SmolLM3ForCausalLM)."""
    bias, window = c.attention_bias, c.sliding_window if c.use_sliding_window else None
    ffn = glu(c, bias=c.mlp_bias)
    layers = by_window(window, lambda width: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, window=width), ffn))
    default = [(i + 1) % c.no_rope_layer_interval for i in range(c.num_hidden_layers)]
    ropes = c.per_layer("no_rope_layers") or default
    words = kinds(c, [SLIDING if window and not rope else FULL for rope in ropes])
    return causal_lm(c, [layers[word] for word in words], norm=rms(c))


@family("ministral")
def ministral(c: Config) -> Block:
    """Mistral with a word for each layer's attention, by default sliding (MinistralForCausalLM)."""
    c.stated("head_dim")
    default = [SLIDING if c.sliding_window else FULL] * c.num_hidden_layers
    layers = windowed(c, lambda window: pre_norm(rms(c), gqa(c, window=window), glu(c)), default)
    return causal_lm(c, layers, norm=rms(c))


@family("vaultgemma")
def vaultgemma(c: Config) -> Block:
    """Gemma 2 without the norms after attention and FFN (VaultGemmaForCausalLM)."""
    bias = c.attention_bias
    layers = windowed(
        c,
        lambda window: pre_norm(rms(c), gqa(c, qkv_bias=bias, out_bias=bias, window=window), glu(c)),
        every(2, FULL, otherwise=SLIDING, layers=c.num_hidden_layers),
    )
    return causal_lm(c, layers, norm=rms(c))


@family("olmo3")
def olmo3(c: Config) -> Block:
    """OLMo 2 with full attention in every fourth layer (Olmo3ForCausalLM)."""

    def layer(window: int | None) -> Block:
        return norms_after(rms(c), normed_at_once(c, bias=c.attention_bias, window=window), glu(c))

    words = every(4, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    return causal_lm(c, windowed(c, layer, words), norm=rms(c))


@family("exaone4")
def exaone4(c: Config) -> Block:
    """Norms after attention and FFN, QK norms; full attention in every fourth layer (Exaone4ForCausalLM)."""

    def layer(window: int | None) -> Block:
        return norms_after(rms(c), normed(c, window=window), glu(c))

    unasked = c.raw("layer_types") is not None or c.sliding_window is None
    period = 1 if unasked else c.sliding_window_pattern
    words = every(period, FULL, otherwise=SLIDING, layers=c.num_hidden_layers)
    return causal_lm(c, windowed(c, layer, words), norm=rms(c))


def parallel(c: Config, default: list[str]) -> Block:
    """Attention and FFN beside each other behind one norm without bias, windows in some layers."""
    bias = c.attention_bias
    layers = windowed(
        c,
        lambda window: block(input_norm=rms(c), attn=gqa(c, qkv_bias=bias, out_bias=bias, window=window), ffn=glu(c)),
        default,
    )
    return causal_lm(c, layers, norm=rms(c))


@family("cohere2")
def cohere2(c: Config) -> Block:
    """Cohere without QK norms; full attention in every fourth layer (Cohere2ForCausalLM)."""
    return parallel(c, every(c.sliding_window_pattern, FULL, otherwise=SLIDING, layers=c.num_hidden_layers))


@family("cohere_compass_text")
def cohere_compass_text(c: Config) -> Block:
    """Cohere 2 with full attention in every layer unless layer_types says otherwise (CohereCompassForCausalLM)."""
    return parallel(c, [FULL] * c.num_hidden_layers)


@family("modernbert-decoder")
def modernbert_decoder(c: Config) -> Block:
    """ModernBERT that looks back only: no norm before the first attention (ModernBertDecoderForCausalLM)."""
    bias, norm, period = c.attention_bias, Norm(width=c.hidden_size, bias=c.norm_bias), c.global_attn_every_n_layers

    def layer(i: int, word: str) -> Block:
        window = c.local_attention // 2 if word == SLIDING else None
        attn = mha(c, qkv_bias=bias, out_bias=bias, window=window)
        return block(attn_norm=norm if i else None, attn=attn, ffn_norm=norm, ffn=glu(c, bias=c.mlp_bias))

    words = kinds(c, [SLIDING if i % period else FULL for i in range(c.num_hidden_layers)])
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        embed_norm=norm,
        layers=stack("decoder", [layer(i, word) for i, word in enumerate(words)]),
        norm=norm,
        **modernbert_head(c, norm),
    )


def modernbert_head(c: Config, norm: Norm) -> dict[str, Component]:
    """A transform and a norm before the output matrix or the classifier."""
    d, bias = c.hidden_size, c.classifier_bias
    transform = {"transform": Linear(d_in=d, d_out=d, bias=bias, category="head"), "head_norm": norm}
    match c.head:
        case "lm":
            return transform | decoder_head(c, d, bias=c.decoder_bias)
        case "sequence_classification":
            return transform | {"classifier": Linear(d_in=d, d_out=labels(c), bias=bias, category="head")}
    return decoder_head(c, d)
