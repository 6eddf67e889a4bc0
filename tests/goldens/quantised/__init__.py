"""Files that quantisation tools write."""
