"""Vision-language models of other lineages."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Attention, Conv2d
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, mha, sized_attention
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import qwen2_5_merger, two_layers
from paramcalc.families.builders.sections import section_language_model
from paramcalc.families.builders.towers import tower, tower_in, tower_schema
from paramcalc.families.builders.vision import height_and_width, layer_scaled_vit, patch_count, patches
from paramcalc.families.builders.vision_language import (
    any_language_model,
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
    vision_language_model,
    wrap_any_language_model,
)
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("aria", ties="above")
def aria(c: Config) -> Component:
    """Idefics3's ViT, learned queries that attend to it, a language model with experts (Aria, 2410.05993)."""
    return wrap_any_language_model(c, lambda v, d: aria_projector(c, v, d))


def aria_projector(c: Config, v: Config, d: int) -> Block:
    """Queries that attend to a twice projected tower output, and an FFN (AriaProjector)."""
    counts = c.raw("projector_patch_to_query_dict") or {1225: 128, 4900: 256}
    c.require(
        isinstance(counts, dict), "projector_patch_to_query_dict must be a mapping of numbers of patches to queries"
    )
    most = max(c.size("projector_patch_to_query_dict", count) for count in counts.values())
    most = c.max_value_projector_patch_to_query_dict or most  # derived by the class, written and read back
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


@family("fuyu")
def fuyu(c: Config) -> Component:
    """Persimmon with directly projected image patches (FuyuForCausalLM).

    Published files hold the language model's fields at the top; newer ones have a section for them.
    """
    patch, width, tied = c.patch_size, c.hidden_size, c.tie_word_embeddings
    if c.raw("text_config") is None:
        text = get_family("persimmon").recipe(c)
    else:
        text, section = section_language_model(c, "text_config", "persimmon", tie_word_embeddings=tied), c.sections()[0]
        kind, width = section.raw("model_type") or "persimmon", section.hidden_size
        c.require(kind == "persimmon", f"text_config is a {kind}", "only a persimmon can be counted")
    patches = Linear(d_in=patch * patch * c.num_channels, d_out=width, bias=True, category="vision")
    return assemble_multimodal(text, patches=patches)


