"""Language models that see: a vision tower, a projector and a language model, each with its section of the config.

Each tree has these three parts: `vision_tower`, `projector` and `language_model`, the last with its head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from paramcalc.components.vision import LanguageModel
from paramcalc.config import Config, Reading
from paramcalc.dims import named
from paramcalc.families.heads import decoder_head, unknown_head
from paramcalc.families.registry import family, get
from paramcalc.families.skeletons import embeddings, encoder, encoder_layer, layer_norm, sizes
from paramcalc.families.vision import (
    averaged,
    glm4v_merger,
    qwen2_5_merger,
    qwen2_merger,
    qwen3_merger,
    two_layers,
    vision,
)
from paramcalc.spec import Block, Component, Linear, Norm, Param, block

# Whose tie_word_embeddings ties the head: the file's own, or either its own or that of its text_config.
ABOVE, EITHER = dict(ties="above"), dict(ties="either")


class Named(NamedTuple):
    """The kind of a section that names none, and the sizes that the class passes where there is no section.

    `unused`: keys that published files have in it beside those of its kind.
    """

    kind: str
    sizes: Mapping[str, Any] = {}
    unused: Sequence[str] = ()


Projector = Callable[[Config, int], Component]  # from a tower's view and the language model's width


def joined(text: Component, **towers: Component | None) -> Component:
    """Towers and projectors, in the order of the data, then the language model; which is all where there are none."""
    if not any(towers.values()):
        return text
    return block(**towers, language_model=LanguageModel(items=dict(text.parts())))


def text_alone(c: Config) -> bool:
    """Whether the class named in the file is that of the language model alone."""
    return c.head == "lm" or "TextModel" in c.architecture or "TextFor" in c.architecture


def sees(
    c: Config,
    kind: str,
    tower: str,
    projector: Projector,
    *,
    any_tower: bool = False,
    flat: bool = False,
    tower_sizes: Mapping[str, Any] | None = None,
) -> Component:
    """A language model of one kind, a tower, and what the class puts between them.

    `flat`: where there is no section for the language model, its fields stand at the top. `c.ties` says whose
    tie_word_embeddings ties the head.
    """
    text = get(kind)
    if text_alone(c):
        c.raw("vision_config")
        return text.recipe(c.section("text_config", text.reading, family=kind))
    seen, v = vision(c, tower, any_kind=any_tower, **(tower_sizes or {}))
    section = c.section("text_config", text.reading, family=kind)
    if c.ties != "section":
        reading = text.reading._replace(fixed={**text.reading.fixed, "tie_word_embeddings": tied(c, section)})
        section = c.section("text_config", reading, family=kind)
    view = c if flat and c.raw("text_config") is None else section
    return joined(text.recipe(view), vision_tower=seen, projector=projector(v, view.hidden_size))


def tied(c: Config, section: Config) -> bool:
    """Whether the head is the embedding: the whole file says so, or in some classes either of the two."""
    return bool(c.tie_word_embeddings or (c.ties == "either" and section.tie_word_embeddings))


def composes(c: Config, text: Named, tower: Named, projector: Projector, *, any_tower: bool = True) -> Component:
    """Any language model, a tower (any, or always that one), and what the class puts between them.

    The head is the wrapper's own, whatever head the language model has when it stands alone.
    """
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    seen, v = vision(c, tower.kind, any_kind=any_tower, **tower.sizes)
    kind = c.section("text_config", Reading(dict(model_type=text.kind))).model_type
    recipe, reading = get(kind).recipe, get(kind).reading
    plain = "hidden_size" in reading.defaults and "ties" not in reading.fixed
    c.require(plain, f"text_config is a {kind}, which is no plain language model")
    if c.raw("text_config") is None:
        reading = reading._replace(defaults={**reading.defaults, **text.sizes})
    reading = reading._replace(unused=[*reading.unused, *text.unused])
    view = c.section("text_config", reading, family=kind, head="none")
    parts = dict(recipe(view).parts())
    if c.head == "seq2seq_lm":
        owner = "embed_tokens" if tied(c, view) else None
        parts["lm_head"] = Linear(
            d_in=view.hidden_size, d_out=view.stated("vocab_size"), category="head", tied_to=owner
        )
    return joined(block(**parts), vision_tower=seen, projector=projector(v, view.hidden_size))


# -- any tower, any language model -------------------------------------------------------------------------------


def tapped(c: Config) -> int:
    """Layers of the tower whose outputs are joined: one, or those in the list vision_feature_layer."""
    stated = c.raw("vision_feature_layer")
    if isinstance(stated, list):
        return len(c.numbers("vision_feature_layer"))
    c.require(stated is None or type(stated) is int, "vision_feature_layer must be a layer number or a list of them")
    return 1


LLAVA = dict(vision_feature_layer=None, multimodal_projector_bias=True)
CLIP = Named(
    "clip_vision_model",
    dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16)
    | dict(image_size=336, patch_size=14),
)
SIGLIP = Named(
    "siglip_vision_model",
    dict(hidden_size=1152, intermediate_size=4304, num_hidden_layers=26, num_attention_heads=16)
    | dict(image_size=384, patch_size=14, vision_use_head=False),
)


@family("llava", "LlavaForConditionalGeneration", defaults=LLAVA, fixed=EITHER)
def llava(c: Config) -> Component:
    """A tower, two layers, a language model (LLaVA, 2310.03744; LlavaForConditionalGeneration)."""
    return composes(c, Named("llama"), CLIP, lambda v, d: block("projector", **llava_layers(c, v, d)))


@family("vipllava", "VipLlavaForConditionalGeneration", defaults=dict(vision_feature_layer=None), fixed=ABOVE)
def vipllava(c: Config) -> Component:
    """LLaVA over five layers of the tower, with a norm before its two layers (VipLlavaForConditionalGeneration)."""
    stated = c.raw("vision_feature_layer") is not None

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * (tapped(c) if stated else 5)
        return block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))

    return composes(c, Named("llama"), CLIP, projector)


def llava_layers(c: Config, v: Config, d: int) -> dict[str, Component]:
    """Two layers from the outputs of the tower's chosen layers."""
    d_in = v.hidden_size * tapped(c) if tapped(c) != 1 else v.hidden_size
    return two_layers(d_in, d, d, bias=c.multimodal_projector_bias)


