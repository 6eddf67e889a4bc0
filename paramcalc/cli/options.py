"""Options that several commands share, defined once."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.errors import ParamcalcError


class Format(str, Enum):
    """How a result is written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


ModelsArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MODEL]...",
        help="A config.json, a directory holding one, a YAML file, a preset's name, or - for standard input.",
        show_default=False,
    ),
]
PresetOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--preset", "-p", metavar="NAME", help="A model that ships with paramcalc; may be given several times."
    ),
]
SetOpt = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Replace a config field; may be given several times."),
]
DepthOpt = Annotated[
    int | None, typer.Option("--depth", "-d", min=1, max=20, help="Open the component tree to this many levels.")
]
FormatOpt = Annotated[Format, typer.Option("--format", "-f", help="How to write the result.", case_sensitive=False)]
JsonOpt = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
OutputOpt = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result to a file.")]
StrictOpt = Annotated[bool, typer.Option("--strict", help="Exit with 1 where the count would be approximate.")]
FamilyOpt = Annotated[
    str | None,
    typer.Option(
        "--as-family", metavar="NAME", help="Count an unknown model_type as if it were this one; approximate."
    ),
]


def overrides(settings: list[str] | None) -> dict[str, Any]:
    """`["hidden_size=5120"]` as a mapping. Values are JSON, or a bare word."""
    result = {}
    for setting in settings or ():
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ParamcalcError(f"--set {setting}: no KEY=VALUE", "write it like --set num_hidden_layers=48")
        result[key.strip()] = _value(text.strip())
    return result


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text
