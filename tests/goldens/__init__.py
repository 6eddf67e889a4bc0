"""Numbers that paramcalc is compared with, and the scripts that make them without it."""
