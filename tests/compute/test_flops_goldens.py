"""Every golden of work: what torch's counter sees in the reference, against what we count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import paramcalc
from paramcalc.compute.flops import flops_figures, inexact_reasons
from paramcalc.compute.workload import check_workload
from paramcalc.tree.language import language_model
from tests.goldens.store import COUNT, FLOPS, Record

# What no tree can say of a config that contradicts itself: input and output layers overlap, and run twice.
CONTRADICTIONS = ("dory/odd-1", "dory/odd-2", "dory/odd-3", "dory/odd-4")


# Why the work of a family is not told exactly.
INEXACT = {
    "big_bird": "blocks of sparse attention are counted as full attention",
    "bigbird_pegasus": "blocks of sparse attention are counted as full attention",
    "blt": "every byte is counted as a patch of its own",
    "cpmant": "soft prompts are not counted as tokens",
    "diffusion_gemma": "a block is denoised in as many steps as a schedule takes; one is counted",
    "funnel": "blocks that halve the sequence are counted at full length",
    "inkling2": "what layers take from earlier ones is not counted",
    "inkling2_loop": "what layers take from earlier ones is not counted",
    "inkling2_loop_text": "what layers take from earlier ones is not counted",
    "inkling2_text": "what layers take from earlier ones is not counted",
    "led": "windows and global tokens are counted as full attention",
    "longformer": "windows and global tokens are counted as full attention",
    "longt5": "blocks with their neighbours are counted as windows",
    "mra": "approximated attention is counted as full attention",
    "musicgen_melody": "text and melody pass through the layers before the tokens; that is not counted",
    "nllb-moe": "experts are counted by top-k; the class also multiplies rows that it masks",
    "nystromformer": "approximated attention is counted as full attention",
    "pegasus_x": "blocks and global tokens are counted as full attention",
    "perceiver": "latents are counted as if there were one for each token",
    "prophetnet": "the streams that predict further tokens are left out",
    "reformer": "hashed attention is counted as if there were one bucket",
    "yoso": "approximated attention is counted as full attention",
}
RAN = 372
REASONS = {*INEXACT.values()}


def measured(family: str) -> Iterator[tuple[str, paramcalc.Model, Record]]:
    """The name, the model and each run of every golden of a family."""
    for name in FLOPS.families[family]:
        record = FLOPS[name]
        if "runs" in record:
            model = paramcalc.load(record.get("config") or COUNT[name]["config"])
            for run in record["runs"]:
                yield name, model, run


@pytest.mark.parametrize("family", FLOPS.families)
def test_flops_equal_those_of_the_reference_and_windows_alone_make_a_difference(family: str) -> None:
    """Within all windows, the figures that one gets unasked are the reference's too.

    A reason to be inexact exempts a family: it must be a known one, so that it cannot spread unseen.
    """
    reasons: set[str] = set()
    for name, model, run in measured(family):
        reasons |= {*inexact_reasons(language_model(model.tree))}
        asked = {key: run[key] for key in ("tokens", "batch", "source")}
        reference, unasked = (
            flops_figures(model, check_workload(**asked, counting=how)) for how in ("reference", "needed")
        )
        told = name not in CONTRADICTIONS and not REASONS & set(reference["notes"])
        if told:
            assert reference["forward"]["total"] == sum(run["flops"].values()), (name, asked)
        if not any("limit attention" in note for note in unasked["notes"]):
            assert unasked["forward"] == reference["forward"], (name, asked)
    assert reasons == ({INEXACT[family]} if family in INEXACT else set())


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "gpt_oss", "bert", "deepseek_v3", "t5", "bloom"])
def test_attention_is_told_apart(family: str) -> None:
    for _, model, run in measured(family):
        flops = run["flops"]
        asked = {key: run[key] for key in ("tokens", "batch", "source")}
        report = paramcalc.flops(model, **asked, counting="reference")
        assert report.forward.attention == flops.get("bmm", 0) + flops.get("baddbmm", 0)
        assert report.forward.matmul == flops.get("mm", 0) + flops.get("addmm", 0)


def test_every_inexact_family_was_run() -> None:
    assert set(INEXACT) <= {name.partition("/")[0] for name, record in FLOPS.items() if "runs" in record}


def test_families_that_run() -> None:
    """Of those with goldens of their counts; the records of the others say why not."""
    records = FLOPS.items()

    assert len({name.partition("/")[0] for name, record in records if "runs" in record}) == RAN
    assert [name for name, record in records if "runs" not in record and "failed" not in record] == []
