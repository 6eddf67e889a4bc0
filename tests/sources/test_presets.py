"""Every preset counts to what its publisher states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

import paramcalc
from paramcalc.counting.count import count_figures
from paramcalc.sources import presets
from tests.conftest import ROOT

FILES = sorted(path for path in (ROOT / "presets").glob("*.yaml") if path.stem != "gpus")


FACTORS = {"M": 10**6, "B": 10**9, "T": 10**12}


def rounded(figure: str) -> Decimal:
    """`46.7B` as 46,700,000,000."""
    return Decimal(figure[:-1]) * FACTORS[figure[-1]]


def half_a_digit(figure: str) -> Decimal:
    """How far a count may be from a published figure that it rounds to."""
    return Decimal(FACTORS[figure[-1]]).scaleb(-len(figure[:-1].partition(".")[2])) / 2


@pytest.mark.parametrize(
    ("figure", "low", "high"), [("46.7B", 46_650_000_000, 46_750_000_000), ("110M", 109_500_000, 110_500_000)]
)
def test_a_published_figure_is_a_range(figure: str, low: int, high: int) -> None:
    assert (rounded(figure) - half_a_digit(figure), rounded(figure) + half_a_digit(figure)) == (
        Decimal(low),
        Decimal(high),
    )


def agrees(counted: int, figure: int | str) -> bool:
    """Whether a count is the published figure, or rounds to it."""
    return counted == figure if isinstance(figure, int) else abs(counted - rounded(figure)) <= half_a_digit(figure)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_presets_have_the_published_figures_and_say_where_they_come_from(path: Path) -> None:
    fields = yaml.safe_load(path.read_text())
    model = paramcalc.load(path.stem)
    counted: Mapping[str, Any] = count_figures(model)["parameters"]

    published = fields.get("published") or {}
    assert {key: (counted[key], figure) for key, figure in published.items() if not agrees(counted[key], figure)} == {}
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", path.stem)
    assert (model.status, model.warnings) == ("exact", ())
    assert path.read_text().startswith("# ")
    assert fields["model_type"] == "transformer" or fields["source"].startswith("https://")


def test_there_are_enough_of_them() -> None:
    assert len(presets.preset_names()) == len(FILES) >= 60


@pytest.mark.parametrize(
    "name", ["llama3-8b", "gpt2-xl", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "tutorial-110m", "tutorial-moe"]
)
def test_stable_names(name: str) -> None:
    assert name in presets.preset_names()


def test_names_are_found_in_any_case() -> None:
    assert paramcalc.load("LLaMA3-8B").family == "llama"


@pytest.mark.parametrize(
    ("name", "formats", "size"),
    [
        ("gpt-oss-20b", {"bfloat16", "mxfp4"}, 13_761_264_768),
        ("gpt-oss-120b", {"bfloat16", "mxfp4"}, 65_248_815_744),
        ("deepseek-v3", {"bfloat16", "fp8-block128", "float32"}, 673_150_611_808),
    ],
)
def test_checkpoints_that_are_quantised_have_their_bytes(name: str, formats: set[str], size: int) -> None:
    """Sums of the tensors in the published files, which gpt-oss's model card and DeepSeek's index state too."""
    weights = paramcalc.memory(paramcalc.load(name), context=1).weights

    assert (weights.bytes, set(weights.by_format)) == (size, formats)


@pytest.mark.parametrize(
    ("name", "form", "experts", "size"),
    [
        ("deepseek-v4-flash", "mxfp4", 43 * 256 * 3 * 4096 * 2048, 147_169_738_752),
        ("deepseek-v4-pro", "mxfp4", 61 * 384 * 3 * 7168 * 3072, 822_054_223_872),
        ("kimi-k2.5", "w4a16-g32", 60 * 384 * 3 * 7168 * 2048, 570_760_888_320),
    ],
)
def test_experts_in_four_bits(name: str, form: str, experts: int, size: int) -> None:
    """A scale for 32 values, of 8 bits or of 16. The repositories hold 160, 865 and 595 GB with all else."""
    weights = paramcalc.memory(paramcalc.load(name), context=1).weights

    assert (weights.by_format[form].parameters, weights.by_format[form].bytes) == (experts, size)
    assert size == experts * {"mxfp4": 17, "w4a16-g32": 18}[form] // 32
