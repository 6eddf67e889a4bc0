"""Storage of tensors: dtypes, quantisation formats and methods, GGUF."""
