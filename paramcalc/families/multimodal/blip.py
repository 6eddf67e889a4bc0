"""BLIP, BLIP-2 and InstructBLIP."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm, pre_norm
from paramcalc.families.builders.encoder import embeddings, encoder_layer
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import masked_lm_head, unknown_head
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import patch_count, patches
from paramcalc.families.builders.vision_language import assemble_multimodal, own_text
from paramcalc.families.registry import family, get_family, split_class
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Linear, Param


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


@family("blip", ties="either")
def blip(c: Config) -> Component:
    """A ViT, and BERT as a decoder that attends to it (BLIP, 2201.12086; BlipForConditionalGeneration).

    For question answering, a second BERT of the same layout encodes the question.
    """
    if c.head not in ("seq2seq_lm", "question_answering", "none"):
        raise unknown_head(c)
    vision, v = tower_in(c, "vision_config")
    text, whole = own_text(c), c.head != "none"
    cross = mha(text, source="cross", kv_width=v.hidden_size)
    plain = encoder_layer(text).items
    parts: dict[str, Component] = {}
    for name, part in plain.items():
        if name == "ffn" and text.is_decoder:
            parts |= {"cross_attn": cross, "cross_attn_norm": layer_norm(text)}
        parts[name] = part
    pooler = Linear(d_in=text.hidden_size, d_out=text.hidden_size, bias=True, category="head", per="sequence")
    head = {"lm_head": masked_lm_head(text, text.hidden_size)} if whole else {"pooler": pooler}
    layers = stack("encoder", Run(text.num_hidden_layers, block(**parts)), causal=whole)
    tables = embeddings(text, text.hidden_size, types=False)
    question = None
    if c.head == "question_answering":
        question, layers = block(**tables, layers=layers.replace(causal=False)), layers.replace(role="decoder")
    language = block(question=question, **tables, layers=layers, **head)
    compared = block(
        "projector",
        visual_proj=Linear(d_in=v.hidden_size, d_out=c.projection_dim),
        text_proj=Linear(d_in=text.hidden_size, d_out=c.projection_dim),
        scale=Param(shape=(1,)),
    )
    return assemble_multimodal(language, vision_tower=vision, projector=None if whole else compared)


SEQ2SEQ_LANGUAGES = ("t5", "mt5", "umt5")


@family("blip-2", base_without_head=False)
@family("instructblip", "instructblipvideo", base_without_head=True)
def blip_2(c: Config) -> Component:
    """A ViT, a Q-Former, and a language model, most often OPT or T5 (BLIP-2, 2301.12597; Blip2...Generation)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    kind = c.section_kind("text_config")
    text = get_family(kind)
    head = "seq2seq_lm" if kind in SEQ2SEQ_LANGUAGES else "lm"
    c.require(head == "seq2seq_lm" or split_class(text.main_class)[1] == "lm", f"text_config is a {kind}")
    if c.head == "none" and c.base_without_head:
        head = "none"
    vision, v = tower_in(c, "vision_config")
    former, q = tower_in(c, "qformer_config", encoder_hidden_size=v.hidden_size)
    view = c.section("text_config", text.schema, family=kind, head=head)
    projector = block(
        "projector",
        queries=Param(shape=(1, c.num_query_tokens, q.hidden_size)),
        qformer=former,
        proj=Linear(d_in=q.hidden_size, d_out=view.hidden_size, bias=True),
    )
    return assemble_multimodal(text.recipe(view), vision_tower=vision, projector=projector)
