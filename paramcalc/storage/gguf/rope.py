"""RoPE scaling in a GGUF file: tensors that the converter adds and no checkpoint has."""

from __future__ import annotations

from paramcalc.model import ConfigFacts
from paramcalc.storage.gguf.architectures import Architecture


def rope_tensors(facts: ConfigFacts, head_dim: int, arch: Architecture) -> dict[str, int]:
    """Name and length of each added tensor, with one element for each pair of channels of a head.

    Source: `generate_extra_tensors` in conversion/llama.py, conversion/phi.py and conversion/gemma.py.
    """
    rope = facts.rope_scaling
    kind = str(rope.get("rope_type", rope.get("type")) or "").lower()
    if arch.full_rope or (kind == "llama3" and arch.llama3_rope):
        return {"rope_freqs": -(-head_dim // 2)}
    factors = {name: rope.get(f"{name}_factor") for name in ("long", "short")} if arch.long_rope else {}
    return {f"rope_factors_{name}": len(listed) for name, listed in factors.items() if isinstance(listed, list | tuple)}
