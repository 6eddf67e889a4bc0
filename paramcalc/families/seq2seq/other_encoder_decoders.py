"""Other encoder-decoders, most with BART's or T5's layers, and decoders of such models alone."""

from __future__ import annotations

from paramcalc.components import Mlp, Moe, Router
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import with_options
from paramcalc.families.builders.audio_language import WHISPER_LAYOUT
from paramcalc.families.builders.decoder import layer_norm, rms
from paramcalc.families.builders.encoder_decoder import (
    M2M_LAYOUT,
    BartLayout,
    bart_attention,
    bart_head,
    bart_layer,
    bart_stack,
    encoder_decoder,
    side_field,
    spectrogram_encoder,
)
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import lm_head, num_labels, unknown_head
from paramcalc.families.builders.sections import section_model
from paramcalc.families.builders.t5 import first_and_rest, t5_buckets, t5_layer, t5_model
from paramcalc.families.builders.vision_language import with_stack_role
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Stack, block, stack
from paramcalc.tree.leaves import Embedding, Linear, Param


@family("bigbird_pegasus")
def bigbird_pegasus(c: Config) -> Block:
    """Pegasus with sparse attention and few biases (BigBirdPegasusForConditionalGeneration)."""
    form = BartLayout(spare_rows=0, embed_norm=False, pre_norm=True, bias=c.use_bias, ties_decoder=False)
    one = bart_layer(c, "encoder", form).replace(inexact="blocks of sparse attention are counted as full attention")
    return encoder_decoder(c, form, bart_stack(c, "encoder", form, layers=one), bart_stack(c, "decoder", form))


@family("pegasus_x")
def pegasus_x(c: Config) -> Block:
    """Pegasus without biases in attention, with learned global tokens (PegasusXForConditionalGeneration)."""
    form = BartLayout(spare_rows=None, embed_norm=False, pre_norm=True, bias=False, logits_bias=False)
    one = block(global_attn_norm=layer_norm(c), **bart_layer(c, "encoder", form).items)
    one = one.replace(inexact="blocks and global tokens are counted as full attention")
    tokens = {"global_tokens": Embedding(rows=c.num_global_tokens, width=c.hidden_size)}
    return encoder_decoder(
        c, form, bart_stack(c, "encoder", form, layers=one, before=tokens), bart_stack(c, "decoder", form)
    )


@family("led")
def led(c: Config) -> Block:
    """BART whose encoder has a second set of q, k and v for global tokens (LEDForConditionalGeneration)."""
    form, full = BartLayout(spare_rows=0), Linear(d_in=c.hidden_size, d_out=c.hidden_size, bias=True)
    attn = bart_attention(c, "encoder", form, inner=block(global_q=full, global_k=full, global_v=full))
    one = bart_layer(c, "encoder", form, attn=attn).replace(
        inexact="windows and global tokens are counted as full attention"
    )
    encoder = bart_stack(c, "encoder", form, layers=one, positions=c.max_encoder_position_embeddings)
    return encoder_decoder(
        c, form, encoder, bart_stack(c, "decoder", form, positions=c.max_decoder_position_embeddings)
    )


@family("mvp")
def mvp(c: Config) -> Block:
    """BART with optional learned prompts for the decoder's layers (MvpForConditionalGeneration).

    The class passes use_prompt to its encoder in the place of another argument and builds prompts for the decoder only.
    """
    form, prompts = BartLayout(), {}
    if c.use_prompt and c.head != "lm":
        d, mid = c.hidden_size, c.prompt_mid_dim
        prompt = block(
            "other",
            tokens=Embedding(rows=c.prompt_length, width=d),
            up=Linear(d_in=d, d_out=mid, bias=True),
            down=Linear(d_in=mid, d_out=2 * c.decoder_layers * d, bias=True),
        )
        prompts = {"attn_prompt": prompt, "cross_attn_prompt": prompt}
        c.notes.append("mvp: the class builds prompts for the decoder only, although use_prompt applies to both sides")
    return encoder_decoder(c, form, bart_stack(c, "encoder", form), bart_stack(c, "decoder", form, before=prompts))


MASKED_EXPERTS = "experts are counted by top-k; the class also multiplies rows that it masks"


