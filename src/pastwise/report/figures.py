"""Figures of a policy and of its evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pastwise._display import cut
from pastwise._numerics.arrays import FloatArray, IntArray, group_sum
from pastwise.data.space import key_of
from pastwise.evaluation.result import Evaluation
from pastwise.methods.baselines import behaviour_rule
from pastwise.policy.learner import TransferLearner
from pastwise.report.style import COLUMN_WIDTH, NEW_RULE_COLOUR, colour_of, new_figure
from pastwise.theory.learning import similarity_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_STATES_SHOWN = 40
"""States of a heat map; more would not be readable on a page."""

MAX_ACTIONS_SHOWN = 12
"""Actions of a heat map; more would not fit on a page next to what was done."""

MAX_LABEL = 30
"""Characters of a label that are shown."""

HARMLESS_WARNINGS = (
    r"Glyph \d+",
    "Matplotlib currently does not support",
    "constrained_layout not applied",
)
"""How warnings begin that concern labels only: the font lacks them, or they leave little room."""


@dataclass(frozen=True, eq=False)
class PolicyPicture:
    """What figures show of a learned policy.

    Attributes
    ----------
    states, actions : labels as text
    behaviour, rule : [S, A]
        What was done, and what is advised.
    support : [S]
        Total similarity behind the advice in each state.
    similarity, records : [distinct]
        Similarity of each distinct past transition, and how often it occurred.
    visits : [S], optional
        Number of records of each state; equal by default.
    omission : str
        What the picture leaves out, in words; may be empty.
    """

    states: Sequence[str]
    actions: Sequence[str]
    behaviour: FloatArray
    rule: FloatArray
    support: FloatArray
    similarity: FloatArray
    records: IntArray
    visits: FloatArray | None = None
    omission: str = ""

    @classmethod
    def of(cls, learner: TransferLearner) -> PolicyPicture:
        """The picture of a learner's rule, log and goal."""
        counts = learner.counts_.total()
        rule = learner.rule_
        return cls(
            states=[key_of(state) for state in counts.states.labels],
            actions=[key_of(action) for action in counts.actions.labels],
            behaviour=behaviour_rule(counts),
            rule=rule.probabilities,
            support=rule.similarity,
            similarity=similarity_of(counts, learner.ideal_, learner.similarity_),
            records=counts.records,
            visits=group_sum(counts.state, counts.records, len(counts.states)),
        )

    def shown(self) -> PolicyPicture:
        """The states and actions that fit into a heat map, in their own order.

        Those are the most visited states, and the actions that were done and are advised most
        often there.
        """
        visits = np.ones(len(self.states)) if self.visits is None else self.visits
        states = _largest(visits, MAX_STATES_SHOWN)
        weights = (visits[states] + 1e-9)[:, None]
        use = (weights * (self.behaviour[states] + self.rule[states])).sum(axis=0)
        actions = _largest(use, MAX_ACTIONS_SHOWN)

        # What is left out.
        parts = []
        if len(states) < len(self.states):
            parts.append(f"the {len(states)} most visited of {len(self.states):,} states")
        if len(actions) < len(self.actions):
            parts.append(f"the {len(actions)} most used of {len(self.actions):,} actions")
        return replace(
            self,
            states=[self.states[i] for i in states],
            actions=[self.actions[i] for i in actions],
            behaviour=self.behaviour[np.ix_(states, actions)],
            rule=self.rule[np.ix_(states, actions)],
            support=self.support[states],
            visits=visits[states],
            omission="".join(f"\n{part}" for part in parts),
        )


def _largest(values: FloatArray, most: int) -> IntArray:
    """Indices of the largest values, ascending; the first of equal ones."""
    return np.sort(np.argsort(-values, kind="stable")[:most])


def draw_policy(learner: TransferLearner, folder: Path) -> None:
    """Write the figures ``policy``, ``before_after`` and ``similarity`` into a folder."""
    picture = PolicyPicture.of(learner)
    figures = {
        "policy": policy_heatmap(picture),
        "before_after": before_after(picture),
        "similarity": similarity_histogram(picture.similarity, picture.records),
    }
    with warnings.catch_warnings():
        for message in HARMLESS_WARNINGS:
            warnings.filterwarnings("ignore", message)
        for name, figure in figures.items():
            figure.savefig(folder / f"{name}.png")


# Heat maps.


