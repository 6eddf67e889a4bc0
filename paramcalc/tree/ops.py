"""The matrix terms of a component, each with what it is done for: every token, every pair of tokens.

`Per` and `Limit` (`pairs.py`) are objects that hold all facts about them; folds and reports know none of them by name.
A mixer with a new kind of work needs its component and one row.
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
    """One of what a term is done for, and how many of them there are."""

    name: str
    number: Callable[[Workload, FlopTerm], int]  # in one sequence
    once: bool = False  # for all sequences of the batch together
    in_encoder: Per | None = None  # in an encoder, where the tokens are those that it reads; None: the same
    in_pairs: bool = False  # pairs of tokens, which a window limits
    for_tokens: bool = True  # False: for images and sounds
    note: Callable[[Workload], str] | None = None  # for readers of the figures


def _pairs(work: Workload, term: FlopTerm) -> int:
    return term.limit.pairs(work, int(term.size), term.max_keys)


def _encoder_pairs(work: Workload, term: FlopTerm) -> int:
    read = work.encoder_tokens
    return read * (term.limit.in_encoder(read, int(term.size)) if work.limited else read)


def _chunks(work: Workload, term: FlopTerm) -> int:
    return 0 if work.stepping else -(-work.tokens // int(term.size))


def _chunk_pairs(work: Workload, term: FlopTerm) -> int:
    """Pairs of the state before the first chunk and those after each one."""
    return 0 if work.stepping else (_chunks(work, term) + 1) ** 2


def _block_pairs(work: Workload, term: FlopTerm) -> int:
    """Pairs of tokens of the same chunk."""
    full, rest = divmod(work.tokens, int(term.size))
    return 0 if work.stepping else full * int(term.size) ** 2 + rest**2


def _encoder_note(work: Workload) -> str:
    return "the encoder ran before: its output's keys and values are cached" if work.past else ""


def _step_note(work: Workload) -> str:
    how = "step by step" if work.stepping else "in chunks, the last one filled up"
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
PER_STEP = Per("step", lambda work, _: work.tokens if work.stepping else 0, note=_step_note)  # one token at a time
PER_SEQUENCE = Per("sequence", lambda _work, _term: 1)
PER_CALL = Per("call", lambda _work, _term: 1, once=True)
ROWS = (
    *(PER_TOKEN, PER_PAIR, PER_SOURCE_TOKEN, PER_SOURCE_PAIR, PER_ENCODER_TOKEN, PER_ENCODER_PAIR),
    *(PER_CHUNK, PER_CHUNK_PAIR, PER_BLOCK_PAIR, PER_FULL_CHUNK, PER_REST_TOKEN, PER_STEP),
    *(PER_SEQUENCE, PER_CALL, IN_TOWERS, NEVER),
)
# The words that recipes may write in the fields of a leaf.
PerWord = Literal["token", "pair", "source", "read", "sequence", "call", "tower", "never"]
PER: Mapping[str, Per] = {row.name: row for row in ROWS}


class FlopTerm(NamedTuple):
    """A matrix term: `flops` (2 for each multiplication and addition) for each of what `per` counts."""

    name: str  # path in the tree: layers.0-31.attn.q_proj
    flops: Size
    term: TermKind = "matmul"
    per: Per = PER_TOKEN
    category: Category = "other"
    limit: Limit = NO_LIMIT
    size: int = 1
    padding: int = 0  # positions that the reference computes and cuts off again: the padding of a causal convolution
    # Keys at most, where an indexer picks them: like a window this is not what the eager reference multiplies.
    max_keys: int | None = None
    inexact: str = ""  # why it is not quite what the reference multiplies, where it is not
    copies: int = 1  # layers and their passes, experts that one token uses

    def times(self, work: Workload) -> int:
        """How often it is done for the whole batch."""
        number = self.per.number(work, self)
        return number if self.per.once else work.batch * number
