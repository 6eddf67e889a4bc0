"""Every golden of work: what torch's counter sees in the reference, against what we count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.compute.flops import flops_figures, inexact_reasons
from paramcalc.compute.workload import workload
from paramcalc.tree.language import language_model
from tests.goldens.store import COUNT

FLOPS = Path(__file__).parent / "goldens_flops"
FAMILIES = sorted(path.stem for path in FLOPS.glob("*.json"))

# What no tree can say of a config that contradicts itself: input and output layers overlap, and run twice.
CONTRADICTIONS = {"dory": ("odd-1", "odd-2", "odd-3", "odd-4")}


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


def config_of(family: str, case: dict[str, Any]) -> dict[str, Any]:
    return case.get("config") or COUNT[f"{family}/{case['case']}"]["config"]


def golden(family: str) -> dict[str, Any]:
    return dict(json.loads((FLOPS / f"{family}.json").read_text()))


@pytest.mark.parametrize("family", FAMILIES)
def test_flops_equal_those_of_the_reference_and_windows_alone_make_a_difference(family: str) -> None:
    """Within all windows, the figures that one gets unasked are the reference's too."""
    for case in golden(family)["cases"]:
        model = paramcalc.load(config_of(family, case))
        asked = {name: case[name] for name in ("tokens", "batch", "source")}
        reference, unasked = (flops_figures(model, workload(**asked, counting=how)) for how in ("reference", "needed"))
        told = case["case"] not in CONTRADICTIONS.get(family, ()) and not REASONS & set(reference["notes"])
        if told:
            assert reference["forward"]["total"] == sum(case["flops"].values()), case["case"]
        if not any("limit attention" in note for note in unasked["notes"]):
            assert unasked["forward"] == reference["forward"], case["case"]


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "gpt_oss", "bert", "deepseek_v3", "t5", "bloom"])
def test_attention_is_told_apart(family: str) -> None:
    for case in golden(family)["cases"]:
        flops = case["flops"]
        report = paramcalc.flops(
            paramcalc.load(config_of(family, case)),
            tokens=case["tokens"],
            batch=case["batch"],
            source=case["source"],
            counting="reference",
        )
        assert report.forward.attention == flops.get("bmm", 0) + flops.get("baddbmm", 0)
        assert report.forward.matmul == flops.get("mm", 0) + flops.get("addmm", 0)


def test_few_families_are_inexact() -> None:
    """So that a reason to be inexact, which exempts a family, cannot spread unseen."""
    found = {}
    for family in FAMILIES:
        for case in golden(family)["cases"]:
            for reason in inexact_reasons(language_model(paramcalc.load(config_of(family, case)).tree)):
                found[family] = reason

    assert found == INEXACT
    assert set(INEXACT.values()) <= REASONS


def test_families_that_run() -> None:
    """Of those with goldens of their counts; the others' files say why not."""
    ran = [family for family in FAMILIES if golden(family)["cases"]]
    silent = [family for family in FAMILIES if not golden(family)["cases"] and not golden(family).get("failed")]

    assert len(ran) == RAN
    assert silent == []


def test_goldens_never_come_from_paramcalc() -> None:
    script = (FLOPS / "make.py").read_text()

    assert "import paramcalc" not in script
    assert "from paramcalc" not in script
