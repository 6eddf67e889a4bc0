"""Models that see whose class is code on the Hub: InternVL before transformers had it, Phi-3 and 3.5 vision."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Norm, Param

INTERNVL_LANGUAGES = ("internlm2", "llama", "phi3", "qwen2", "qwen3", "qwen3_moe")


@family("internvl_chat")
def internvl_chat(c: Config) -> Component:
    """InternViT, neighbouring patches joined, two layers, a language model with its head (InternVLChatModel)."""
    if c.head != "none":
        raise unknown_head(c)
    adapters = [key for key in ("use_backbone_lora", "use_llm_lora") if c.raw(key)]
    c.require(not adapters, f"{' and '.join(adapters)}: adapters are not counted", "set to 0")
    side = symbolic("side", int(1 / c.downsample_ratio), origin="1 / downsample_ratio")
    seen, v = tower_in(c, "vision_config")
    kind = c.section("llm_config", ConfigSchema({"model_type": c.section_schema("llm_config").kind})).model_type
    c.require(kind in INTERNVL_LANGUAGES, f"llm_config is a {kind}", f"known: {', '.join(INTERNVL_LANGUAGES)}")
    language = get_family(kind)
    view = c.section("llm_config", language.schema, family=kind, head="lm")
    d_in, d = v.hidden_size * side * side, view.hidden_size
    projector = block("projector", norm=Norm(width=d_in, bias=True), **two_layers(d_in, d, d))
    return assemble_multimodal(language.recipe(view), vision_tower=seen, projector=projector)


@family("phi3_v")
def phi3_v(c: Config) -> Component:
    """CLIP, two by two patches joined, separators, two layers, Phi-3 (Phi3VForCausalLM)."""
    processor, layers = c.section("img_processor"), c.section("embd_layer")
    seen, v = tower_in(c, "vision_config")  # no file states it: the class has CLIP's sizes within
    c.require(
        processor.name == "clip_vision_model" and processor.image_dim_out == v.hidden_size,
        "img_processor is not the CLIP that the class has within",
    )
    c.require(
        layers.projection_cls == "mlp" and layers.use_hd_transform and layers.with_learnable_separator,
        "embd_layer: only two layers behind joined patches and separators are counted",
    )
    d_in, d = 4 * v.hidden_size, c.hidden_size
    separator = Param(shape=(1, 1, d_in))
    projector = block("projector", between=separator, around=separator, **two_layers(d_in, d, d))
    return assemble_multimodal(get_family("phi3").recipe(c), vision_tower=seen, projector=projector)
