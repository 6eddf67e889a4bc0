"""Language models over discrete image tokens: an image tokenizer and a decoder."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha
from paramcalc.families.builders.decoder import decoder, layer_norm, pre_norm
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import patch_count, patches
from paramcalc.families.builders.vision_language import (
    any_language_model,
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
)
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm


@family("chameleon")
def chameleon(c: Config) -> Component:
    """Llama over text and image tokens, with a norm for each query and key head (Chameleon, 2405.09818)."""
    tokenizer, _ = tower_in(c, "vq_config")
    c.raw("vocabulary_map")
    d_h = equal_heads(c)
    q_norm, k_norm = (Norm(width=d_h, count=n, bias=True) for n in (c.num_attention_heads, c.num_key_value_heads))
    attn = gqa(c, bias=c.attention_bias, q_norm=q_norm, k_norm=k_norm)
    return assemble_multimodal(decoder(c, attn, glu(c, bias=c.mlp_bias)), vision_tower=tokenizer)


@family("emu3", ties="above")
def emu3(c: Config) -> Component:
    """An image and video tokenizer, and Llama over its codes (Emu3, 2409.18869; Emu3ForConditionalGeneration)."""
    if text_alone(c):
        return section_alone(c, "vq_config", "vocabulary_map")
    tokenizer, _ = tower_in(c, "vq_config")
    c.raw("vocabulary_map")
    return assemble_multimodal(own_language_model(c)[0], image_tokenizer=tokenizer)


# -- Janus -----------------------------------------------------------------------------------------------------------


@tower("janus_vision_model")
def janus_vision(v: Config) -> Block:
    """SigLIP with optional norms over all queries and keys (JanusVisionModel)."""
    norm = layer_norm(v) if v.use_qk_norm else None
    hidden = symbolic("d_ff", int(v.hidden_size * v.mlp_ratio), origin="hidden_size x mlp_ratio")
    layer = pre_norm(layer_norm(v), mha(v, qkv_bias=v.attention_bias, qk_norm=norm), mlp(v, hidden))
    return block(
        "vision",
        patches=patches(v),
        positions=Embedding(rows=patch_count(v), width=v.hidden_size),
        layers=stack("vision", Run(v.num_hidden_layers, layer)),
        norm=layer_norm(v),
    )


def janus_aligner(d_in: int, d_out: int, depth: int) -> Block:
    """A projector of `depth` layers, all but the first of one width."""
    same = Linear(d_in=d_out, d_out=d_out, bias=True)
    more = {f"linear_{i}": same for i in range(2, depth + 1)}
    return block("projector", linear_1=Linear(d_in=d_in, d_out=d_out, bias=True), **more)


@family("janus", ties="above")
def janus(c: Config) -> Component:
    """SigLIP for input, a tokenizer for image output, Llama (Janus, 2410.13848; JanusForConditionalGeneration)."""
    vision, v = tower_in(c, "vision_config")
    tokenizer, q = tower_in(c, "vq_config")
    image_head = block(
        "vision",
        codes=Embedding(rows=q.num_embeddings, width=q.embed_dim),
        aligner=janus_aligner(q.embed_dim, q.projection_dim, q.num_hidden_layers),
        proj=Linear(d_in=q.image_token_embed_dim, d_out=q.projection_dim, bias=True),
        head=Linear(d_in=q.projection_dim, d_out=q.num_embeddings, bias=True),
    )
    language, _ = any_language_model(c)
    projector = janus_aligner(v.hidden_size, v.projection_dim, v.depth)
    return assemble_multimodal(
        language, vision_tower=vision, projector=projector, image_tokenizer=tokenizer, image_head=image_head
    )
