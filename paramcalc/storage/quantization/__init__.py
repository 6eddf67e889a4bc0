"""Quantised checkpoints: the storage format of each tensor."""
