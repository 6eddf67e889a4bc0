"""Heads: the parts on top of the last layer. The ending of the class named in `architectures` selects one.

A head takes the width of the last hidden state; each returns named parts for the end of a model's block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paramcalc.base.symbolic import symbolic
from paramcalc.config.view import Config
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Linear, Norm, Param
from paramcalc.tree.ops import PerWord
from paramcalc.tree.weights import by_vocabulary

# -- decoders ----------------------------------------------------------------------------------------------------


def decoder_head(c: Config, width: int, *, bias: bool = False, rows: int | None = None) -> dict[str, Component]:
    """The head of a decoder for the class named in `architectures`."""
    match c.head:
        case "lm" | "seq2seq_lm":
            return {"lm_head": lm_head(c, width, owner="embed_tokens", bias=bias, rows=rows)}
        case "sequence_classification":
            return {"score": Linear(d_in=width, d_out=num_labels(c), category="head")}
        case "token_classification":
            bias = getattr(c.root, "token_classification_bias", c.root.raw("token_classification_bias") is not False)
            return {"score": Linear(d_in=width, d_out=num_labels(c), bias=bias, category="head")}
        case "question_answering":
            return {"qa_outputs": Linear(d_in=width, d_out=2, bias=True, category="head")}
        case "double_heads" if c.declares("summary_use_proj"):
            return {"lm_head": lm_head(c, width, owner="embed_tokens"), **choice(c)}
        case "none":
            return {}
    raise unknown_head(c)


def choice(c: Config) -> dict[str, Component]:
    """One score for each of several continuations, from its last token (GPT-1 and GPT-2)."""
    if not c.summary_use_proj:
        return {}
    return {"choice": dense_head(c, 1 if c.summary_proj_to_labels else c.hidden_size, per="sequence")}


def lm_head(c: Config, width: int, *, owner: str, bias: bool = False, rows: int | None = None) -> Linear:
    """The output matrix over the vocabulary (or `rows`), tied to the embedding if tie_word_embeddings is true."""
    rows = rows or c.vocab_size
    return Linear(
        d_in=width,
        d_out=rows,
        bias=bias,
        category="head",
        tied_to=owner if c.tie_word_embeddings else None,
        split=by_vocabulary(rows),
    )


def num_labels(c: Config, *, unstated: int = 2) -> int:
    """Classes of a classifier: num_labels, or the length of id2label; `unstated` if neither is present.

    If the two contradict each other transformers warns and takes num_labels (PreTrainedConfig.__init__). The text class
    of a multimodal model reads only the text_config of a file that has one (PreTrainedConfig.from_pretrained).
    """
    holder = c if "TextFor" in c.architecture and c.root.has("text_config") else c.root
    names, number, old = holder.raw("id2label"), holder.raw("num_labels"), holder.raw("_num_labels")
    known = len(names) if isinstance(names, Mapping) else None
    built = known if number is None else number
    if old is not None and old != (unstated if built is None else built):
        c.doubts.append(f"{c.family}: _num_labels is {old!r}, which transformers 2 and 3 wrote and newer ones ignore")
    if number is None:
        return symbolic(
            "num_labels", unstated if known is None else known, origin="num_labels" if known is None else "id2label"
        )
    count = holder.size("num_labels", number)
    if known is not None and known != count:
        c.doubts.append(f"{c.family}: id2label names {known} classes, num_labels says {count}; num_labels is taken")
    return symbolic("num_labels", count, origin="num_labels")


def unknown_head(c: Config) -> Exception:
    """The error for a class whose head is unknown for this family."""
    return c.error(
        "architectures", f"names {c.architecture}, whose head is not known", "the base model is counted as ...Model"
    )


# -- encoders ----------------------------------------------------------------------------------------------------


def dense_head(c: Config, d_out: int, *, per: PerWord = "token") -> Linear:
    """A projection from the width, with a bias, in the category head; per token, or per sequence for pooled heads."""
    return Linear(d_in=c.hidden_size, d_out=d_out, bias=True, category="head", per=per)


def masked_lm_head(c: Config, width: int, *, spare_bias: bool = True, tied: bool = True) -> Block:
    """Transform, norm, and the output matrix; its weight is tied if the class allows it and the file says so.

    `spare_bias`: the class holds the bias twice, and only tying merges the two.
    """
    shared = c.tie_word_embeddings
    decoder = Linear(
        d_in=width,
        d_out=c.vocab_size,
        bias=True,
        category="head",
        tied_to="embed_tokens" if tied and shared else None,
        split=by_vocabulary(c.vocab_size),
    )
    spare = Param(shape=(c.vocab_size,), category="head") if spare_bias and not shared else None
    return block(transform=dense_head(c, width), norm=Norm(width=width, bias=True), decoder=decoder, spare_bias=spare)


POOLED = ("none", "pretraining", "next_sentence", "sequence_classification", "multiple_choice")
ALL_HEADS = (*POOLED, "masked_lm", "lm", "token_classification", "question_answering")


def encoder_heads(
    c: Config,
    width: int,
    *,
    lm_head: Component | None = None,
    pooled: Collection[str] = POOLED,
    transformed: Collection[str] = (),
    pretraining: dict[str, Component] | None = None,
    answers: int | None = None,
) -> dict[str, Component]:
    """The heads of BERT's classes: a pooler, an MLM head, a classifier.

    `pooled`: the heads that use the pooler; `transformed`: those with a dense layer before the classifier; `answers`:
    outputs for question answering that do not depend on the labels.
    """
    head = masked_lm_head(c, width) if lm_head is None else lm_head
    parts: dict[str, Component] = {}
    if c.head in pooled:
        parts["pooler"] = dense_head(c, c.hidden_size, per="sequence")
    per: PerWord = "sequence" if c.head in POOLED else "token"
    if c.head in transformed:
        parts["transform"] = dense_head(c, c.hidden_size, per=per)
    match c.head:
        case "masked_lm" | "lm":
            return parts | {"lm_head": head}
        case "pretraining":
            return parts | (
                {"lm_head": head, "next_sentence": dense_head(c, 2, per="sequence")}
                if pretraining is None
                else pretraining
            )
        case "next_sentence":
            return parts | {"next_sentence": dense_head(c, 2, per="sequence")}
        case "sequence_classification" | "token_classification":
            return parts | {"classifier": dense_head(c, num_labels(c), per=per)}
        case "question_answering":
            return parts | {"classifier": dense_head(c, answers or num_labels(c))}
        case "multiple_choice":
            return parts | {"classifier": dense_head(c, 1, per="sequence")}
        case "none" | "base":
            return parts
    raise unknown_head(c)


def roberta_heads(c: Config) -> dict[str, Component]:
    """BERT's heads, but sequence classification has its own dense layer instead of the pooler."""
    pooled = ("none", "multiple_choice")
    return encoder_heads(c, c.hidden_size, pooled=pooled, transformed=("sequence_classification",))


