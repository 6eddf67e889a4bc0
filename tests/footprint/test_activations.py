"""Working memory: an estimate whose formula is worked by hand, beside what was observed."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc


def working(name: str, **assumptions: Any) -> Any:
    return paramcalc.memory(paramcalc.load(name), **({"context": 8192} | assumptions)).working


def test_llama3_8b_by_hand() -> None:
    """The FFN is widest: twice 4096, gate, up and their product of 14336; four sequences score 128256 tokens each."""
    found = working("llama3-8b", batch=4)

    assert found.estimate
    assert found.logits.bytes == 4 * 128_256 * 4
    assert found.activations.channels == 2 * 4096 + 3 * 14336
    assert found.activations.bytes == 8192 * (2 * 4096 + 3 * 14336) * 2
    assert found.bytes == found.logits.bytes + found.activations.bytes


def test_the_arithmetic_is_told() -> None:
    assert working("llama3-8b", batch=4).how == (
        "logits: 4 tokens x 128,256 x 4 bytes = 2,052,096",
        "activations: 8,192 tokens x 51,200 channels x 2 bytes = 838,860,800",
        "channels: residual and normed input 8,192 + gate_proj 14,336 + up_proj 14,336 + into down_proj 14,336"
        " = 51,200",
    )


def test_no_more_tokens_than_there_are() -> None:
    assert working("llama3-8b", context=1000, batch=2).activations.tokens == 2000
    assert working("llama3-8b", context=1000, batch=2, prefill_chunk=512).activations.tokens == 512


def test_experts_work_top_k_times() -> None:
    """Mixtral: two experts of gate, up, product and output, and eight scores of the router."""
    assert working("mixtral-8x7b").activations.channels == 2 * 4096 + 2 * (3 * 14336 + 4096) + 8


def test_eager_attention_holds_the_scores() -> None:
    """32 heads, 8192 tokens against 8192, two bytes each and four for the softmax."""
    flash, eager = working("llama3-8b"), working("llama3-8b", attention="eager")

    assert flash.scores.bytes == 0
    assert eager.scores.bytes == 32 * 8192 * 8192 * (2 + 4)
    assert eager.bytes == flash.bytes + eager.scores.bytes


def test_logits_in_another_dtype() -> None:
    assert working("llama3-8b", logits_dtype="bf16").logits.bytes == 128_256 * 2


def test_a_tied_head_scores_the_embedding() -> None:
    assert working("gpt2-xl", context=1024).logits.vocabulary == 50_257


def test_an_encoder_scores_every_token() -> None:
    """bert-base-uncased: 30522 tokens at each of 2 x 512 positions."""
    found = working("bert-base-uncased", context=512, batch=2)

    assert (found.logits.tokens, found.logits.vocabulary) == (1024, 30_522)


def test_devices_divide_what_they_compute() -> None:
    """On two devices: half of gate, up and product; the logits are gathered."""
    device = paramcalc.memory(paramcalc.load("llama3-8b"), context=8192, tensor_parallel=2).per_device

    assert device.working.activations.channels == 2 * 4096 + 3 * 7168
    assert device.working.logits.vocabulary == 128_256


@pytest.mark.parametrize(
    ("chunk", "sequences", "observed"),
    [(2048, 1, 0.22), (8192, 256, 1.26)],  # GiB that vLLM reported for Llama-3-8B on one device
)
def test_observed_by_vllm(chunk: int, sequences: int, observed: float) -> None:
    """No more than a third off: sampling sorts copies of the logits of 256 sequences, which are not counted."""
    found = working("llama3-8b", context=8192, batch=sequences, prefill_chunk=chunk)

    assert 0.66 * observed <= found.bytes / 2**30 <= 1.33 * observed


def test_overhead_is_named_and_can_be_stated() -> None:
    report = paramcalc.memory(paramcalc.load("llama3-8b"), context=1, overhead=7)

    assert report.overhead.model_dump() == {"bytes": 7, "estimate": True}
    assert paramcalc.memory(paramcalc.load("llama3-8b"), context=1).overhead.bytes == 1_073_741_824
