"""Which tensor of a quantised checkpoint is stored in which format."""
