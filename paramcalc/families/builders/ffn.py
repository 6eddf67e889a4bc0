"""Feed-forward networks and experts from the fields of a config."""

from __future__ import annotations

from paramcalc.components import Mlp, Moe, Router
from paramcalc.config.view import Config
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Param
from paramcalc.tree.weights import Category


def glu(c: Config, hidden: int | None = None, *, bias: bool = False, category: Category = "ffn") -> Mlp:
    """A gated feed-forward network of three matrices."""
    width = c.intermediate_size if hidden is None else hidden
    return Mlp(width=c.hidden_size, hidden=width, gated=True, bias=bias, inner=learned_activation(c), category=category)


def mlp(c: Config, hidden: int | None, *, bias: bool = True) -> Mlp:
    """A plain feed-forward network of two matrices; four times as wide as the model if `hidden` is None."""
    return Mlp(
        width=c.hidden_size, hidden=hidden or 4 * c.hidden_size, gated=False, bias=bias, inner=learned_activation(c)
    )


def activation(c: Config, name: str = "hidden_act") -> Component | None:
    """The parameters of the activation that a field names, or None.

    xIELU (2411.13010) has two slopes, and two constants as buffers; PReLU (1502.01852) has one slope.
    """
    word = c.counted_activation(name)
    if word not in ("xielu", "prelu"):
        return None
    slope, constant = Param(shape=(1,)), Param(shape=(), buffer=True)
    if word == "prelu":
        return block(slope=slope)
    return block(alpha_p=slope, alpha_n=slope, beta=constant, eps=constant)


def learned_activation(c: Config) -> Component | None:
    """The parameters of the activation in each FFN, if the schema names the key that the class's FFNs read."""
    return activation(c, c.ffn_activation) if c.declares("ffn_activation") else None


def moe(
    c: Config,
    hidden: int,
    *,
    experts: int,
    shared: int | None = None,
    shared_count: int | None = None,
    shared_gate: bool = False,
    router_bias: bool = False,
    correction: bool = False,
    correction_counted: bool = False,
    bias: bool = False,
    shared_bias: bool = False,
    router: Component | None = None,
    top_k: int | None = None,
) -> Moe:
    """Routed experts of width `hidden`, of which each token uses num_experts_per_tok, and optional shared ones.

    `shared` is the width of the shared experts as one network; by default `shared_count` of them are as wide as the
    routed ones.
    """
    if shared is None and shared_count:
        shared = shared_count * hidden
    if shared is None and shared_count == 0 and learned_activation(c):
        c.doubts.append(f"{c.family}: some classes build a network, and its activation, for no shared experts")
    top_k = top_k or c.num_experts_per_tok
    if top_k is None:
        c.doubts.append(f"{c.family}: {c.key('num_experts_per_tok')} is not stated; active counts every expert")
        top_k = experts
    if top_k > experts > 0:
        raise c.error("num_experts_per_tok", f"({top_k}) is more than there are experts ({experts})")
    if router is None and (router_bias or correction):
        router = Router(
            width=c.hidden_size,
            experts=experts,
            bias=router_bias,
            correction=correction,
            correction_counted=correction_counted,
        )
    return Moe(
        width=c.hidden_size,
        expert=glu(c, hidden, bias=bias).replace(inner=None),
        activation=learned_activation(c),
        experts=experts,
        top_k=top_k,
        router=router,
        shared=None if shared is None else glu(c, shared, bias=shared_bias, category="shared_experts"),
        shared_count=1 if shared_count is None else shared_count,
        shared_gate=shared_gate,
    )
