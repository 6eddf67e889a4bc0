"""XLM and FlauBERT."""

from __future__ import annotations

from paramcalc.config.view import Config
from paramcalc.families.builders.decoder import layer_norm, learned_positions, post_norm_layer
from paramcalc.families.builders.heads import xl_head
from paramcalc.families.registry import family
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Embedding


@family("xlm", "flaubert")
def xlm(c: Config) -> Block:
    """Post-norm encoder with learned positions, and an embedding for each language (XLMWithLMHeadModel)."""
    c.require(c.is_encoder, "is_encoder must be true", "the reference class cannot be a decoder")
    c.require(not c.asm, "asm (an adaptive softmax) is not counted", "set asm to false")
    d, languages = c.hidden_size, c.n_langs
    return block(
        embed_tokens=Embedding(rows=c.vocab_size, width=d),
        positions=learned_positions(c),
        languages=Embedding(rows=languages, width=d) if languages > 1 and c.use_lang_emb else None,
        embed_norm=layer_norm(c),
        layers=stack("encoder", Run(c.num_hidden_layers, post_norm_layer(c, None))),
        **xl_head(c, logits=False),
    )
