"""Weights that transformers' quantisers convert."""
