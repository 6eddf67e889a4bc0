"""FLOPs of a component as matrix terms, each executed per token, per pair of tokens, or per other unit.

`Per` and `Limit` (`pairs.py`) are objects with all facts about a unit; folds and reports know none of them by name, so
a mixer with a new kind of operation needs its component and one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from paramcalc.base.symbolic import Size
from paramcalc.tree.pairs import NO_LIMIT, Limit
from paramcalc.tree.weights import Category
from paramcalc.tree.workload import Workload

# Activations by a weight, activations by activations, a convolution, or a recurrence over states.
TermKind = Literal["matmul", "attention", "convolution", "recurrence"]
TERM_KINDS: tuple[TermKind, ...] = ("matmul", "attention", "convolution", "recurrence")


class Per(NamedTuple):
    """The unit for which a term is executed once, and the number of these units."""

    name: str
    number: Callable[[Workload, FlopTerm], int]  # units in one sequence
    once: bool = False  # executed once for the whole batch
    in_encoder: Per | None = None  # the unit in an encoder, which reads the source tokens; None: the same
    in_pairs: bool = False  # units are pairs of tokens, which a sliding window limits
    for_tokens: bool = True  # False: executed for images and audio
    note: Callable[[Workload], str] | None = None  # a note for the report, or an empty string


def _pairs(work: Workload, term: FlopTerm) -> int:
    return term.limit.pairs(work, int(term.size), term.max_keys)


def _encoder_pairs(work: Workload, term: FlopTerm) -> int:
    read = work.encoder_tokens
    return read * (term.limit.in_encoder(read, int(term.size)) if work.excludes_masked_pairs else read)


def _chunks(work: Workload, term: FlopTerm) -> int:
    return 0 if work.is_decode_step else -(-work.tokens // int(term.size))


def _chunk_pairs(work: Workload, term: FlopTerm) -> int:
    """Pairs of chunk states: the state before the first chunk and the states after each chunk."""
    return 0 if work.is_decode_step else (_chunks(work, term) + 1) ** 2


def _block_pairs(work: Workload, term: FlopTerm) -> int:
    """Pairs of tokens of the same chunk."""
    full, rest = divmod(work.tokens, int(term.size))
    return 0 if work.is_decode_step else full * int(term.size) ** 2 + rest**2


def _encoder_note(work: Workload) -> str:
    return "the encoder has run before; the keys and values of its output are cached" if work.past else ""


def _step_note(work: Workload) -> str:
    how = "one step at a time" if work.is_decode_step else "in chunks, with the last one padded"
    return f"recurrent layers are counted {how}"


NEVER = Per("never", lambda _work, _term: 0)
IN_TOWERS = Per("tower", lambda _work, _term: 0, for_tokens=False)
PER_ENCODER_TOKEN = Per("read", lambda work, _: work.encoder_tokens, note=_encoder_note)
PER_ENCODER_PAIR = Per("read pair", _encoder_pairs, in_pairs=True)
PER_TOKEN = Per(
    "token",
    lambda work, term: work.tokens + (0 if work.past else term.padding),
    in_encoder=PER_ENCODER_TOKEN,
)
PER_PAIR = Per("pair", _pairs, in_encoder=PER_ENCODER_PAIR, in_pairs=True)
PER_SOURCE_TOKEN = Per("source", lambda work, _: work.new_source_tokens, note=_encoder_note)
PER_SOURCE_PAIR = Per("cross", lambda work, _: work.tokens * work.source_tokens)
PER_CHUNK = Per("chunk", _chunks)
PER_CHUNK_PAIR = Per("chunk pair", _chunk_pairs)
PER_BLOCK_PAIR = Per("block pair", _block_pairs)
PER_FULL_CHUNK = Per("whole chunk", lambda work, term: work.tokens // int(term.size))
PER_REST_TOKEN = Per("rest", lambda work, term: work.tokens % int(term.size))  # tokens after the last full chunk
# One token at a time.
PER_STEP = Per("step", lambda work, _: work.tokens if work.is_decode_step else 0, note=_step_note)
PER_SEQUENCE = Per("sequence", lambda _work, _term: 1)
PER_CALL = Per("call", lambda _work, _term: 1, once=True)
ROWS = (
    *(PER_TOKEN, PER_PAIR, PER_SOURCE_TOKEN, PER_SOURCE_PAIR, PER_ENCODER_TOKEN, PER_ENCODER_PAIR),
    *(PER_CHUNK, PER_CHUNK_PAIR, PER_BLOCK_PAIR, PER_FULL_CHUNK, PER_REST_TOKEN, PER_STEP),
    *(PER_SEQUENCE, PER_CALL, IN_TOWERS, NEVER),
)
# The names that recipes may use in the fields of a leaf.
PerWord = Literal["token", "pair", "source", "read", "sequence", "call", "tower", "never"]
PER: Mapping[str, Per] = {row.name: row for row in ROWS}


class FlopTerm(NamedTuple):
    """A matrix term: `flops` for each unit of `per`. A multiply-add is 2 FLOPs."""

    name: str  # path in the tree: layers.0-31.attn.q_proj
    flops: Size
    term: TermKind = "matmul"
    per: Per = PER_TOKEN
    category: Category = "other"
    limit: Limit = NO_LIMIT
    size: int = 1
    padding: int = 0  # positions that the reference computes and discards: the padding of a causal convolution
    # The largest number of keys that an indexer selects; the eager reference computes all keys, as it does for windows.
    max_keys: int | None = None
    inexact: str = ""  # why it differs from the reference; empty if it does not
    copies: int = 1  # layers, their passes, and the experts of one token

    def times(self, work: Workload) -> int:
        """The number of executions for the whole batch."""
        number = self.per.number(work, self)
        return number if self.per.once else work.batch * number
