"""Figures, readable at the width of a column and by every eye (the palette of Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise.numerics import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "Rand": "#999999",
    "TL": "#0072B2",
    "TL_explore": "#56B4E9",
    "FPD_learn": "#E69F00",
    "FPD": "#D55E00",
    "clone": "#CC79A7",
    "optimum": "#009E73",
}
REFERENCES = ("clone", "optimum")
"""Methods that the paper does not have; they stand apart."""

PAST_NAMES = {"p3": r"$^I\tilde{p}_3$", "p12": r"$^I\tilde{p}_{1,2}$", "p1": r"$^I\tilde{p}_1$"}
COLUMN = 3.5
"""Width of a column, in inches."""


def _figure(width: float, height: float) -> Figure:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    return Figure(figsize=(width, height), dpi=300, layout="constrained")


def method_name(method: str) -> str:
    """A method's name with the paper's subscripts."""
    stem, _, rest = method.partition("_")
    return rf"{stem}$_{{\mathrm{{{rest}}}}}$" if rest else stem


def _boxes(axes: Axes, values: Sequence[IntArray], positions: Sequence[float], colours: Sequence[str]) -> None:
    """A box for each group of values [runs] with every run behind it."""
    jitter = np.random.default_rng(0)
    for group, position, colour in zip(values, positions, colours, strict=True):
        x = position + jitter.uniform(-0.3, 0.3, len(group))
        visible, size = float(np.clip(60 / len(group), 0.15, 0.5)), 3 if len(group) <= 300 else 1.5
        axes.plot(
            x, group, ".", color=colour, alpha=visible, markersize=size, markeredgewidth=0, zorder=1, rasterized=True
        )
    line: dict[str, Any] = {"linewidth": 0.9, "color": "black"}
    axes.boxplot(
        list(values),
        positions=list(positions),
        widths=0.62,
        showfliers=False,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops={"linewidth": 1.8, "color": "black"},
        zorder=2,
    )


def gain_boxplot(gains: Mapping[str, IntArray], past: str) -> Figure:
    """Gains of every method after one past: method -> [runs].

    Paper: the figures of gains [fig:103], [fig:112], [fig:101].
    """
    figure = _figure(COLUMN, 2.5)
    axes = figure.add_subplot()
    positions = [i + (0.3 if method in REFERENCES else 0.0) for i, method in enumerate(gains)]
    _boxes(axes, list(gains.values()), positions, [_colour(method) for method in gains])
    if any(method in REFERENCES for method in gains):
        border = next(p for p, method in zip(positions, gains, strict=True) if method in REFERENCES) - 0.65
        axes.axvline(border, color="0.7", linewidth=0.6, linestyle=":")
    axes.set_xticks(positions, [method_name(method) for method in gains], fontsize=6.5)
    axes.set_ylabel("gain (visits to $s^1$)")
    axes.set_title(f"past goal {PAST_NAMES[past]}", fontsize=8)
    axes.grid(axis="y", color="0.92", linewidth=0.6, zorder=0)
    return figure


def difference_boxplot(differences: Mapping[str, Mapping[str, IntArray]]) -> Figure:
    """Gains minus those of the random policy: past -> method -> [runs].

    Paper: the figure of differences [fig:dif].
    """
    figure = _figure(2 * COLUMN, 2.6)
    panels = figure.subplots(1, len(differences), sharey=True, squeeze=False)[0]
    for axes, (past, methods) in zip(panels, differences.items(), strict=True):
        _boxes(axes, list(methods.values()), range(len(methods)), [_colour(method) for method in methods])
        axes.axhline(0, color="0.5", linewidth=0.8)
        axes.set_xticks(range(len(methods)), [method_name(method) for method in methods])
        axes.set_title(f"past goal {PAST_NAMES[past]}", fontsize=8)
        axes.grid(axis="y", color="0.92", linewidth=0.6, zorder=0)
    panels[0].set_ylabel("gain minus gain of Rand")
    return figure


def _colour(method: str) -> str:
    return COLOURS.get(method, "#000000")


def timing_plot(sizes: Sequence[int], seconds: Mapping[str, FloatArray]) -> Figure:
    """Time to the first rule against the number of states: contender -> [sizes, repeats].

    Paper: the figure of time [fig:time_ns_first].
    """
    figure = _figure(COLUMN, 2.5)
    axes = figure.add_subplot()
    styles = {
        "TL_explore": ("#56B4E9", "o"),
        "FPD_learn (dense)": ("#E69F00", "s"),
        "FPD_learn (sparse)": ("#009E73", "^"),
    }
    for name, times in seconds.items():
        low, median, high = np.quantile(times, (0.25, 0.5, 0.75), axis=-1) * 1e3
        colour, marker = styles[name]
        stem, _, note = name.partition(" ")
        axes.fill_between(sizes, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(sizes, median, marker=marker, markersize=4, color=colour, label=f"{method_name(stem)} {note}")
    axes.set(xscale="log", yscale="log", xlabel="number of states", ylabel="time to the first rule (ms)")
    axes.legend(frameon=False, fontsize=7)
    axes.grid(color="0.92", linewidth=0.6)
    return figure
