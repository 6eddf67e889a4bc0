"""The Q-Former: learned queries that attend to the output of a tower."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block, stack


@tower("blip_2_qformer", "instructblip_qformer", "instructblipvideo_qformer")
def qformer(v: Config) -> Block:
    """BERT's layers over learned queries, with cross attention to a tower in some (BLIP-2, 2301.12597).

    InstructBLIP's Q-Former also reads the instruction.
    """
    norm, attn, ffn = layer_norm(v), mha(v), mlp(v, v.intermediate_size)
    cross = mha(v, source="cross", kv_width=v.encoder_hidden_size)
    text = {"text_ffn": ffn, "text_ffn_norm": norm} if v.use_qformer_text_input else {}
    before: dict[str, Component] = embeddings(v, v.hidden_size, types=False) if v.reads else {"norm": norm}

    def layer(*, attends: bool) -> Block:
        attending = {"cross_attn": cross, "cross_attn_norm": norm} if attends else {}
        return block(attn=attn, attn_norm=norm, **attending, **text, ffn=ffn, ffn_norm=norm)

    plain, every = layer(attends=False), v.cross_attention_frequency
    attending = layer(attends=True)
    layers = [plain if i % every else attending for i in range(v.num_hidden_layers)]
    return block("projector", **before, layers=stack("projector", layers))
