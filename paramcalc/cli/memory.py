"""`paramcalc memory`: the bytes of one or several models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.assumptions import Assumptions
from paramcalc.cli.memory_options import MEMORY_GROUP
from paramcalc.cli.option_groups import MODELS, OUTPUT, takes
from paramcalc.cli.options import FLAG
from paramcalc.cli.output import Output, report_data, warn, warning_lines
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc memory --preset llama3-8b --context 128k --batch 4 --kv-cache-dtype fp8")(
        memory
    )


@takes(models=MODELS, assumed=MEMORY_GROUP, out=OUTPUT)
def memory(
    models: list[Model],
    assumed: Assumptions,
    out: Output,
    explain: Annotated[
        bool,
        typer.Option("--explain", "-e", metavar=FLAG, help="Show the arithmetic, and the differences between engines."),
    ] = False,
) -> None:
    """Show the memory of one or several models: weights, caches, states."""
    from paramcalc.footprint.memory import memory_figures

    def view() -> View:
        from paramcalc.render.memory import memory_view

        return memory_view(answers)

    if explain:
        explained_memory(models, assumed, out)
        return
    answers = [memory_figures(model, assumed) for model in models]
    warn(warning_lines([(answer["model"]["name"], answer["warnings"]) for answer in answers]))
    out.show(answers, view)


def explained_memory(models: list[Model], assumed: Assumptions, out: Output) -> None:
    """The arithmetic instead of its result."""
    from paramcalc.footprint.explain import explain_memory

    def view() -> View:
        from paramcalc.render.explain import explain_view

        return explain_view(answers)

    explanations = [explain_memory(model, assumed) for model in models]
    answers = report_data(explanations)
    warn(warning_lines([(one.model.name, one.warnings) for one in explanations]))
    out.show(answers, view)
