"""Decoder-only language models by lineage, including those that exist only inside a multimodal model."""
