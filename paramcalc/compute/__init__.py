"""What a model computes: its matrix terms, folded over the tree for so many tokens, and a layer step by step."""