@family("nllb-moe")
def nllb_moe(c: Config) -> Block:
    """M2M-100 with experts, two of them active, in every fourth layer (NllbMoeForConditionalGeneration)."""
    sides = []
    for role, step in (("encoder", c.encoder_sparse_period), ("decoder", c.decoder_sparse_period)):
        depth, hidden = side_field(c, role, "layers"), side_field(c, role, "ffn_dim")
        router = Router(width=c.hidden_size, experts=c.num_experts, bias=c.router_bias)
        bank = Moe(width=c.hidden_size, expert=mlp(c, hidden), experts=c.num_experts, top_k=2, router=router)
        kinds = {
            False: bart_layer(c, role, M2M_LAYOUT),
            True: bart_layer(c, role, M2M_LAYOUT, ffn=bank).replace(inexact=MASKED_EXPERTS),
        }
        sparse = (step > 0 and (i + 1) % step == 0 for i in range(depth))
        sides.append(bart_stack(c, role, M2M_LAYOUT, layers=[kinds[has] for has in sparse]))
    return encoder_decoder(c, M2M_LAYOUT, *sides)


@family("prophetnet")
def prophetnet(c: Config) -> Block:
    """Post-norm decoder that predicts n tokens at once, positions from the hidden state (ProphetNet, 2001.04063)."""
    form, d = BartLayout(spare_rows=0, cross=c.add_cross_attention, logits_bias=False), c.hidden_size
    buckets = Linear(d_in=d, d_out=c.num_buckets * c.decoder_attention_heads, bias=True)
    one = bart_layer(c, "decoder", form, attn=bart_attention(c, "decoder", form, inner=block(position_buckets=buckets)))
    one = one.replace(inexact="the streams that predict further tokens are left out")
    tokens = {"ngram_tokens": Embedding(rows=c.ngram, width=d)}
    if c.head in ("encoder", "decoder"):  # one side alone, with its own token table
        return bart_stack(
            c,
            c.head,
            form,
            owner=None,
            layers=one if c.head == "decoder" else None,
            before=tokens if c.head == "decoder" else None,
        )
    tied = "shared" if c.tie_word_embeddings else None
    decoder = bart_stack(c, "decoder", form, layers=one, before=tokens)
    if c.head == "lm":  # which keeps the shared table, unlike its relatives
        table = Embedding(rows=c.vocab_size, width=d)
        own = decoder.items | {"embed_tokens": table.replace(tied_to=tied)}
        return block(shared=table, decoder=block(**own), lm_head=lm_head(c, d, owner="shared"))
    return encoder_decoder(c, form, bart_stack(c, "encoder", form), decoder)


# -- translation models with two vocabularies ------------------------------------------------------------------------


@family("marian")
def marian(c: Config) -> Block:
    """BART without norms on the embedding; source and target may have separate vocabularies (MarianMTModel)."""
    form, rows = BartLayout(spare_rows=0, embed_norm=False), c.decoder_vocab_size or c.vocab_size
    if c.share_encoder_decoder_embeddings and c.head != "lm":
        return encoder_decoder(c, form, bart_stack(c, "encoder", form), bart_stack(c, "decoder", form, rows=rows))
    decoder = bart_stack(c, "decoder", form, rows=rows, owner=None)
    if c.head == "lm":
        made = rows if c.tie_word_embeddings else c.vocab_size
        return block(decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner="decoder.embed_tokens", rows=made))
    encoder = bart_stack(c, "encoder", form, owner=None)
    return block(encoder=encoder, decoder=decoder, **bart_head(c, form, owner="decoder.embed_tokens", rows=rows))


@family("fsmt")
def fsmt(c: Config) -> Block:
    """Post-norm translation model with two vocabularies; positions start after padding (FSMTForConditionalGeneration).

    There is no model without a head: the decoder holds the output matrix.
    """
    form, owner = BartLayout(spare_rows=c.pad_token_id + 1, embed_norm=False), "decoder.embed_tokens"
    if c.head not in ("seq2seq_lm", "none"):
        raise unknown_head(c)
    encoder = bart_stack(c, "encoder", form, rows=c.src_vocab_size, owner=owner)
    decoder = bart_stack(c, "decoder", form, owner=None)
    return block(encoder=encoder, decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner=owner))


# -- a decoder alone -------------------------------------------------------------------------------------------------


@family("trocr")
def trocr(c: Config) -> Block:
    """BART's decoder over the features of an image encoder, whose width may differ (TrOCRForCausalLM)."""
    if c.head != "lm":
        raise unknown_head(c)
    form = BartLayout(spare_rows=2 if c.use_learned_position_embeddings else None, embed_norm=c.layernorm_embedding)
    one = bart_layer(c, "decoder", form, kv_width=c.cross_attention_hidden_size)
    decoder = bart_stack(c, "decoder", form, layers=one)
    return block(decoder=decoder, lm_head=lm_head(c, c.hidden_size, owner="decoder.embed_tokens"))


