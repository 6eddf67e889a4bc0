"""Quantisation formats as data."""
