"""The component tree: frozen pieces of a model that know their shapes. No family names, no config keys.

`Weight` is the only thing that is ever counted. A `Component` has named parts, in the order in which data flows
through them, and tensors of its own. Leaves (Linear, Embedding, Norm, Conv1d, Param) hold tensors; semantic parts
(attention, feed-forward, recurrent mixers) live in `components/`; `Block` and `Stack` put them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from math import prod
from typing import Literal, NamedTuple, get_args

from paramcalc.dims import Size
from paramcalc.frozen import Frozen
from paramcalc.kept import Kept
from paramcalc.steps import NOTHING, SAME, Step, per_token
from paramcalc.work import Per, Term, Work

Category = Literal[
    "embedding",
    "attention",
    "recurrent",
    "ffn",
    "experts",
    "shared_experts",
    "router",
    "norm",
    "head",
    "vision",
    "projector",
    "other",
]
# A buffer is saved with the model but not trained; mtp weights are shipped with it but not built by its class; a copy
# is shipped once more although the model has it.
Role = Literal["parameter", "buffer", "mtp", "copy"]
CATEGORIES: tuple[Category, ...] = get_args(Category)


# What a tensor is to those who store it: formats touch matrices, leave norms and biases alone.
Kind = Literal["matrix", "bias", "embedding", "norm", "conv", "param"]
# Which of its sides tensor parallelism cuts: outputs, inputs, or rows of a vocabulary.
Side = Literal["column", "row", "vocab"]


# What is dealt out: query heads, which must divide evenly, key/value heads, which devices may hold copies of, and what
# may leave the last device a smaller share.
Unit = Literal["heads", "kv_heads", "channels", "vocabulary"]


class Split(NamedTuple):
    """How tensor parallelism divides a tensor: along which side, and into how many shares at most.

    Beyond `units` (heads, key/value heads) devices hold copies. `fused` rows of the side are dealt out in `fused_units`
    of their own (the few groups beside many heads in Mamba-2's projection). Megatron-LM (1909.08053), section 3.
    """

    side: Side
    units: int
    of: Unit = "channels"
    fused: int = 0
    fused_units: int = 1


def by_vocabulary(rows: int) -> Split:
    """An output matrix divided by the tokens it scores."""
    return Split("vocab", rows, "vocabulary")


def by_heads(side: Side, heads: int, *, fused: int = 0, groups: int = 1) -> Split:
    """Divided into whole heads; `fused` rows in the same matrix into whole groups."""
    return Split(side, heads, "heads", fused, groups)


class Weight(NamedTuple):
    """One tensor: where it is, its shape, how many copies exist and how many of them one token uses."""

    name: str  # path in the tree: layers.attn.q_proj.weight
    shape: tuple[int, ...]
    category: Category = "other"
    copies: int = 1
    active: int = 1  # copies that one token uses; equal to `copies` for everything but routed experts
    role: Role = "parameter"
    kind: Kind = "param"
    experts: int = 1  # how many of the copies are experts side by side in one layer
    split: Split | None = None  # None: every device of a tensor-parallel group holds all of it
    dtype: str | None = None  # where checkpoints keep it in this one whatever the rest is in
    layers: tuple[range, ...] = ()  # numbers of the layers that have one, where it is a layer's

    @property
    def elements(self) -> int:
        """Scalars in one copy."""
        return prod(map(int, self.shape))


class Tally(NamedTuple):
    """Elements of all tensors of one category and role, and those that one token uses."""

    category: Category
    role: Role
    total: int
    active: int


class Part(NamedTuple):
    """A named child in the tree, with its multiplicity."""

    name: str
    component: Component
    copies: int = 1
    active: int = 1
    experts: int = 1


class Tie(NamedTuple):
    """A matrix that is another one: counted once, at its owner."""

    name: str
    owner: str
    category: Category = "other"


class Component(Frozen):
    """A piece of a model. Subclasses state their parts and their own tensors; everything else is folded."""

    category: Category | None = None

    def parts(self) -> Mapping[str, Component]:
        """Named children in data-flow order."""
        return {}

    def children(self) -> Iterator[Part]:
        """The children with their multiplicity; only containers that repeat something override this."""
        for name, component in self.parts().items():
            yield Part(name, component)

    def distinct(self) -> Iterator[Part]:
        """The children, those that are equal together: what is folded; only a stack has fewer of these."""
        return self.children()

    def tensors(self) -> Iterator[Weight]:
        """The tensors this component holds itself, named relative to it."""
        return iter(())

    def ties(self) -> Iterator[Tie]:
        """The matrices it would hold if they were not another component's, named relative to it."""
        return iter(())

    def label(self) -> str:
        """What it is called in a layer pattern (`attention`, `ffn`); empty for what a pattern leaves out."""
        return ""

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        """Every tensor below this component, with full paths, categories and multiplied copies."""
        for name, shape, inner, *more in self.remembered("weights", self._weights):
            yield Weight._make((prefix + name, shape, claimed(outer, inner) or "other", *more))

    def _weights(self) -> Iterator[Weight]:
        for w in self.tensors():
            yield w._replace(category=self.category or "other")
        for name, component, copies, active, experts in self.distinct():
            for w in component.weights(f"{name}.", self.category):
                yield (
                    w
                    if copies == 1 == active
                    else w._replace(copies=w.copies * copies, active=w.active * active, experts=w.experts * experts)
                )

    def tallies(self, outer: Category | None = None) -> Iterator[Tally]:
        """The same added up: one sum for each category and role, without the names. What a sweep folds."""
        found = self.remembered("tallies", self._tallies)
        if outer is None:
            return iter(found)
        return (Tally(claimed(outer, inner) or "other", role, total, active) for inner, role, total, active in found)

    def _tallies(self) -> Iterator[Tally]:
        sums: dict[tuple[Category, Role], list[int]] = {}
        for w in self.tensors():
            elements, share = w.elements, sums.setdefault((self.category or "other", w.role), [0, 0])
            share[0] += elements * int(w.copies)
            share[1] += elements * int(w.active)
        for _, component, copies, used, _ in self.distinct():
            for category, role, total, active in component.tallies(self.category):
                share = sums.setdefault((category, role), [0, 0])
                share[0] += total * int(copies)
                share[1] += active * int(used)
        return (Tally(category, role, total, active) for (category, role), (total, active) in sums.items())

    def all_ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        """Every tie below this component, with full paths and categories."""
        for name, owner, category in self.remembered("ties", self._ties):
            yield Tie((prefix + name).removesuffix("."), owner, claimed(outer, category) or "other")

    def _ties(self) -> Iterator[Tie]:
        for tie in self.ties():
            yield tie._replace(category=self.category or "other")
        for part in self.children():
            yield from part.component.all_ties(f"{part.name}.", self.category)

    def dimensions(self) -> Mapping[str, int]:
        """The sizes it is known by: d_model, and heads, kv_heads, head_dim, d_ff, experts or experts_per_token."""
        return {}

    def keeps(self) -> Iterator[Kept]:
        """What it keeps itself, for each sequence, between one token and the next."""
        return iter(())

    def all_kept(self) -> Iterator[Kept]:
        """What it and the parts below it keep, as parts of a layer that sees one token after the other."""
        yield from self.keeps()
        for part in self.children():
            for kept in part.component.all_kept():
                yield kept._replace(copies=kept.copies * part.copies)

    def cache(self) -> Iterator[Kept]:
        """What the causal stacks below this component keep, with the copies of their layers.

        What is outside of them (poolers, projectors, towers) sees all of its input at once.
        """
        for part in self.children():
            yield from part.component.cache()

    def again(self, prefix: str = "") -> Iterator[Weight]:
        """Matrices that checkpoints hold once more although the model has them already."""
        for part in self.children():
            yield from part.component.again(f"{prefix}{part.name}.")

    def works(self) -> Iterator[Work]:
        """The matrix terms of this component itself, named relative to it; `by_its_parts` where it has none."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it multiplies")

    def by_its_parts(self) -> Iterator[Work]:
        """The statement of a component that multiplies nothing beside what its parts do."""
        return iter(())

    def work(self, prefix: str = "", outer: Category | None = None) -> Iterator[Work]:
        """Every matrix term below this component, with full paths, categories and how often one token runs it."""
        for name, flops, term, per, inner, *more in self.remembered("work", self._work):
            path, category = (prefix + name).removesuffix("."), claimed(outer, inner) or "other"
            yield Work._make((path, flops, term, per, category, *more))

    def _work(self) -> Iterator[Work]:
        for w in self.works():
            yield w._replace(category=self.category or "other")
        for part in self.children():
            for w in part.component.work(f"{part.name}.", self.category):
                yield w if part.active == 1 else w._replace(copies=w.copies * int(part.active))

    def steps(self) -> Iterator[Step]:
        """Its parts in data-flow order, with the shapes they put out; its own products before the last matrix."""
        parts, own = list(self.children()), [work.name for work in self.works()]
        matrices = [i for i, part in enumerate(parts) if isinstance(part.component, Linear)]
        last = matrices[-1] if matrices else len(parts)
        while matrices and last and isinstance(parts[last - 1].component, Norm):
            last -= 1  # a norm of what the products put out
        for i, (name, component, *_) in enumerate(parts):
            if i == last:
                out = parts[matrices[-1]].component
                yield from (Step(work, per_token(out.d_in)) for work in own if isinstance(out, Linear))
            yield from within(name, component.steps())
        if not matrices:
            yield from (Step(work, SAME) for work in own)

    def stacks(self) -> Iterator[Stack]:
        """The stacks of layers below this component, in order."""
        for part in self.children():
            yield from part.component.stacks()


def claimed(outer: Category | None, inner: Category | None) -> Category | None:
    """The category of something `inner` within something `outer`: the outer one claims it.

    A projection inside attention is attention, an MLP inside the experts is experts. Norms stay norms wherever
    they are, except in a vision tower or a projector, which are counted as wholes.
    """
    if inner == "norm" and outer not in ("vision", "projector"):
        return inner
    return outer or inner


def within(name: str, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps of a part, under its name."""
    for step in steps:
        yield step._replace(name=f"{name}.{step.name}".removesuffix("."))


# -- leaves ------------------------------------------------------------------------------------------------------


class Linear(Component):
    """A matrix of shape (d_out, d_in) and an optional bias (torch.nn.Linear).

    `tied_to` names the component whose matrix it uses: then only a bias is its own. `per`: what it is multiplied with,
    each token unless it says otherwise.
    """

    d_in: Size
    d_out: Size
    bias: bool = False
    tied_to: str | None = None
    split: Split | None = None
    per: Per = "token"

    def tensors(self) -> Iterator[Weight]:
        if self.tied_to is None:
            yield Weight("weight", (self.d_out, self.d_in), kind="matrix", split=self.split)
        if self.bias:
            whole = self.split is None or self.split.side == "row"  # added once, after the shares are summed
            yield Weight("bias", (self.d_out,), kind="bias", split=None if whole else self.split)

    def ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    def works(self) -> Iterator[Work]:
        """d_in multiplications and additions for each output; a tied matrix multiplies like any other."""
        yield Work("", 2 * self.d_in * self.d_out, per=self.per)

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.d_out))


