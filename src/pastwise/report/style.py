"""The style of all figures: colours and axes.

The colours are those of Okabe and Ito, which every eye can tell apart. A method has one colour in
all figures, which the registry of methods holds. What methods are compared with is grey.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pastwise import methods
from pastwise.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_WIDTH = 3.5
"""Width of a column of text, in inches."""

OPTIMUM_COLOUR = "#404040"
"""Of the references the optimum is the darkest grey; the others are registered methods."""

SAME_AS = {"random": "Rand", "logged": "clone"}
"""Names under which an evaluation has two of the methods."""

OTHER_COLOUR = "#CC79A7"
"""For a name that is not registered, such as an extra rule of an evaluation."""

NEW_RULE_COLOUR = "#0072B2"
"""For the rule that a figure is about."""


def is_reference(name: str) -> bool:
    """Whether a name stands for something that methods are compared with."""
    if name == "optimum":
        return True
    entry = methods.entries().get(SAME_AS.get(name, name))
    return entry is not None and entry.is_reference


def colour_of(name: str) -> str:
    """Colour of a method, of a variant of one such as ``FPD_learn (sparse)``, or of a reference."""
    if name == "optimum":
        return OPTIMUM_COLOUR
    method = re.split(r"[ ,]", name)[0]
    entry = methods.entries().get(SAME_AS.get(method, method))
    return OTHER_COLOUR if entry is None else entry.colour


def require_matplotlib() -> None:
    """Refuse to go on without matplotlib, before any work is done."""
    if find_spec("matplotlib") is None:
        raise MissingDependencyError("Figures need matplotlib; run: pip install matplotlib")


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of a size in inches, with its axes row by row."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=300, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    all_axes = list(grid.ravel())
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(which="both", labelsize=7)
        axes.xaxis.label.set_size(8)
        axes.yaxis.label.set_size(8)
        axes.set_axisbelow(True)
        axes.grid(axis="y", color="0.92", linewidth=0.6)
    return figure, all_axes
