"""What comes out of each step of a layer: the shapes that a token's path takes."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.base.symbolic import Size

# A size, or what it is of: sequences, new tokens, tokens they attend to (an encoder's, for cross attention), one.
StepAxis = Size | str
StepShape = tuple[StepAxis, ...]
BATCH, TOKENS, CONTEXT, SOURCE = "batch", "tokens", "context", "source"
SAME_SHAPE: StepShape = ()  # as the step before left it
NO_OUTPUT: StepShape = ("",)  # it is added, or scales, and puts out nothing itself


class Step(NamedTuple):
    """A step under the name of the part or the product it is of, and the shape it puts out."""

    name: str
    shape: StepShape
    note: str = ""


def per_token(width: Size) -> StepShape:
    """A vector of so many channels for each token."""
    return (BATCH, TOKENS, width)