class Embedding(Component):
    """A lookup table of shape (rows, width) (torch.nn.Embedding)."""

    category: Category | None = "embedding"
    rows: Size
    width: Size
    tied_to: str | None = None
    divided: bool = True  # by rows, as a vocabulary; tables of positions are held whole

    def tensors(self) -> Iterator[Weight]:
        if self.tied_to is None:
            split = by_vocabulary(self.rows) if self.divided else None
            yield Weight("weight", (self.rows, self.width), kind="embedding", split=split)

    def ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    works = Component.by_its_parts  # a lookup

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.width))


class Norm(Component):
    """A normalisation over `width` channels: RMSNorm has a scale, LayerNorm usually a bias too, OLMo's neither."""

    category: Category | None = "norm"
    width: Size
    scale: bool = True
    bias: bool = False
    count: Size = 1  # one per head where each has weights of its own (StableLM's QK norms)
    split: Split | None = None  # only where a mixer's heads are normalised together (Mamba-2)

    def tensors(self) -> Iterator[Weight]:
        one = Weight("weight", (self.width,), copies=self.count, active=self.count, kind="norm", split=self.split)
        if self.scale:
            yield one
        if self.bias:
            yield one._replace(name="bias")

    works = Component.by_its_parts  # no matrix

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME)


