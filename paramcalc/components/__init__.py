"""Semantic parts of a model, one room per kind of mixer. Each is built of the leaves in `spec`."""

from paramcalc.components.attention import Attention, LatentAttention
from paramcalc.components.ffn import Mlp, Moe
from paramcalc.components.recurrent import Mamba, Mamba2

__all__ = ["Attention", "LatentAttention", "Mamba", "Mamba2", "Mlp", "Moe"]
