"""Models that see or hear: a language model in a section of the config, beside towers and projectors."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, head_dim, with_options
from paramcalc.families.builders.decoder import causal_lm, pre_norm, rms
from paramcalc.families.builders.ffn import glu
from paramcalc.families.builders.sections import section_language_model
from paramcalc.families.builders.vision_language import assemble_multimodal
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("fuyu")
def fuyu(c: Config) -> Component:
    """Persimmon with image patches projected straight into its embeddings (FuyuForCausalLM).

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


@family("gemma4_assistant", "gemma4_unified_assistant")
def gemma4_assistant(c: Config) -> Component:
    """A small Gemma 4 that drafts for a large one, whose keys and values it borrows (Gemma4AssistantForCausalLM)."""
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


@family("mllama_text_model")
def mllama_text(c: Config) -> Block:
    """Llama with gated cross attention to an image in some layers (MllamaForCausalLM)."""
    attn, norm = gqa(c), Norm(width=head_dim(c))
    cross = with_options(attn, source="cross", q_norm=norm, k_norm=norm)
    gate, plain = Param(shape=(1,)), pre_norm(rms(c), attn, glu(c))
    gated = block(input_norm=rms(c), attn=cross, attn_gate=gate, post_norm=rms(c), ffn=glu(c), ffn_gate=gate)
    stated = c.raw("cross_attention_layers") is not None
    crossed = set(c.layer_indices("cross_attention_layers") if stated else range(3, 40, 5))
    layers = [gated if i in crossed else plain for i in range(c.num_hidden_layers)]
    parts = dict(causal_lm(c, layers, norm=rms(c)).items)
    return block(**parts | {"embed_tokens": Embedding(rows=c.vocab_size + 8, width=c.hidden_size)})
