"""More models that see, each with a tower or a projector of its own before a known language model."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Conv2d, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, sized_attention
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, learned_activation
from paramcalc.families.builders.projectors import qwen2_5_merger, two_layers
from paramcalc.families.builders.towers import tower, tower_in, vision_tower
from paramcalc.families.builders.vision import patch_count, patches, video_patches, vit_layer
from paramcalc.families.builders.vision_language import (
    any_language_model,
    assemble_multimodal,
    vision_language_model,
    with_stack_role,
    wrap_any_language_model,
)
from paramcalc.families.registry import family
from paramcalc.families.towers.vision_special import sam_neck
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("deepseek_vl", ties="above")
def deepseek_vl(c: Config) -> Component:
    """SigLIP, two layers, Llama (DeepSeek-VL, 2403.05525; DeepseekVLForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, d: block("projector", **two_layers(v.hidden_size, d, d)))


@family("lfm2_vl", ties="above")
def lfm2_vl(c: Config) -> Component:
    """SigLIP 2, two layers over neighbouring patches, LFM2 (Lfm2VlForConditionalGeneration)."""
    side = c.downsample_factor

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * side * side
        norm = Norm(width=d_in, bias=True) if c.projector_use_layernorm else None
        return block("projector", norm=norm, **two_layers(d_in, c.projector_hidden_size, d, bias=c.projector_bias))

    return wrap_any_language_model(c, projector)


@family("hyperclovax_vision_v2", ties="above")
def hyperclovax_vision_v2(c: Config) -> Component:
    """Qwen2.5-VL's tower and merger, one layer, HyperCLOVA X (HyperCLOVAXVisionV2ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        proj = Linear(d_in=v.out_hidden_size, d_out=d, bias=True)
        return block("projector", **qwen2_5_merger(v).items, proj=proj)

    return wrap_any_language_model(c, projector, any_tower=False)


@family("aria", ties="above")
def aria(c: Config) -> Component:
    """Idefics3's ViT, learned queries that look at it, a language model of experts (Aria, 2410.05993)."""
    return wrap_any_language_model(c, lambda v, d: aria_projector(c, v, d))


def aria_projector(c: Config, v: Config, d: int) -> Block:
    """Queries that attend to the tower's output twice projected, and an FFN (AriaProjector)."""
    counts = c.raw("projector_patch_to_query_dict") or {1225: 128, 4900: 256}
    c.require(
        isinstance(counts, dict), "projector_patch_to_query_dict must be a mapping of numbers of patches to queries"
    )
    most = max(c.size("projector_patch_to_query_dict", count) for count in counts.values())
    most = c.max_value_projector_patch_to_query_dict or most  # which the class works out and writes, and reads back
    queries, dv, norm = symbolic("queries", most, origin="most queries of an image"), v.hidden_size, layer_norm(v)
    first = Linear(d_in=dv, d_out=dv)
    return block(
        "projector",
        queries=Param(shape=(queries, dv)),
        q_norm=norm,
        kv_norm=norm,
        q_proj=first,
        k_proj=first,
        v_proj=first,
        attn=mha(v, source="cross"),
        proj=Linear(d_in=dv, d_out=dv, bias=True),
        norm=norm,
        **two_layers(dv, d, d, bias=False),
    )


# -- EXAONE 4.5 --------------------------------------------------------------------------------------------------


@tower("exaone4_5_vision")
def exaone4_5_vision(v: Config) -> Block:
    """Qwen2.5-VL's tower with grouped keys and values (Exaone4_5_VisionModel)."""
    layer = pre_norm(rms(v), gqa(v, qkv_bias=True, out_bias=True), glu(v, bias=True))
    return block(
        "vision", patches=video_patches(v, bias=False), layers=stack("vision", Run(v.num_hidden_layers, layer))
    )


