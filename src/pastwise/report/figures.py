"""Figures, readable at the width of a column and by every eye (the palette of Okabe and Ito)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.space import key_of
from pastwise.evaluation.result import Evaluation
from pastwise.methods.baselines import behaviour_rule
from pastwise.policy.learner import TransferLearner
from pastwise.theory.learning import similarity_of

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
    "TL_foresight": "#000000",
    "TL_foresight, pessimistic": "#009E73",
}
REFERENCES = ("clone", "optimum")
"""Methods that the paper does not have; they stand apart."""

PAST_NAMES = {"p3": r"$^I\tilde{p}_3$", "p12": r"$^I\tilde{p}_{1,2}$", "p1": r"$^I\tilde{p}_1$"}
COLUMN = 3.5
"""Width of a column, in inches."""


def require_matplotlib() -> None:
    """Refuse to go on without the library that draws, before any work is done."""
    if find_spec("matplotlib") is None:
        raise ValueError("figures need matplotlib: pip install 'pastwise[plot]'")


def _axes(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of the house's style with its axes, row by row."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=300, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=7)
        each.xaxis.label.set_size(8)
        each.yaxis.label.set_size(8)
        each.set_axisbelow(True)
        each.grid(axis="y", color="0.92", linewidth=0.6)
    return figure, axes


def method_name(method: str) -> str:
    """A method's name with the paper's subscripts."""
    stem, _, rest = method.partition("_")
    return rf"{stem}$_{{\mathrm{{{rest}}}}}$" if rest else stem


def _boxes(
    axes: Axes, values: Sequence[IntArray], positions: Sequence[float], colours: Sequence[str]
) -> None:
    """A box for each group of values [runs] with every run behind it."""
    jitter = np.random.default_rng(0)
    for group, position, colour in zip(values, positions, colours, strict=True):
        x = position + jitter.uniform(-0.3, 0.3, len(group))
        visible, size = float(np.clip(60 / len(group), 0.15, 0.5)), 3 if len(group) <= 300 else 1.5
        axes.plot(
            x,
            group,
            ".",
            color=colour,
            alpha=visible,
            markersize=size,
            markeredgewidth=0,
            zorder=1,
            rasterized=True,
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


def gain_boxplot(gains: Mapping[str, IntArray], past: str, most: int = 100) -> Figure:
    """Gains of every method after one past: method -> [runs]; the axis reaches to ``most``."""
    figure, (axes,) = _axes(COLUMN, 2.6)
    positions = [i + (0.3 if method in REFERENCES else 0.0) for i, method in enumerate(gains)]
    _boxes(axes, list(gains.values()), positions, [_colour(method) for method in gains])
    if any(method in REFERENCES for method in gains):
        border = (
            next(p for p, method in zip(positions, gains, strict=True) if method in REFERENCES)
            - 0.65
        )
        axes.axvline(border, color="0.7", linewidth=0.6, linestyle=":")
    axes.set_xticks(
        positions,
        [method_name(method) for method in gains],
        fontsize=6.5 if len(gains) < 8 else 5.5,
    )
    axes.set_ylabel("gain (visits to $s^1$)")
    axes.set(ylim=(0, most + 3), xlim=(-0.6, positions[-1] + 0.7))
    axes.set_title(f"past goal {PAST_NAMES[past]}; {len(gains['Rand'])} runs", fontsize=8)
    return figure


def difference_boxplot(differences: Mapping[str, Mapping[str, IntArray]]) -> Figure:
    """Gains minus those of the random policy: past -> method -> [runs]."""
    figure, panels = _axes(COLUMN, 5.4, rows=len(differences), sharex=True, sharey=True)
    for axes, (past, methods) in zip(panels, differences.items(), strict=True):
        axes.axhline(0, color="0.5", linewidth=0.8, zorder=0.5)
        _boxes(
            axes,
            list(methods.values()),
            range(len(methods)),
            [_colour(method) for method in methods],
        )
        axes.set_xticks(range(len(methods)), [method_name(method) for method in methods])
        axes.set_title(f"past goal {PAST_NAMES[past]}", fontsize=8)
    figure.supylabel("gain minus gain of Rand", fontsize=8)
    return figure


def _colour(method: str) -> str:
    return COLOURS.get(method, "#000000")


def timing_plot(sizes: Sequence[int], seconds: Mapping[str, FloatArray]) -> Figure:
    """Time to the first rule against the number of states: contender -> [sizes, repeats]."""
    figure, (axes,) = _axes(COLUMN, 2.6)
    styles = {
        "TL_explore": (COLOURS["TL_explore"], "o"),
        "FPD_learn (dense)": (COLOURS["FPD_learn"], "s"),
        "FPD_learn (sparse)": (COLOURS["optimum"], "^"),
    }
    for name, times in seconds.items():
        low, median, high = np.quantile(times, (0.25, 0.5, 0.75), axis=-1) * 1e3
        colour, marker = styles[name]
        stem, _, note = name.partition(" ")
        axes.fill_between(sizes, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(
            sizes,
            median,
            marker=marker,
            markersize=4,
            color=colour,
            label=f"{method_name(stem)} {note}",
        )
    axes.set(
        xscale="log", yscale="log", xlabel="number of states", ylabel="time to the first rule (ms)"
    )
    axes.legend(frameon=False, fontsize=7)
    return figure


@dataclass(frozen=True, eq=False)
class PolicyPicture:
    """What there is to see of a learned policy.

    Attributes
    ----------
    states, actions : labels as text
    behaviour, rule : [S, A]
        What was done, and what is advised.
    support : [S]
        Total similarity behind the advice in each state.
    similarity, records : [distinct]
        Similarity of each distinct past transition, and how often it occurred.
    """

    states: Sequence[str]
    actions: Sequence[str]
    behaviour: FloatArray
    rule: FloatArray
    support: FloatArray
    similarity: FloatArray
    records: IntArray

    @classmethod
    def of(cls, learner: TransferLearner) -> PolicyPicture:
        """Of a learner's rule, its log and its goal."""
        counts, rule = learner.counts_.total(), learner.rule_
        return cls(
            [key_of(state) for state in counts.states.labels],
            [key_of(action) for action in counts.actions.labels],
            behaviour_rule(counts),
            rule.probabilities,
            rule.similarity,
            similarity_of(counts, learner.ideal_, learner.similarity_),
            counts.records,
        )


