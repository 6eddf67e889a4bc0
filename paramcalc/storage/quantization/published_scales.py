"""Dtype of the scale tensors in fp8 checkpoints.

The config does not state it, so the publisher's convention is assumed and a warning reports it.
"""

from __future__ import annotations

from paramcalc.model import CheckpointFacts
from paramcalc.storage.quantization.placement import QuantizationScheme


def with_published_scales(plan: QuantizationScheme, checkpoint: CheckpointFacts) -> QuantizationScheme:
    """The scheme with scales as the publisher writes them, and a doubt where that is an assumption.

    transformers' own quantiser writes scales of 32 bits under the same config (integrations/finegrained_fp8.py).
    """
    form = plan.format
    if plan.method != "fp8" or form is None:
        return plan
    if form.extras[0].bits != 32 or checkpoint.fp8_scale_bits == 32:
        return (
            plan._replace(estimate_reasons=(*plan.estimate_reasons, checkpoint.fp8_doubt))
            if checkpoint.fp8_doubt
            else plan
        )
    narrow = checkpoint.fp8_scale_bits == 16
    scale, *others = form.extras
    extras = (scale._replace(bits=16), *others) if narrow else form.extras
    how = "16 bits are assumed, as in Qwen's own files" if narrow else "float32 is assumed, as transformers writes it"
    doubt = f"quantization_config (fp8) does not say in which dtype the scales are; {how}"
    return plan._replace(format=form._replace(extras=extras), estimate_reasons=(*plan.estimate_reasons, doubt))
