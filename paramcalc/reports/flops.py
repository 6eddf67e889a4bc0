"""The schema of a report on work: what others build on. All figures are exact integers."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report, Status


class SettingInfo(Report):
    """For which tokens the figures hold."""

    tokens: int = Field(description="new tokens of each sequence")
    context: int = Field(description="all tokens of each sequence; those that are not new are cached")
    source: int = Field(description="tokens an encoder reads")
    batch: int = Field(description="sequences at a time")
    causal: bool = Field(description="each token sees those before it; else attention is the whole square")
    counting: str = Field(description="needed, or reference: all that transformers' eager code multiplies")


class Work(Report):
    """FLOPs, two for each multiplication and addition, by what is multiplied."""

    total: int
    matmul: int = Field(description="activations by weights: projections, experts that are used, the head")
    attention: int = Field(description="activations by activations: scores and mixing")
    convolution: int
    recurrence: int = Field(description="states of linear attention and state spaces, written and read")


class Training(Report):
    """Forward and backward."""

    total: int = Field(description="forward + backward, which is twice as much")
    with_recomputation: int = Field(description="the same where every activation is computed a second time")


class Term(Report):
    """One matrix of the tree, or one product of activations."""

    name: str = Field(description="path in the tree, the first layers of its kind")
    category: str
    term: str
    copies: int = Field(description="layers and their passes, experts that a token uses")
    flops: int = Field(description="of all copies, for the whole batch")


class Rules(Report):
    """Training FLOPs by published rules, for the same tokens."""

    six_nd: int = Field(description="6ND with all parameters a token uses (Hoffmann et al. 2022)")
    six_nd_non_embedding: int = Field(description="6ND without embeddings and head (Kaplan et al. 2020)")
    palm: int = Field(description="6ND with all parameters, and attention (Chowdhery et al. 2022, appendix B)")


class FlopsReport(Answer):
    """What a model computes for some tokens, forward and backward."""

    model: ModelInfo
    status: Status = Field(description="exact: with counting reference, what torch's counter sees in the reference")
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = Field(description="what is left out, and how masked pairs and recurrences are counted")
    assumptions: SettingInfo
    forward: Work
    per_token: Work = Field(description="forward, the mean over new tokens, rounded down")
    backward: Work = Field(description="twice the forward pass")
    training: Training
    components: dict[str, Work] = Field(description="forward by category; sums to forward")
    terms: tuple[Term, ...] = Field(description="forward by part; sums to forward")
    rules: Rules
