"""Models that see with a tower, and speak with a language model, of their own kind."""

from __future__ import annotations

from typing import Any

from paramcalc.config import Config
from paramcalc.families.heads import decoder_head
from paramcalc.families.registry import family, get
from paramcalc.families.seeing import ABOVE, EITHER, joined, sees
from paramcalc.families.skeletons import embeddings, encoder, encoder_layer, layer_norm, sizes
from paramcalc.families.vision import (
    averaged,
    glm4v_merger,
    qwen2_5_merger,
    qwen2_merger,
    qwen3_merger,
    vision,
)
from paramcalc.spec import Block, Component, Linear, Norm, Param, block


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
