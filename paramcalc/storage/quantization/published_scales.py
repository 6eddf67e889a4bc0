"""How wide the scales of fp8 checkpoints are. Their configs do not say: what publishers wrote decides, and is said."""

from __future__ import annotations

from paramcalc.storage.quantization.placement import QuantizationScheme

# DeepSeek's own files: README_WEIGHTS.md of DeepSeek-V3, of which the hub shows 41,555,600 F32 elements.
WRITTEN_IN_FLOAT32 = ("deepseek_v3", "deepseek_v32")
# Which tensors are wider than 16 bits was not read in these. The elements of DeepSeek-V3.2's, scales included, add up
# to those that the Hub counts.
UNREAD = {
    "deepseek_v32": "DeepSeek-V3.2's files are taken to have the dtypes of DeepSeek-V3's; bytes are an estimate",
    "deepseek_v4": "which of DeepSeek-V4's tensors are wider than 16 bits is not known; bytes are an estimate",
}
# Headers of Qwen's own files: BF16 in Qwen3-1.7B-FP8 (196 scales: modular/modular issue 7142) and Qwen3-32B-FP8
# (HabanaAI/vllm-fork 2141), 16 bits too in Qwen3-4B-Instruct-2507-FP8 (InternLM/lmdeploy 4276).
WRITTEN_IN_16_BITS = "qwen"


def with_published_scales(plan: QuantizationScheme, family: str) -> QuantizationScheme:
    """The scheme with scales as the family's publisher writes them, and that this is assumed where it may be otherwise.

    The same config comes with scales of 32 bits from transformers' own quantiser (integrations/finegrained_fp8.py).
    """
    form = plan.format
    if plan.method != "fp8" or form is None:
        return plan
    if form.extras[0].bits != 32 or family in WRITTEN_IN_FLOAT32:
        return plan._replace(doubts=(*plan.doubts, UNREAD[family])) if family in UNREAD else plan
    narrow = family.startswith(WRITTEN_IN_16_BITS)
    scale, *others = form.extras
    extras = (scale._replace(bits=16), *others) if narrow else form.extras
    how = "16 bits are assumed, as in Qwen's own files" if narrow else "float32 is assumed, as transformers writes it"
    doubt = f"quantization_config (fp8) does not say in which dtype the scales are; {how}"
    return plan._replace(format=form._replace(extras=extras), doubts=(*plan.doubts, doubt))
