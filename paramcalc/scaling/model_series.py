"""Published ladders: models of one design in many sizes, for comparison with a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paramcalc.base.errors import ParamcalcError
from paramcalc.config.field_roles import WIDTH_FIELD
from paramcalc.scaling.evaluate import Evaluator, SweepSettings

if TYPE_CHECKING:
    from paramcalc.reports.shapes.scaling import ReferenceDict

ALL_LADDERS = "all"
# Names of presets, smallest first; the presets state sizes and sources.
LADDERS = {
    "gpt3": [f"gpt3-{size}" for size in ("125m", "350m", "760m", "1.3b", "2.7b", "6.7b", "13b", "175b")],
    "pythia": [f"pythia-{size}" for size in ("14m", "31m", "70m", "160m", "410m", "1b", "1.4b", "2.8b", "6.9b", "12b")],
    "opt": [f"opt-{size}" for size in ("125m", "350m", "1.3b", "2.7b", "6.7b", "13b", "30b", "66b")],
    "llama": ["llama3.2-1b", "llama3.2-3b", "llama3.1-8b", "llama3.1-70b", "llama3.1-405b"],
    "qwen3": [f"qwen3-{size}" for size in ("0.6b", "1.7b", "4b", "8b", "14b", "32b")],
    "mobilellm": [f"mobilellm-{size}" for size in ("125m", "350m", "600m", "1b", "1.5b")],
    "gemma": [f"gemma3-{size}" for size in ("270m", "1b", "4b-text", "12b-text", "27b-text")],
}


def chosen_ladders(names: Sequence[str]) -> list[str]:
    """The ladders with these names (case-insensitive; `all` for every one). Raises ParamcalcError with the choices."""
    found: dict[str, None] = {}
    for name in map(str.lower, names):
        if name not in (*LADDERS, ALL_LADDERS):
            raise ParamcalcError(f"unknown ladder {name!r}", f"known: {', '.join(LADDERS)}; or {ALL_LADDERS}")
        found |= dict.fromkeys(LADDERS if name == ALL_LADDERS else [name])
    return list(found)


def reference_points(names: Sequence[str], settings: SweepSettings) -> Iterator[ReferenceDict]:
    """The models of these ladders with the figures of sweep points, under the same assumptions."""
    from paramcalc.loading.load import load

    for ladder in chosen_ladders(names):
        for preset in LADDERS[ladder]:
            model = load(preset)
            width, figures = int(model.variants.values()[WIDTH_FIELD].value), Evaluator(model, settings).figures(model)
            ratio = width / figures["depth"]
            yield {"ladder": ladder, "name": preset, "width": width, "aspect_ratio": ratio, **figures}
