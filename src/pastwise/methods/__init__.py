"""Decision makers, one file each. `base` has their contract, `registry` finds them by name."""

from importlib import import_module
from pkgutil import iter_modules

from pastwise.methods.base import LiveRows, Method, Plan, StoredRows
from pastwise.methods.registry import DEFAULT, colour, create, entries, names, register

# `names` lists methods in the order in which these imports register them, references last.
# isort: off
from pastwise.methods.tl import TL
from pastwise.methods.tl_explore import TLExplore
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.fpd import FPD
from pastwise.methods.foresight import TLForesight
from pastwise.methods.baselines import Clone, Rand, Scripted
# isort: on

__all__ = [
    "DEFAULT",
    "FPD",
    "TL",
    "Clone",
    "FPDLearn",
    "LiveRows",
    "Method",
    "Plan",
    "Rand",
    "Scripted",
    "StoredRows",
    "TLExplore",
    "TLForesight",
    "colour",
    "create",
    "entries",
    "names",
    "register",
]

# A new file in this folder registers its method by being imported.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