class Conv1d(Component):
    """A convolution over time: (channels_out, channels_in / groups, kernel) and a bias (torch.nn.Conv1d)."""

    channels: Size
    kernel: Size
    per_group: int = 1  # input channels each output channel sees; 1 is depthwise
    bias: bool = True
    split: Split | None = None
    spare: Size = 0  # positions that the reference computes beyond the last token and cuts off
    per: Per = "token"

    def tensors(self) -> Iterator[Weight]:
        yield Weight("weight", (self.channels, self.per_group, self.kernel), kind="conv", split=self.split)
        if self.bias:
            yield Weight("bias", (self.channels,), kind="bias", split=self.split)

    def works(self) -> Iterator[Work]:
        """Kernel x inputs for each output channel and position."""
        flops = 2 * self.channels * self.per_group * self.kernel
        yield Work("", flops, term="convolution", per=self.per, spare=self.spare)

    def steps(self) -> Iterator[Step]:
        yield Step("", per_token(self.channels))


class Param(Component):
    """A bare parameter or persistent buffer of any shape (attention sinks, A_log, a router's correction)."""

    shape: tuple[Size, ...]
    buffer: bool = False
    split: Split | None = None
    dtype: str | None = None
    per: Per = "never"  # what it is multiplied with, where it is a matrix: its outputs and inputs are its elements
    times: Size = 1  # how often for each of these: once for each head

    def tensors(self) -> Iterator[Weight]:
        role: Role = "buffer" if self.buffer else "parameter"
        yield Weight("value", self.shape, role=role, split=self.split, dtype=self.dtype)

    def works(self) -> Iterator[Work]:
        """What a matrix does that is no Linear; nothing where it is merely added or scales."""
        if self.per != "never":
            yield Work("", 2 * self.times * prod(map(int, self.shape)), per=self.per)

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME if self.per != "never" else NOTHING)