MAX_STATES_DRAWN = 60
MAX_LABEL = 30
"""Characters of a label that are drawn."""

HARMLESS = (r"Glyph \d+", "Matplotlib currently does not support", "constrained_layout not applied")
"""How warnings begin of labels that the font lacks or that leave little room; the figure is there all the same."""


def draw_policy(learner: TransferLearner, folder: Path) -> None:
    """Write the three figures of a policy into a folder: ``policy``, ``before_after`` and ``similarity``."""
    picture = PolicyPicture.of(learner)
    figures = {
        "policy": policy_heatmap(picture),
        "before_after": before_after(picture),
        "similarity": similarity_histogram(picture.similarity, picture.records),
    }
    with warnings.catch_warnings():
        for message in HARMLESS:
            warnings.filterwarnings("ignore", message)
        for name, figure in figures.items():
            figure.savefig(folder / f"{name}.png")


def policy_heatmap(picture: PolicyPicture) -> Figure:
    """The advice: colour is probability, opacity the similarity behind it."""
    figure, (axes,) = _axes(_width(picture), _height(picture))
    _heat(axes, picture, picture.rule, np.minimum(1.0, 0.15 + 0.85 * picture.support))
    axes.set_title(f"what is advised\n(faint: little similarity){_cut(picture)}", fontsize=7)
    return figure


def before_after(picture: PolicyPicture) -> Figure:
    """What was done beside what is advised."""
    figure, (before, after) = _axes(1.7 * _width(picture), _height(picture), columns=2, sharey=True)
    _heat(before, picture, picture.behaviour, np.ones(len(picture.states)))
    _heat(after, picture, picture.rule, np.ones(len(picture.states)))
    before.set_title(f"what was done{_cut(picture)}", fontsize=8)
    after.set_title(f"what is advised{_cut(picture)}", fontsize=8)
    return figure


def _cut(picture: PolicyPicture) -> str:
    """For a title: how much is drawn, where that is not all."""
    number = len(picture.states)
    return (
        f"\nthe first {MAX_STATES_DRAWN} of {number:,} states" if number > MAX_STATES_DRAWN else ""
    )


def _short(label: str) -> str:
    """A label with its middle left out where it is too long to be drawn."""
    half = MAX_LABEL // 2
    return label if len(label) <= MAX_LABEL else f"{label[:half]}…{label[-half + 1 :]}"


def _width(picture: PolicyPicture) -> float:
    longest = max(len(_short(state)) for state in picture.states[:MAX_STATES_DRAWN])
    return 1.0 + 0.06 * longest + 0.55 * len(picture.actions)


def _height(picture: PolicyPicture) -> float:
    longest = max(len(_short(action)) for action in picture.actions)
    return 0.8 + 0.03 * longest + 0.24 * min(len(picture.states), MAX_STATES_DRAWN)


def _heat(axes: Axes, picture: PolicyPicture, rule: FloatArray, opacity: FloatArray) -> None:
    """A cell for each state and action, with its probability where there is room."""
    import matplotlib as mpl

    shown = min(len(picture.states), MAX_STATES_DRAWN)
    colours = mpl.colormaps["Blues"](0.05 + 0.9 * rule[:shown])
    colours[..., 3] = opacity[:shown, None]
    axes.imshow(colours, aspect="auto")
    axes.grid(visible=False)
    actions, states = map(_short, picture.actions), map(_short, picture.states[:shown])
    axes.set_xticks(
        range(len(picture.actions)), list(actions), rotation=30, ha="right", parse_math=False
    )
    axes.set_yticks(range(shown), list(states), parse_math=False)
    for state, row in enumerate(rule[:shown]):
        for action, probability in enumerate(row):
            dark = probability * opacity[state] > 0.55
            axes.text(
                action,
                state,
                f"{probability:.2f}",
                ha="center",
                va="center",
                fontsize=6,
                color="white" if dark else "black",
            )


