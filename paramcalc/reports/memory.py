"""The schema of a memory report. All bytes are exact integers."""

from __future__ import annotations

from pydantic import Field

from paramcalc.reports.base import Answer, ModelInfo, Report


class AssumptionInfo(Report):
    """The assumptions under which the figures hold."""

    context: int = Field(description="tokens of each sequence, prompt and answer")
    batch: int = Field(description="number of sequences")
    source: int | None = Field(description="tokens that an encoder reads; null: as many as context")
    dtype: str | None = Field(description="format of the weights; null: the checkpoint's own")
    dtype_of: tuple[tuple[str, str], ...] = Field(description="(category or path, format)")
    include_mtp: bool = Field(description="weights include modules for multi-token prediction")
    kv_cache_dtype: str | None = Field(description="dtype of keys and values; null: the checkpoint's")
    v_cache_dtype: str | None = Field(description="dtype of values if it differs from that of keys")
    state_dtype: str | None = Field(description="dtype of recurrent states; null: the reference's")
    kv_policy: str
    mla: str
    conv_columns: str
    tensor_parallel: int = Field(description="devices that share each layer")
    pipeline_parallel: int = Field(description="consecutive stages of layers")
    expert_parallel: int = Field(description="devices, or groups of devices, among which whole experts are divided")
    data_parallel: int = Field(
        description="groups that share the batch; attention is replicated in each, experts are divided among all"
    )
    prefill_chunk: int = Field(description="maximum number of tokens that one step prefills")
    attention: str = Field(description="flash, or eager: the full score matrix is in memory")
    logits_dtype: str
    overhead: int = Field(description="bytes on each device that are not available for tensors")


class FormatShare(Report):
    """Tensors stored in one format."""

    tensors: int
    parameters: int = Field(description="logical, as in the unquantised tensors; without buffers")
    bytes: int


class WeightsPart(Report):
    """The weights as stored."""

    bytes: int
    by_format: dict[str, FormatShare]
    by_category: dict[str, int]
    bits_per_weight: str = Field(description="bits of all tensors per parameter, three decimals")
    file_records: int = Field(description="bytes that exist only in files (shapes, code tables); not part of bytes")
    estimate: bool = Field(description="true: how some tensors are stored is not known exactly; see warnings")


class Limited(Report):
    """Cache entries that stop growing with the context (windows), or grow slower (strides)."""

    tokens: int = Field(description="maximum number of entries, or tokens per entry")
    bytes_per_entry: int


class PerSequence(Report):
    """Cache of one sequence: fixed + per_token x T, windows up to their size, one entry per stride; notes say more."""

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
    """The KV cache: keys and values, or their latent form."""

    bytes: int
    dtype: str = Field(description="of keys, and of values if it differs")
    latent: bool = Field(description="some attention layers are latent (MLA), so `mla` has an effect")
    bytes_per_token: int = Field(description="growth per token as long as all windows have room")
    per_sequence: PerSequence


class StatePart(Report):
    """Recurrent and convolution states, which do not go on growing with the context."""

    bytes: int
    per_sequence: int


class Logits(Report):
    """Scores over the vocabulary."""

    bytes: int
    tokens: int = Field(description="the last token of each sequence; every token if the model does not generate")
    vocabulary: int
    dtype: str


class Activations(Report):
    """Activations of the widest layer for one chunk of tokens."""

    bytes: int
    tokens: int = Field(description="in one chunk")
    channels: int = Field(description="alive at once for one token, in the widest layer")
    dtype: str


class Scores(Report):
    """Scores of eager attention: for each head a chunk against the full context, before and after the softmax."""

    bytes: int
    heads: int


class WorkingPart(Report):
    """Memory that one step needs in addition to weights, caches and states."""

    bytes: int
    estimate: bool
    logits: Logits
    activations: Activations
    scores: Scores
    how: tuple[str, ...] = Field(description="the arithmetic, line by line")


class OverheadPart(Report):
    """Memory of a device that is lost to the driver's context, graphs, communication buffers and the allocator."""

    bytes: int
    estimate: bool


class BytesPart(Report):
    """One part of a device's memory."""

    bytes: int


class RuleShare(Report):
    """Memory one device holds under one sharding rule."""

    tensors: int
    bytes: int
    weights: tuple[str, ...] = Field(description="paths of the tensors that the rule divides")


class StageShare(Report):
    """Memory of the fullest device of a pipeline stage."""

    first_layer: int
    layers: int
    weights_bytes: int
    kv_cache_bytes: int
    state_bytes: int
    working_bytes: int
    overhead_bytes: int
    total_bytes: int


class PerDevice(Report):
    """Memory of the fullest device; uneven shares are rounded up."""

    devices: int
    stage: int = Field(description="pipeline stage of the fullest device; the first is 0")
    weights: BytesPart
    kv_cache: BytesPart
    state: BytesPart
    working: WorkingPart
    overhead: OverheadPart
    total: BytesPart
    sharding: dict[str, RuleShare] = Field(description="column, row, vocab, expert, replicated")
    stages: tuple[StageShare, ...]


class TotalPart(Report):
    """The sum of all parts."""

    bytes: int


class MemoryReport(Answer):
    """The memory of a model in bytes, and the assumptions behind it."""

    model: ModelInfo
    warnings: tuple[str, ...] = Field(description="reasons why a figure may not be exact, and assumptions made")
    notes: tuple[str, ...] = Field(description="choices on which implementations differ")
    assumptions: AssumptionInfo
    weights: WeightsPart
    kv_cache: CachePart
    state: StatePart
    working: WorkingPart
    overhead: OverheadPart
    total: TotalPart = Field(description="of the unsharded model")
    per_device: PerDevice
