"""How tensor, expert and pipeline parallelism divide a model."""
