"""Gemma 3 and PaliGemma with images, and the assistants of Gemma 4."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.projectors import gemma3_projector
from paramcalc.families.builders.sections import section_language_model
from paramcalc.families.builders.vision_language import vision_language_model, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import block
from paramcalc.tree.leaves import Linear, Param


@family("gemma3", ties="above")
@family("shieldgemma2", ties="either")
def gemma3(c: Config) -> Component:
    """SigLIP, averaged and projected patches, Gemma 3 (Gemma3ForConditionalGeneration)."""
    return vision_language_model(c, gemma3_projector, any_tower=True)


@family("paligemma", ties="above")
def paligemma(c: Config) -> Component:
    """SigLIP, one layer, Gemma (PaliGemma, 2407.07726; PaliGemmaForConditionalGeneration)."""

    def projector(v: Config, _: int) -> Linear:
        return Linear(d_in=v.hidden_size, d_out=c.projection_dim, bias=True, category="projector")

    return wrap_any_language_model(c, projector)


@family("gemma4_assistant", "gemma4_unified_assistant")
def gemma4_assistant(c: Config) -> Component:
    """A small draft model for a large Gemma 4, whose keys and values it shares (Gemma4AssistantForCausalLM)."""
    kind = f"{c.family.removesuffix('assistant')}text"
    text = section_language_model(c, "text_config", kind, tie_word_embeddings=c.tie_word_embeddings, borrows_all=True)
    (view,), parts = c.sections(), dict(text.parts())
    plain = view.hidden_size_per_layer_input == 0 and not view.enable_moe_block
    c.require(plain, "an assistant has neither experts nor embeddings for each layer")
    d, backbone, vocab = view.hidden_size, c.backbone_hidden_size, view.vocab_size
    centroids = block(centroids=Linear(d_in=d, d_out=c.num_centroids), token_order=Param(shape=(vocab,), buffer=True))
    return block(
        pre_projection=Linear(d_in=2 * backbone, d_out=d),
        **parts,
        post_projection=Linear(d_in=d, d_out=backbone),
        masked_embedding=centroids if c.use_ordered_embeddings else None,
    )
