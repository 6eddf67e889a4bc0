"""Dtype of the scale tensors in fp8 checkpoints.

The config does not state it, so the publisher's convention is assumed and a warning reports it.
"""

from __future__ import annotations

from paramcalc.model import CheckpointFacts
from paramcalc.storage.quantization.placement import QuantizationScheme


def with_published_scales(scheme: QuantizationScheme, checkpoint: CheckpointFacts) -> QuantizationScheme:
    """The scheme with the publisher's dtype of scales, and a reason for an estimate if that dtype is assumed.

    For the same config, the quantiser of transformers writes scales of 32 bits (integrations/finegrained_fp8.py).
    """
    form = scheme.format
    if scheme.method != "fp8" or form is None:
        return scheme
    if form.extras[0].bits != 32 or checkpoint.fp8_scale_bits == 32:
        reasons = (checkpoint.fp8_doubt,) if checkpoint.fp8_doubt else ()
        return scheme._replace(estimate_reasons=(*scheme.estimate_reasons, *reasons))
    narrow = checkpoint.fp8_scale_bits == 16
    scale, *others = form.extras
    extras = (scale._replace(bits=16), *others) if narrow else form.extras
    assumption = (
        "16 bits are assumed, as in the files of Qwen" if narrow else "float32 is assumed, as transformers writes them"
    )
    reason = f"quantization_config (fp8) does not state the dtype of the scales; {assumption}"
    return scheme._replace(format=form._replace(extras=extras), estimate_reasons=(*scheme.estimate_reasons, reason))
