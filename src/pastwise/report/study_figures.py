"""Figures of the studies, readable at the width of a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise._numerics.arrays import IntArray
from pastwise._numerics.interval import Interval
from pastwise.report.style import (
    COLUMN_WIDTH,
    NEW_RULE_COLOUR,
    colour_of,
    is_reference,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_STYLES = ("-", "--", ":", "-.")
MARKERS = "os^vD"


@dataclass(frozen=True)
class Curve:
    """A curve, with a band around it where ``low`` and ``high`` are given.

    Attributes
    ----------
    name : str
        A method, a variant of one, or anything else: the label in the legend.
    x, y : [points]
    low, high : [points], optional
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves in one pair of axes, and levels to compare them with, by name."""

    title: str
    curves: Sequence[Curve]
    levels: Mapping[str, float]


def method_name(method: str) -> str:
    """A method's name with the paper's subscripts."""
    stem, subscript, variant = re.findall(r"^([^_]*)_?([^ ,]*)(.*)$", method)[0]
    if subscript:
        subscript = rf"$_{{\mathrm{{{subscript}}}}}$"
    return f"{stem}{subscript}{variant}"


# Gains.


def gain_boxplot(
    gains: Mapping[str, IntArray],
    title: str,
    references: Sequence[str] = (),
    maximum: int = 100,
) -> Figure:
    """Gains of every method after one past.

    Parameters
    ----------
    gains : method -> [runs]
    title : str
    references : names of methods
        Those that stand apart, behind a dotted line.
    maximum : int
        Largest gain on the axis.
    """
    figure, (axes,) = new_figure(COLUMN_WIDTH, 2.6)

    # A gap and a line before the references.
    positions = []
    for index, method in enumerate(gains):
        gap = 0.3 if method in references else 0.0
        positions.append(index + gap)
    num_apart = sum(method in references for method in gains)
    if 0 < num_apart < len(gains):
        axes.axvline(positions[-num_apart] - 0.65, color="0.7", linewidth=0.6, linestyle=":")

    _draw_boxes(axes, gains, positions)
    fontsize = 6.5 if len(gains) < 8 else 5.5
    axes.set_xticks(positions, [method_name(method) for method in gains], fontsize=fontsize)
    axes.set_ylabel("gain (visits to $s^1$)")
    axes.set(ylim=(0, maximum + 3), xlim=(-0.6, positions[-1] + 0.7))
    axes.set_title(title, fontsize=8)
    return figure


def difference_boxplot(panels: Mapping[str, Mapping[str, IntArray]]) -> Figure:
    """Gains minus those of the random policy: title -> method -> [runs]."""
    figure, all_axes = new_figure(COLUMN_WIDTH, 5.4, rows=len(panels), sharex=True, sharey=True)
    for axes, (title, differences) in zip(all_axes, panels.items(), strict=True):
        positions = list(range(len(differences)))
        axes.axhline(0, color="0.5", linewidth=0.8, zorder=0.5)
        _draw_boxes(axes, differences, positions)
        axes.set_xticks(positions, [method_name(method) for method in differences])
        axes.set_title(title, fontsize=8)
    figure.supylabel("gain minus gain of Rand", fontsize=8)
    return figure


def _draw_boxes(axes: Axes, groups: Mapping[str, IntArray], positions: Sequence[float]) -> None:
    """A box for each group of values [runs], with every run behind it."""
    # Runs, spread sideways; the more of them, the fainter and smaller.
    rng = np.random.default_rng(0)
    for (name, values), position in zip(groups.items(), positions, strict=True):
        axes.plot(
            position + rng.uniform(-0.3, 0.3, len(values)),
            values,
            ".",
            color=colour_of(name),
            alpha=float(np.clip(60 / len(values), 0.15, 0.5)),
            markersize=3 if len(values) <= 300 else 1.5,
            markeredgewidth=0,
            zorder=1,
            rasterized=True,
        )

    line: dict[str, Any] = {"linewidth": 0.9, "color": "black"}
    axes.boxplot(
        list(groups.values()),
        positions=list(positions),
        widths=0.62,
        showfliers=False,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops={"linewidth": 1.8, "color": "black"},
        zorder=2,
    )


# Curves.


def timing_plot(curves: Sequence[Curve]) -> Figure:
    """Time to the first rule, in milliseconds, against the number of states."""
    figure, (axes,) = new_figure(COLUMN_WIDTH, 2.6)
    _draw_curves(axes, curves)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="number of states", ylabel="time to the first rule (ms)")
    axes.legend(frameon=False, fontsize=7)
    return figure


def coverage_plot(panels: Mapping[str, Mapping[str, Interval]], level: float) -> Figure:
    """Coverage of stated intervals, a panel for each quantity and a line for each family.

    Parameters
    ----------
    panels : quantity -> family -> Interval
        Share of the intervals that contain the truth, with its own interval.
    level : float
        The share that was stated.
    """
    families = list(next(iter(panels.values())))
    height = 0.8 + 0.2 * len(families)
    figure, all_axes = new_figure(
        2 * COLUMN_WIDTH, height, columns=len(panels), sharex=True, sharey=True
    )
    for axes, (quantity, shares) in zip(all_axes, panels.items(), strict=True):
        axes.axvline(level, color="0.5", linewidth=0.8, linestyle="--")
        for line, share in enumerate(shares.values()):
            axes.hlines(line, share.low, share.high, color=NEW_RULE_COLOUR, linewidth=1.2)
            axes.plot(share.mean, line, "o", color=NEW_RULE_COLOUR, markersize=3.5)
        axes.set_title(quantity, fontsize=7)
        axes.set(xlim=(0.0, 1.03), xticks=[0.0, 0.5, 1.0])

    # The first family on top.
    all_axes[0].set_yticks(range(len(families)), families)
    all_axes[0].set_ylim(len(families) - 0.5, -0.5)
    figure.supxlabel("coverage", fontsize=8)
    return figure


def transfer_plot(panels: Sequence[Panel]) -> Figure:
    """Success against the size of the log, a panel for each setting."""
    figure, all_axes = new_figure(COLUMN_WIDTH, 2.1 * len(panels), rows=len(panels))
    for axes, panel in zip(all_axes, panels, strict=True):
        for (name, level), style in zip(panel.levels.items(), (":", "--", "-"), strict=True):
            axes.axhline(level, color="0.55", linewidth=0.8, linestyle=style, label=name)
        _draw_curves(axes, panel.curves)
        axes.set(xscale="log", ylabel="success")
        axes.set_title(panel.title, fontsize=7)
    all_axes[-1].set_xlabel("episodes in the log", fontsize=8)
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6, frameon=False)
    return figure


def online_plot(curves: Sequence[Curve]) -> Figure:
    """Share of survivors against the number of patients treated."""
    figure, (axes,) = new_figure(COLUMN_WIDTH, 2.5)
    _draw_curves(axes, curves)
    axes.set(xlabel="patients treated", ylabel="survival")
    figure.legend(loc="outside lower center", ncols=2, fontsize=6.5, frameon=False)
    return figure


def _draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Plot curves in the colours of their methods.

    Curves of one colour, such as variants of a method, differ by their lines; references are
    dashed.
    """
    uses: Counter[str] = Counter()
    for index, curve in enumerate(curves):
        colour = colour_of(curve.name)
        style = LINE_STYLES[uses[colour] % len(LINE_STYLES)]
        if is_reference(curve.name):
            style = "--"
        uses[colour] += 1
        axes.plot(
            curve.x,
            curve.y,
            linestyle=style,
            marker=MARKERS[index % len(MARKERS)],
            color=colour,
            markersize=3.5,
            linewidth=1.2,
            label=method_name(curve.name),
        )
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