@family("exaone4_5", ties="above")
def exaone4_5(c: Config) -> Component:
    """A tower of windowed attention, a merger, EXAONE 4 (Exaone4_5_ForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, _: qwen2_5_merger(v), any_tower=False)


# -- VideoLLaMA 3 ------------------------------------------------------------------------------------------------


@tower("video_llama_3_vision")
def video_llama_3_vision(v: Config) -> Block:
    """SigLIP with rotary positions instead of learned ones (VideoLlama3VisionModel)."""
    layers = stack("vision", Run(v.num_hidden_layers, vit_layer(v)))
    return block("vision", patches=patches(v), layers=layers, norm=layer_norm(v))


@family("video_llama_3", ties="either")
def video_llama_3(c: Config) -> Component:
    """SigLIP for images and video, two layers, Qwen2 (VideoLLaMA 3, 2501.13106)."""
    return wrap_any_language_model(
        c, lambda v, d: block("projector", **two_layers(v.hidden_size, d, d)), any_tower=False
    )


# -- Ovis 2 ------------------------------------------------------------------------------------------------------


@tower("ovis2_vision")
def ovis2_vision(v: Config) -> Block:
    """AIMv2: Llama's layer with learned positions; a head of visual words follows (Ovis2VisionModel)."""
    bias, stride, words = v.qkv_bias, v.hidden_stride, v.vocab_size - v.num_visual_indicator_tokens
    attn: Attention = mha(v, qkv_bias=bias, out_bias=bias)
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        patch_norm=rms(v),
        layers=stack("vision", Run(v.num_hidden_layers, pre_norm(rms(v), attn, glu(v, bias=v.mlp_bias)))),
        norm=rms(v),
        head=Linear(d_in=v.hidden_size * stride * stride, d_out=words),
        head_norm=Norm(width=words, bias=True),
    )


@family("ovis2", ties="above")
def ovis2(c: Config) -> Component:
    """AIMv2, a table of visual words, Qwen2 (Ovis, 2405.20797; Ovis2ForConditionalGeneration)."""
    seen, v = tower_in(c, "vision_config")
    language, _ = any_language_model(c)
    words = block("projector", visual_words=Embedding(rows=v.vocab_size, width=c.hidden_size))
    head = language.items.get("lm_head")
    if head is not None and not c.tie_word_embeddings:  # of the sizes that the whole states, whatever the section does
        own = Linear(d_in=c.hidden_size, d_out=c.vocab_size, category="head")
        language = block(**language.items | {"lm_head": own})
    return assemble_multimodal(language, vision_tower=seen, projector=words)


# -- Idefics 2 ---------------------------------------------------------------------------------------------------


@family("idefics2", ties="above")
def idefics2(c: Config) -> Component:
    """SigLIP, a gated projection, learned queries that look at it, Mistral (Idefics2, 2405.02246)."""
    seen, v = tower_in(c, "vision_config")
    language, d = any_language_model(c)
    text, p = c.sections()[-1], c.section("perceiver_config")
    c.require("intermediate_size" in text.values(), f"text_config is a {text.family}, which has no intermediate_size")
    up, down = Linear(d_in=v.hidden_size, d_out=text.intermediate_size), Linear(d_in=text.intermediate_size, d_out=d)
    attn = sized_attention(d, p.num_attention_heads, p.head_dim, kv_heads=p.num_key_value_heads, source="cross")
    norm = Norm(width=d)
    layer = block(
        query_norm=norm, context_norm=norm, attn=attn, ffn_norm=norm, ffn=Mlp(width=d, hidden=4 * d, gated=True)
    )
    projector = block(
        "projector",
        gate=up,
        up=up,
        act=learned_activation(text),
        down=down,
        queries=Param(shape=(p.resampler_n_latents, d)),
        layers=stack("projector", Run(p.num_hidden_layers, layer)),
        norm=norm,
    )
    return assemble_multimodal(language, vision_tower=seen, projector=projector)


@family("deepseek_vl_hybrid", ties="above")
def deepseek_vl_hybrid(c: Config) -> Component:
    """SigLIP beside Segment Anything's tower, both projected and joined, Llama (DeepSeek-VL, 2403.05525)."""
    seen, v = vision_tower(c, any_kind=True)
    fine, f = tower_in(c, "high_res_vision_config")
    language, d = any_language_model(c)
    out, half = f.output_channels, symbolic("d / 2", d // 2, origin="hidden_size / 2")
    fine_proj = block(
        "vision",
        neck=sam_neck(f),
        conv_1=Conv2d(channels=2 * out, kernel=3, per_group=out, bias=False),
        conv_2=Conv2d(channels=4 * out, kernel=3, per_group=2 * out, bias=False),
        gate=Param(shape=(1,)),
    )
    projector = block(
        "projector",
        proj=Linear(d_in=v.hidden_size, d_out=half, bias=True),
        fine_proj=Linear(d_in=4 * out, d_out=half, bias=True),
        both=Linear(d_in=d, d_out=d, bias=True),
    )
    return assemble_multimodal(
        language,
        vision_tower=seen,
        fine_tower=with_stack_role(fine, "fine vision"),
        fine_proj=fine_proj,
        projector=projector,
    )


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
        count = len(c.list_of("deepstack_layer_map") or ()) + 4  # four more for the corners of each window
        windows = {f"window_{i}": block(**ends, qformer=with_stack_role(former, f"window {i}")) for i in range(count)}
        return block("projector", newline=Param(shape=(d,)), **windows)

    return vision_language_model(c, projector, any_tower=True)
