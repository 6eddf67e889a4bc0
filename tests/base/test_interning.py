"""Equal values of a pool are one object."""

from __future__ import annotations

import pytest

from paramcalc.base.interning import InternPool
from paramcalc.components import Mlp, Moe
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Norm


def test_equal_components_of_a_pool_are_one_object() -> None:
    pool, elsewhere = InternPool(), Norm(width=4)

    def made(hidden: int, *, bias: bool) -> Block:
        ffn = Mlp(width=4, hidden=hidden, gated=True)
        return block(norm=Norm(width=4).replace(bias=bias), ffn=ffn, moe=Moe(width=4, expert=ffn, experts=5, top_k=1))

    first = pool.call(lambda: made(3, bias=False))
    assert pool.call(lambda: made(3, bias=False)) is first == made(3, bias=False) is not first
    others = [pool.call(lambda: made(5, bias=False)), pool.call(lambda: made(3, bias=True))]
    assert len({id(first), *map(id, others)}) == 3
    assert all(other.parts().keys() == first.parts().keys() and other != first for other in others)
    assert others[1].parts()["ffn"] is first.parts()["ffn"]
    plain, stated = (pool.call(Norm, **fields) for fields in ({"width": 4}, {"width": 4, "bias": False}))
    assert plain is stated  # however they were made: layers of a stack are told apart by it
    assert pool.call(lambda: block(norm=elsewhere)).parts()["norm"] is elsewhere  # taken, though not the pool's
    assert pool.call(lambda: stack("decoder", Run(3, first))).runs[0].layer is first
    with pytest.raises(TypeError, match="missing fields: width"):
        pool.call(Norm)
