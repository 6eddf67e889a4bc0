"""`paramcalc design`: the models that come closest to a budget, one for each depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.assumptions import Assumptions
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.units import parse_amount
from paramcalc.cli.memory_options import MEMORY_GROUP
from paramcalc.cli.option import whole_number
from paramcalc.cli.option_groups import BASE, OUTPUT, takes
from paramcalc.cli.options import GpuOpt, UtilizationOpt
from paramcalc.cli.output import Output, warn, write_file
from paramcalc.cli.plots import PLOTS, Drawing
from paramcalc.cli.scale import TokensOpt, parse_training_tokens
from paramcalc.cli.sweep_options import DepthsOpt, OverlayOpt, RuleOpt, ladder_names, number_list, read_rules
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.render.answer import View
    from paramcalc.reports.scaling import DesignReport
    from paramcalc.reports.shapes.scaling import DesignReportDict


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc design --budget 1.1B --depth 12:48:4 --vocab 32000 --head-dim 64")(design)


@takes(base=BASE, assumed=MEMORY_GROUP, drawing=PLOTS, out=OUTPUT)
def design(
    base: Model | None,
    assumed: Assumptions,
    drawing: Drawing,
    out: Output,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="SIZE", help="Target size: 1.1B, 350M, 4e9, 8GiB.")
    ] = None,
    depth: DepthsOpt = None,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            metavar="FIGURE",
            help="Figure to match: total, non-embedding, active, flops (per token) or weight-bytes.",
        ),
    ] = None,
    solve: Annotated[
        str | None, typer.Option("--solve", metavar="FIELD", help="Solve for this field instead of the width.")
    ] = None,
    multiple_of: Annotated[
        str | None, typer.Option("--multiple-of", metavar="N", help="Try only multiples of this number.")
    ] = None,
    vocab: Annotated[
        str | None, typer.Option("--vocab", metavar="N", help="Size of the vocabulary; the base's if not given.")
    ] = None,
    head_dim: Annotated[
        str | None, typer.Option("--head-dim", metavar="N", help="Channels of a head, if no base is given.")
    ] = None,
    rules: RuleOpt = None,
    gpu: GpuOpt = None,
    utilization: UtilizationOpt = None,
    training_tokens: TokensOpt = None,
    overlay: OverlayOpt = None,
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Write the closest model as YAML for `count`.")
    ] = None,
) -> None:
    """Find the models that come closest to a budget: for each depth the width, or any one field."""
    from paramcalc.scaling.design import DEFAULT_DEPTHS, as_yaml, design_figures
    from paramcalc.scaling.evaluate import SweepSettings
    from paramcalc.scaling.scaling_rules import scaling_rules
    from paramcalc.scaling.search import BUDGET_TOO_SMALL, make_goal
    from paramcalc.scaling.sweep import device_named

    drawing.check(out)
    if save is not None and not save.lower().endswith((".yaml", ".yml")):
        raise ParamcalcError(f"--save {save}: not a YAML file name", "name the file like design.yaml")
    model = _base(base, vocab, head_dim)
    settings = SweepSettings(
        assumed=assumed, training_tokens=parse_training_tokens(training_tokens), device=device_named(gpu)
    )
    number, is_bytes = (None, False) if budget is None else parse_amount(budget)
    word = match or ("weight-bytes" if is_bytes else "total")
    if budget is not None and is_bytes != (word == "weight-bytes"):
        kinds = ("bytes", "a count") if is_bytes else ("a count", "bytes")
        raise ParamcalcError(
            f"--budget {budget} is {kinds[0]}, and --match {word} needs {kinds[1]}",
            "write bytes like 8GiB for weight-bytes, counts like 1.1B for the others",
        )
    answer = design_figures(
        model,
        make_goal(number, word, settings, utilization or 1),
        depth=number_list("depth", depth) if depth else DEFAULT_DEPTHS if base is None and not solve else (),
        solve=solve,
        multiple_of=whole_number(multiple_of) if multiple_of else None,
        rules=scaling_rules(read_rules(rules)),
        settings=settings,
        overlay=ladder_names(overlay),
    )
    warn(answer["warnings"])
    if answer["best"] is None:
        problems = [row["problem"] or "" for row in answer["rows"]]
        if not all(problem.startswith(BUDGET_TOO_SMALL) for problem in problems):
            raise ParamcalcError(f"no valid model: {problems[0]}", "try other depths, or another base")
        out.show([answer], lambda: _view(answer, model, Drawing(chart=False, path=None, kinds=())))
        raise typer.Exit(1)
    if drawing.path:
        drawing.to_file(_report(answer), model)
    if save is not None:
        write_file(save, as_yaml(model, answer["goal"], answer["rows"][answer["best"]]))
    out.show([answer], lambda: _view(answer, model, drawing))


def _base(base: Model | None, vocab: str | None, head_dim: str | None) -> Model:
    from paramcalc.scaling.design import default_base

    if base is None:
        sizes = {"vocab": vocab, "head_dim": head_dim}
        return default_base(**{name: whole_number(text) for name, text in sizes.items() if text is not None})
    for option, text, field in (("--vocab", vocab, "vocab_size"), ("--head-dim", head_dim, "head_dim")):
        if text is not None:
            raise ParamcalcError(f"{option} works only without a base", f"change the base with --set {field}={text}")
    return base


def _report(answer: DesignReportDict) -> DesignReport:
    from paramcalc.reports.scaling import DesignReport

    return DesignReport.model_validate(answer)


def _view(answer: DesignReportDict, base: Model, drawing: Drawing) -> View:
    from paramcalc.render.scaling import design_view

    return design_view(answer, lambda table, report, width: drawing.under(table, report, base, width))