@family("llava_next", "LlavaNextForConditionalGeneration", defaults=LLAVA, fixed=ABOVE)
@family(
    "llava_onevision",
    "LlavaOnevisionForConditionalGeneration",
    defaults=LLAVA,
    fixed=EITHER,
    unused=["vision_aspect_ratio"],
)
def llava_next(c: Config) -> Component:
    """LLaVA with a learned end of line between rows of tiles (LlavaNextForConditionalGeneration)."""
    one = c.family == "llava_onevision"
    text, tower = (Named("qwen2"), SIGLIP) if one else (Named("llama"), CLIP)
    return composes(c, text, tower, lambda v, d: block("projector", **llava_layers(c, v, d), newline=Param(shape=(d,))))


@family(
    "mistral3",
    "Mistral3ForConditionalGeneration",
    defaults=LLAVA | dict(multimodal_projector_bias=False, spatial_merge_size=2, tie_word_embeddings=True),
    fixed=ABOVE,
)
def mistral3(c: Config) -> Component:
    """Pixtral, neighbouring patches merged, two layers, Mistral (Mistral3ForConditionalGeneration)."""
    text = Named("mistral", sizes(131072, 5120, 32768, 40, 32, 8, 128, sliding_window=None))
    tower = Named(
        "pixtral",
        dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, patch_size=14),
    )

    def projector(v: Config, d: int) -> Block:
        dv, side = v.hidden_size, c.spatial_merge_size
        merge = Linear(d_in=dv * side * side, d_out=dv)
        return block("projector", norm=Norm(width=dv), merge=merge, **llava_layers(c, v, d))

    return composes(c, text, tower, projector)


@family(
    "paligemma",
    "PaliGemmaForConditionalGeneration",
    defaults=dict(projection_dim=2048, tie_word_embeddings=True),
    fixed=ABOVE,
    unused=["hidden_size"],  # the section's counts
)
def paligemma(c: Config) -> Component:
    """SigLIP, one layer, Gemma (PaliGemma, 2407.07726; PaliGemmaForConditionalGeneration)."""
    text = Named("gemma", sizes(257152, 2048, 16384, 18, 8, 1))
    tower = Named(
        "siglip_vision_model",
        {**SIGLIP.sizes} | dict(intermediate_size=4096, num_hidden_layers=27, image_size=224),
    )

    return composes(
        c, text, tower, lambda v, _: Linear(d_in=v.hidden_size, d_out=c.projection_dim, bias=True, category="projector")
    )