class Product(Component):
    """A product without weights of its own: by a matrix that is handed over, or by what the token itself makes.

    `flops`: two for each multiplication and addition.
    """

    flops: Size
    per: Per = "token"
    term: Term = "matmul"

    def works(self) -> Iterator[Work]:
        """What is stated."""
        yield Work("", self.flops, self.term, self.per)

    def steps(self) -> Iterator[Step]:
        yield Step("", SAME)


Adds = Literal["each", "normed", "together"]


# -- containers --------------------------------------------------------------------------------------------------


class Block(Component):
    """Named parts in data-flow order.

    `inexact` says why their work is not quite what the reference multiplies; `adds`, of a layer, where what a mixer
    puts out is added to what came in: after each one (and the norm behind it, where there is one before the next too),
    after the norm behind each, or once for all of them.
    """

    items: dict[str, Component]
    inexact: str = ""
    adds: Adds = "each"

    def parts(self) -> Mapping[str, Component]:
        return self.items

    works = Component.by_its_parts

    def _work(self) -> Iterator[Work]:
        for w in super()._work():
            yield w._replace(inexact=self.inexact or w.inexact)

    def label(self) -> str:
        return " + ".join(text for text in (part.label() for part in self.items.values()) if text)


class Mtp(Block):
    """Multi-token-prediction modules: shipped beside the model, not built by its class, reported apart.

    Their tied parts are the copies of embedding and head that the checkpoint holds once more. DeepSeek-V3
    (2412.19437), section 2.2.
    """

    count: Size

    @property
    def copied(self) -> int:
        """Elements of the matrices that are shipped again although the model has them."""
        return sum(weight.elements * int(weight.copies) for weight in self.again())

    def again(self, prefix: str = "") -> Iterator[Weight]:
        for name, part in self.items.items():
            if isinstance(part, Embedding | Linear) and part.tied_to:
                for weight in part.but(tied_to=None).weights(f"{prefix}{name}."):
                    yield weight._replace(copies=int(self.count), active=0, role="copy")

    def children(self) -> Iterator[Part]:
        for part in super().children():
            yield part._replace(copies=self.count, active=self.count)

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        for weight in super().weights(prefix, outer):
            yield weight._replace(role="mtp")  # its router's correction buffer too: it is part of what is shipped

    def tallies(self, outer: Category | None = None) -> Iterator[Tally]:
        for tally in super().tallies(outer):
            yield tally._replace(role="mtp")

    def all_ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:  # noqa: ARG002
        return iter(())  # copies in a module that is not built tie nothing

    def cache(self) -> Iterator[Kept]:
        return iter(())  # nor does it run

    def work(self, prefix: str = "", outer: Category | None = None) -> Iterator[Work]:  # noqa: ARG002
        return iter(())


class Run(NamedTuple):
    """`repeat` equal layers in a row; each is passed through `passes` times (1 unless layers are shared).

    Every pass keeps something of its own, unless `kept` says how many do.
    """

    repeat: int
    layer: Component
    passes: int = 1
    kept: int | None = None


