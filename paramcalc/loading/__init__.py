"""Build a Model from a Document."""
