"""Numbers from torch itself: the layers of `torch.nn`, which have no config.json and no family."""

from itertools import product
from typing import Any

import torch
from torch import nn

from tests.goldens.oracle import VERSIONS

SIZES = ((32, 4, 128), (48, 6, 80), (60, 5, 2048))
"""d_model, nhead, dim_feedforward."""

CATEGORIES = {
    "self_attn": "attention",
    "linear1": "ffn",
    "linear2": "ffn",
    "norm1": "norm",
    "norm2": "norm",
}


def encoder_layer(sizes: tuple[int, int, int], *, bias: bool, norm_first: bool) -> dict[str, Any]:
    """One record: the arguments, the total and the categories of a `TransformerEncoderLayer`."""
    d_model, nhead, dim_feedforward = sizes
    layer = nn.TransformerEncoderLayer(
        d_model,
        nhead,
        dim_feedforward,
        bias=bias,
        norm_first=norm_first,
        device=torch.device("meta"),
    )
    totals = dict.fromkeys(("total", "attention", "ffn", "norm"), 0)
    for name, parameter in layer.named_parameters():
        totals["total"] += parameter.numel()
        totals[CATEGORIES[name.partition(".")[0]]] += parameter.numel()
    about = {"class": "torch.nn.TransformerEncoderLayer", "torch": VERSIONS["torch"]}
    arguments = {"d_model": d_model, "nhead": nhead, "dim_feedforward": dim_feedforward}
    return {**about, **arguments, "bias": bias, "norm_first": norm_first, **totals}


def torch_blocks() -> dict[str, dict[str, Any]]:
    """The records of torch_blocks.jsonl."""
    return {
        f"{'-'.join(map(str, sizes))}{'-bias' * bias}{'-norm-first' * norm_first}": encoder_layer(
            sizes, bias=bias, norm_first=norm_first
        )
        for sizes, bias, norm_first in product(SIZES, (True, False), (True, False))
    }
