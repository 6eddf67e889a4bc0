"""RoBERTa and the families that equal it."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.heads import roberta_heads
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block


@family("roberta", "camembert", "data2vec-text", "xlm-roberta")
def roberta(c: Config) -> Block:
    """BERT whose classifiers have a dense layer instead of the pooler (RobertaForMaskedLM)."""
    return encoder(c, embeddings(c, c.hidden_size), encoder_layer(c), roberta_heads(c))


@family("roberta-prelayernorm", embed_norm=True)
@family("xlm-roberta-xl", embed_norm=False)
def roberta_prelayernorm(c: Config) -> Block:
    """RoBERTa with the norms first, optionally also after the embeddings (RobertaPreLayerNormForMaskedLM)."""
    before = embeddings(c, c.hidden_size, norm=c.embed_norm)
    return encoder(c, before, encoder_layer(c, norm_first=True), roberta_heads(c), norm=layer_norm(c))
