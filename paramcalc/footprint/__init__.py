"""Memory of a model in bytes: weights, KV cache, recurrent state and activations, in total and for each device."""
