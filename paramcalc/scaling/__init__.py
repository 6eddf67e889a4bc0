"""Depth against width: one model among others, before any of them exists."""
