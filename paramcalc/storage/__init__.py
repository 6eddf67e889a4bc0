"""How tensors are stored: dtypes, quantisation formats and methods, GGUF."""
