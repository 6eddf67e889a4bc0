"""From a path, a preset name, a mapping or standard input to a Document: raw fields and where they came from."""
