"""Storage formats of weights as data."""
