"""Idefics 1 to 3."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha, sized_attention
from paramcalc.families.builders.decoder import causal_lm, layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, learned_activation, mlp
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import resampler_layers
from paramcalc.families.builders.towers import tower_in
from paramcalc.families.builders.vision_language import any_language_model, assemble_multimodal, wrap_any_language_model
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param
from paramcalc.tree.weights import by_vocabulary


@family("idefics")
def idefics(c: Config) -> Component:
    """CLIP, and Llama with gated cross attention to it before some of its layers (IdeficsForVisionText2Text)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    vision, v = tower_in(c, "vision_config")
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
    return assemble_multimodal(language, vision_tower=vision, projector=resampler if c.use_resampler else None)


def idefics_resampler(p: Config, v: Config) -> Block:
    """Learned queries that attend to the tower's output (IdeficsPerceiverResampler)."""
    d_h = p.resampler_head_dim
    attn = sized_attention(v.hidden_size, p.resampler_n_heads, d_h, source="cross")
    if p.qk_layer_norms_perceiver:
        attn = attn.replace(q_norm=Norm(width=d_h, bias=True), k_norm=Norm(width=d_h, bias=True))
    layers = resampler_layers(v, attn, mlp(v, 4 * v.hidden_size, bias=False), depth=p.resampler_depth)
    queries = Param(shape=(p.resampler_n_latents, v.hidden_size))
    return block("projector", queries=queries, layers=layers, norm=layer_norm(v))


@family("idefics2", ties="above")
def idefics2(c: Config) -> Component:
    """SigLIP, a gated projection, learned queries that attend to it, Mistral (Idefics2, 2405.02246)."""
    vision, v = tower_in(c, "vision_config")
    language, d = any_language_model(c)
    text, p = c.sections()[-1], c.section("perceiver_config")
    c.require("intermediate_size" in text.values(), f"text_config is a {text.family}, which has no intermediate_size")
    up, down = Linear(d_in=v.hidden_size, d_out=text.intermediate_size), Linear(d_in=text.intermediate_size, d_out=d)
    attn = sized_attention(d, p.num_attention_heads, p.head_dim, kv_heads=p.num_key_value_heads, source="cross")
    norm = Norm(width=d)
    layer = block(
        query_norm=norm, context_norm=norm, attn=attn, ffn_norm=norm, ffn=Mlp(width=d, hidden=4 * d, gated=True)
    )
    projector = block(
        "projector",
        gate=up,
        up=up,
        act=learned_activation(text),
        down=down,
        queries=Param(shape=(p.resampler_n_latents, d)),
        layers=stack("projector", Run(p.num_hidden_layers, layer)),
        norm=norm,
    )
    return assemble_multimodal(language, vision_tower=vision, projector=projector)


@family("idefics3", "smolvlm", ties="above")
def idefics3(c: Config) -> Component:
    """A ViT, merged patches, one layer, a language model (Idefics3, 2408.12637)."""
    side = c.scale_factor

    def projector(v: Config, d: int) -> Linear:
        return Linear(d_in=v.hidden_size * side * side, d_out=d, category="projector")

    return wrap_any_language_model(c, projector, any_tower=False)
