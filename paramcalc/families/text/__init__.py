"""Decoder-only language models, by lineage; also those that exist only inside a multimodal model."""
