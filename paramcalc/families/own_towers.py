"""Models that see with a tower, and speak with a language model, of their own kind."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.heads import decoder_head
from paramcalc.families.builders.projectors import gemma3_projector, qwen2_5_merger, qwen3_merger
from paramcalc.families.builders.towers import vision_tower
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    vision_language_model,
    wrap_any_language_model,
)
from paramcalc.families.registry import family
from paramcalc.families.vision import glm4v_merger, qwen2_merger
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm, Param


@family("gemma3", ties="above")
@family("shieldgemma2", ties="either")
def gemma3(c: Config) -> Component:
    """SigLIP, its patches averaged and projected, Gemma 3 (Gemma3ForConditionalGeneration)."""
    return vision_language_model(c, gemma3_projector, any_tower=True)


@family("llama4", ties="section")
def llama4(c: Config) -> Component:
    """A ViT, one layer, Llama 4 (Llama4ForConditionalGeneration)."""
    return vision_language_model(c, lambda v, d: Linear(d_in=v.vision_output_dim, d_out=d, category="projector"))


@family("mllama", ties="section")
def mllama(c: Config) -> Component:
    """A ViT over tiles, one layer, Llama with cross attention (MllamaForConditionalGeneration)."""
    return vision_language_model(
        c, lambda v, d: Linear(d_in=v.vision_output_dim, d_out=d, bias=True, category="projector")
    )


@family("qwen2_vl", ties="either")
def qwen2_vl(c: Config) -> Component:
    """A ViT over images and video, a merger, Qwen2 (Qwen2VLForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen2_merger(v), flat=True)


@family("qwen2_5_vl", ties="either")
def qwen2_5_vl(c: Config) -> Component:
    """A tower of windowed attention, a merger, Qwen2 (Qwen2_5_VLForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen2_5_merger(v), flat=True)


@family("qwen3_vl", "qwen3_vl_moe", "cohere_compass", ties="above")
def qwen3_vl(c: Config) -> Component:
    """A ViT, mergers for several of its layers, Qwen3 (Qwen3VLForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen3_merger(v, deep=True))


@family("qwen3_5", "qwen3_5_moe", "qwen4_exp", ties="above")
def qwen3_5(c: Config) -> Component:
    """A ViT, a merger, Qwen 3.5 or 4 (Qwen3_5ForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: qwen3_merger(v, deep=False))


@family("glm4v", "glm4v_moe", ties="either")
def glm4v(c: Config) -> Component:
    """A tower, a convolution and a merger, GLM-4 (GLM-4.1V, 2507.01006; Glm4vForConditionalGeneration)."""
    return vision_language_model(c, lambda v, _: glm4v_merger(v, v.intermediate_size))


@family("glm46v", "glmga", ties="above")
def glm46v(c: Config) -> Component:
    """GLM-4.1V's tower and merger, and any language model: dense or with experts (Glm46VForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, _: glm4v_merger(v, v.intermediate_size), any_tower=False)


@family("cosmos3_omni", ties="above")
def cosmos3_omni(c: Config) -> Component:
    """Qwen3-VL's tower and mergers, and any language model (Cosmos3OmniForConditionalGeneration)."""
    return wrap_any_language_model(c, lambda v, _: qwen3_merger(v, deep=True), any_tower=False)


@family("modernvbert", "ultravbert", ties="above")
def modernvbert(c: Config) -> Component:
    """SigLIP, neighbouring patches joined, one layer, an encoder of text (ModernVBertForMaskedLM)."""
    ultra, side = c.family == "ultravbert", c.pixel_shuffle_factor

    def projector(v: Config, d: int) -> Block:
        proj = Linear(d_in=v.hidden_size * side * side, d_out=d)
        return block("projector", proj=proj, norm=Norm(width=d) if ultra else None)

    return vision_language_model(c, projector, any_tower=True)


@family("git")
def git(c: Config) -> Component:
    """CLIP, one layer, and BERT's layers that read a caption behind its image (GIT, 2205.14100; GitForCausalLM)."""
    seen, v = vision_tower(c)
    frames = c.num_image_with_embedding
    projector = block(
        "projector",
        frames=None if frames is None else Param(shape=(frames, v.hidden_size)),
        proj=Linear(d_in=v.hidden_size, d_out=c.hidden_size, bias=True),
        norm=layer_norm(c),
    )
    head = decoder_head(c, c.hidden_size, bias=True)
    text = encoder(c, embeddings(c, c.hidden_size, types=False), encoder_layer(c), head)
    return assemble_multimodal(text, vision_tower=seen, projector=projector)
