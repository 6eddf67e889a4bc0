"""Options that several commands share, defined once.

All are strings that are checked here: Typer's conversions build a validator for each option at every start, and their
errors do not have our two-line form.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, get_args

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError

FLAG = " "  # metavar of an option without a value
HELP = {"help_option_names": ["-h", "--help"]}
OutputFormat = Literal["table", "json", "csv", "markdown"]
FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)


ModelsArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL",
        help="A config.json, a directory with one, a YAML file, a preset's name, or - for standard input.",
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
    str | None, typer.Option("--depth", "-d", metavar="N", help="Show the component tree to this many levels.")
]
FormatOpt = Annotated[
    str, typer.Option("--format", "-f", metavar="FORMAT", help="Output format: table, json, csv or markdown.")
]
JsonOpt = Annotated[bool, typer.Option("--json", metavar=FLAG, help="The same as --format json.")]
OutputOpt = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result to a file.")]
StrictOpt = Annotated[
    bool, typer.Option("--strict", metavar=FLAG, help="Exit with 1 if the count would be approximate.")
]
TextOnlyOpt = Annotated[
    bool,
    typer.Option(
        "--text-only", metavar=FLAG, help="Count the language model of a multimodal model, without its towers."
    ),
]
FamilyOpt = Annotated[
    str | None,
    typer.Option(
        "--as-family", metavar="NAME", help="Count an unknown model_type as if it were this one; approximate."
    ),
]

GpuOpt = Annotated[
    str | None, typer.Option("--gpu", "-g", metavar="NAME", help="A name from `paramcalc gpus`, or a size like 24GiB.")
]
UtilizationOpt = Annotated[
    str | None,
    typer.Option(
        "--gpu-memory-utilization",
        metavar="SHARE",
        help="Usable share of the memory; by default 0.9 in fit, and 1 in design.",
    ),
]


def overrides(settings: list[str] | None) -> dict[str, Any]:
    """`["hidden_size=5120"]` as a mapping. Values are JSON, or a bare word."""
    result = {}
    for setting in settings or ():
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ParamcalcError(f"--set {setting}: not KEY=VALUE", "write it like --set num_hidden_layers=48")
        result[key.strip()] = override_value(text.strip())
    return result


def override_value(text: str) -> Any:
    """A JSON value, Python's None, or a bare word; lower-case `none` is a word (`positions=none`)."""
    words = {"true": True, "false": False, "null": None}
    if text == "None" or text.lower() in words:
        return words.get(text.lower())
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def chosen_format(text: str, as_json: bool) -> OutputFormat:
    """The output format, in upper or lower case. Raises ParamcalcError with the known formats."""
    wanted = "json" if as_json else text.lower()
    for fmt in FORMATS:
        if fmt == wanted:
            return fmt
    raise ParamcalcError(f"unknown format {text!r}", "known: " + ", ".join(FORMATS))


def tree_depth(text: str | None) -> int | None:
    """The levels of a tree to show: a whole number from 1. Raises ParamcalcError for anything else."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 2 or int(text) == 0:
        raise ParamcalcError(f"--depth {text}: not a number of levels", "write it like --depth 3")
    return int(text)
