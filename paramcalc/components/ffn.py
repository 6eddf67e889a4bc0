"""Feed-forward networks: one for all tokens, or a bank of experts of which a router picks a few for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component, Part, prefixed_steps
from paramcalc.tree.leaves import Linear, Param
from paramcalc.tree.ops import PerWord
from paramcalc.tree.steps import BATCH, TOKENS, Step, per_token
from paramcalc.tree.weights import Category, ShardSpec


class Mlp(Component):
    """A feed-forward network: two matrices, or three when gated (GLU variants, Shazeer 2020).

    Shapes: up (and gate) (d_ff, d), down (d, d_ff). Plain: 2 d d_ff; gated: 3 d d_ff.
    """

    category: Category | None = "ffn"
    width: Size
    hidden: Size
    gated: bool
    bias: bool = False
    inner: Component | None = None  # what works on the hidden channels: a norm, a learned activation or scale
    down_bias: bool | None = None  # where the last matrix differs (GTE)
    groups: tuple[Size, Size] = (1, 1)  # up and down see one group of channels each (SqueezeBERT, ConvBERT)
    fused: bool = False  # gate and up are one matrix, which is tied or adapted as a whole (Zamba2)

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
        """Into the hidden channels, the activation (and the gate's product), and back."""
        for name, part in self.parts().items():
            if name == "down_proj":
                yield Step("activation", per_token(self.hidden), "gated" if self.gated else "")
            yield from prefixed_steps(name, part.steps())

    def label(self) -> str:
        return "ffn"


def grouped_linear(d_in: int, d_out: int, *, groups: int, bias: bool, split: ShardSpec | None = None) -> Linear:
    """A matrix whose outputs each see one of `groups` equal groups of the inputs."""
    return Linear(d_in=d_in if groups == 1 else d_in // groups, d_out=d_out, bias=bias, split=split)


class Experts(Component):
    """`count` equal experts, of which each token uses `top_k`."""

    category: Category | None = "experts"
    expert: Component
    count: Size
    top_k: Size

    def children(self) -> Iterator[Part]:
        yield Part("expert", self.expert, self.count, self.top_k, experts=self.count)

    def steps(self) -> Iterator[Step]:
        """Each expert that the token uses puts out a vector of its own."""
        for step in prefixed_steps("expert", self.expert.steps()):
            shape = step.shape
            yield step._replace(shape=(*shape[:-1], self.top_k, shape[-1]) if len(shape) > 1 else shape)

    own_ops = Component.no_own_ops


class Router(Component):
    """The gate that scores experts for each token: (experts, d), perhaps with a bias.

    `correction` is a buffer of one value per expert that only steers the choice (DeepSeek-V3, 2412.19437, 2.1.2), kept
    in float32.
    """

    category: Category | None = "router"
    width: Size
    experts: Size
    bias: bool = False
    correction: bool = False
    correction_counted: bool = False  # a parameter that is not trained, instead of a buffer (ERNIE 4.5, AFMoE)
    per: PerWord = "token"

    def parts(self) -> Mapping[str, Component]:
        matrix = Linear(d_in=self.width, d_out=self.experts, bias=self.bias, per=self.per)
        gate: dict[str, Component] = {"gate": matrix}
        correction = Param(shape=(self.experts,), buffer=not self.correction_counted, dtype="float32")
        return gate | ({"correction": correction} if self.correction else {})

    own_ops = Component.no_own_ops


class Moe(Component):
    """A mixture of experts: a router, routed experts (top_k of them per token) and experts that every token uses.

    Shazeer et al. 2017 (1701.06538); shared experts as in DeepSeekMoE (2401.06066). `shared` is one MLP, however many
    shared experts it stands for (`shared_count`); `shared_gate` is Qwen2-MoE's sigmoid gate on it.
    """

    width: Size
    expert: Component
    experts: Size
    top_k: Size
    router_bias: bool = False
    router_correction: bool = False
    correction_counted: bool = False
    router: Component | None = None  # in place of a plain one
    shared: Component | None = None
    shared_count: Size = 1
    shared_gate: bool = False
    activation: Component | None = None  # parameters of the one that the experts share

    def parts(self) -> Mapping[str, Component]:
        parts: dict[str, Component] = {
            "router": self.router
            or Router(
                width=self.width,
                experts=self.experts,
                bias=self.router_bias,
                correction=self.router_correction,
                correction_counted=self.correction_counted,
            ),
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
        """Scores, the choice, the experts that are chosen and their weighted sum, and what every token uses."""
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
