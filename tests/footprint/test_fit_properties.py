"""Verdicts asked again: the most that is said to fit does, and one more does not, whatever is assumed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc.footprint.devices import known_devices
from tests.conftest import ROOT

PRESETS = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml") if path.stem != "gpus")
ASSUMPTIONS = st.fixed_dictionaries(
    {"context": st.integers(1, 200_000), "batch": st.integers(1, 200)},
    optional={
        "dtype": st.sampled_from(["q4_k_m", "nf4", "fp8", "gptq-int4-g128"]),
        "kv_cache_dtype": st.sampled_from(["fp8", "q8_0", "q4_0"]),
        "v_cache_dtype": st.sampled_from(["bf16", "q4_0"]),
        "kv_policy": st.just("uniform"),
        "attention": st.just("eager"),
        "pipeline_parallel": st.integers(1, 4),
        "prefill_chunk": st.integers(1, 20_000),
    },
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(name=st.sampled_from(PRESETS), gpu=st.sampled_from([one.name for one in known_devices()]), asked=ASSUMPTIONS)
def test_the_edges_of_a_verdict(name: str, gpu: str, asked: dict[str, Any]) -> None:
    model = paramcalc.load(name)
    try:
        found = paramcalc.fit(model, gpu=gpu, **asked)
    except paramcalc.ParamcalcError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:  # layers that share weights, or fewer of them than stages
        assert "pipeline_parallel" in refused
        return

    def fits(**changed: Any) -> bool:
        return used(**changed) <= found.budget_bytes

    def used(**changed: Any) -> int:
        return paramcalc.memory(model, **(asked | changed)).per_device.total.bytes

    assert (found.used_bytes, found.fits) == (used(), fits())
    for what, most in (("context", found.largest_context), ("batch", found.largest_batch)):
        assert most is None or not fits(**{what: most + 1})
        assert most == 0 or fits(**{what: most or 2**30})
    if (fewest := found.fewest_devices) is not None:
        sizes = dict(tensor_parallel=fewest.tensor_parallel, pipeline_parallel=fewest.pipeline_parallel)
        assert used(**sizes, expert_parallel=fewest.expert_parallel) == fewest.used_bytes <= found.budget_bytes
    if (best := found.best_format) is not None and model.quantization is None:
        assert used(dtype=best.format) == best.used_bytes <= found.budget_bytes
    for change in found.changes:
        assert change.used_bytes <= found.budget_bytes or change.change == "gpu"
        if change.change in ("context", "batch"):
            assert used(**{change.change: change.to}) == change.used_bytes
