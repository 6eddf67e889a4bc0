"""Semantic parts of a model, one room per kind of mixer. Each is built of `leaves`.

A room is entered when something in it is asked for: a dense decoder imports neither experts nor state spaces.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcalc.components.attention import Attention
    from paramcalc.components.ffn import Mlp, Moe, Router
    from paramcalc.components.linear_attention import GatedDeltaNet, KimiDeltaAttention, LightningAttention, Mlstm
    from paramcalc.components.mla import LatentAttention
    from paramcalc.components.recurrent import CausalConv, Mamba, Mamba2, RgLru, ShortConv
    from paramcalc.components.residual import GatedResidual, HyperConnection
    from paramcalc.components.rwkv import RwkvChannelMix, RwkvTimeMix
    from paramcalc.components.sparse import CompressedAttention, Compressor, Indexer
    from paramcalc.components.special_attention import (
        ConvolvedAttention,
        ExpertAttention,
        GroupedAttention,
        HashedAttention,
    )
    from paramcalc.components.vision import Conv2d, PatchEmbedding
    from paramcalc.components.weight_sharing import Adapters, SharedReference
    from paramcalc.tree.language import LanguageModel

SUBMODULES = {
    "attention": ("Attention",),
    "special_attention": ("ConvolvedAttention", "ExpertAttention", "GroupedAttention", "HashedAttention"),
    "mla": ("LatentAttention",),
    "ffn": ("Mlp", "Moe", "Router"),
    "linear_attention": ("GatedDeltaNet", "KimiDeltaAttention", "LightningAttention", "Mlstm"),
    "recurrent": ("CausalConv", "Mamba", "Mamba2", "RgLru", "ShortConv"),
    "residual": ("GatedResidual", "HyperConnection"),
    "rwkv": ("RwkvChannelMix", "RwkvTimeMix"),
    "weight_sharing": ("Adapters", "SharedReference"),
    "sparse": ("CompressedAttention", "Compressor", "Indexer"),
    "vision": ("Conv2d", "LanguageModel", "PatchEmbedding"),
}
_ROOM_OF = {name: room for room, names in SUBMODULES.items() for name in names}

__all__ = [
    "Adapters",
    "Attention",
    "CausalConv",
    "CompressedAttention",
    "Compressor",
    "Conv2d",
    "ConvolvedAttention",
    "ExpertAttention",
    "GatedDeltaNet",
    "GatedResidual",
    "GroupedAttention",
    "HashedAttention",
    "HyperConnection",
    "Indexer",
    "KimiDeltaAttention",
    "LanguageModel",
    "LatentAttention",
    "LightningAttention",
    "Mamba",
    "Mamba2",
    "Mlp",
    "Mlstm",
    "Moe",
    "PatchEmbedding",
    "RgLru",
    "Router",
    "RwkvChannelMix",
    "RwkvTimeMix",
    "SharedReference",
    "ShortConv",
]


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
