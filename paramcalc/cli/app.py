"""The commands. Each parses, computes, and hands reports to a renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only `main` imports this module)

from paramcalc.cli.options import (
    FamilyOpt,
    Format,
    FormatOpt,
    JsonOpt,
    ModelsArg,
    OutputOpt,
    PresetOpt,
    SetOpt,
    StrictOpt,
    overrides,
)
from paramcalc.cli.output import Output, warn
from paramcalc.errors import ParamcalcError
from paramcalc.model import Model
from paramcalc.render import rows
from paramcalc.report import CountReport
from paramcalc.version import __version__

if TYPE_CHECKING:
    from rich.console import RenderableType

HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="paramcalc",
    help="Exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
presets_app = typer.Typer(
    help="The models that ship with paramcalc.", invoke_without_command=True, context_settings=HELP
)
app.add_typer(presets_app, name="presets")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"paramcalc {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."""


@app.command(epilog="Example: paramcalc count --preset llama3-8b --set num_hidden_layers=48")
def count(
    models: ModelsArg = None,
    preset: PresetOpt = None,
    settings: SetOpt = None,
    depth: Annotated[
        int | None, typer.Option("--depth", "-d", min=1, max=20, help="Open the component tree to this many levels.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", "-e", help="Show the arithmetic, line by line.")] = False,
    include_mtp: Annotated[
        bool, typer.Option("--include-mtp", help="Add multi-token-prediction modules to the total.")
    ] = False,
    strict: StrictOpt = False,
    as_family: FamilyOpt = None,
    fmt: FormatOpt = Format.table,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Count the parameters of one or several models, and say where they sit."""
    from paramcalc import readers
    from paramcalc.count import count as count_parameters
    from paramcalc.loading import build

    documents = [*map(readers.read, models or ()), *map(readers.read_preset, preset or ())]
    if not documents:
        raise ParamcalcError("no model given", "paramcalc count config.json, or paramcalc count --preset llama3-8b")
    changed = overrides(settings)
    loaded = [build(document, overrides=changed, strict=strict, as_family=as_family) for document in documents]
    out = Output(fmt, as_json, output)
    if explain:
        _explain(loaded, out)
        return
    reports = [count_parameters(model, include_mtp=include_mtp) for model in loaded]
    warn(warning for report in reports for warning in report.warnings)

    out.emit(
        reports,
        rows=lambda: [rows.count_row(report) for report in reports],
        table=lambda: _count_table(loaded, reports, depth),
    )


def _count_table(loaded: list[Model], reports: list[CountReport], depth: int | None) -> RenderableType:
    from paramcalc.outline import outline
    from paramcalc.render import table

    if len(reports) > 1:
        return table.models_table(reports)
    return table.count_table(reports[0], outline(loaded[0].tree, depth) if depth else None)


def _explain(loaded: list[Model], out: Output) -> None:
    from paramcalc.explain import explain
    from paramcalc.render.explain import explanation_text

    explanations = [explain(model) for model in loaded]
    warn(warning for explanation in explanations for warning in explanation.warnings)
    out.emit(
        explanations,
        rows=lambda: [row for explanation in explanations for row in rows.explanation_rows(explanation)],
        table=lambda: "\n".join(explanation_text(explanation) for explanation in explanations),
    )


@presets_app.callback()
def presets(
    context: typer.Context,
    fmt: FormatOpt = Format.table,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """The models that ship with paramcalc: list them, or show one's file."""
    if context.invoked_subcommand is None:
        list_presets(fmt, as_json, output)


@presets_app.command("list")
def list_presets(fmt: FormatOpt = Format.table, as_json: JsonOpt = False, output: OutputOpt = None) -> None:
    """List the presets with total, active and source."""
    from paramcalc.catalog import preset_infos
    from paramcalc.render.table import listing

    infos = preset_infos()
    listed = [rows.preset_row(info) for info in infos]
    Output(fmt, as_json, output).emit(infos, rows=lambda: listed, table=lambda: listing(listed), always_list=True)


@presets_app.command("show", epilog="Example: paramcalc presets show llama3-8b")
def show_preset(
    name: Annotated[str, typer.Argument(help="The preset's name.")],
    fmt: FormatOpt = Format.table,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Show a preset's file, ready to be copied and changed."""
    from paramcalc import presets as shipped
    from paramcalc.catalog import preset_info

    text = shipped.read(name).decode()
    info = preset_info(name)
    Output(fmt, as_json, output).emit([info], rows=lambda: [rows.preset_row(info)], table=lambda: text)


@app.command(epilog="Example: paramcalc families deepseek_v3")
def families(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show one family and the fields it reads.")
    ] = None,
    fmt: FormatOpt = Format.table,
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """List the model_types that are understood, and how each was verified."""
    from paramcalc import catalog
    from paramcalc.render.table import family_table, listing

    out = Output(fmt, as_json, output)
    if name is not None:
        info = catalog.family_info(name)
        out.emit([info], rows=lambda: [rows.family_row(info)], table=lambda: family_table(info))
        return
    infos = catalog.family_infos()
    listed = [rows.family_row(info) for info in infos]
    out.emit(infos, rows=lambda: listed, table=lambda: listing(listed), always_list=True)


@app.command(epilog="Example: paramcalc schema count")
def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="count, explain, presets, families, or model (the YAML format)."),
    ] = None,
    output: OutputOpt = None,
) -> None:
    """Print the JSON Schema of each report and of the YAML model format."""
    import json

    from paramcalc import catalog

    found = catalog.schema(name) if name else catalog.schemas()
    Output(Format.json, True, output).write(json.dumps(found, indent=2) + "\n")