def policy_heatmap(picture: PolicyPicture) -> Figure:
    """The advice: colour is probability, opacity the similarity behind it."""
    picture = picture.shown()
    figure, (axes,) = new_figure(_width(picture), _height(picture))
    opacity = np.minimum(1.0, 0.15 + 0.85 * picture.support)
    _draw_heatmap(axes, picture, picture.rule, opacity)
    axes.set_title(f"what is advised\n(faint: little similarity){picture.omission}", fontsize=7)
    return figure


def before_after(picture: PolicyPicture) -> Figure:
    """What was done next to what is advised."""
    picture = picture.shown()
    width = 1.7 * _width(picture)
    figure, (before, after) = new_figure(width, _height(picture), columns=2, sharey=True)
    opaque = np.ones(len(picture.states))
    _draw_heatmap(before, picture, picture.behaviour, opaque)
    _draw_heatmap(after, picture, picture.rule, opaque)
    before.set_title(f"what was done{picture.omission}", fontsize=8)
    after.set_title(f"what is advised{picture.omission}", fontsize=8)
    return figure


def _draw_heatmap(
    axes: Axes, picture: PolicyPicture, rule: FloatArray, opacity: FloatArray
) -> None:
    """A cell for each state and action, with its probability."""
    import matplotlib as mpl

    # Cells.
    colours = mpl.colormaps["Blues"](0.05 + 0.9 * rule)
    colours[..., 3] = opacity[:, None]
    axes.imshow(colours, aspect="auto")
    axes.grid(visible=False)

    # Labels, as they are: a dollar sign starts no formula.
    actions = [cut(action, MAX_LABEL) for action in picture.actions]
    states = [cut(state, MAX_LABEL) for state in picture.states]
    axes.set_xticks(range(len(actions)), actions, rotation=30, ha="right", parse_math=False)
    axes.set_yticks(range(len(states)), states, parse_math=False)

    # Probabilities, white on dark cells.
    for (state, action), probability in np.ndenumerate(rule):
        is_dark = probability * opacity[state] > 0.55
        axes.text(
            action,
            state,
            f"{probability:.2f}",
            ha="center",
            va="center",
            fontsize=6,
            color="white" if is_dark else "black",
        )


def _width(picture: PolicyPicture) -> float:
    longest = max(len(cut(state, MAX_LABEL)) for state in picture.states)
    return 1.0 + 0.06 * longest + 0.55 * len(picture.actions)


def _height(picture: PolicyPicture) -> float:
    longest = max(len(cut(action, MAX_LABEL)) for action in picture.actions)
    return 0.8 + 0.03 * longest + 0.24 * len(picture.states)


# Evidence and values.


def similarity_histogram(similarity: FloatArray, records: IntArray) -> Figure:
    """How many past records serve the goal, and how well.

    Parameters
    ----------
    similarity, records : [distinct]
        Similarity of each distinct transition, and how often it occurred.
    """
    figure, (axes,) = new_figure(COLUMN_WIDTH, 2.2)
    edges = np.linspace(0, 1, 21)
    counts, _ = np.histogram(similarity, bins=edges, weights=records)
    axes.bar(
        edges[:-1],
        counts,
        width=0.05,
        align="edge",
        color=NEW_RULE_COLOUR,
        edgecolor="white",
        linewidth=0.4,
    )
    axes.set(xlabel="similarity to the goal", ylabel="past records", xlim=(0, 1))

    # A logarithmic axis shows low bars next to high ones.
    occupied = counts[counts > 0]
    if len(occupied) > 1 and occupied.max() > 50 * occupied.min():
        axes.set_yscale("log")
    return figure


def value_plot(evaluation: Evaluation) -> Figure:
    """Mean and interval of each policy's value; hollow, those on the records learned from.

    The title warns where the values are no fair comparison.
    """
    values = evaluation.values
    figure, (axes,) = new_figure(COLUMN_WIDTH, 0.8 + 0.3 * len(values))
    for place, (name, value) in enumerate(values.items()):
        colour = NEW_RULE_COLOUR if name == "new" else colour_of(name)
        axes.plot([value.low, value.high], [place, place], color=colour, linewidth=2)
        axes.plot(value.mean, place, "o", color=colour, markersize=5)
        if name in evaluation.in_sample:
            in_sample = evaluation.in_sample[name].mean
            axes.plot(in_sample, place, "o", color=colour, markersize=5, fillstyle="none")
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="0.92", linewidth=0.6)
    level = f"{100 * evaluation.thresholds.level:g} %"
    axes.set_xlabel(f"{evaluation.measure} (mean and {level} interval)", fontsize=7)
    if evaluation.objections:
        codes = ", ".join(objection.code for objection in evaluation.objections)
        axes.set_title(f"not a fair comparison: {codes}", fontsize=7)
    return figure
