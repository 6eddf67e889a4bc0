"""Granite with images or speech."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, sized_attention
from paramcalc.families.builders.audio import conformer_layer
from paramcalc.families.builders.audio_language import audio_text_model
from paramcalc.families.builders.decoder import batch_norm, layer_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal, vision_language_model, with_stack_role
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("granite4_vision", ties="above")
def granite4_vision(c: Config) -> Component:
    """A tower, Q-Formers over windows of several of its layers, Granite (Granite4VisionForConditionalGeneration)."""
    sides = [int(side) if side.isdecimal() else 0 for side in c.downsample_rate.split("/")]
    c.require(
        len(sides) == 2 and 0 not in sides, "downsample_rate must be like 4/8: the sides of queries and of a window"
    )

    def projector(v: Config, d: int) -> Block:
        dv = v.hidden_size
        heads = symbolic("h", dv // 64, origin="hidden_size / 64")
        former, _ = tower_in(c, "qformer_config", hidden_size=dv, num_attention_heads=heads, encoder_hidden_size=dv)
        ends = dict(
            norm=layer_norm(v),
            queries=Param(shape=(1, sides[0] ** 2, dv)),
            positions=Param(shape=(1, sides[1] ** 2, dv)),
            proj=Linear(d_in=dv, d_out=d, bias=True),
        )
        count = len(c.list_of("deepstack_layer_map") or ()) + 4  # plus four for the corners of each window
        windows = {f"window_{i}": block(**ends, qformer=with_stack_role(former, f"window {i}")) for i in range(count)}
        return block("projector", newline=Param(shape=(d,)), **windows)

    return vision_language_model(c, projector, any_tower=True)


# -- Granite Docling -------------------------------------------------------------------------------------------------


@family("granite_docling", ties="above")
def granite_docling(c: Config) -> Component:
    """SigLIP, a coarse and a fine merger of patches, Granite (GraniteDoclingForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        del d
        dv, out, side, norm = v.hidden_size, v.out_hidden_size, v.scale_factor, Norm(width=v.out_hidden_size, bias=True)
        tapped = v.list_of("deepstack_visual_indexes")

        def path(side: int) -> Block:
            joined = dv * side * side
            merger = block(norm=Norm(width=joined, bias=True), **two_layers(joined, out, out))
            deep = {f"deepstack_{i}": merger for i in range(3 if tapped is None else len(tapped))}
            return block(proj=Linear(d_in=joined, d_out=out), **deep)

        return block(
            "projector",
            norm=layer_norm(v),
            coarse=path(side),
            fine=path(side // 2) if v.use_fine_route else None,
            mid_norm=norm,
            proj=Linear(d_in=out, d_out=out),
            out_norm=norm,
            router=density_router(c, dv) if c.density_router_hidden_size else None,
        )

    return vision_language_model(c, projector)


def density_router(c: Config, width: int) -> Block:
    """A classifier that decides whether a page needs the fine merger."""
    hidden = c.density_router_hidden_size
    one = Linear(d_in=width, d_out=1, bias=True)
    return block(attn=one, norm=Norm(width=width, bias=True), **two_layers(width, hidden, 1))


# -- Granite Speech --------------------------------------------------------------------------------------------------


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
    audio, _ = tower_in(c, "encoder_config")
    former, q = tower_in(c, "projector_config")
    language, width = audio_text_model(c, tied=c.tie_word_embeddings)
    queries = symbolic("queries", c.window_size // c.downsample_rate, origin="window_size / downsample_rate")
    projector = block(
        "projector",
        queries=Param(shape=(1, queries, q.hidden_size)),
        qformer=former,
        proj=Linear(d_in=q.hidden_size, d_out=width, bias=True),
    )
    return assemble_multimodal(language, audio_tower=audio, projector=projector)
