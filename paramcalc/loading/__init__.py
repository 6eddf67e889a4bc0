"""From a Document to a Model."""
