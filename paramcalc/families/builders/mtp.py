"""Multi-token prediction (MTP): modules that checkpoints contain and reference classes do not build."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import rms
from paramcalc.tree.component import Component, without_none
from paramcalc.tree.containers import Mtp
from paramcalc.tree.leaves import Embedding, Linear


def mtp_modules(c: Config, layer: Component, *, tables: bool = True) -> Mtp:
    """DeepSeek-V3's modules for multi-token prediction.

    `tables`: the checkpoint repeats embedding and head in each module.
    """
    before, after = around_layer(c, tables=tables)
    return Mtp(count=c.num_mtp_layers or 0, items={**before, "layer": layer, **after})


def around_layer(c: Config, *, tables: bool) -> tuple[dict[str, Component], dict[str, Component]]:
    """The parts of a module before its layer, and after it."""
    d, norm = c.hidden_size, rms(c)
    embed = Embedding(rows=c.vocab_size, width=d, tied_to="embed_tokens") if tables else None
    head = Linear(d_in=d, d_out=c.vocab_size, tied_to="lm_head", category="head") if tables else None
    proj = Linear(d_in=2 * d, d_out=d, category="other")
    before = {"embed_tokens": embed, "embed_norm": norm, "hidden_norm": norm, "proj": proj}
    return without_none(before), without_none({"norm": norm, "lm_head": head})


def unbuilt_mtp(c: Config, key: str = "num_nextn_predict_layers") -> None:
    """A note that the file mentions multi-token prediction, whose modules the class does not build."""
    if c.raw(key):
        c.notes.append(f"{c.family}: {key} is {c.raw(key)}; {c.architecture} does not build these modules: not counted")