@family(
    "aya_vision",
    "AyaVisionForConditionalGeneration",
    defaults=dict(downsample_factor=2, alignment_intermediate_size=None, tie_word_embeddings=True),
    fixed=ABOVE,
    unused=["vision_feature_layer"],
)
@family(
    "cohere2_vision",
    "Cohere2VisionForConditionalGeneration",
    defaults=dict(downsample_factor=2, alignment_intermediate_size=36864, tie_word_embeddings=True),
    fixed=ABOVE,
)
def aya_vision(c: Config) -> Component:
    """SigLIP, neighbouring patches joined, a gated projection, Command R (AyaVisionForConditionalGeneration)."""
    aya, side = c.family == "aya_vision", c.downsample_factor
    other = dict(intermediate_size=3072, image_size=512, num_hidden_layers=27, num_attention_heads=12)
    tower = Named(
        "siglip_vision_model",
        {**SIGLIP.sizes} | dict(num_attention_heads=14) if aya else dict(hidden_size=1152) | other,
    )

    def projector(v: Config, d: int) -> Block:
        d_in, hidden = v.hidden_size * side * side, c.alignment_intermediate_size or d
        half = named("half", hidden // 2, origin="alignment width / 2")
        up, down = Linear(d_in=d_in, d_out=hidden, bias=True), Linear(d_in=half, d_out=d, bias=True)
        return block("projector", norm=Norm(width=d_in, bias=True) if aya else None, linear_1=up, linear_2=down)

    return composes(c, Named("cohere2"), tower, projector)


@family(
    "internvl",
    "InternVLForConditionalGeneration",
    defaults=dict(downsample_ratio=0.5, tie_word_embeddings=True),
    fixed=ABOVE,
    unused=["vision_feature_layer"],
)
def internvl(c: Config) -> Component:
    """A ViT, neighbouring patches joined, two layers, a language model (InternVLForConditionalGeneration)."""
    side = named("side", int(1 / c.downsample_ratio), origin="1 / downsample_ratio")

    def projector(v: Config, d: int) -> Block:
        d_in = v.hidden_size * side * side
        return block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))

    return composes(c, Named("qwen2"), Named("internvl_vision"), projector, any_tower=False)


# Of the code that trained them: a resampler instead of the layer, norms that Llama has not.
IDEFICS = ["is_llama_config", "perceiver_config", "pixel_shuffle_factor", "qk_layer_norms", "rope_interleaved"]
IDEFICS += ["transformers_js_config", "use_resampler"]


@family(
    "idefics3",
    "Idefics3ForConditionalGeneration",
    defaults=dict(scale_factor=2),
    fixed=ABOVE,
    unused=["use_reentrant_checkpointing"],
)
@family(
    "smolvlm",
    "SmolVLMForConditionalGeneration",
    defaults=dict(scale_factor=2),
    fixed=ABOVE,
    unused=["use_reentrant_checkpointing"],
)
def idefics3(c: Config) -> Component:
    """A ViT, neighbouring patches joined, one layer, a language model (Idefics3, 2408.12637)."""
    side = c.scale_factor
    return composes(
        c,
        Named("llama", unused=IDEFICS),
        Named(f"{c.family}_vision"),
        lambda v, d: Linear(d_in=v.hidden_size * side * side, d_out=d, category="projector"),
        any_tower=False,
    )


# -- a tower and a language model of their own -------------------------------------------------------------------


@family("gemma3", "Gemma3ForConditionalGeneration", defaults=dict(tie_word_embeddings=True), fixed=ABOVE)
def gemma3(c: Config) -> Component:
    """SigLIP, its patches averaged and projected, Gemma 3 (Gemma3ForConditionalGeneration)."""
    return sees(c, "gemma3_text", "siglip_vision_model", averaged, any_tower=True)


@family("llama4", "Llama4ForCausalLM", defaults={}, fixed=dict(ties="section"))
def llama4(c: Config) -> Component:
    """A ViT, one layer, Llama 4 (Llama4ForConditionalGeneration)."""
    return sees(
        c,
        "llama4_text",
        "llama4_vision_model",
        lambda v, d: Linear(d_in=v.vision_output_dim, d_out=d, category="projector"),
    )


