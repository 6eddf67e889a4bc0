"""Encoders with rotary positions."""

from __future__ import annotations

from paramcalc.components import Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa
from paramcalc.families.builders.decoder import unpublished
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer, projected
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.heads import encoder_heads, lm_head, masked_lm_head, roberta_heads, unknown_head
from paramcalc.families.builders.layer_types import FULL, SLIDING, attention_types
from paramcalc.families.registry import family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, block
from paramcalc.tree.leaves import Embedding, Linear, Norm, Param


@family("gte")
def gte(c: Config) -> Block:
    """BERT with rotary positions and gated FFNs, whose down projection alone has a bias (GteForMaskedLM)."""
    head = masked_lm_head(c, c.hidden_size, spare_bias=False)
    heads = encoder_heads(c, c.hidden_size, lm_head=head, pooled=("sequence_classification",))
    ffn = Mlp(width=c.hidden_size, hidden=c.intermediate_size, gated=True, down_bias=True)
    layer = encoder_layer(c, attn=gqa(c, bias=True), ffn=ffn)
    return encoder(c, embeddings(c, c.hidden_size, rows=0), layer, heads)


@family("new")
def new(c: Config) -> Block:
    """GTE in the code of its publisher, with optional token types (NewForMaskedLM)."""
    unpublished(c)
    c.require(c.rope_positions == "rope", f"position_embedding_type is {c.rope_positions}", "only rope can be counted")
    c.require(
        c.layer_norm_type == "layer_norm", f"layer_norm_type is {c.layer_norm_type}", "only layer_norm is counted"
    )
    return gte(c)


@family("jina_embeddings_v3")
def jina_embeddings_v3(c: Config) -> Block:
    """RoBERTa with rotary positions (JinaEmbeddingsV3ForMaskedLM)."""
    heads = roberta_heads(c)
    layer = encoder_layer(c, attn=gqa(c, bias=True))
    return encoder(c, embeddings(c, c.hidden_size, rows=0), layer, heads)


# -- NeoMME ----------------------------------------------------------------------------------------------------------


@family("neomme")
def neomme(c: Config) -> Block:
    """Encoder of text and image patches: low-rank embeddings, gated attention, bare norms (NeoMMEForMaskedLM)."""
    d, rank, depth = c.hidden_size, c.embedding_rank, c.num_hidden_layers
    patch = 3 * c.patch_size * c.patch_size
    words = attention_types(c, [FULL if (i + 1) % 6 == 0 or i == depth - 1 else SLIDING for i in range(depth)])
    c.require(FULL in words, "layer_types has no full_attention")
    before: dict[str, Component] = {
        "embed_tokens": Embedding(rows=c.vocab_size, width=rank),
        **projected(c, rank, bias=False),
        "embed_patches": block(
            "vision",
            norm=Norm(width=patch, bias=True),
            up_proj=Linear(d_in=patch, d_out=2 * d),
            down_proj=Linear(d_in=2 * d, d_out=d, bias=True),
        ),
        "embed_values": Embedding(rows=c.vocab_size, width=c.num_key_value_heads * c.head_dim),
    }
    layers = [neomme_layer(c, window=c.sliding_window if word == SLIDING else None) for word in words]
    return encoder(c, before, layers, neomme_heads(c), norm=Norm(width=d, scale=False))


def neomme_layer(c: Config, *, window: int | None) -> Block:
    """A layer with a learned mixture of its input and the embedding, and a sigmoid gate on attention's output."""
    d, h, d_h, bias = c.hidden_size, c.num_attention_heads, c.head_dim, c.attention_bias
    qk_norm, norm = Norm(width=d_h, scale=False), Norm(width=d, scale=False)
    inner, gate = block(own_value=Param(shape=(h,))), Linear(d_in=d, d_out=h * d_h)
    attn = gqa(c, bias=bias, qk_norm=qk_norm, window=window, gate=gate, inner=inner)
    return block(
        lambdas=Param(shape=(2,)),
        input_norm=norm,
        attn=attn,
        post_norm=norm,
        ffn=mlp(c, c.intermediate_size, bias=c.mlp_bias),
    )


def neomme_heads(c: Config) -> dict[str, Component]:
    """The two steps of the embedding in reverse, or vectors for retrieval."""
    d, rank, tied = c.hidden_size, c.embedding_rank, c.tie_word_embeddings
    match c.head:
        case "masked_lm":
            back = Linear(d_in=rank, d_out=d, category="head", tied_to="embed_proj" if tied else None)
            return {"unembed_proj": back, "lm_head": lm_head(c, rank, owner="embed_tokens")}
        case "retrieval":
            return {"vectors": Linear(d_in=d, d_out=c.embedding_dim, category="head")}
        case "none":
            return {}
    raise unknown_head(c)
