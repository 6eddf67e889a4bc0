"""Models put together from two others, each with a section of the config."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.heads import unknown_head
from paramcalc.families.builders.sections import section_model
from paramcalc.families.builders.vision_language import with_stack_role
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear


@family("encoder-decoder")
def composed_encoder_decoder(c: Config) -> Block:
    """Any encoder and any decoder, joined by cross attention, and a projection where widths differ (EncoderDecoder)."""
    if c.head != "none":
        raise unknown_head(c)
    encoder, one = section_model(c, "encoder", "none")
    decoder, two = section_model(c, "decoder", "lm")
    differ = one.hidden_size != two.hidden_size and two.raw("cross_attention_hidden_size") is None
    bridge = (
        Linear(d_in=one.hidden_size, d_out=two.hidden_size, bias=True, category="other", per="source")
        if differ
        else None
    )
    return block(encoder=encoder, bridge=bridge, decoder=with_stack_role(decoder, "decoder"))


@family("pi0")
def pi0(c: Config) -> Block:
    """PaliGemma and a second Gemma, which makes movements of what it sees (PI0, 2410.24164; PI0...Generation)."""
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    seeing, view = section_model(c, "vlm_config", "none")
    c.require(view.family == "paligemma", f"vlm_config is a {view.family}", "only a paligemma can be counted there")
    rows = next(section.vocab_size for section in view.sections() if section.path.endswith("text_config."))
    acting, actor = section_model(c, "dit_config", "none", vocab_size=rows)
    acting = with_stack_role(acting, "actor")
    if c.head == "none":
        return block(vlm=seeing, dit=acting)
    d, moves = actor.hidden_size, c.max_action_dim
    joined, step = Linear(d_in=2 * d, d_out=d, bias=True), Linear(d_in=d, d_out=d, bias=True)
    action, state = (Linear(d_in=channels, d_out=d, bias=True) for channels in (moves, c.max_state_dim))
    return block(
        vlm=seeing,
        embed_actions=block("embedding", action=action, state=state, with_time=joined, step=step),
        dit=acting,
        head=Linear(d_in=d, d_out=moves, bias=True, category="head"),
    ).replace(inexact="each of its two models sees tokens of its own; both are counted for every token")
