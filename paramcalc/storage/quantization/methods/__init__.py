"""Readers of quantization_config: one for each `quant_method`, from the config to a scheme."""
