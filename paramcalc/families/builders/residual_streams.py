"""Layers between several residual streams (hyper-connections, 2409.19606)."""

from __future__ import annotations

from paramcalc.components import HyperConnection
from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import rms
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block


def hyper_connection(c: Config, mixtures: int, scales: int) -> HyperConnection:
    """hc_mult residual streams mixed by `mixtures` weights per token."""
    return HyperConnection(width=c.hidden_size, streams=c.hc_mult, mixtures=mixtures, scales=scales)


def hyper_connected_layer(c: Config, attn: Component, ffn: Component, mix: HyperConnection) -> Block:
    """A pre-norm layer between residual streams."""
    return block(attn_streams=mix, input_norm=rms(c), attn=attn, ffn_streams=mix, post_norm=rms(c), ffn=ffn)


def merged_streams(c: Config) -> Block:
    """The merge of all streams into one after the last layer, and the final norm."""
    return block(streams=hyper_connection(c, c.hc_mult, 1), norm=rms(c))
