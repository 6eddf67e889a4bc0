"""The bottom layer: errors, units, dtypes, symbolic integers, immutable values. Imports no other package."""
