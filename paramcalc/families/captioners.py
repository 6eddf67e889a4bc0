"""Models whose language model, of their own kind or of any, looks at images or proteins in ways of its own."""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.config.schema import ConfigSchema
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha, sized_attention
from paramcalc.families.builders.decoder import causal_lm, layer_norm, pre_norm, rms
from paramcalc.families.builders.encoder import embeddings, encoder_layer
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.heads import masked_lm_head, unknown_head
from paramcalc.families.builders.projectors import resampler_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import vit_layer
from paramcalc.families.builders.vision_language import assemble_multimodal, only_text, own_text
from paramcalc.families.registry import family, get_family, split_class
from paramcalc.families.towers.vision_special import swin_width
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param
from paramcalc.tree.weights import by_vocabulary

SEQ2SEQ_LANGUAGES = ("t5", "mt5", "umt5")
KNOWN_IMAGE_ENCODERS = ("vit", "deit", "beit", "swin", "donut-swin", "clip_vision_model", "siglip_vision_model")
RECOMPUTED_KV = (
    "EvollaForProteinText2Text keeps no keys and values of the protein and computes them again for each token"
)


@family("blip-2", base_without_head=False)
@family("instructblip", "instructblipvideo", base_without_head=True)
def blip_2(c: Config) -> Component:
    """A ViT, a Q-Former, and a language model, OPT or T5 most often (BLIP-2, 2301.12597; Blip2...Generation)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    kind = c.section("text_config", ConfigSchema({})).raw("model_type") or c.section_schema("text_config").kind
    text = get_family(kind)
    head = "seq2seq_lm" if kind in SEQ2SEQ_LANGUAGES else "lm"
    c.require(head == "seq2seq_lm" or split_class(text.main_class)[1] == "lm", f"text_config is a {kind}")
    if c.head == "none" and c.base_without_head:
        head = "none"
    seen, v = tower_in(c, "vision_config")
    former, q = tower_in(c, "qformer_config", encoder_hidden_size=v.hidden_size)
    view = c.section("text_config", text.schema, family=kind, head=head)
    projector = block(
        "projector",
        queries=Param(shape=(1, c.num_query_tokens, q.hidden_size)),
        qformer=former,
        proj=Linear(d_in=q.hidden_size, d_out=view.hidden_size, bias=True),
    )
    return assemble_multimodal(text.recipe(view), vision_tower=seen, projector=projector)


@family("vision-encoder-decoder")
def vision_encoder_decoder(c: Config) -> Component:
    """Any decoder, which attends to what an encoder of images puts out (VisionEncoderDecoderModel).

    Encoders that are not known are not counted.
    """
    kind = c.section("decoder", ConfigSchema({})).raw("model_type") or c.section_schema("decoder").kind
    text = get_family(kind)
    ours = {} if c.has("decoder") else {"is_decoder": True, "add_cross_attention": True}
    reading = text.schema._replace(defaults={**text.schema.defaults, **ours})
    view = c.section("decoder", reading, family=kind, head="lm")
    stated = c.raw("encoder")
    encoder = stated.get("model_type") if isinstance(stated, Mapping) else None
    if encoder not in (None, *KNOWN_IMAGE_ENCODERS):
        only_text(c, "encoder")
        return text.recipe(view)
    seen, v = tower_in(c, "encoder", kind=encoder)
    width = swin_width(v) if encoder in ("swin", "donut-swin") else v.hidden_size
    bridged = width != view.hidden_size and view.raw("cross_attention_hidden_size") is None
    bridge = Linear(d_in=width, d_out=view.hidden_size, bias=True, category="projector") if bridged else None
    return assemble_multimodal(text.recipe(view), vision_tower=seen, projector=bridge)


# -- Kosmos ------------------------------------------------------------------------------------------------------


@family("kosmos-2", ties="either")
@family("kosmos-2.5", ties="section")
def kosmos_2(c: Config) -> Component:
    """A ViT, queries that look at it, a decoder with norms within its parts (Kosmos-2, 2306.14824; Kosmos2...).

    Its positions are not stored.
    """
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    seen, v = tower_in(c, "vision_config")
    text, second = own_text(c), c.family == "kosmos-2"
    d = text.hidden_size
    ffn = mlp(text, text.ffn_dim).replace(inner=Norm(width=text.ffn_dim, bias=True))
    attn = mha(text, inner=layer_norm(text) if second else None)
    segments = None if second else Embedding(rows=2, width=d)
    layer = pre_norm(norm := layer_norm(text), attn, ffn)
    if second and text.add_cross_attention:
        cross = mha(text, source="cross")
        layer = block(input_norm=norm, attn=attn, cross_norm=norm, cross_attn=cross, post_norm=norm, ffn=ffn)
    layers = Run(text.num_hidden_layers, layer)
    projector = block(
        "projector",
        proj=Linear(d_in=v.hidden_size, d_out=d, bias=True),
        queries=Param(shape=(c.latent_query_num, d)),
        attn=mha(text, source="cross"),
    )
    language = causal_lm(text, layers, norm=layer_norm(text), before={"segments": segments})
    return assemble_multimodal(language, vision_tower=seen, projector=projector)


# -- cross attention in the decoder's layers ---------------------------------------------------------------------


@family("blip", ties="either")
def blip(c: Config) -> Component:
    """A ViT, and BERT as a decoder that attends to it (BLIP, 2201.12086; BlipForConditionalGeneration).

    To answer, a second BERT reads the question; both are built alike.
    """
    if c.head not in ("seq2seq_lm", "question_answering", "none"):
        raise unknown_head(c)
    seen, v = tower_in(c, "vision_config")
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
    return assemble_multimodal(language, vision_tower=seen, projector=None if whole else compared)


@family("idefics")
def idefics(c: Config) -> Component:
    """CLIP, and Llama with gated cross attention to it before some of its layers (IdeficsForVisionText2Text)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    seen, v = tower_in(c, "vision_config")
    resampler = idefics_resampler(c.section("perceiver_config"), v) if c.use_resampler else c.raw("perceiver_config")
    d, depth, d_v, more = c.hidden_size, c.num_hidden_layers, v.hidden_size, c.additional_vocab_size
    c.require(c.alpha_type in ("float", "vector"), f"alpha_type {c.alpha_type!r} is neither float nor vector")
    gate, norm = Param(shape=(d if c.alpha_type == "vector" else 1,)), Norm(width=equal_heads(c))
    qk_norm = norm if c.qk_layer_norms else None
    cross = mha(c, bias=False, source="cross", kv_width=d_v, qk_norm=qk_norm)
    crossed = block(**pre_norm(rms(c), cross, glu(c)).items, attn_gate=gate, ffn_gate=gate)
    layer = pre_norm(rms(c), mha(c, bias=False), glu(c))
    tied = c.tie_word_embeddings and more
    extra = Embedding(rows=more, width=d) if more else None
    head = None
    if more and c.head == "seq2seq_lm":
        head = Linear(d_in=d, d_out=more, category="head", split=by_vocabulary(more))
    whole = causal_lm(c, Run(depth, layer), norm=rms(c), before={"more_tokens": extra})
    language = block(
        **whole.items,
        more_head=head.replace(tied_to="more_tokens") if head and tied else head,
        cross_layers=stack("cross", Run(depth // c.cross_layer_interval, crossed)),
    )
    return assemble_multimodal(language, vision_tower=seen, projector=resampler if c.use_resampler else None)


def idefics_resampler(p: Config, v: Config) -> Block:
    """Learned queries that look at the tower's output (IdeficsPerceiverResampler)."""
    d_h = p.resampler_head_dim
    attn = sized_attention(v.hidden_size, p.resampler_n_heads, d_h, source="cross")
    if p.qk_layer_norms_perceiver:
        attn = attn.replace(q_norm=Norm(width=d_h, bias=True), k_norm=Norm(width=d_h, bias=True))
    layers = resampler_layers(v, attn, mlp(v, 4 * v.hidden_size, bias=False), depth=p.resampler_depth)
    queries = Param(shape=(p.resampler_n_latents, v.hidden_size))
    return block("projector", queries=queries, layers=layers, norm=layer_norm(v))


@tower("saprot")
def saprot(v: Config) -> Block:
    """ESM's encoder over residues and the structure around them (SaProt; EvollaSaProtProteinEncoder)."""
    d, kind = v.hidden_size, v.position_embedding_type
    v.require(not v.add_cross_attention, "a protein encoder with cross attention cannot be counted")
    width = equal_heads(v)
    return block(
        "vision",
        embed_tokens=Embedding(rows=v.vocab_size, width=d),
        positions=Embedding(rows=v.max_position_embeddings, width=d) if kind == "absolute" else None,
        embed_norm=layer_norm(v) if v.emb_layer_norm_before else None,
        rotary=Param(shape=((width + 1) // 2,), buffer=True),
        layers=stack("vision", Run(v.num_hidden_layers, vit_layer(v))),
        norm=layer_norm(v),
    )


@family("evolla")
def evolla(c: Config) -> Component:
    """An encoder of proteins, and Llama with cross attention to it behind some layers (EvollaForProteinText2Text)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    seen, v = tower_in(c, "protein_encoder_config")
    d_v, queries = v.hidden_size, Param(shape=(c.resampler_num_latents, v.hidden_size))
    looks = sized_attention(d_v, c.resampler_heads, c.resampler_dim_head, source="cross")
    projector = block(
        "projector",
        queries=queries,
        layers=resampler_layers(v, looks, mlp(v, d_v * c.resampler_ff_mult, bias=False), depth=c.resampler_depth),
        proj=Linear(d_in=d_v, d_out=c.hidden_size, bias=True),
        norm=layer_norm(c),
    )
    return assemble_multimodal(llama_with_adapters(c), vision_tower=seen, projector=projector)


def llama_with_adapters(c: Config) -> Block:
    """Llama with an adapter that looks at the protein behind one layer in so many."""
    d, depth, gate = c.hidden_size, c.num_hidden_layers, Param(shape=(1,))
    bias, latents = c.aligner_enable_bias, c.resampler_num_latents
    cross = mha(c, source="cross", out_bias=bias, source_tokens=latents, cache_note=RECOMPUTED_KV)
    hidden = d * c.aligner_ffn_mult
    adapter = block(
        attn=cross,
        attn_gate=gate,
        attn_norm=rms(c),
        ffn_norm=layer_norm(c),
        ffn=mlp(c, hidden, bias=False),
        ffn_gate=gate,
    )
    layer = pre_norm(rms(c), gqa(c, bias=c.attention_bias), glu(c, bias=c.mlp_bias))
    step = max(depth // c.aligner_num_add_layers, 1)
    adapted = block(**layer.items, adapter=adapter)
    layers = [layer if (i + 1) % step else adapted for i in range(depth)]
    return causal_lm(c, layers, norm=rms(c))
