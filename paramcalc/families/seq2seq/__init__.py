"""Encoder-decoders over text or speech, by lineage."""
