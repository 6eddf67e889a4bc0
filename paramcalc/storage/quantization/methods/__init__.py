"""One reader for each `quant_method`: from a quantization_config to a scheme."""
