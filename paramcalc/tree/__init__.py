"""The component tree and its vocabulary: weights, ties, state, operations, steps. No family names, no config keys."""
