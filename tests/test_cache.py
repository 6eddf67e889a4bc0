"""Caches and states: what each mixer keeps, and the fold over the layers."""

from __future__ import annotations

import paramcalc


def test_keys_and_values_of_llama3_8b() -> None:
    """2 x 32 layers x 8 heads x 128 channels x 2 bytes; vLLM and others state 128 KiB a token."""
    report = paramcalc.memory(paramcalc.load("llama3-8b"), context=8192, batch=4)

    assert report.kv_cache.bytes_per_token == 131_072
    assert report.kv_cache.bytes == 4 * 8192 * 131_072
    assert report.state.bytes == 0
