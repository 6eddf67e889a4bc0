"""The schema of a memory report: what others build on. All bytes are exact integers."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report


class AssumptionInfo(Report):
    """Under which assumptions the figures hold."""

    context: int = Field(description="tokens of each sequence, prompt and answer")
    batch: int = Field(description="sequences at a time")
    source: int | None = Field(description="tokens an encoder has read; as many as context where null")
    dtype: str | None = Field(description="format of the weights; the checkpoint's own where null")
    dtype_of: tuple[tuple[str, str], ...] = Field(description="(category or path, format)")
    include_mtp: bool = Field(description="modules for multi-token prediction are in the weights")
    kv_cache_dtype: str | None = Field(description="dtype of keys and values; the checkpoint's where null")
    v_cache_dtype: str | None = Field(description="dtype of values where it is not that of keys")
    state_dtype: str | None = Field(description="dtype of recurrent states; the reference's where null")
    kv_policy: str
    mla: str
    conv_columns: str
    tensor_parallel: int = Field(description="devices that share each layer")
    pipeline_parallel: int = Field(description="stages of layers, one after the other")
    expert_parallel: int = Field(description="devices, or groups of them, that take whole experts")
    data_parallel: int = Field(description="groups that share the batch; each has all of attention, none all experts")
    prefill_chunk: int = Field(description="tokens that one step prefills at most")
    attention: str = Field(description="flash, or eager: with the scores in memory as a whole")
    logits_dtype: str
    overhead: int = Field(description="bytes that each device loses")


class FormatShare(Report):
    """What is stored in one format."""

    tensors: int
    parameters: int = Field(description="logical: what the unquantised tensors hold; none of buffers")
    bytes: int


class WeightsPart(Report):
    """The weights as they are stored."""

    bytes: int
    by_format: dict[str, FormatShare]
    by_category: dict[str, int]
    bits_per_weight: str = Field(description="bits of all tensors for each parameter, to three decimals")
    file_records: int = Field(description="what only files keep beside them (shapes, code tables); not in bytes")
    estimate: bool = Field(description="how some of them are stored is not known to the byte; warnings say why")


class Limited(Report):
    """Entries that do not go on growing with the context, or grow slower."""

    tokens: int = Field(description="entries at most, or tokens for each entry")
    bytes_per_entry: int


class PerSequence(Report):
    """Fixed + per_token x T, windows up to their size, strides one entry for so many; a note has what else grows."""

    bytes: int
    fixed: int
    per_token: int
    windows: tuple[Limited, ...]
    strides: tuple[Limited, ...]

    def other_bytes(self, context: int) -> int:
        """Bytes of the entries that grow slower in another way."""
        limited = sum(one.bytes_per_entry * min(context, one.tokens) for one in self.windows)
        strided = sum(one.bytes_per_entry * (context // one.tokens) for one in self.strides)
        return self.bytes - self.fixed - self.per_token * context - limited - strided


class CachePart(Report):
    """Keys and values, or what stands for them."""

    bytes: int
    dtype: str = Field(description="of keys, and of values where it is another")
    latent: bool = Field(description="whether some of the attention is latent, so that `mla` matters")
    bytes_per_token: int = Field(description="what each token adds while it is inside all windows")
    per_sequence: PerSequence


class StatePart(Report):
    """Recurrent and convolution states, which do not go on growing with the context."""

    bytes: int
    per_sequence: int


class Logits(Report):
    """Scores of the vocabulary."""

    bytes: int
    tokens: int = Field(description="that need them: the last of each sequence, or all where the model only reads")
    vocabulary: int
    dtype: str


class Activations(Report):
    """What the widest layer makes of one chunk of tokens."""

    bytes: int
    tokens: int = Field(description="of one chunk")
    channels: int = Field(description="alive at once for one token, in the widest layer")
    dtype: str


class Scores(Report):
    """What eager attention adds: each head's scores of a chunk against the whole context, twice."""

    bytes: int
    heads: int


class WorkingPart(Report):
    """What a step needs besides weights and caches."""

    bytes: int
    estimate: bool
    logits: Logits
    activations: Activations
    scores: Scores
    how: tuple[str, ...] = Field(description="the arithmetic, line by line")


class OverheadPart(Report):
    """What a device loses to the driver's context, graphs, communication buffers and its allocator."""

    bytes: int
    estimate: bool


class BytesPart(Report):
    """A part of a device's memory."""

    bytes: int


class RuleShare(Report):
    """What a device holds by one rule."""

    tensors: int
    bytes: int
    weights: tuple[str, ...] = Field(description="paths of the tensors that it divides")


class StageShare(Report):
    """What the fullest device of a pipeline stage holds."""

    first_layer: int
    layers: int
    weights_bytes: int
    kv_cache_bytes: int
    state_bytes: int
    working_bytes: int
    overhead_bytes: int
    total_bytes: int


class PerDevice(Report):
    """What the fullest device holds, shares that do not come out even rounded up."""

    devices: int
    stage: int = Field(description="the pipeline stage of the fullest device, from 0 on")
    weights: BytesPart
    kv_cache: BytesPart
    state: BytesPart
    working: WorkingPart
    overhead: OverheadPart
    total: BytesPart
    sharding: dict[str, RuleShare] = Field(description="column, row, vocab, expert, replicated")
    stages: tuple[StageShare, ...]


class TotalPart(Report):
    """The sum."""

    bytes: int


class MemoryReport(Answer):
    """What a model takes in bytes, and under which assumptions."""

    model: ModelInfo
    warnings: tuple[str, ...] = Field(description="why a figure may not be exact, and what was assumed")
    notes: tuple[str, ...] = Field(description="how the figures are meant where implementations differ")
    assumptions: AssumptionInfo
    weights: WeightsPart
    kv_cache: CachePart
    state: StatePart
    working: WorkingPart
    overhead: OverheadPart
    total: TotalPart = Field(description="of the model held once")
    per_device: PerDevice
