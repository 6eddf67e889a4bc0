"""The options that say for which tokens work is counted."""

from __future__ import annotations

from typing import Annotated, Any

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.units import parse_tokens
from paramcalc.cli.option import BATCH, CONTEXT, SOURCE, Asked, context, values
from paramcalc.cli.option_groups import Group
from paramcalc.cli.options import FLAG
from paramcalc.compute.workload import Setting, setting

ASKED = {
    "context": context(f"All tokens of each sequence: 8192, 8k, 128k (131,072). As many as --tokens, else {CONTEXT}."),
    "tokens": Asked(
        ("--tokens", "-t"),
        "TOKENS",
        "New tokens of each sequence, the others are cached; all if not given.",
        parse_tokens,
    ),
    "batch": BATCH,
    "source": SOURCE,
    "counting": Asked(
        ("--counting",),
        "WHAT",
        "needed; or reference: all that transformers' eager code multiplies, behind windows too.",
    ),
}
CausalOpt = Annotated[
    bool, typer.Option("--causal", metavar=FLAG, help="Each token sees those before it, not the whole square.")
]


def asked(*, causal: bool, **texts: Any) -> Setting:
    """The texts of the options, read and checked."""
    given = values(ASKED, texts)
    given.setdefault("tokens", given.get("context") or parse_tokens(CONTEXT))
    return setting(causal=causal, **given)


SETTING = Group(
    {name: one.annotation() for name, one in ASKED.items()} | {"causal": (CausalOpt, False)},
    asked,
)
