"""`paramcalc scale`: a grid of models around a base, over depth, width and any field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.assumptions import Assumptions
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.units import parse_amount
from paramcalc.cli.memory_options import MEMORY_GROUP
from paramcalc.cli.option_groups import BASE, OUTPUT, takes
from paramcalc.cli.options import GpuOpt
from paramcalc.cli.output import Output, warn
from paramcalc.cli.plots import PLOTS, Drawing
from paramcalc.cli.progress import progress
from paramcalc.cli.sweep_options import (
    DepthsOpt,
    OverlayOpt,
    RuleOpt,
    SweepOpt,
    WidthsOpt,
    ladder_names,
    read_grid,
    read_rules,
)
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View
    from paramcalc.reports.scaling import ScaleReport
    from paramcalc.reports.shapes.scaling import ScaleReportDict


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc scale tutorial-110m --depth 12,24,48 --width 768,1536")(scale)


TokensOpt = Annotated[
    str | None,
    typer.Option(
        "--training-tokens", metavar="N", help="Training tokens, like 2T; 20 per active parameter if not given."
    ),
]


@takes(base=BASE, assumed=MEMORY_GROUP, drawing=PLOTS, out=OUTPUT)
def scale(
    base: Model | None,
    assumed: Assumptions,
    drawing: Drawing,
    out: Output,
    depth: DepthsOpt = None,
    width: WidthsOpt = None,
    sweep: SweepOpt = None,
    rules: RuleOpt = None,
    gpu: GpuOpt = None,
    training_tokens: TokensOpt = None,
    overlay: OverlayOpt = None,
) -> None:
    """Compare a grid of models around a base: parameters, FLOPs, bytes, and the cost of depth against width."""
    from paramcalc.scaling.evaluate import SweepSettings
    from paramcalc.scaling.scaling_rules import scaling_rules
    from paramcalc.scaling.sweep import device_named, sweep_figures

    if base is None:
        raise ParamcalcError("no model given", "give a config.json, or --preset tutorial-110m")
    drawing.check(out)
    settings = SweepSettings(
        assumed=assumed, training_tokens=parse_training_tokens(training_tokens), device=device_named(gpu)
    )
    with progress("points") as each:
        answer = sweep_figures(
            base,
            read_grid(depth, width, sweep),
            rules=scaling_rules(read_rules(rules)),
            settings=settings,
            overlay=ladder_names(overlay),
            each=each,
        )
    warn(answer["warnings"])
    if drawing.path:
        drawing.to_file(_report(answer), base)
    out.show([answer], lambda: _view(answer, base, drawing))


def parse_training_tokens(text: str | None) -> int | None:
    """Tokens of a training run."""
    if text is None:
        return None
    number, is_bytes = parse_amount(text)
    if is_bytes or number < 1:
        raise ParamcalcError(f"--training-tokens {text}: not a number of tokens", "write it like 300B or 2T")
    return number


def _report(answer: ScaleReportDict) -> ScaleReport:
    from paramcalc.reports.scaling import ScaleReport

    return ScaleReport.model_validate(answer)


def _view(answer: ScaleReportDict, base: Model, drawing: Drawing) -> View:
    from paramcalc.render.scaling import scale_view

    return scale_view(answer, lambda table, report, width: drawing.under(table, report, base, width))
