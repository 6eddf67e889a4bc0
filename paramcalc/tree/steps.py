"""Steps of a layer and the shapes of their outputs, as `paramcalc trace` prints them."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.base.symbolic import Size

# A size, or the name of an axis: sequences, new tokens, tokens that they attend to, tokens of an encoder's output.
StepAxis = Size | str
StepShape = tuple[StepAxis, ...]
BATCH, TOKENS, CONTEXT, SOURCE = "batch", "tokens", "context", "source"
SAME_SHAPE: StepShape = ()  # that of the step before
NO_OUTPUT: StepShape = ("",)  # a parameter that is added or scales has no output of its own


class Step(NamedTuple):
    """A step, named after its part or product, and the shape of its output."""

    name: str
    shape: StepShape
    note: str = ""


def per_token(width: Size) -> StepShape:
    """The shape of a vector of `width` channels for each token."""
    return (BATCH, TOKENS, width)
