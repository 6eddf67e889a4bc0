"""Components: attention, feed-forward networks, recurrent mixers. Each is built of the leaves in `tree/leaves.py`.

Submodules are imported on first use, so that counting a dense decoder loads neither experts nor state space models.
README.md next to this file says which facts a component states. Docstrings give the shapes of matrices as in PyTorch,
(outputs, inputs), in these letters, which `count --explain` uses too:

    d         width of the model (hidden_size)
    d_ff      hidden channels of a feed-forward network
    d_inner   inner channels of a recurrent mixer
    h, g      query heads; key/value heads, g <= h. h_k, h_v: key and value heads where they differ (linear attention)
    d_h       channels of a head: of its queries and keys, and of its values unless d_v is given
    d_k, d_v  channels of a key, of a value, in each head
    d_n, d_r  channels of a query or key head without and with rotary positions (latent attention)
    r         rank of a bottleneck: r_q of the queries, r_kv of keys and values, r_o of the output
    E, k      experts of a layer; experts that one token uses
    n         channels of the state for each inner channel (state space models)
    w         width of a convolution's kernel, in tokens
    G         groups, each of which shares something among its channels or heads
    s         residual streams
    V         rows of the vocabulary
    h_i, d_i  heads of an indexer and their channels
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcalc.components.attention import Attention
    from paramcalc.components.ffn import Experts, Mlp, Moe, Router
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
    "ffn": ("Experts", "Mlp", "Moe", "Router"),
    "linear_attention": ("GatedDeltaNet", "KimiDeltaAttention", "LightningAttention", "Mlstm"),
    "recurrent": ("CausalConv", "Mamba", "Mamba2", "RgLru", "ShortConv"),
    "residual": ("GatedResidual", "HyperConnection"),
    "rwkv": ("RwkvChannelMix", "RwkvTimeMix"),
    "weight_sharing": ("Adapters", "SharedReference"),
    "sparse": ("CompressedAttention", "Compressor", "Indexer"),
    "vision": ("Conv2d", "LanguageModel", "PatchEmbedding"),
}
_SUBMODULE_OF = {name: submodule for submodule, names in SUBMODULES.items() for name in names}

__all__ = [
    "Adapters",
    "Attention",
    "CausalConv",
    "CompressedAttention",
    "Compressor",
    "Conv2d",
    "ConvolvedAttention",
    "ExpertAttention",
    "Experts",
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
        if name not in _SUBMODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_SUBMODULE_OF[name]}"), name)
