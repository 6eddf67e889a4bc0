"""What multimodal models add to the rooms of text: patches of images, and a language model within a larger one."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.base.symbolic import Size
from paramcalc.tree.component import Component
from paramcalc.tree.ops import IN_TOWERS, FlopTerm
from paramcalc.tree.weights import Category, Tie, Weight


class PatchEmbedding(Component):
    """A convolution whose stride is its kernel: each patch of an image becomes one vector (ViT, 2010.11929, eq. 1).

    Shape: (d, channels, height, width), with the frames that share a patch before the height where a video is cut
    (Conv3d). A linear layer over the flattened patch holds the same elements.
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
        """The tensors that it works with, its own or another's."""
        frames = () if self.frames is None else (self.frames,)
        yield Weight("weight", (self.width, self.channels, *frames, *self.patch), kind="conv")
        if self.bias:
            yield Weight("bias", (self.width,), kind="bias")

    def own_ops(self) -> Iterator[FlopTerm]:
        """A matrix for each patch."""
        yield FlopTerm("", 2 * sum(w.elements for w in self.shapes() if w.name == "weight"), "convolution", IN_TOWERS)


class Conv2d(Component):
    """A convolution over an image or a spectrogram: (channels_out, channels_in / groups, side, side) and a bias.

    Over a video it is so many frames deep too, before the sides (Conv3d).
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
        """Of towers alone, for each position."""
        depth = self.frames or 1
        yield FlopTerm(
            "", 2 * self.channels * self.per_group * depth * self.kernel * self.kernel, "convolution", IN_TOWERS
        )
