"""From raw fields to a checked view: schema, aliases, class defaults, overrides, unread keys."""
