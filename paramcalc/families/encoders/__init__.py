"""Encoders of text, by lineage."""
