"""Turn raw fields into a checked view: schemas, aliases, class defaults, overrides, unread keys."""
