"""Working memory: bytes of one step in addition to weights and caches. An estimate, with its formula.

The sum of two terms, because allocators seldom reuse the memory of one for the other:

- **logits**: for the last token of each sequence (for every token if the model does not generate), over the whole
  vocabulary, which devices gather, in `logits_dtype`;
- **activations** of the widest layer for one chunk of tokens: twice the width (the residual and the normed input), and
  for the widest part of the layer the outputs of all matrices except output projections, and the inputs of output
  projections. For attention these are queries, keys, values and the output of the heads. For an FFN these are gate, up
  and their product. For experts, they count once for each expert of a token, plus the output of each expert. Devices
  that divide a matrix divide these too.

With `eager` attention, the scores of a chunk against the whole context are added: in the model's dtype, and their
softmax in float32 (eager_attention_forward in transformers). Vision and audio towers are not included.

vLLM, Llama-3-8B on one device: 0.22 GiB of "PyTorch activation peak memory" observed for chunks of 2,048 tokens, 0.20
here; 1.26 GiB for 8,192 tokens and 256 sequences (vLLM pull request 10511), 0.90 here: sampling with top-p sorts copies
of the logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.assumptions import Assumptions
from paramcalc.base.dtypes import Dtype, dtype
from paramcalc.model import Model
from paramcalc.parallel.sharding import UNSHARDED, Shares
from paramcalc.tree.component import Component
from paramcalc.tree.containers import stacks
from paramcalc.tree.weights import Weight

if TYPE_CHECKING:
    from paramcalc.reports.shapes.memory import WorkingSizesDict

SOFTMAX_DTYPE = dtype("float32")


class ActivationShape(NamedTuple):
    """The facts of a model that decide its working memory on one device, independent of context and batch."""

    terms: tuple[tuple[str, int], ...]  # channels of one token in memory at once in the widest layer, by name
    heads: int  # query heads, each with scores in eager attention
    vocabulary: int
    generates: bool  # only the last token of a sequence needs logits
    dtype: Dtype

    @property
    def channels(self) -> int:
        """The sum of all terms."""
        return sum(channels for _, channels in self.terms)


def activation_shape(model: Model, shares: Shares = UNSHARDED) -> ActivationShape:
    """The activation shape of a model, or of a pipeline stage, on one device."""
    all_stacks = stacks(model.tree)
    generating = [stack for stack in all_stacks if stack.causal]
    layers = [kind.layer for stack in generating or all_stacks for kind in stack.layer_kinds()]
    return ActivationShape(
        max((widest_part(layer, shares) for layer in layers), key=_total_channels, default=()),
        max((query_heads(layer.weights(), shares) for layer in layers), default=0),
        output_matrix_rows(model.tree),
        bool(generating),
        activation_dtype(model),
    )


def activation_figures(shape: ActivationShape, assumed: Assumptions, *, batch: int) -> WorkingSizesDict:
    """`working` of the report, for a device that serves `batch` sequences."""
    kind, logits_dtype = shape.dtype, dtype(assumed.logits_dtype)
    tokens = min(assumed.prefill_chunk, batch * assumed.context)
    scored = batch if shape.generates else batch * assumed.context
    logits = logits_dtype.bytes(scored * shape.vocabulary)
    activations = kind.bytes(tokens * shape.channels)
    scores = shape.heads * min(tokens, assumed.context) * assumed.context if assumed.attention == "eager" else 0
    eager = kind.bytes(scores) + SOFTMAX_DTYPE.bytes(scores)
    return {
        "bytes": logits + activations + eager,
        "estimate": True,
        "logits": {"bytes": logits, "tokens": scored, "vocabulary": shape.vocabulary, "dtype": logits_dtype.name},
        "activations": {"bytes": activations, "tokens": tokens, "channels": shape.channels, "dtype": kind.name},
        "scores": {"bytes": eager, "heads": shape.heads if scores else 0},
    }


def activation_dtype(model: Model) -> Dtype:
    """The dtype of activations: that of the model, or bfloat16 if that is only a storage format."""
    kind = dtype(model.dtype)
    return kind if kind.block_elements == 1 and kind.block_bytes > 1 else dtype("bfloat16")


def output_matrix_rows(tree: Component) -> int:
    """Rows of the output matrix, its own or tied to the embedding; 0 without one."""
    owners = {f"{tie.owner}.weight" for tie in tree.ties() if tie.category == "head"}
    rows = [
        int(weight.shape[0])
        for weight in tree.weights()
        if weight.role == "parameter"
        and (weight.name in owners or (weight.category == "head" and weight.kind == "matrix"))
    ]
    return max(rows, default=0)


Terms = tuple[tuple[str, int], ...]


def widest_part(layer: Component, shares: Shares) -> Terms:
    """Channels in memory at once for one token: twice the width, and those of the widest part."""
    width = next((int(weight.shape[1]) for weight in layer.weights() if weight.kind == "matrix"), 0)
    parts = (tuple(_live_channels(part.component.weights(), shares)) for part in layer.children())
    return (("residual and normed input", 2 * width), *max(parts, key=_total_channels, default=()))


def _total_channels(terms: Terms) -> int:
    return sum(channels for _, channels in terms)


def query_heads(weights: Iterable[Weight], shares: Shares) -> int:
    """Query heads of attention on one device."""
    units = [
        shares.share(weight, int(weight.split.units))
        for weight in weights
        if weight.category == "attention" and weight.split is not None and weight.split.unit_kind == "heads"
    ]
    return max(units, default=0)


def _live_channels(weights: Iterable[Weight], shares: Shares) -> Iterator[tuple[str, int]]:
    for weight in weights:
        if weight.kind != "matrix":
            continue
        name = weight.name.removesuffix(".weight")
        outputs, inputs, copies = int(weight.shape[0]), int(weight.shape[1]), int(weight.active)
        if weight.split is None or weight.split.axis != "row":
            yield name, copies * shares.share(weight, outputs)
        else:
            yield f"into {name}", copies * shares.share(weight, inputs)
            if weight.experts > 1:
                yield name, copies * outputs


def activation_arithmetic(shape: ActivationShape, figures: WorkingSizesDict) -> list[str]:
    """Lines of text with the arithmetic of the figures."""
    logits, activations, scores = figures["logits"], figures["activations"], figures["scores"]
    logit_bytes, value_bytes = dtype(logits["dtype"]).block_bytes, dtype(activations["dtype"]).block_bytes
    tokens, channels = activations["tokens"], activations["channels"]
    lines = [
        f"logits: {logits['tokens']:,} tokens x {logits['vocabulary']:,} x {logit_bytes} bytes = {logits['bytes']:,}",
        f"activations: {tokens:,} tokens x {channels:,} channels x {value_bytes} bytes = {activations['bytes']:,}",
        f"channels: {' + '.join(f'{name} {count:,}' for name, count in shape.terms)} = {channels:,}",
    ]
    if scores["bytes"]:
        lines.append(
            f"scores: {scores['heads']:,} heads x chunk x context, {value_bytes} bytes each, and 4 for their softmax"
        )
    return lines
