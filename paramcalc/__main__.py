"""`python -m paramcalc`."""

from paramcalc.cli import run

run()
