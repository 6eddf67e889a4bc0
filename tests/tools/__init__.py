"""Programs for whoever works on paramcalc: generated files, pages and timings."""