@family("mllama", "MllamaForCausalLM", defaults={}, fixed=dict(ties="section"))
def mllama(c: Config) -> Component:
    """A ViT over tiles, one layer, Llama with cross attention (MllamaForConditionalGeneration)."""
    return sees(
        c,
        "mllama_text_model",
        "mllama_vision_model",
        lambda v, d: Linear(d_in=v.vision_output_dim, d_out=d, bias=True, category="projector"),
    )


QWEN2_TEXT = sizes(152064, 8192, 29568, 80, 64, 8) | dict(
    use_sliding_window=False, sliding_window=4096, max_window_layers=80, layer_types=None
)
del QWEN2_TEXT["head_dim"]
QWEN2_READ: dict[str, Any] = dict(defaults=QWEN2_TEXT, nullable=["sliding_window", "num_key_value_heads"])
EQUAL = dict(head_dim=None)  # heads always cut the width


@family("qwen2_vl_text", "Qwen2VLTextModel", fixed=EQUAL, **QWEN2_READ)
@family("qwen2_5_vl_text", "Qwen2_5_VLTextModel", fixed=EQUAL, **QWEN2_READ)
def qwen2_vl_text(c: Config) -> Component:
    """Qwen2 with positions in three dimensions (Qwen2VLTextModel)."""
    return get("qwen2").recipe(c)


NO_WINDOW = dict(use_sliding_window=False, sliding_window=None, max_window_layers=0)


@family(
    "qwen3_vl_text",
    "Qwen3VLTextModel",
    defaults=sizes(151936, 4096, 22016, 32, 32, 32, 128, attention_bias=False),
    fixed=NO_WINDOW,
    nullable=["num_key_value_heads"],
)
def qwen3_vl_text(c: Config) -> Component:
    """Qwen3 with positions in three dimensions (Qwen3VLTextModel)."""
    return get("qwen3").recipe(c)


@family(
    "qwen3_vl_moe_text",
    "Qwen3VLMoeTextModel",
    names=dict(num_experts="num_local_experts"),
    defaults=sizes(151936, 2048, 5632, 24, 16, 16, attention_bias=False, tie_word_embeddings=True)
    | dict(decoder_sparse_step=1, moe_intermediate_size=1408, num_experts_per_tok=4, num_experts=60)
    | dict(mlp_only_layers=None),
    fixed=NO_WINDOW,
)
def qwen3_vl_moe_text(c: Config) -> Component:
    """Qwen3-MoE with positions in three dimensions (Qwen3VLMoeTextModel)."""
    return get("qwen3_moe").recipe(c)


GLM4V_TEXT = sizes(151552, 4096, 13696, 40, 32, 2)
del GLM4V_TEXT["head_dim"]


@family(
    "glm4v_text",
    "Glm4vTextModel",
    defaults=GLM4V_TEXT,
    fixed=EQUAL | dict(attention_bias=True),
    nullable=["num_key_value_heads"],
)
def glm4v_text(c: Config) -> Component:
    """GLM-4 with biases on q, k and v (Glm4vTextModel)."""
    return get("glm4").recipe(c)


@family("qwen2_vl", "Qwen2VLForConditionalGeneration", fixed=EITHER | EQUAL, **QWEN2_READ)
def qwen2_vl(c: Config) -> Component:
    """A ViT over images and video, a merger, Qwen2 (Qwen2VLForConditionalGeneration)."""
    return sees(c, "qwen2_vl_text", "qwen2_vl_vision", lambda v, _: qwen2_merger(v), flat=True)


@family("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", fixed=EITHER | EQUAL, **QWEN2_READ)
def qwen2_5_vl(c: Config) -> Component:
    """A tower of windowed attention, a merger, Qwen2 (Qwen2_5_VLForConditionalGeneration)."""
    return sees(c, "qwen2_5_vl_text", "qwen2_5_vl_vision", lambda v, _: qwen2_5_merger(v), flat=True)


