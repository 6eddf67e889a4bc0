"""The first ERNIE encoders."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.encoder import embeddings, encoder, encoder_layer
from paramcalc.families.builders.heads import encoder_heads
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block
from paramcalc.tree.leaves import Embedding


@family("ernie")
def ernie(c: Config) -> Block:
    """BERT with an optional table of tasks (ErnieForMaskedLM)."""
    tasks = {"tasks": Embedding(rows=c.task_type_vocab_size, width=c.hidden_size)} if c.use_task_id else {}
    return encoder(c, embeddings(c, c.hidden_size) | tasks, encoder_layer(c), encoder_heads(c, c.hidden_size))
