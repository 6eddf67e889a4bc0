"""The language models of DeepSeek-OCR 2 and of Unlimited-OCR."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, with_options
from paramcalc.families.builders.decoder import decoder
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, FULL, SPARSE, first_dense, mlp_types
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("deepseek_ocr2_text")
def deepseek_ocr2_text(c: Config) -> Block:
    """Llama with routed and shared experts in the layers that mlp_layer_types names (DeepseekOcr2TextModel)."""
    c.require(c.raw("mlp_layer_types") is not None, "mlp_layer_types is missing", "the class has no default for it")
    return deepseek_ocr_decoder(c, first=0)


REFERENCE_SLIDING = "reference_sliding_attention"


@family("unlimited_ocr_text")
def unlimited_ocr_text(c: Config) -> Block:
    """DeepSeek-OCR's decoder; full attention to the prompt, a window over generated tokens (UnlimitedOcrTextModel)."""
    doubt = f"all tokens are cached as a prompt; of generated tokens the class caches only the last {c.sliding_window}"
    words = c.layer_words("layer_types", (REFERENCE_SLIDING, FULL)) or [REFERENCE_SLIDING] * c.num_hidden_layers
    return deepseek_ocr_decoder(
        c, first=c.first_k_dense_replace, doubts={REFERENCE_SLIDING: doubt, FULL: ""}, words=words
    )


def deepseek_ocr_decoder(
    c: Config, *, first: int, doubts: dict[str, str] | None = None, words: list[str] | None = None
) -> Block:
    """Llama with routed and shared experts, by default after `first` dense layers.

    `doubts`: the reason why the cache of layers of a type is not exact.
    """
    e, n, bias = c.moe_intermediate_size, c.n_shared_experts, c.mlp_bias
    experts = moe(c, e, experts=c.num_experts, shared=n * e, shared_count=n, shared_bias=bias)
    ffn = {DENSE: glu(c, bias=bias), SPARSE: experts}
    attn = gqa(c, bias=c.attention_bias)
    kinds = attn if doubts is None else {word: with_options(attn, cache_doubt=doubt) for word, doubt in doubts.items()}
    return decoder(c, kinds, ffn, words, ffn_words=mlp_types(c, first_dense(c, first)))