@family("qwen3_vl", "Qwen3VLForConditionalGeneration", defaults={}, fixed=ABOVE)
@family("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", defaults={}, fixed=ABOVE)
def qwen3_vl(c: Config) -> Component:
    """A ViT, mergers for several of its layers, Qwen3 (Qwen3VLForConditionalGeneration)."""
    return sees(c, f"{c.family}_text", f"{c.family}_vision", lambda v, _: qwen3_merger(v, deep=True))


@family("qwen3_5", "Qwen3_5ForCausalLM", defaults={}, fixed=ABOVE)
@family("qwen3_5_moe", "Qwen3_5MoeForCausalLM", defaults={}, fixed=ABOVE)
@family("qwen4_exp", "Qwen4ExpForCausalLM", defaults={}, fixed=ABOVE)
def qwen3_5(c: Config) -> Component:
    """A ViT, a merger, Qwen 3.5 or 4 (Qwen3_5ForConditionalGeneration)."""
    return sees(c, f"{c.family}_text", f"{c.family}_vision", lambda v, _: qwen3_merger(v, deep=False))


@family(
    "glm4v_moe_text",
    "Glm4vMoeTextModel",
    names=dict(num_local_experts="n_routed_experts"),
    defaults=sizes(151424, 4096, 10944, 46, 96, 8, attention_bias=True)
    | dict(moe_intermediate_size=1408, num_experts_per_tok=8, n_shared_experts=1, num_local_experts=128)
    | dict(first_k_dense_replace=1),
    fixed=dict(use_qk_norm=False, num_mtp_layers=0),
    unused=["use_qk_norm"],
)
def glm4v_moe_text(c: Config) -> Component:
    """GLM-4.5 with positions in three dimensions (Glm4vMoeTextModel)."""
    return get("glm4_moe").recipe(c)


@family("glm4v", "Glm4vForConditionalGeneration", defaults={}, fixed=EITHER)
@family("glm4v_moe", "Glm4vMoeForConditionalGeneration", defaults={}, fixed=EITHER)
def glm4v(c: Config) -> Component:
    """A tower, a convolution and a merger, GLM-4 (GLM-4.1V, 2507.01006; Glm4vForConditionalGeneration)."""
    return sees(c, f"{c.family}_text", f"{c.family}_vision", lambda v, _: glm4v_merger(v))


VBERT = ["classifier_bias", "initializer_cutoff_factor"]  # the text model's own section has them


@family("modernvbert", "ModernVBertForMaskedLM", defaults=dict(pixel_shuffle_factor=4), fixed=ABOVE, unused=VBERT)
@family("ultravbert", "UltraVBertForMaskedLM", defaults=dict(pixel_shuffle_factor=4), fixed=ABOVE, unused=VBERT)
def modernvbert(c: Config) -> Component:
    """SigLIP, neighbouring patches joined, one layer, an encoder of text (ModernVBertForMaskedLM)."""
    ultra, side = c.family == "ultravbert", c.pixel_shuffle_factor

    def projector(v: Config, d: int) -> Block:
        proj = Linear(d_in=v.hidden_size * side * side, d_out=d)
        return block("projector", proj=proj, norm=Norm(width=d) if ultra else None)

    return sees(
        c,
        "ultrabert" if ultra else "modernbert",
        "siglip_vision_model",
        projector,
        any_tower=True,
        tower_sizes=dict(vision_use_head=False) if ultra else None,
    )


@family(
    "git",
    "GitForCausalLM",
    defaults=dict(vocab_size=30522, hidden_size=768, intermediate_size=3072, num_hidden_layers=6)
    | dict(num_attention_heads=12, max_position_embeddings=1024, num_image_with_embedding=None),
    fixed=dict(add_cross_attention=False),
)
def git(c: Config) -> Component:
    """CLIP, one layer, and BERT's layers that read a caption behind its image (GIT, 2205.14100; GitForCausalLM)."""
    seen, v = vision(c, "git_vision_model")
    frames = c.num_image_with_embedding
    projector = block(
        "projector",
        frames=None if frames is None else Param(shape=(frames, v.hidden_size)),
        proj=Linear(d_in=v.hidden_size, d_out=c.hidden_size, bias=True),
        norm=layer_norm(c),
    )
    head = decoder_head(c, c.hidden_size, bias=True)
    text = encoder(c, embeddings(c, c.hidden_size, types=False), encoder_layer(c), head)
    return joined(text, vision_tower=seen, projector=projector)