@family("hyperclovax_vision_v2", ties="above")
def hyperclovax_vision_v2(c: Config) -> Component:
    """Qwen2.5-VL's tower and merger, one layer, HyperCLOVA X (HyperCLOVAXVisionV2ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Block:
        proj = Linear(d_in=v.out_hidden_size, d_out=d, bias=True)
        return block("projector", **qwen2_5_merger(v).items, proj=proj)

    return wrap_any_language_model(c, projector, any_tower=False)


@family("modernvbert", "ultravbert", ties="above")
def modernvbert(c: Config) -> Component:
    """SigLIP, merged patches, one layer, a text encoder (ModernVBertForMaskedLM)."""
    ultra, side = c.family == "ultravbert", c.pixel_shuffle_factor

    def projector(v: Config, d: int) -> Block:
        proj = Linear(d_in=v.hidden_size * side * side, d_out=d)
        return block("projector", proj=proj, norm=Norm(width=d) if ultra else None)

    return vision_language_model(c, projector, any_tower=True)


# -- InternVL --------------------------------------------------------------------------------------------------------


@family("internvl", "qianfan_ocr", ties="above")
def internvl(c: Config) -> Component:
    """A ViT, merged patches, two layers, a language model (InternVLForConditionalGeneration)."""
    side = symbolic("side", int(1 / c.downsample_ratio), origin="1 / downsample_ratio")

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * side * side
        return block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))

    return wrap_any_language_model(c, projector, any_tower=False)


INTERNVL_LANGUAGES = ("internlm2", "llama", "phi3", "qwen2", "qwen3", "qwen3_moe")


@family("internvl_chat")
def internvl_chat(c: Config) -> Component:
    """InternViT, merged patches, two layers, a language model with its head (InternVLChatModel)."""
    if c.head != "none":
        raise unknown_head(c)
    adapters = [key for key in ("use_backbone_lora", "use_llm_lora") if c.raw(key)]
    c.require(not adapters, f"{' and '.join(adapters)}: adapters are not counted", "set to 0")
    side = symbolic("side", int(1 / c.downsample_ratio), origin="1 / downsample_ratio")
    vision, v = tower_in(c, "vision_config")
    kind = c.section_kind("llm_config")
    c.require(kind in INTERNVL_LANGUAGES, f"llm_config is a {kind}", f"known: {', '.join(INTERNVL_LANGUAGES)}")
    language = get_family(kind)
    view = c.section("llm_config", language.schema, family=kind, head="lm")
    d_in, d = v.hidden_size * side * side, view.hidden_size
    projector = block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))
    return assemble_multimodal(language.recipe(view), vision_tower=vision, projector=projector)


# -- Molmo 2 ---------------------------------------------------------------------------------------------------------


@tower("molmo2_vision")
def molmo2_vision(v: Config) -> Block:
    """A ViT with heads of any width and no norm at its end (Molmo2VisionModel)."""
    height, width = height_and_width(v, "image_size") if v.raw("image_size") is not None else (378, 378)
    count = (height // v.patch_size) * (width // v.patch_size)
    rows = v.num_position_embeddings or symbolic("patches", count, origin="image_size / patch_size")
    layer = pre_norm(layer_norm(v), gqa(v, bias=v.attention_bias), mlp(v, v.intermediate_size))
    return block(
        "vision",
        patches=patches(v),
        positions=Param(shape=(rows, v.hidden_size)),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
    )


@family("molmo2", ties="above")
def molmo2(c: Config) -> Component:
    """A ViT with attention pooling over some of its layers, a gated projection, Qwen3 or OLMo (Molmo 2)."""
    a = c.section("adapter_config")
    taps = a.layer_indices("vision_feature_layer") or [24, 18]
    if text_alone(c):
        c.raw("vision_config")
        return section_alone(c, "vit_config")
    if c.raw("vision_config") is None and c.raw("vit_config") is not None:  # older files have layers that are not built
        depth = c.section("vit_config", tower_schema("molmo2_vision")).num_hidden_layers
        last = symbolic("depth", max(tap % depth for tap in taps) + 1, origin="last layer in vit_layers")
        vision, _ = tower_in(c, "vit_config", num_hidden_layers=last)
    else:
        vision, _ = tower_in(c, "vision_config")
    language, _ = own_language_model(c)
    d, bias, out = a.hidden_size, a.attention_bias, a.text_hidden_size
    options = dict(kv_heads=a.num_key_value_heads, bias=bias, source="cross", out_width=d)
    up = Linear(d_in=d, d_out=a.intermediate_size, bias=a.mlp_bias)
    projector = block(
        "projector",
        pooling=sized_attention(d * len(taps), a.num_attention_heads, a.head_dim, **options),
        gate=up,
        up=up,
        down=Linear(d_in=a.intermediate_size, d_out=out),
    )
    return assemble_multimodal(language, vision_tower=vision, projector=projector)


# -- Ovis 2 ----------------------------------------------------------------------------------------------------------


@tower("ovis2_vision")
def ovis2_vision(v: Config) -> Block:
    """AIMv2: Llama's layer with learned positions, and a head over visual tokens (Ovis2VisionModel)."""
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
    """AIMv2, a table of visual tokens, Qwen2 (Ovis, 2405.20797; Ovis2ForConditionalGeneration)."""
    vision, v = tower_in(c, "vision_config")
    language, _ = any_language_model(c)
    words = block("projector", visual_words=Embedding(rows=v.vocab_size, width=c.hidden_size))
    head = language.items.get("lm_head")
    if head is not None and not c.tie_word_embeddings:  # with the sizes of the outer config, whatever the section says
        own = Linear(d_in=c.hidden_size, d_out=c.vocab_size, category="head")
        language = block(**language.items | {"lm_head": own})
    return assemble_multimodal(language, vision_tower=vision, projector=words)


# -- Step 3.7 --------------------------------------------------------------------------------------------------------


@tower("step3p5_vision")
def step3p5_vision(v: Config) -> Block:
    """A ViT, and two convolutions that reduce the image (Step3p7VisionModel)."""
    d = v.hidden_size
    return block(
        "vision",
        patches=patches(v, bias=False),
        positions=Embedding(rows=patch_count(v), width=d),
        pre_norm=layer_norm(v),
        layers=layer_scaled_vit(v),
        conv_1=Conv2d(channels=2 * d, kernel=3, per_group=d),
        conv_2=Conv2d(channels=4 * d, kernel=3, per_group=2 * d),
    )


@family("step3p7", ties="above")
def step3p7(c: Config) -> Component:
    """A ViT, convolutions, one layer, Step 3.5 (Step3p7ForConditionalGeneration)."""

    def projector(v: Config, d: int) -> Linear:
        return Linear(d_in=4 * v.hidden_size, d_out=d, bias=c.projector_bias, category="projector")

    return vision_language_model(c, projector)
