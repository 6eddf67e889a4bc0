"""`paramcalc compare`: several models side by side, or the effect of a config change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.units import parse_tokens
from paramcalc.cli.memory_options import MEMORY_OPTIONS
from paramcalc.cli.option import DEFAULT_CONTEXT
from paramcalc.cli.option_groups import MODELS, OUTPUT, OptionGroup, takes
from paramcalc.cli.options import FLAG
from paramcalc.cli.output import Output, warn
from paramcalc.cli.typer_classes import InOrder
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View

CONTEXT_GROUP = OptionGroup(
    {"context": MEMORY_OPTIONS["context"].annotation()}, lambda context: parse_tokens(context or DEFAULT_CONTEXT)
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=InOrder, epilog="Example: paramcalc compare --preset llama3-8b --preset qwen3-8b config.json")(
        compare
    )


@takes(models=MODELS, context=CONTEXT_GROUP, out=OUTPUT)
def compare(
    models: list[Model],
    context: int,
    out: Output,
    only_different: Annotated[
        bool, typer.Option("--only-different", metavar=FLAG, help="Omit figures that are equal for all models.")
    ] = False,
    fail_on_difference: Annotated[
        bool,
        typer.Option("--fail-on-difference", "--exit-code", metavar=FLAG, help="Exit with 1 if a figure differs."),
    ] = False,
) -> None:
    """Compare models, with ratios to the first; for two of one family, show the effect of each changed field."""
    from paramcalc.scaling.compare import compare_figures

    def view() -> View:
        from paramcalc.render.compare import compare_view

        return compare_view(answer)

    answer = compare_figures(models, context=context, only_different=only_different)
    warn(answer["warnings"])
    out.show([answer], view)
    if fail_on_difference and any(row["differs"] for row in answer["rows"]):
        raise typer.Exit(1)
