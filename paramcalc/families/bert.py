"""BERT and its kin: post-norm encoders with learned positions, and the heads their classes put on top."""

from __future__ import annotations

from paramcalc.config import Config
from paramcalc.families.heads import encoder_heads
from paramcalc.families.registry import family
from paramcalc.families.skeletons import layer_norm, mha, mlp
from paramcalc.spec import Block, Component, Embedding, Linear, Norm, Run, block, stack

BERT = dict(
    vocab_size=30522,
    hidden_size=768,
    intermediate_size=3072,
    num_hidden_layers=12,
    num_attention_heads=12,
    max_position_embeddings=512,
    type_vocab_size=2,
    is_decoder=False,
    add_cross_attention=False,
    tie_word_embeddings=True,
)


def embeddings(c: Config, width: int, *, types: bool = True) -> dict[str, Component]:
    """Token, position and segment tables of one width, summed and normalised."""
    tables: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=width),
        "positions": Embedding(rows=c.max_position_embeddings, width=width),
    }
    if types:
        tables["token_types"] = Embedding(rows=c.type_vocab_size, width=width)
    return tables | {"embed_norm": Norm(width=width, bias=True)}


def post_norm_layer(c: Config, hidden: int) -> Block:
    """Attention, norm, FFN, norm (Vaswani et al. 2017); cross attention with its norm where a decoder asks for it."""
    cross: dict[str, Component] = {}
    if c.add_cross_attention:
        c.require(c.is_decoder, "add_cross_attention needs is_decoder", "set is_decoder to true")
        cross = {"cross_attn": mha(c, source="cross"), "cross_norm": layer_norm(c)}
    return block(attn=mha(c), attn_norm=layer_norm(c), **cross, ffn=mlp(c, hidden), ffn_norm=layer_norm(c))


@family("bert", "BertForMaskedLM", defaults=BERT)
def bert(c: Config) -> Block:
    """Post-norm encoder: learned positions and segments, pooler or MLM head by class (BertForMaskedLM)."""
    return block(
        **embeddings(c, c.hidden_size),
        layers=stack("encoder", Run(c.num_hidden_layers, post_norm_layer(c, c.intermediate_size))),
        **encoder_heads(c, c.hidden_size),
    )


@family("roberta", "RobertaForMaskedLM", defaults=BERT | dict(vocab_size=50265))
def roberta(c: Config) -> Block:
    """BERT whose classifiers replace the pooler by a dense layer of their own (RobertaForMaskedLM)."""
    heads = encoder_heads(c, c.hidden_size)
    if c.head == "sequence_classification":
        heads = {"transform": heads["pooler"], "classifier": heads["classifier"]}
    return block(
        **embeddings(c, c.hidden_size),
        layers=stack("encoder", Run(c.num_hidden_layers, post_norm_layer(c, c.intermediate_size))),
        **heads,
    )


@family(
    "distilbert",
    "DistilBertForMaskedLM",
    names=dict(
        hidden_size="dim",
        num_attention_heads="n_heads",
        num_hidden_layers="n_layers",
    ),
    defaults=BERT | dict(num_hidden_layers=6, hidden_dim=3072),
    fixed=dict(add_cross_attention=False),
    unused=["sinusoidal_pos_embds"],
)
def distilbert(c: Config) -> Block:
    """BERT without segments and pooler (DistilBertForMaskedLM)."""
    heads = encoder_heads(c, c.hidden_size, spare_bias=False)
    if c.head == "none":
        heads = {}
    return block(
        **embeddings(c, c.hidden_size, types=False),
        layers=stack("encoder", Run(c.num_hidden_layers, post_norm_layer(c, c.hidden_dim))),
        **heads,
    )


@family(
    "albert",
    "AlbertForMaskedLM",
    defaults=BERT
    | dict(
        vocab_size=30000,
        embedding_size=128,
        hidden_size=4096,
        intermediate_size=16384,
        num_attention_heads=64,
        num_hidden_groups=1,
        inner_group_num=1,
    ),
    fixed=dict(add_cross_attention=False),
)
def albert(c: Config) -> Block:
    """BERT with narrow embeddings and a few layers that are passed through again and again (AlbertForMaskedLM)."""
    groups, depth = c.num_hidden_groups, c.num_hidden_layers
    layer = post_norm_layer(c, c.intermediate_size)
    inner = c.inner_group_num
    group = layer if inner == 1 else block(**{f"layer_{i}": layer for i in range(inner)})
    runs = [Run(1, group, passes=passes) for passes in group_passes(depth, groups)]
    return block(
        **embeddings(c, c.embedding_size),
        embed_proj=Linear(d_in=c.embedding_size, d_out=c.hidden_size, bias=True, category="embedding"),
        layers=stack("encoder", runs),
        **encoder_heads(c, c.embedding_size),
    )


def group_passes(depth: int, groups: int) -> list[int]:
    """How many of the `depth` steps use each group: step i uses group floor(i / (depth / groups))."""
    steps = [i * groups // depth for i in range(depth)]
    return [steps.count(group) for group in range(groups)]