def similarity_histogram(similarity: FloatArray, records: IntArray) -> Figure:
    """How many past records serve the goal, and how well: similarity [distinct], records [distinct]."""
    figure, (axes,) = _axes(COLUMN, 2.2)
    edges = np.linspace(0, 1, 21)
    counts, _ = np.histogram(similarity, bins=edges, weights=records)
    axes.bar(
        edges[:-1],
        counts,
        width=0.05,
        align="edge",
        color=COLOURS["TL"],
        edgecolor="white",
        linewidth=0.4,
    )
    axes.set(xlabel="similarity to the goal", ylabel="past records", xlim=(0, 1))
    if (counts > 0).sum() > 1 and counts.max() > 50 * counts[counts > 0].min():
        axes.set_yscale("log")
    return figure


def value_plot(evaluation: Evaluation) -> Figure:
    """Mean and interval of each policy's value."""
    values = {name: (v.mean, v.low, v.high) for name, v in evaluation.values.items()}
    figure, (axes,) = _axes(COLUMN, 0.8 + 0.3 * len(values))
    for place, (name, (mean, low, high)) in enumerate(values.items()):
        colour = COLOURS.get(
            {"new": "TL", "logged": "clone", "random": "Rand"}.get(name, name), "#000000"
        )
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot(mean, place, "o", color=colour, markersize=5)
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="0.92", linewidth=0.6)
    level = f"{100 * evaluation.thresholds.level:g} %"
    axes.set_xlabel(f"{evaluation.measure} (mean and {level} interval)", fontsize=7)
    return figure


def coverage_plot(
    coverage: Mapping[str, Mapping[str, Sequence[float]]], records: Sequence[int], wanted: float
) -> Figure:
    """Coverage of stated intervals against the number of records: quantity -> past -> rates [records]."""
    figure, panels = _axes(
        COLUMN, 2.0 * len(coverage), rows=len(coverage), sharex=True, sharey=True
    )
    markers = "osv^D"
    colours = [COLOURS[name] for name in ("TL", "optimum", "FPD_learn", "FPD", "clone")]
    for axes, (quantity, pasts) in zip(panels, coverage.items(), strict=True):
        axes.axhline(wanted, color="0.5", linewidth=0.8, linestyle="--")
        for (past, rates), marker, colour in zip(pasts.items(), markers, colours, strict=False):
            axes.plot(
                records, rates, marker=marker, color=colour, markersize=4, linewidth=1.2, label=past
            )
        axes.set(xscale="log", ylim=(0.4, 1.0), ylabel="coverage")
        axes.set_title(quantity, fontsize=8)
        axes.set_xticks(list(records), [str(k) for k in records])
        axes.minorticks_off()
    panels[-1].set_xlabel("records in the log", fontsize=8)
    panels[0].legend(frameon=False, fontsize=6.5, ncols=2, loc="lower left")
    return figure


def transfer_plot(
    summary: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]]
) -> Figure:
    """Success against the size of the log, a panel for each setting: mean and interval of every method."""
    figure, panels = _axes(COLUMN, 2.1 * len(references), rows=len(references))
    lines = {"logged": ":", "random": "--", "optimum": "-"}
    for axes, reference in zip(panels, references, strict=True):
        rows = [
            r
            for r in summary
            if (r["system"], r["past"]) == (reference["system"], reference["past"])
        ]
        for name, style in lines.items():
            axes.axhline(reference[name], color="0.55", linewidth=0.8, linestyle=style, label=name)
        for method in dict.fromkeys(r["method"] for r in rows):
            own = [r for r in rows if r["method"] == method]
            sizes, means = [r["episodes"] for r in own], [r["mean"] for r in own]
            colour = COLOURS.get(method, "#000000")
            axes.plot(sizes, means, "o-", color=colour, markersize=3, linewidth=1.2, label=method)
            axes.fill_between(
                sizes,
                [r["low"] for r in own],
                [r["high"] for r in own],
                color=colour,
                alpha=0.15,
                linewidth=0,
            )
        axes.set(xscale="log", ylabel="success")
        axes.set_title(f"{reference['system']}, logged for: {reference['past']}", fontsize=7)
    panels[-1].set_xlabel("episodes in the log", fontsize=8)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        fontsize=6,
        frameon=False,
    )
    return figure


def online_plot(survival: Mapping[str, Sequence[float]], patients: int) -> Figure:
    """Share of survivors in each part of the patients, agent -> shares."""
    figure, (axes,) = _axes(COLUMN, 2.2)
    for name, shares in survival.items():
        place = (np.arange(len(shares)) + 0.5) * patients / len(shares)
        axes.plot(
            place,
            shares,
            "o-",
            color=COLOURS.get(name, "#000000"),
            markersize=3,
            linewidth=1.2,
            label=name,
        )
    axes.set(xlabel="patients treated", ylabel="survival")
    axes.legend(frameon=False, fontsize=6.5)
    return figure
