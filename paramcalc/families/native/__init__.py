"""paramcalc's own `model_type: transformer`."""
