"""Feed-forward networks: dense ones, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component, Part, prefixed_steps
from paramcalc.tree.leaves import Linear, Param
from paramcalc.tree.ops import PerWord
from paramcalc.tree.steps import BATCH, TOKENS, Step, per_token
from paramcalc.tree.weights import Category, ShardSpec


class Mlp(Component):
    """A feed-forward network of two matrices, or of three when gated: 2 d d_ff or 3 d d_ff elements.

    Shapes: up and gate (d_ff, d), down (d, d_ff).
    Source: Vaswani et al. 2017 (1706.03762), section 3.3; gated: Shazeer 2020 (2002.05202).
    """

    category: Category | None = "ffn"
    width: Size
    hidden: Size
    gated: bool
    bias: bool = False
    inner: Component | None = None  # parts on the hidden channels: a norm, a learned activation or scale
    down_bias: bool | None = None  # of the down-projection where it differs (GTE)
    groups: tuple[Size, Size] = (1, 1)  # grouped up- and down-projection (SqueezeBERT, ConvBERT)
    fused: bool = False  # gate and up in one matrix, which is tied or adapted as a whole (Zamba2)

    def parts(self) -> Mapping[str, Component]:
        column, row = ShardSpec("column", self.hidden), ShardSpec("row", self.hidden)
        up = grouped_linear(self.width, self.hidden, groups=self.groups[0], bias=self.bias, split=column)
        gate: dict[str, Component] = {"gate_proj": up} if self.gated else {}
        if self.fused:
            gate, up = (
                {},
                grouped_linear(self.width, 2 * self.hidden, groups=self.groups[0], bias=self.bias, split=column),
            )
        inner = {} if self.inner is None else {"inner": self.inner}
        bias = self.bias if self.down_bias is None else self.down_bias
        down = grouped_linear(self.hidden, self.width, groups=self.groups[1], bias=bias, split=row)
        return gate | {"gate_up_proj" if self.fused else "up_proj": up} | inner | {"down_proj": down}

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width, "d_ff": self.hidden}

    own_ops = Component.no_own_ops

    def steps(self) -> Iterator[Step]:
        """Up-projection, activation (times the gate), down-projection."""
        for name, part in self.parts().items():
            if name == "down_proj":
                yield Step("activation", per_token(self.hidden), "gated" if self.gated else "")
            yield from prefixed_steps(name, part.steps())

    def label(self) -> str:
        return "ffn"


def grouped_linear(d_in: int, d_out: int, *, groups: int, bias: bool, split: ShardSpec | None = None) -> Linear:
    """A matrix each of whose outputs reads one of `groups` equal groups of the inputs."""
    return Linear(d_in=d_in if groups == 1 else d_in // groups, d_out=d_out, bias=bias, split=split)


class Experts(Component):
    """E experts of the same shapes, of which each token uses k (`top_k`).

    Shapes: those of the expert, E times, such as up (E, d_ff, d) and down (E, d, d_ff) of an `Mlp`.
    Source: Shazeer et al. 2017 (1701.06538), section 2.
    """

    category: Category | None = "experts"
    expert: Component
    count: Size
    top_k: Size

    def children(self) -> Iterator[Part]:
        yield Part("expert", self.expert, self.count, self.top_k, experts=self.count)

    def steps(self) -> Iterator[Step]:
        """Each of the k experts has an output of its own."""
        for step in prefixed_steps("expert", self.expert.steps()):
            shape = step.shape
            yield step._replace(shape=(*shape[:-1], self.top_k, shape[-1]) if len(shape) > 1 else shape)

    own_ops = Component.no_own_ops


class Router(Component):
    """The gate that scores the experts for each token.

    `correction`: one value for each expert that is added when experts are selected, a float32 buffer.
    Shapes: gate (E, d), with a bias (E); correction (E).
    Source: Shazeer et al. 2017 (1701.06538), section 2.1; correction: DeepSeek-V3 (2412.19437), section 2.1.2.
    """

    category: Category | None = "router"
    width: Size
    experts: Size
    bias: bool = False
    correction: bool = False
    correction_counted: bool = False  # a parameter without gradient instead of a buffer (ERNIE 4.5, AFMoE)
    per: PerWord = "token"

    def parts(self) -> Mapping[str, Component]:
        matrix = Linear(d_in=self.width, d_out=self.experts, bias=self.bias, per=self.per)
        gate: dict[str, Component] = {"gate": matrix}
        correction = Param(shape=(self.experts,), buffer=not self.correction_counted, dtype="float32")
        return gate | ({"correction": correction} if self.correction else {})

    own_ops = Component.no_own_ops


class Moe(Component):
    """A mixture of experts: a router, E routed experts, of which each token uses k, and shared experts.

    `shared`: one network for all `shared_count` shared experts; `shared_gate`: a sigmoid gate on it (Qwen2-MoE).
    Shapes: router (E, d); the experts; the shared network; shared gate (1, d).
    Source: Shazeer et al. 2017 (1701.06538), section 2; shared experts: DeepSeekMoE (2401.06066), section 3.2.
    """

    width: Size
    expert: Component
    experts: Size
    top_k: Size
    router: Component | None = None  # None: a `Router` without bias and correction
    shared: Component | None = None
    shared_count: Size = 1
    shared_gate: bool = False
    activation: Component | None = None  # its parameters, which all experts share

    def parts(self) -> Mapping[str, Component]:
        parts: dict[str, Component] = {
            "router": self.router or Router(width=self.width, experts=self.experts),
            "experts": Experts(expert=self.expert, count=self.experts, top_k=self.top_k),
        }
        if self.activation is not None:
            parts["activation"] = self.activation
        if self.shared is not None:
            parts["shared_experts"] = self.shared
        if self.shared_gate:
            parts["shared_gate"] = Linear(d_in=self.width, d_out=1, category="shared_experts")
        return parts

    def dimensions(self) -> Mapping[str, int]:
        return {"d_model": self.width, "experts": self.experts, "experts_per_token": self.top_k}

    own_ops = Component.no_own_ops

    def steps(self) -> Iterator[Step]:
        """Router scores, selection, selected experts and their weighted sum, shared experts."""
        for name, part in self.parts().items():
            yield from prefixed_steps(name, part.steps())
            if name == "router":
                yield Step("choice", (BATCH, TOKENS, self.top_k), f"{self.top_k} of {self.experts} experts")
            if name == "experts":
                yield Step("weighted_sum", per_token(self.width))
        if self.shared is not None:
            yield Step("sum", per_token(self.width), "routed + shared")

    def label(self) -> str:
        shared = f" + {self.shared_count} shared" if self.shared is not None and self.shared_count else ""
        return f"{self.experts} experts, {self.top_k} active{shared}"
