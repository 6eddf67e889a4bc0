"""`paramcalc count`: one or several models, as a table, a tree, or with its arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError
from paramcalc.cli.option import INCLUDE_MTP
from paramcalc.cli.option_groups import MODELS, OUTPUT, OptionGroup, takes
from paramcalc.cli.options import FLAG, DepthOpt, tree_depth
from paramcalc.cli.output import Output, report_data, warn, warnings_of
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View

MTP_GROUP = OptionGroup({"include_mtp": INCLUDE_MTP.annotation()}, lambda include_mtp: bool(include_mtp))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc count --preset llama3-8b --set num_hidden_layers=48")(count)


@takes(models=MODELS, include_mtp=MTP_GROUP, out=OUTPUT)
def count(
    models: list[Model],
    include_mtp: bool,
    out: Output,
    depth: DepthOpt = None,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", metavar=FLAG, help="Show the arithmetic, line by line.")
    ] = False,
) -> None:
    """Count the parameters of one or several models, by category and layer."""
    from paramcalc.counting.count import count_figures

    def view() -> View:
        from paramcalc.counting.tree_rows import tree_rows
        from paramcalc.render.count import count_view

        tree = tree_rows(models[0].tree, opened, include_mtp=include_mtp) if opened else None
        return count_view(answers, tree=tree, include_mtp=include_mtp)

    opened = tree_depth(depth)
    if opened and (explain or len(models) > 1 or out.format != "table"):
        raise ParamcalcError(
            "--depth works only with the table of one model", "omit --explain, --format and further models"
        )
    warn(warnings_of(models))
    if explain:
        explained_counts(models, out, include_mtp=include_mtp)
        return
    answers = [count_figures(model, include_mtp=include_mtp) for model in models]
    out.show(answers, view)


def explained_counts(models: list[Model], out: Output, *, include_mtp: bool) -> None:
    """The arithmetic instead of its result."""
    from paramcalc.counting.explain import explain_count

    def view() -> View:
        from paramcalc.render.explain import explain_view

        return explain_view(answers)

    answers = report_data(explain_count(model, include_mtp=include_mtp) for model in models)
    out.show(answers, view)
