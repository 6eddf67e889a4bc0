"""The schema of a FLOP report. All figures are exact integers."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report, Status


class SettingInfo(Report):
    """The workload for which the figures hold."""

    tokens: int = Field(description="new tokens of each sequence")
    context: int = Field(description="all tokens of each sequence; those that are not new are cached")
    source: int = Field(description="tokens that an encoder reads")
    batch: int = Field(description="number of sequences")
    causal: bool = Field(description="attention is masked to earlier tokens; otherwise the full square is counted")
    counting: str = Field(description="needed, or reference: all products that transformers' eager code computes")


class Work(Report):
    """FLOPs by kind of product, two for each multiply-add."""

    total: int
    matmul: int = Field(description="activations times weights: projections, active experts, the head")
    attention: int = Field(description="activations times activations: scores, and their product with the values")
    convolution: int
    recurrence: int = Field(description="reads and updates of the states of linear attention and state space models")


class Training(Report):
    """FLOPs of forward and backward pass together."""

    total: int = Field(description="forward + backward; the backward pass is twice the forward pass")
    with_recomputation: int = Field(description="the same if every activation is computed a second time")


class Term(Report):
    """FLOPs of one matrix, or of one product of activations."""

    name: str = Field(description="path in the tree, in the first layers of its kind")
    category: str
    term: str
    copies: int = Field(description="number of layers times their passes, times experts that a token uses")
    flops: int = Field(description="all copies, for the whole batch")


class Rules(Report):
    """Training FLOPs by published rules of thumb, for the same tokens."""

    six_nd: int = Field(description="6ND with all parameters that a token uses (Hoffmann et al. 2022)")
    six_nd_non_embedding: int = Field(description="6ND without embeddings and head (Kaplan et al. 2020)")
    palm: int = Field(description="6ND with all parameters, and attention (Chowdhery et al. 2022, appendix B)")


class FlopsReport(Answer):
    """FLOPs of a model for a number of tokens, forward and backward."""

    model: ModelInfo
    status: Status = Field(description="exact: with counting reference, equal to torch's count on the reference class")
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = Field(description="omitted parts, and how masked pairs and recurrences are counted")
    assumptions: SettingInfo
    forward: Work
    per_token: Work = Field(description="forward, averaged over new tokens, rounded down")
    backward: Work = Field(description="twice the forward pass")
    training: Training
    components: dict[str, Work] = Field(description="forward by category; sums to forward")
    terms: tuple[Term, ...] = Field(description="forward by part; sums to forward")
    rules: Rules
