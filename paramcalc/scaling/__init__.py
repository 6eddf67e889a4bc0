"""Depth against width: comparison of models before any of them exists."""