class Stack(Component):
    """Layers in order, equal neighbours run-length encoded: 10,000 layers cost as much to count as one.

    `role` is the stack's name in the report: decoder, encoder. `causal`: it sees one token after the other, and its
    layers keep what they have seen; an encoder sees all of its input at once and keeps nothing.
    """

    role: str
    runs: tuple[Run, ...]
    first: int = 0  # number of its first layer; not 0 where it is a part of a stack
    causal: bool = False

    def children(self) -> Iterator[Part]:
        start = self.first
        for run in self.runs:
            last = start + run.repeat - 1
            yield Part(str(start) if run.repeat == 1 else f"{start}-{last}", run.layer, run.repeat, run.repeat)
            start = last + 1

    def kinds(self) -> Iterator[tuple[list[str], Component, int]]:
        """(numbers of its runs, layer, how many in all) for each distinct layer, however the layers alternate."""
        found: dict[int, tuple[list[str], Component, int]] = {}
        for name, layer, copies, *_ in self.children():
            names, _, so_far = found.get(id(layer), ([], layer, 0))
            found[id(layer)] = [*names, name] if len(names) < 4 else names, layer, so_far + copies
        return iter(found.values())

    def weights(self, prefix: str = "", outer: Category | None = None) -> Iterator[Weight]:
        """The tensors of each distinct layer once, under the number of its first run, with the copies of all."""
        category, numbers = claimed(outer, self.category), self.numbers()
        for names, layer, copies in self.kinds():
            for w in layer.weights(f"{prefix}{names[0]}.", category):
                yield w._replace(
                    copies=w.copies * copies, active=w.active * copies, layers=w.layers or numbers[id(layer)]
                )

    def numbers(self) -> dict[int, tuple[range, ...]]:
        """The numbers of the layers that each distinct layer (by its id) stands for."""
        found: dict[int, list[range]] = {}
        start = self.first
        for run in self.runs:
            found.setdefault(id(run.layer), []).append(range(start, start + run.repeat))
            start += run.repeat
        return {layer: tuple(ranges) for layer, ranges in found.items()}

    def distinct(self) -> Iterator[Part]:
        """Each distinct layer once, under the number of its first run, with the copies of all."""
        for names, layer, copies in self.kinds():
            yield Part(names[0], layer, copies, copies)

    def all_ties(self, prefix: str = "", outer: Category | None = None) -> Iterator[Tie]:
        category = claimed(outer, self.category)
        tied = {id(layer): ties for _, layer, _ in self.kinds() if (ties := list(layer.all_ties("", category)))}
        start = self.first
        for run in self.runs if tied else ():  # each layer has ties of its own
            for i in range(start, start + run.repeat):
                yield from (tie._replace(name=f"{prefix}{i}.{tie.name}") for tie in tied.get(id(run.layer), ()))
            start += run.repeat

    def cache(self) -> Iterator[Kept]:
        """What each layer keeps, as often as a pass through it keeps something."""
        if not self.causal:
            return
        for run in self.runs:
            for kept in run.layer.remembered("all_kept", run.layer.all_kept):
                passes = run.passes if run.kept is None else run.kept
                yield kept._replace(copies=kept.copies * int(run.repeat) * passes)

    works = Component.by_its_parts

    def work(self, prefix: str = "", outer: Category | None = None) -> Iterator[Work]:
        """The work of each distinct layer once, under the numbers of its runs, as often as a token passes through."""
        category, roles = claimed(outer, self.category), ROLES.get(self.role, {})
        times: dict[int, int] = defaultdict(int)
        for run in self.runs:
            times[id(run.layer)] += int(run.repeat) * run.passes
        for names, layer, _ in self.kinds():
            for w in layer.work(f"{prefix}{', '.join(names)}.", category):
                yield w._replace(copies=w.copies * times[id(layer)], per=roles.get(w.per, w.per))

    def stacks(self) -> Iterator[Stack]:
        yield self


# What the tokens of a stack are where they are not the model's own new ones.
ROLES: Mapping[str, Mapping[Per, Per]] = {
    "encoder": {"token": "read", "pair": "read pair"},
    **{role: {"token": "tower", "pair": "tower", "cross": "tower", "chunk": "tower"} for role in ("vision", "audio")},
}

Layers = Run | Iterable[Component | Run]  # what a recipe may hand to a stack


def block(category: Category | None = None, /, **items: Component | None) -> Block:
    """A block of the parts that are present: the keyword order is the order in which data flows."""
    return Block(category=category, items={name: part for name, part in items.items() if part is not None})


def stack(role: str, layers: Layers, *, causal: bool | None = None) -> Stack:
    """Run-length encode layers given as a run, or one by one, or as a mixture; empty runs vanish.

    A stack is causal if its role is that of a decoder, where it does not say otherwise.
    """
    runs: list[Run] = []
    for item, group in groupby([layers] if isinstance(layers, Run) else layers):
        times = len(list(group))
        run = item._replace(repeat=item.repeat * times) if isinstance(item, Run) else Run(times, item)
        if runs and run[1:] == runs[-1][1:]:
            runs[-1] = runs[-1]._replace(repeat=runs[-1].repeat + run.repeat)
        elif run.repeat:
            runs.append(run)
    return Stack(role=role, runs=tuple(runs), causal=role == "decoder" if causal is None else causal)
