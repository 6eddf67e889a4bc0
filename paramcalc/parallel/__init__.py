"""Tensor, expert and pipeline parallelism: the part of a model on each device."""
