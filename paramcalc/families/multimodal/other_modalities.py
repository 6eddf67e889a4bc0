"""Models that join a language model with proteins or with robot actions."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, gqa, mha, sized_attention
from paramcalc.families.builders.decoder import causal_lm, layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.projectors import resampler_layers
from paramcalc.families.builders.sections import section_model
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import vit_layer
from paramcalc.families.builders.vision_language import assemble_multimodal, with_stack_role
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param

# -- Evolla: proteins ------------------------------------------------------------------------------------------------


@tower("saprot")
def saprot(v: Config) -> Block:
    """ESM's encoder over residues and their local structure (SaProt; EvollaSaProtProteinEncoder)."""
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


RECOMPUTED_KV = (
    "EvollaForProteinText2Text does not cache keys and values of the protein; it recomputes them for each token"
)


@family("evolla")
def evolla(c: Config) -> Component:
    """A protein encoder, and Llama with cross attention to it after some layers (EvollaForProteinText2Text)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    protein, v = tower_in(c, "protein_encoder_config")
    d_v, queries = v.hidden_size, Param(shape=(c.resampler_num_latents, v.hidden_size))
    attn = sized_attention(d_v, c.resampler_heads, c.resampler_dim_head, source="cross")
    projector = block(
        "projector",
        queries=queries,
        layers=resampler_layers(v, attn, mlp(v, d_v * c.resampler_ff_mult, bias=False), depth=c.resampler_depth),
        proj=Linear(d_in=d_v, d_out=c.hidden_size, bias=True),
        norm=layer_norm(c),
    )
    return assemble_multimodal(llama_with_adapters(c), vision_tower=protein, projector=projector)


def llama_with_adapters(c: Config) -> Block:
    """Llama with a cross-attention adapter to the protein at regular intervals."""
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


# -- pi0: actions ----------------------------------------------------------------------------------------------------


@family("pi0")
def pi0(c: Config) -> Block:
    """PaliGemma and a second Gemma that predicts robot actions (PI0, 2410.24164; PI0...Generation)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    vlm, view = section_model(c, "vlm_config", "none")
    c.require(view.family == "paligemma", f"vlm_config is a {view.family}", "only a paligemma can be counted there")
    rows = next(section.vocab_size for section in view.sections() if section.path.endswith("text_config."))
    dit, actor = section_model(c, "dit_config", "none", vocab_size=rows)
    dit = with_stack_role(dit, "actor")
    if c.head == "none":
        return block(vlm=vlm, dit=dit)
    d, actions = actor.hidden_size, c.max_action_dim
    joined, step = Linear(d_in=2 * d, d_out=d, bias=True), Linear(d_in=d, d_out=d, bias=True)
    action, state = (Linear(d_in=channels, d_out=d, bias=True) for channels in (actions, c.max_state_dim))
    return block(
        vlm=vlm,
        embed_actions=block("embedding", action=action, state=state, with_time=joined, step=step),
        dit=dit,
        head=Linear(d_in=d, d_out=actions, bias=True, category="head"),
    ).replace(inexact="each of the two models processes its own tokens; both are counted for every token")
