"""Granite Speech: a conformer, a Q-Former over windows of its output, and Granite."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, sized_attention
from paramcalc.families.builders.audio import conformer_layer
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.decoder import batch_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param


@tower("granite_speech_encoder", "granite_speech_plus_encoder")
def granite_speech_encoder(v: Config) -> Block:
    """Two half FFNs around attention and a convolution (Conformer, 2005.08100; GraniteSpeechCTCEncoder)."""
    d = v.hidden_size
    heads, head_dim, inner = v.num_attention_heads, v.dim_head or equal_heads(v), d * v.conv_expansion_factor
    attn = sized_attention(d, heads, head_dim, out_bias=True)
    positioned = dict(attn=attn, distances=Embedding(rows=2 * v.max_pos_emb + 1, width=head_dim))
    ffn = mlp(v, d * v.feedforward_mult)
    layer = conformer_layer(d, ffn, positioned, inner=inner, kernel=v.conv_kernel_size, between=batch_norm(inner))
    return block(
        "other",
        input=Linear(d_in=v.num_mel_bins, d_out=d, bias=True),
        layers=stack("audio", Run(v.num_hidden_layers, layer)),
        out=Linear(d_in=d, d_out=v.output_dim, bias=True),
        out_mid=Linear(d_in=v.output_dim, d_out=d, bias=True),
    )


@family("granite_speech", "granite_speech_plus")
def granite_speech(c: Config) -> Component:
    """A conformer, a Q-Former, Granite (Granite Speech, 2505.08699; GraniteSpeechForConditionalGeneration)."""
    heard, _ = tower_in(c, "encoder_config")
    former, q = tower_in(c, "projector_config")
    language, width = audio_text_model(c, tied=c.tie_word_embeddings)
    queries = symbolic("queries", c.window_size // c.downsample_rate, origin="window_size / downsample_rate")
    projector = block(
        "projector",
        queries=Param(shape=(1, queries, q.hidden_size)),
        qformer=former,
        proj=Linear(d_in=q.hidden_size, d_out=width, bias=True),
    )
    return assemble_multimodal(language, audio_tower=heard, projector=projector)
