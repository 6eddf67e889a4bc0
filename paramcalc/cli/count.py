"""`paramcalc count`: one or several models, as a table, a tree, or with its arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.options import (
    FLAG,
    DepthOpt,
    FamilyOpt,
    FormatOpt,
    JsonOpt,
    ModelsArg,
    OutputOpt,
    PresetOpt,
    SetOpt,
    StrictOpt,
    TextOnlyOpt,
    levels,
    overrides,
)
from paramcalc.cli.output import Output, dumped, warn, warnings_of
from paramcalc.errors import ParamcalcError
from paramcalc.model import Model

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paramcalc.render.text import Row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc count --preset llama3-8b --set num_hidden_layers=48")(count)


def count(
    models: ModelsArg = None,
    preset: PresetOpt = None,
    settings: SetOpt = None,
    depth: DepthOpt = None,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", metavar=FLAG, help="Show the arithmetic, line by line.")
    ] = False,
    include_mtp: Annotated[
        bool, typer.Option("--include-mtp", metavar=FLAG, help="Add multi-token-prediction modules to the total.")
    ] = False,
    text_only: TextOnlyOpt = False,
    strict: StrictOpt = False,
    as_family: FamilyOpt = None,
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Count the parameters of one or several models, and say where they sit."""
    from paramcalc import readers
    from paramcalc.count import figures
    from paramcalc.loading import build

    documents = [*map(readers.read, models or ()), *map(readers.read_preset, preset or ())]
    if not documents:
        raise ParamcalcError("no model given", "paramcalc count config.json, or paramcalc count --preset llama3-8b")
    changed = overrides(settings)
    loaded = [
        build(document, overrides=changed, strict=strict, as_family=as_family, text_only=text_only)
        for document in documents
    ]
    out, opened = Output(fmt, as_json, output), levels(depth)
    if opened and (explain or len(loaded) > 1 or out.format != "table"):
        raise ParamcalcError("--depth opens one model's table", "leave out --explain, --format and further models")
    if explain:
        _explain(loaded, include_mtp, out)
        return
    warn(warnings_of(loaded))
    out.emit(
        answers=lambda: [figures(model, include_mtp=include_mtp) for model in loaded],
        rows=lambda: _rows(loaded, include_mtp),
        table=lambda width: _table(loaded, include_mtp, opened, width),
    )


def _rows(loaded: list[Model], include_mtp: bool) -> list[Row]:
    from paramcalc.count import count as counted
    from paramcalc.render.rows import count_row

    return [count_row(counted(model, include_mtp=include_mtp)) for model in loaded]


def _table(loaded: list[Model], include_mtp: bool, depth: int | None, width: int | None) -> RenderableType:
    from paramcalc.count import count as counted
    from paramcalc.outline import outline
    from paramcalc.render import table

    reports = [counted(model, include_mtp=include_mtp) for model in loaded]
    if len(reports) > 1:
        return table.models_table(reports, width or table.WIDE)
    rows = outline(loaded[0].tree, depth, include_mtp=include_mtp) if depth else None
    return table.count_table(reports[0], rows, width=width, include_mtp=include_mtp)


def _explain(loaded: list[Model], include_mtp: bool, out: Output) -> None:
    from paramcalc.explain import explain
    from paramcalc.render.explain import explanation_text
    from paramcalc.render.rows import explanation_rows

    explanations = [explain(model, include_mtp=include_mtp) for model in loaded]
    warn(warnings_of(loaded))
    out.emit(
        answers=lambda: dumped(explanations),
        rows=lambda: [row for explanation in explanations for row in explanation_rows(explanation)],
        table=lambda width: "\n".join(explanation_text(explanation, width) for explanation in explanations),
    )