def discriminator(c: Config) -> dict[str, Component]:
    """ELECTRA's pre-training head, which detects replaced tokens (2003.10555)."""
    return {"transform": dense_head(c, c.hidden_size), "discriminator": dense_head(c, 1)}


def electra_heads(c: Config) -> dict[str, Component]:
    """A generator's head, a discriminator, or a classifier with its own dense layer."""
    heads = encoder_heads(
        c,
        c.embedding_size,
        lm_head=electra_generator(c),
        pooled=(),
        transformed=("sequence_classification",),
        pretraining=discriminator(c),
    )
    return summary_projection(c) | heads


def electra_generator(c: Config) -> Block:
    """A dense layer to the width of the embeddings, a norm, and the tied output matrix with a bias."""
    width = c.embedding_size
    head = lm_head(c, width, owner="embed_tokens", bias=True)
    return block(transform=dense_head(c, width), norm=Norm(width=width, bias=True), decoder=head)


def summary_projection(c: Config) -> dict[str, Component]:
    """The projection of the sequence summary in multiple choice, if summary_use_proj is true."""
    if c.head != "multiple_choice" or not c.summary_use_proj:
        return {}
    return {"summary": dense_head(c, num_labels(c) if c.summary_proj_to_labels else c.hidden_size, per="sequence")}


# -- encoder-decoders --------------------------------------------------------------------------------------------


def classifier(c: Config, *, transform: bool, unstated_labels: int = 2) -> dict[str, Component]:
    """A classifier over the last hidden state, in some classes after a dense layer of the same width."""
    per: PerWord = "sequence" if transform else "token"  # a head with a transform uses the last token only
    first: dict[str, Component] = {"transform": dense_head(c, c.hidden_size, per=per)} if transform else {}
    return first | {"classifier": dense_head(c, num_labels(c, unstated=unstated_labels), per=per)}


# -- XLM and XLNet ---------------------------------------------------------------------------------------------------


def xl_summary(c: Config) -> dict[str, Component]:
    """A projection of one hidden state to the labels or to the width."""
    if not c.summary_use_proj:
        return {}
    width = num_labels(c) if c.summary_proj_to_labels else c.hidden_size
    return {"summary": Linear(d_in=c.hidden_size, d_out=width, bias=True, category="head")}


def xl_head(c: Config, *, logits: bool) -> dict[str, Component]:
    """The heads of XLM and XLNet. `logits`: a separate matrix after the summary."""
    d = c.hidden_size

    def dense(d_in: int, d_out: int, *, bias: bool = True) -> Linear:
        return Linear(d_in=d_in, d_out=d_out, bias=bias, category="head")

    match c.head:
        case "lm":
            return {"lm_head": lm_head(c, d, owner="embed_tokens", bias=True)}
        case "sequence_classification":
            return xl_summary(c) | ({"logits": dense(d, num_labels(c))} if logits else {})
        case "multiple_choice":
            return xl_summary(c) | {"logits": dense(d if logits else num_labels(c), 1)}
        case "token_classification" | "question_answering_simple":
            return {"classifier": dense(d, num_labels(c))}
        case "question_answering":
            end = block(dense=dense(2 * d, d), norm=Norm(width=d, bias=True), logits=dense(d, 1))
            answer = block(dense=dense(2 * d, d), logits=dense(d, 1, bias=False))
            return {"start": dense(d, 1), "end": end, "answer": answer}
        case "none":
            return {}
    raise unknown_head(c)
