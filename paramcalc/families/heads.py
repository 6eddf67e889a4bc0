"""What a class puts on top of its last layer. The ending of the class named in `architectures` picks one.

A head takes the width of the last hidden state; each returns named parts, to be added to the end of a model's block.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.config import Config
from paramcalc.dims import named
from paramcalc.spec import Block, Component, Linear, Norm, Param, block

# -- decoders ----------------------------------------------------------------------------------------------------


def decoder_head(c: Config, width: int, *, bias: bool = False) -> dict[str, Component]:
    """What the class named in `architectures` puts on top of a decoder's last hidden state."""
    match c.head:
        case "lm" | "seq2seq_lm":
            return {"lm_head": lm_head(c, width, owner="embed_tokens", bias=bias)}
        case "sequence_classification":
            return {"score": Linear(d_in=width, d_out=labels(c), category="head")}
        case "token_classification":
            return {"score": Linear(d_in=width, d_out=labels(c), bias=True, category="head")}
        case "question_answering":
            return {"qa_outputs": Linear(d_in=width, d_out=2, bias=True, category="head")}
        case "none":
            return {}
    raise unknown_head(c)


def lm_head(c: Config, width: int, *, owner: str, bias: bool = False) -> Linear:
    """The output matrix over the vocabulary, the embedding's own where tie_word_embeddings says so."""
    return Linear(
        d_in=width,
        d_out=c.vocab_size,
        bias=bias,
        category="head",
        tied_to=owner if c.tie_word_embeddings else None,
    )


def labels(c: Config) -> int:
    """Classes of a classifier: the length of id2label, or num_labels; 2 where neither is there."""
    names, number = c.root.raw("id2label"), c.root.raw("num_labels")
    count = len(names) if isinstance(names, Mapping) else c.root.whole("num_labels", 2 if number is None else number)
    return named("num_labels", count, origin="id2label" if names else "num_labels")


def unknown_head(c: Config) -> Exception:
    """The error for a class whose head is not known for this family."""
    return c.error(
        "architectures", f"names {c.architecture}, whose head is not known", "the base model is counted as ...Model"
    )


# -- encoders ----------------------------------------------------------------------------------------------------


def dense(c: Config, d_out: int) -> Linear:
    """A projection from the width, with a bias, that belongs to a head."""
    return Linear(d_in=c.hidden_size, d_out=d_out, bias=True, category="head")


def masked_lm_head(c: Config, width: int, *, spare_bias: bool) -> Block:
    """Transform, norm, and the output matrix, tied but for its bias.

    `spare_bias`: the class holds the bias twice, and only tying makes the two one.
    """
    tied = c.tie_word_embeddings
    decoder = Linear(
        d_in=width, d_out=c.vocab_size, bias=True, category="head", tied_to="embed_tokens" if tied else None
    )
    spare = Param(shape=(c.vocab_size,), category="head") if spare_bias and not tied else None
    return block(transform=dense(c, width), norm=Norm(width=width, bias=True), decoder=decoder, spare_bias=spare)


def encoder_heads(c: Config, width: int, *, spare_bias: bool = True) -> dict[str, Component]:
    """What BertFor... and its kin add after the encoder: a pooler, an MLM head, a classifier."""
    pooler, lm_head = dense(c, c.hidden_size), masked_lm_head(c, width, spare_bias=spare_bias)
    match c.head:
        case "masked_lm" | "lm":
            return {"lm_head": lm_head}
        case "pretraining":
            return {"pooler": pooler, "lm_head": lm_head, "next_sentence": dense(c, 2)}
        case "next_sentence":
            return {"pooler": pooler, "next_sentence": dense(c, 2)}
        case "sequence_classification":
            return {"pooler": pooler, "classifier": dense(c, labels(c))}
        case "multiple_choice":
            return {"pooler": pooler, "classifier": dense(c, 1)}
        case "token_classification" | "question_answering":
            return {"classifier": dense(c, labels(c))}
        case "none":
            return {"pooler": pooler}
    raise unknown_head(c)


# -- encoder-decoders --------------------------------------------------------------------------------------------


def classifier(c: Config, *, transform: bool) -> dict[str, Component]:
    """A classifier over the last hidden state, after a dense layer of the width where the class has one."""
    d = c.hidden_size
    dense: dict[str, Component] = (
        {"transform": Linear(d_in=d, d_out=d, bias=True, category="head")} if transform else {}
    )
    return dense | {"classifier": Linear(d_in=d, d_out=labels(c), bias=True, category="head")}
