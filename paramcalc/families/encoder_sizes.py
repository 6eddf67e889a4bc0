"""Defaults that encoders share."""

from __future__ import annotations

SIZES = dict(vocab_size=30522, hidden_size=768, intermediate_size=3072, num_hidden_layers=12) | dict(
    num_attention_heads=12, tie_word_embeddings=True
)
ENCODER = SIZES | dict(max_position_embeddings=512, type_vocab_size=2)
ONLY_ENCODER = dict(add_cross_attention=False)  # whose classes cannot be decoders
CLASSIFIED = ("sequence_classification", "multiple_choice")
