"""`paramcalc count`: one or several models, as a table, a tree, or with its arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError
from paramcalc.cli.option import INCLUDE_MTP
from paramcalc.cli.option_groups import MODELS, OUTPUT, Group, takes
from paramcalc.cli.options import FLAG, DepthOpt, levels
from paramcalc.cli.output import Output, dumped, warn, warnings_of
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View

MTP = Group({"include_mtp": INCLUDE_MTP.annotation()}, lambda include_mtp: bool(include_mtp))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc count --preset llama3-8b --set num_hidden_layers=48")(count)


@takes(models=MODELS, include_mtp=MTP, out=OUTPUT)
def count(
    models: list[Model],
    include_mtp: bool,
    out: Output,
    depth: DepthOpt = None,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", metavar=FLAG, help="Show the arithmetic, line by line.")
    ] = False,
) -> None:
    """Count the parameters of one or several models, and say where they sit."""
    from paramcalc.counting.count import figures

    def view() -> View:
        from paramcalc.counting.tree_rows import outline
        from paramcalc.render.count import count_view

        tree = outline(models[0].tree, opened, include_mtp=include_mtp) if opened else None
        return count_view(answers, tree=tree, include_mtp=include_mtp)

    opened = levels(depth)
    if opened and (explain or len(models) > 1 or out.format != "table"):
        raise ParamcalcError("--depth opens one model's table", "leave out --explain, --format and further models")
    warn(warnings_of(models))
    if explain:
        explained(models, out, include_mtp=include_mtp)
        return
    answers = [figures(model, include_mtp=include_mtp) for model in models]
    out.show(answers, view)


def explained(models: list[Model], out: Output, *, include_mtp: bool) -> None:
    """The arithmetic instead of its result."""
    from paramcalc.counting.explain import explain

    def view() -> View:
        from paramcalc.render.explain import explain_view

        return explain_view(answers)

    answers = dumped(explain(model, include_mtp=include_mtp) for model in models)
    out.show(answers, view)
