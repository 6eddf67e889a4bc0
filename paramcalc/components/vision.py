"""Convolutions of vision and audio towers."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.ops import IN_TOWERS, FlopTerm
from paramcalc.tree.weights import Category, Tie, Weight


class PatchEmbedding(Component):
    """A convolution whose stride is its kernel: each patch of an image, or of a video, becomes one vector.

    A linear layer over the flattened patch holds the same elements.
    Shapes: (d, channels, height, width), or (d, channels, frames, height, width) for video; bias (d).
    Source: ViT (2010.11929), equation 1; torch.nn.Conv2d, torch.nn.Conv3d.
    """

    category: Category | None = "vision"
    width: Size
    channels: Size
    patch: tuple[Size, Size]
    frames: Size | None = None
    bias: bool = True
    tied_to: str | None = None

    def own_weights(self) -> Iterator[Weight]:
        if self.tied_to is None:
            yield from self.shapes()

    def own_ties(self) -> Iterator[Tie]:
        if self.tied_to is not None:
            yield Tie("", self.tied_to)

    def shapes(self) -> Iterator[Weight]:
        """The tensors that it uses, its own or those of the component it is tied to."""
        frames = () if self.frames is None else (self.frames,)
        yield Weight("weight", (self.width, self.channels, *frames, *self.patch), kind="conv")
        if self.bias:
            yield Weight("bias", (self.width,), kind="bias")

    def own_ops(self) -> Iterator[FlopTerm]:
        """One product with the kernel for each patch."""
        yield FlopTerm("", 2 * sum(w.elements for w in self.shapes() if w.name == "weight"), "convolution", IN_TOWERS)


class Conv2d(Component):
    """A convolution over an image or a spectrogram, or with `frames` over a video.

    Shapes: (channels, per_group, kernel, kernel), or (channels, per_group, frames, kernel, kernel); bias (channels).
    Source: torch.nn.Conv2d, torch.nn.Conv3d.
    """

    channels: Size
    kernel: Size
    per_group: Size = 1
    frames: Size | None = None
    bias: bool = True

    def own_weights(self) -> Iterator[Weight]:
        frames = () if self.frames is None else (self.frames,)
        yield Weight("weight", (self.channels, self.per_group, *frames, self.kernel, self.kernel))
        if self.bias:
            yield Weight("bias", (self.channels,))

    def own_ops(self) -> Iterator[FlopTerm]:
        """One product with the kernel for each position of a tower."""
        depth = self.frames or 1
        yield FlopTerm(
            "", 2 * self.channels * self.per_group * depth * self.kernel * self.kernel, "convolution", IN_TOWERS
        )
