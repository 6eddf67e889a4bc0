"""The options that say for which tokens work is counted."""

from __future__ import annotations

from typing import Annotated, Any

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.assumed import CONTEXT, Asked, whole
from paramcalc.cli.groups import Group
from paramcalc.cli.options import FLAG
from paramcalc.compute.setting import Setting, setting
from paramcalc.units import parse_tokens

ASKED = {
    "context": Asked(
        ("--context", "-c", "--max-model-len"),
        "TOKENS",
        f"All tokens of each sequence: 8192, 8k, 128k (131,072). As many as --tokens, else {CONTEXT}.",
        parse_tokens,
    ),
    "tokens": Asked(
        ("--tokens", "-t"),
        "TOKENS",
        "New tokens of each sequence, the others are cached; all if not given.",
        parse_tokens,
    ),
    "batch": Asked(("--batch", "-b"), "N", "Sequences at a time.", whole),
    "source": Asked(("--source",), "TOKENS", "Tokens an encoder reads; as many as --context.", parse_tokens),
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
    given = {name: ASKED[name].read(text) for name, text in texts.items() if text}
    given.setdefault("tokens", given.get("context") or parse_tokens(CONTEXT))
    return setting(causal=causal, **given)


SETTING = Group(
    {name: one.annotation() for name, one in ASKED.items()} | {"causal": (CausalOpt, False)},
    asked,
)
