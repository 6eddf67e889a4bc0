"""What everything may use: errors, units, dtypes, symbolic integers, immutable values."""