@family("pix2struct_text_model")
def pix2struct_text(c: Config) -> Block:
    """T5's decoder with equal heads and always a head of its own (Pix2StructTextModel)."""
    if c.head not in ("lm", "seq2seq_lm"):
        raise unknown_head(c)
    first, rest = t5_layer(c, "decoder", buckets=t5_buckets(c)), t5_layer(c, "decoder")
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=c.hidden_size),
        layers=first_and_rest(first, rest, c.num_hidden_layers, "decoder"),
        norm=rms(c),
        lm_head=lm_head(c, c.hidden_size, owner="embed_tokens"),
    )


# -- T5 with experts -------------------------------------------------------------------------------------------------


@family("switch_transformers", unstated_depth=12, can_untie=True)
def switch_transformers(c: Config) -> Block:
    """T5 with experts, one of them active, in every n-th layer (SwitchTransformersForConditionalGeneration)."""

    def stack_of(role: str, depth: int) -> Stack:
        plain = Mlp(width=c.hidden_size, hidden=c.d_ff, gated=False)
        router = Router(width=c.hidden_size, experts=c.num_experts, bias=c.router_bias)
        bank = Moe(width=c.hidden_size, expert=plain, experts=c.num_experts, top_k=1, router=router)
        ffns = [bank if has else plain for has in switch_sparse_layers(c, role, depth)]
        return stack(
            role, [t5_layer(c, role, buckets=0 if i else t5_buckets(c), ffn=ffn) for i, ffn in enumerate(ffns)]
        )

    return t5_model(c, stack_of)


def switch_sparse_layers(c: Config, role: str, depth: int) -> list[bool]:
    """The layers with experts: the second of each n for a step of n, regardless of num_sparse_encoder_layers.

    The step is derived from the numbers of layers if the file omits it.
    """
    number, step = c.num_sparse_encoder_layers, c.encoder_sparse_period
    if role == "decoder":
        number, step = c.num_sparse_decoder_layers, c.decoder_sparse_period
    if step is None:
        step = depth // number if number > 0 else depth
    return [step == 1 or (step > 0 and i % step == 1) for i in range(depth)]


# -- any encoder with any decoder ------------------------------------------------------------------------------------


@family("encoder-decoder")
def composed_encoder_decoder(c: Config) -> Block:
    """Any encoder and any decoder, with cross attention and a projection if widths differ (EncoderDecoder)."""
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


# -- Whisper ---------------------------------------------------------------------------------------------------------


@family("whisper")
def whisper(c: Config) -> Block:
    """Pre-norm encoder over a spectrogram, decoder over text; keys have no bias (WhisperForConditionalGeneration)."""
    if c.head == "audio_classification":
        return block(encoder=spectrogram_encoder(c, WHISPER_LAYOUT), **audio_classifier(c))
    if c.head not in ("seq2seq_lm", "lm", "none"):
        raise unknown_head(c)
    return block(
        encoder=None if c.head == "lm" else spectrogram_encoder(c, WHISPER_LAYOUT),
        decoder=bart_stack(
            c, "decoder", WHISPER_LAYOUT, layers=whisper_decoder_layer(c), owner=None, positions=c.max_target_positions
        ),
        lm_head=None if c.head == "none" else lm_head(c, c.hidden_size, owner="decoder.embed_tokens"),
    )


def whisper_decoder_layer(c: Config) -> Block:
    """A decoder layer that attends to a fixed number of frames: audio is cut or padded to 30 seconds."""
    one = bart_layer(c, "decoder", WHISPER_LAYOUT)
    return block(
        **{**one.items, "cross_attn": with_options(one.items["cross_attn"], source_tokens=c.max_source_positions)}
    )


def audio_classifier(c: Config) -> dict[str, Component]:
    """A narrow classifier over the encoder, optionally over a weighted sum of all its layers."""
    narrow = c.classifier_proj_size
    weights = {"layer_weights": Param(shape=(c.encoder_layers + 1,), category="head")}
    return (weights if c.use_weighted_layer_sum else {}) | {
        "projector": Linear(d_in=c.hidden_size, d_out=narrow, bias=True, category="head"),
        "classifier": Linear(d_in=narrow, d_out=num_labels(c), bias=True, category="head"),
    }
