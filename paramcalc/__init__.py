"""paramcalc: exact parameter counts of transformer and hybrid models, by arithmetic, from a config alone."""

from paramcalc.count import count
from paramcalc.errors import ParamcalcError
from paramcalc.loading import load
from paramcalc.model import Model
from paramcalc.report import CountReport
from paramcalc.version import __version__

__all__ = ["CountReport", "Model", "ParamcalcError", "__version__", "count", "load"]
