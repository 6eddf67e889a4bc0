"""Read a path, preset name, mapping or standard input into a Document: raw fields with their origin."""
