"""More towers that see, of models that read pages: Segment Anything's, Pix2Struct's, BLIP's, and what looks at them."""

from __future__ import annotations

from paramcalc.components import Conv2d
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config import Config
from paramcalc.containers import Block, Run, block, stack
from paramcalc.dims import named
from paramcalc.families.attentions import equal_heads, mha, sized
from paramcalc.families.encoding import embeddings
from paramcalc.families.feedforward import glu, mlp
from paramcalc.families.skeletons import layer_norm, pre_norm, rms
from paramcalc.families.towers import tower
from paramcalc.families.vision import patch_count, patches
from paramcalc.leaves import Embedding, Linear, Norm, Param
from paramcalc.spec import Component


@tower("got_ocr2_vision", "pp_chart2table_vision", "pp_formulanet_vision", "sam_vision_model")
def segment_anything(v: Config) -> Block:
    """ViTDet: windows in most layers, positions added to their scores, a neck (Segment Anything, 2304.02643)."""
    side = named("side", v.image_size // v.patch_size, origin="image_size / patch_size")
    hidden = v.intermediate_size or named("d_ff", int(v.hidden_size * v.mlp_ratio), origin="hidden_size x mlp_ratio")

    def layer(reach: int) -> Block:
        distances = Param(shape=(2 * reach - 1, equal_heads(v)))
        seen = block(height=distances, width=distances) if v.use_rel_pos else None
        return pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias).but(inner=seen), mlp(v, hidden))

    stated = v.raw("global_attn_indexes") is not None
    everywhere = v.numbers("global_attn_indexes") if stated else [2, 5, 8, 11]
    windowed, whole = layer(v.window_size or side), layer(side)
    return block(
        "vision",
        patches=patches(v),
        positions=Param(shape=(side, side, v.hidden_size)) if v.use_abs_pos else None,
        layers=stack("vision", [whole if i in everywhere else windowed for i in range(v.num_hidden_layers)]),
        neck=neck(v),
    )


def neck(v: Config) -> Block:
    """Two convolutions with norms, from the tower's width to a narrower one."""
    d, out = v.hidden_size, v.output_channels
    norm = Norm(width=out, bias=True)
    return block(
        conv_1=Conv2d(channels=out, kernel=1, per_group=d, bias=False),
        norm_1=norm,
        conv_2=Conv2d(channels=out, kernel=3, per_group=out, bias=False),
        norm_2=norm,
    )


@tower("pix2struct_vision_model", "kosmos_2_5_vision_model")
def pix2struct_vision(v: Config) -> Block:
    """Llama's layer with heads of any width, and tables for rows and columns of patches (Pix2StructVisionModel)."""
    places = Embedding(rows=v.seq_len, width=v.hidden_size, divided=False)
    layer = pre_norm(rms(v), sized(v.hidden_size, v.num_attention_heads, v.head_dim), glu(v))
    return block(
        "vision",
        patches=PatchEmbedding(width=v.hidden_size, channels=v.patch_embed_hidden_size, patch=(1, 1)),
        rows=places,
        columns=places,
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=rms(v),
    )


@tower("blip_vision_model", "blip_2_vision_model", "instructblip_vision_model", "instructblipvideo_vision_model")
def blip_vision(v: Config) -> Block:
    """A ViT with a class token (BLIP, 2201.12086; BlipVisionModel)."""
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias), mlp(v, v.intermediate_size))
    return block(
        "vision",
        class_token=Param(shape=(1, 1, v.hidden_size)),
        patches=patches(v),
        positions=Param(shape=(1, patch_count(v) + 1, v.hidden_size)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
    )


@tower("blip_2_qformer", "instructblip_qformer", "instructblipvideo_qformer")
def qformer(v: Config) -> Block:
    """BERT's layers over learned queries, some of which look at a tower's output (BLIP-2, 2301.12597).

    InstructBLIP's read the instruction too.
    """
    norm, attn, ffn = layer_norm(v), mha(v), mlp(v, v.intermediate_size)
    cross = mha(v, source="cross").but(kv_width=v.encoder_hidden_size)
    text = {"text_ffn": ffn, "text_ffn_norm": norm} if v.use_qformer_text_input else {}
    before: dict[str, Component] = embeddings(v, v.hidden_size, types=False) if v.reads else {"norm": norm}

    def layer(*, looks: bool) -> Block:
        looking = {"cross_attn": cross, "cross_attn_norm": norm} if looks else {}
        return block(attn=attn, attn_norm=norm, **looking, **text, ffn=ffn, ffn_norm=norm)

    plain, every = layer(looks=False), v.cross_attention_frequency
    looking = layer(looks=True)
    layers = [plain if i % every else looking for i in range(v.num_hidden_layers)]
    return block("projector", **before, layers=stack("projector", layers))


@tower("vit", "deit")
def vit(v: Config) -> Block:
    """The first ViT, with a class token and a pooler; DeiT has a token for its teacher too (2010.11929; ViTModel)."""
    d, token = v.hidden_size, Param(shape=(1, 1, v.hidden_size))
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.qkv_bias), mlp(v, v.intermediate_size))
    return block(
        "vision",
        class_token=token,
        teacher_token=token if v.distilled else None,
        patches=patches(v),
        positions=Param(shape=(1, patch_count(v) + (2 if v.distilled else 1), d)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
        pooler=Linear(d_in=d, d_out=v.pooler_output_size or d, bias=True),
    )
