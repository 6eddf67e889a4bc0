"""The options of sweeps. Axes are written as `12,24,48`, `12:48:4`, `n_layers=8:64:8`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError
from paramcalc.cli.options import override_value

MOST_VALUES = 10**6
HINT = "write it like 12,24,48 or 12:48:4 (from, to, step)"

DepthsOpt = Annotated[
    str | None, typer.Option("--depth", "-d", metavar="DEPTHS", help="Numbers of layers: 12,24,48 or 12:48:4.")
]
WidthsOpt = Annotated[
    str | None, typer.Option("--width", "-w", metavar="WIDTHS", help="Widths of the model: 768,1024 or 512:4096:512.")
]
SweepOpt = Annotated[
    list[str] | None,
    typer.Option("--sweep", metavar="FIELD=VALUES", help="Values of any field; may be given several times."),
]
RuleOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="NAME=RULE",
        help="Scaling of fields with the width: heads, kv_heads or ffn = ratio or kept; multiple_of = a number.",
    ),
]
OverlayOpt = Annotated[
    str | None,
    typer.Option("--overlay", metavar="LADDERS", help="Published models for comparison: gpt3,pythia,opt, ... or all."),
]


def number_list(name: str, text: str) -> list[int]:
    """`12,24,48` or `12:48:4`, both ends included. Raises ParamcalcError for anything else."""
    found: list[int] = []
    for piece in text.split(","):
        bounds = piece.split(":")
        if not all(part.strip().isascii() and part.strip().isdigit() and len(part) < 20 for part in bounds):
            raise ParamcalcError(f"--{name} {text}: {piece.strip()!r} is not a number or range", HINT)
        first, last, step, *more = [int(part) for part in bounds] + ([int(bounds[0])] if len(bounds) == 1 else []) + [1]
        if more[1:] or step < 1 or (last - first) // step >= MOST_VALUES or last < first:
            raise ParamcalcError(f"--{name} {text}: {piece.strip()!r} is not a range", HINT)
        found += range(first, last + 1, step)
    return list(dict.fromkeys(found))


def field_axis(text: str) -> tuple[str, list[Any]]:
    """`d_ff=2048,4096`, `num_experts=8:64:8` or `tie_word_embeddings=true,false`: a field and its values."""
    field, equals, values = text.partition("=")
    if not equals or not field.strip() or not values.strip():
        raise ParamcalcError(f"--sweep {text}: not FIELD=VALUES", "write it like --sweep d_ff=2048,4096")
    if ":" in values:
        return field.strip(), list(number_list(f"sweep {field}", values))
    return field.strip(), [override_value(piece.strip()) for piece in values.split(",")]


def read_grid(depth: str | None, width: str | None, sweep: Sequence[str] | None) -> dict[str, list[Any]]:
    """All axes, in the order depth, width, others. Raises ParamcalcError for no axis, and for a field given twice."""
    found: dict[str, list[Any]] = {}
    for name, text in (("depth", depth), ("width", width)):
        if text is not None:
            found[name] = list(number_list(name, text))
    for text in sweep or ():
        field, values = field_axis(text)
        if field in found:
            raise ParamcalcError(f"--sweep {text}: {field} has values already", "give all values in one option")
        found[field] = values
    if not found:
        raise ParamcalcError("nothing to sweep", "use --depth 12,24,48, --width 512:2048:256 or --sweep FIELD=VALUES")
    return found


def ladder_names(text: str | None) -> list[str]:
    """The names in a list like `gpt3,pythia`."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def read_rules(given: Sequence[str] | None) -> dict[str, str | int]:
    """The rules in a list like `["heads=kept"]`."""
    found: dict[str, str | int] = {}
    for text in given or ():
        name, equals, rule = text.partition("=")
        if not equals:
            raise ParamcalcError(f"--rule {text}: not NAME=RULE", "write it like --rule heads=kept")
        found[name.strip()] = rule.strip()
    return found
