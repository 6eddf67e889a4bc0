"""The options of a workload: the tokens for which FLOPs are counted."""

from __future__ import annotations

from typing import Annotated, Any

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.units import parse_tokens
from paramcalc.cli.option import BATCH, DEFAULT_CONTEXT, SOURCE, Option, context, values
from paramcalc.cli.option_groups import OptionGroup
from paramcalc.cli.options import FLAG
from paramcalc.compute.workload import check_workload
from paramcalc.tree.workload import Workload

WORKLOAD_OPTIONS = {
    "context": context(
        f"All tokens of each sequence: 8192, 8k, 128k (131,072). As many as --tokens, else {DEFAULT_CONTEXT}."
    ),
    "tokens": Option(
        ("--tokens", "-t"),
        "TOKENS",
        "New tokens of each sequence (the others are cached); all if not given.",
        parse_tokens,
    ),
    "batch": BATCH,
    "source": SOURCE,
    "counting": Option(
        ("--counting",),
        "MODE",
        "needed, or reference: all products of the eager code in transformers, also outside of windows.",
    ),
}
CausalOpt = Annotated[
    bool,
    typer.Option(
        "--causal", metavar=FLAG, help="Count causal attention only: each token attends to those before it, not to all."
    ),
]


def read_workload(*, causal: bool, **texts: Any) -> Workload:
    """The workload from the option strings, checked."""
    given = values(WORKLOAD_OPTIONS, texts)
    given.setdefault("tokens", given.get("context") or parse_tokens(DEFAULT_CONTEXT))
    return check_workload(causal=causal, **given)


WORKLOAD_GROUP = OptionGroup(
    {name: one.annotation() for name, one in WORKLOAD_OPTIONS.items()} | {"causal": (CausalOpt, False)},
    read_workload,
)
