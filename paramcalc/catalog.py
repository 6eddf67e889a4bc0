"""Catalogues of presets and families, and the JSON Schemas of all reports."""

from __future__ import annotations

import json
from typing import Any

from paramcalc.base.errors import ParamcalcError, nearest
from paramcalc.counting.count import count
from paramcalc.families.registry import get_family, index
from paramcalc.loading.load import build
from paramcalc.loading.variants import NATIVE_TYPE
from paramcalc.reports.base import Report
from paramcalc.reports.compare import CompareReport
from paramcalc.reports.count import CountReport, DtypeInfo, Explanation, FamilyField, FamilyInfo, PresetInfo
from paramcalc.reports.error import ErrorReport
from paramcalc.reports.fit import DeviceInfo, FitReport
from paramcalc.reports.flops import FlopsReport
from paramcalc.reports.memory import MemoryReport
from paramcalc.reports.scaling import DesignReport, ScaleReport
from paramcalc.reports.trace import TraceReport
from paramcalc.sources import files, presets

# The report of each command. `explain` is that of `count --explain` and `memory --explain`, `error` that of any command
# that fails.
REPORTS: dict[str, type[Report]] = {
    "count": CountReport,
    "memory": MemoryReport,
    "fit": FitReport,
    "gpus": DeviceInfo,
    "flops": FlopsReport,
    "scale": ScaleReport,
    "design": DesignReport,
    "trace": TraceReport,
    "compare": CompareReport,
    "explain": Explanation,
    "presets": PresetInfo,
    "families": FamilyInfo,
    "dtypes": DtypeInfo,
    "error": ErrorReport,
}


def preset_infos() -> list[PresetInfo]:
    """Every preset, counted."""
    return [preset_info(name) for name in presets.preset_names()]


def preset_info(name: str) -> PresetInfo:
    """One preset, counted."""
    model = build(files.read_preset(name), overrides={})
    report = count(model)
    return PresetInfo(
        name=name,
        family=model.family,
        status=model.status,
        total=report.parameters.total,
        active=report.parameters.active,
        published=dict(model.published),
        source=model.url or "",
    )


def family_infos() -> list[FamilyInfo]:
    """Every family, sorted by name, paramcalc's own first."""
    return [native_family(), *(family_info(name) for name in index() if name != NATIVE_TYPE)]


def family_info(name: str) -> FamilyInfo:
    """One family: its fields and how it was verified. Raises UnknownFamilyError with the nearest names."""
    if name == NATIVE_TYPE:
        return native_family()
    family, entry = get_family(name), index()[name]
    return FamilyInfo(
        name=name,
        architecture=family.main_class,
        summary=family.summary.rsplit(" (", 1)[0].rstrip("."),
        mixers=entry.mixers,
        goldens=entry.goldens,
        verified_by=entry.by,
        fields=tuple(
            FamilyField(name=field, key=family.schema.names.get(field, field), default=json.dumps(default))
            for field, default in family.schema.defaults.items()
        ),
    )


def native_family() -> FamilyInfo:
    """paramcalc's own family, `model_type: transformer`."""
    from paramcalc.families.native.config import TransformerConfig

    entry = index()[NATIVE_TYPE]
    fields = TransformerConfig.model_json_schema()["properties"]
    return FamilyInfo(
        name=NATIVE_TYPE,
        architecture="none: for new model designs",
        summary="Decoder from a few fields: attention, FFN (plain, gated or MoE), any norm",
        mixers=entry.mixers,
        goldens=entry.goldens,
        verified_by=entry.by,
        fields=tuple(
            FamilyField(name=name, key=name, default=json.dumps(field["default"]) if "default" in field else "required")
            for name, field in fields.items()
        ),
    )


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of every report, and of the YAML model format."""
    reports = {name: report.model_json_schema(mode="serialization") for name, report in REPORTS.items()}
    return reports | {"model": _model_schema()}


def schema(name: str) -> dict[str, Any]:
    """One of the JSON Schemas. Raises ParamcalcError with the choices."""
    known = schemas()
    if name not in known:
        raise ParamcalcError(f"no schema {name!r}", nearest(name, known, fallback="known: " + ", ".join(known)))
    return known[name]


def _model_schema() -> dict[str, Any]:
    """The JSON Schema of a model file: Hugging Face fields with their model_type, or paramcalc's own format."""
    from paramcalc.families.native.config import TransformerConfig

    about = {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "source": {"type": "string", "description": "source of the fields"},
        "published": {
            "type": "object",
            "description": "figures from the publisher: an integer, or a string such as 46.7B",
            "additionalProperties": {"type": ["integer", "string"]},
        },
    }
    own = TransformerConfig.model_json_schema()
    own["properties"] |= about
    own["required"] = ["model_type", *own.get("required", [])]
    own["properties"]["model_type"] = {"const": NATIVE_TYPE}
    hugging_face = {
        "type": "object",
        "title": "Hugging Face fields",
        "properties": {
            "model_type": {"enum": [name for name in index() if name != NATIVE_TYPE]},
            "architectures": {"type": "array"},
            **about,
        },
        "required": ["model_type"],
    }
    definitions = own.pop("$defs", {})
    return {"title": "paramcalc model", "anyOf": [own, hugging_face], "$defs": definitions}
