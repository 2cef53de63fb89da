"""Tables, pages and figures show what they are given."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from pastwise import Goal, TransferLearner
from pastwise._display import MAX_ROWS
from pastwise._numerics.interval import Interval
from pastwise.data.space import Space
from pastwise.errors import MissingDependencyError
from pastwise.evaluation.objections import Objection
from pastwise.evaluation.verdict import Thresholds
from pastwise.logs.findings import Finding
from pastwise.policy.rule import Rule
from pastwise.report import terminal
from pastwise.report.figures import (
    MAX_LABEL,
    MAX_STATES_SHOWN,
    PolicyPicture,
    before_after,
    draw_policy,
    policy_heatmap,
    similarity_histogram,
    value_plot,
)
from pastwise.report.text import markdown_table, write_csv
from tests.helpers.evaluations import EVALUATION


def test_csv_is_unrounded_and_leaves_absent_values_empty(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [{"a": 1 / 3, "b": None}, {"a": 2, "b": "x"}])
    assert (tmp_path / "t.csv").read_text() == f"a,b\n{1 / 3},\n2,x\n"


def test_markdown_tables() -> None:
    lines = markdown_table(["method", "gain"], [["TL", "1.0"], ["FPD", "2.0"]])
    assert lines == ["| method | gain |", "|---|---|", "| TL | 1.0 |", "| FPD | 2.0 |"]


# A policy on a terminal.


def shown(table: Any, *, colour: bool = False, width: int = 200) -> str:
    """What a terminal shows of a table."""
    file = io.StringIO()
    system: Any = "truecolor" if colour else None
    Console(
        file=file, width=width, force_terminal=colour, color_system=system, highlight=False
    ).print(table)
    return file.getvalue()


def rule_table(rule: dict[str, dict[str, float]], similarity: list[float] | None = None) -> Any:
    """A rule by labels, and the similarity of each state, as a table."""
    states = Space(tuple(rule))
    actions = Space(tuple(next(iter(rule.values()))))
    probabilities = np.array([list(row.values()) for row in rule.values()])
    behind = np.ones(len(states)) if similarity is None else np.array(similarity)
    return terminal.coloured_table(Rule(states, actions, probabilities, behind).table())


RULE = {"cold": {"heat": 0.75, "wait": 0.25}, "mild": {"heat": 0.0, "wait": 1.0}}


def small_table() -> Any:
    return rule_table(RULE, similarity=[0.5, 1.0])


def test_a_rule_on_a_terminal_shows_the_best_action_and_the_runner_up() -> None:
    rows = [line.split() for line in shown(small_table()).splitlines()]
    assert ["cold", "heat", "0.750", "wait", "0.250", "0.5"] in rows
    assert ["mild", "wait", "1.000", "–", "1"] in rows
    assert "more" not in shown(small_table())


def test_a_rule_on_a_terminal_is_coloured_by_probability_and_dimmed_by_lack_of_similarity() -> None:
    cold, mild = (
        line
        for line in shown(small_table(), colour=True).splitlines()
        if "cold" in line or "mild" in line
    )
    assert "48;2;0;114;178" in mild  # certainty is deep blue,
    assert "48;2;63;149;197" in cold  # three quarters of it less so
    assert "\x1b[2m" in cold
    assert "\x1b[2m" not in mild


def test_a_long_rule_on_a_terminal_says_what_it_leaves_out() -> None:
    text = shown(rule_table({f"s{i}": {"a": 1.0} for i in range(MAX_ROWS + 1)}))
    assert "… and 1 more state" in text
    assert f"s{MAX_ROWS - 1} " in text
    assert f"s{MAX_ROWS} " not in text


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("num_actions", [3, 12, 40])
@pytest.mark.parametrize("num_states", [5, 60, 700])
def test_numbers_are_whole_on_any_terminal(num_states: int, num_actions: int, width: int) -> None:
    rng = np.random.default_rng(num_states)
    actions = [f"give {10 * i} mg" for i in range(num_actions)]
    rule = {}
    for i in range(num_states):
        row = rng.dirichlet(np.ones(num_actions))
        state = f"lactate >= {i / 10:.1f} and pressure < {60 + i} and ward = B"
        rule[state] = dict(zip(actions, row.tolist(), strict=True))
    text = shown(rule_table(rule), width=width)
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= width
    assert len(lines) < 70
    for state in list(rule)[:5]:
        best = max(rule[state].values())
        assert f" {best:.3f} " in text


@pytest.mark.parametrize(
    "label", ["[cold]", "[/cold]", "[bold]x[/bold]", "[0, 10)", ":snowflake:", "\\["]
)
def test_labels_are_shown_as_they_are(label: str) -> None:
    assert shown(rule_table({label: {label: 1.0}})).count(label) == 2
    finding = Finding("dead-end", label, 1, "Look.", ({"state": label},))
    assert shown(terminal.findings_table([finding])).count(label) == 2


def test_findings_have_examples_and_a_remedy() -> None:
    examples = ({"row": 3, "x": None}, {"row": 9, "x": 2})
    findings = [
        Finding("gap", "too late", 1200, "mend gap", examples),
        Finding("duplicate-time", "twice", 2, "mend duplicate-time"),
    ]
    text = shown(terminal.findings_table(findings))
    for part in (
        "gap",
        "1,200",
        "too late",
        "row=3, x=None",
        "row=9, x=2",
        "mend gap",
        "mend duplicate-time",
    ):
        assert part in text


# A policy in figures.


def picture(num_states: int = 2, names: tuple[str, str] = ("heat", "wait")) -> PolicyPicture:
    rule = np.tile([[0.25, 0.75], [1.0, 0.0]], (num_states, 1))[:num_states]
    return PolicyPicture(
        [f"s{i}" for i in range(num_states)],
        names,
        np.full((num_states, 2), 0.5),
        rule,
        np.linspace(0.0, 0.5 * (num_states - 1), num_states),
        np.array([0.0, 0.52, 1.0]),
        np.array([10, 3, 40]),
    )


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_the_heat_map_shows_probability_by_colour_and_similarity_by_opacity() -> None:
    axes = policy_heatmap(picture(4)).axes[0]
    cells = np.asarray(axes.images[0].get_array())
    np.testing.assert_allclose(cells[..., 3], np.repeat([[0.15], [0.575], [1.0], [1.0]], 2, axis=1))
    np.testing.assert_allclose(cells[0, 1, :3], mpl.colormaps["Blues"](0.05 + 0.9 * 0.75)[:3])
    assert texts(axes) == ["0.25", "0.75", "1.00", "0.00"] * 2
    assert [text.get_color() for text in axes.texts] == [
        "black",
        "black",
        "white",
        "black",
        "black",
        "white",
        "white",
        "black",
    ]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["heat", "wait"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["s0", "s1", "s2", "s3"]


def test_a_large_policy_is_drawn_in_part_and_says_so() -> None:
    axes = policy_heatmap(picture(MAX_STATES_SHOWN + 1)).axes[0]
    assert len(axes.get_yticklabels()) == MAX_STATES_SHOWN
    assert f"{MAX_STATES_SHOWN} most visited of {MAX_STATES_SHOWN + 1}" in axes.get_title()


def test_figures_of_large_policies_have_a_bounded_size_and_say_what_they_leave_out() -> None:
    rng = np.random.default_rng(0)
    states = 700
    actions = 40
    large = PolicyPicture(
        [f"s{i}" for i in range(states)],
        [f"a{i}" for i in range(actions)],
        rng.dirichlet(np.ones(actions), size=states),
        np.eye(actions)[np.where(np.arange(states) < 650, 39, 38)],
        np.ones(states),
        np.array([1.0]),
        np.array([1]),
        visits=np.arange(states, dtype=float),
    )
    for figure in (policy_heatmap(large), before_after(large)):
        width, height = figure.get_size_inches()
        assert width < 20
        assert height < 13
        axes = figure.axes[0]
        assert f"the {MAX_STATES_SHOWN} most visited of 700 states" in axes.get_title()
        assert "most used of 40 actions" in axes.get_title()
        assert axes.get_yticklabels()[-1].get_text() == "s699"
        assert "a38" in [label.get_text() for label in axes.get_xticklabels()]


def test_long_labels_are_drawn_with_their_middle_left_out() -> None:
    names = (
        "turn the heating up " + "a" * 20 + " a little",
        "turn the heating up " + "a" * 20 + " a lot",
    )
    for axes in before_after(picture(names=names)).axes:
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert [text[:8] for text in labels] == ["turn the"] * 2
        assert [text[-5:] for text in labels] == ["ittle", "a lot"]
        assert all(len(text) == MAX_LABEL and "…" in text for text in labels)


def test_before_and_after_stand_side_by_side() -> None:
    before, after = before_after(picture()).axes
    assert texts(before) == ["0.50"] * 4
    assert texts(after) == ["0.25", "0.75", "1.00", "0.00"]
    assert (before.get_title(), after.get_title()) == ("what was done", "what is advised")


def test_the_histogram_counts_records_by_similarity() -> None:
    axes = similarity_histogram(np.array([0.0, 0.52, 0.54, 1.0]), np.array([10, 3, 4, 40])).axes[0]
    heights = {round(bar.get_x(), 2): bar.get_height() for bar in axes.patches if bar.get_height()}  # type: ignore[attr-defined]
    assert heights == {0.0: 10, 0.5: 7, 0.95: 40}
    assert axes.get_yscale() == "linear"


def test_the_histogram_shows_few_next_to_many() -> None:
    assert (
        similarity_histogram(np.array([0.0, 1.0]), np.array([1, 51])).axes[0].get_yscale() == "log"
    )
    assert (
        similarity_histogram(np.array([0.0, 1.0]), np.array([1, 50])).axes[0].get_yscale()
        == "linear"
    )
    assert similarity_histogram(np.array([1.0]), np.array([1000])).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(
    "names",
    [
        ("heat", "wait"),
        ("$100", "$5 to $7"),
        ("$\\frac$", "a_b^c"),
        ("暖房", "待つ"),
        ("", "x" * 50),
    ],
)
def test_a_policy_is_three_pictures_whatever_its_labels(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    log = {"state": ["a", "b"], "did": names, "then": ["b", "b"]}
    learner = TransferLearner(Goal(prefer={"b": 1}))
    draw_policy(learner.fit(log, state="state", action="did", next_state="then"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "policy.png",
        "before_after.png",
        "similarity.png",
    }
    assert {path.read_bytes()[:4] for path in tmp_path.iterdir()} == {b"\x89PNG"}


def test_figures_need_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pastwise.report.style.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install matplotlib"):
        policy_heatmap(picture())


def test_a_picture_holds_what_was_done_and_what_is_advised() -> None:
    log = {
        "state": ["cold", "cold", "cold", "mild"],
        "did": ["heat", "heat", "wait", "wait"],
        "then": ["mild", "mild", "cold", "mild"],
    }
    goal = Goal(prefer={"mild": 1}, floor=0.1)
    learner = TransferLearner(goal).fit(log, state="state", action="did", next_state="then")
    picture = PolicyPicture.of(learner)
    assert (picture.states, picture.actions) == (["cold", "mild"], ["heat", "wait"])
    np.testing.assert_allclose(picture.behaviour, [[2 / 3, 1 / 3], [0.0, 1.0]])
    assert np.array_equal(picture.rule, learner.rule_.probabilities)
    assert np.array_equal(picture.support, learner.rule_.similarity)
    assert picture.records.tolist() == [2, 1, 1]  # cold heat mild, cold wait cold, mild wait mild
    np.testing.assert_allclose(picture.similarity, [1, 1 / 9, 1])


# An evaluation on a terminal.


def test_values_in_sample_stand_next_to_those_that_count() -> None:
    assert "learned from" not in shown(terminal.value_table(EVALUATION))
    both = replace(EVALUATION, in_sample={"new": Interval(0.5, 0.4, 0.6, 0.9)})
    lines = shown(terminal.value_table(both)).splitlines()
    (place,) = [i for i, line in enumerate(lines) if "0.4640" in line]
    cells = [cell.strip() for cell in lines[place + 1].strip("│").split("│")]
    assert cells == ["on the records learned from", "0.5000", "0.4000", "0.6000"]


def test_comparisons_show_the_interval_that_decides() -> None:
    strict = replace(EVALUATION, thresholds=Thresholds(deciding_level=0.95))
    lines = shown(terminal.comparison_table(strict)).splitlines()
    assert "95 % interval" in lines[0]
    (row,) = [line for line in lines if "logged" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["logged", "+0.0530", "+0.0410", "+0.0660", "99.0 %", "better"]


def test_margin_alarm_and_objections_are_a_line_each() -> None:
    objection = Objection("little-support", "only 25 % of the decisions were seen")
    lines = terminal.verdict_lines(replace(EVALUATION, objections=(objection,)))
    assert lines == [
        EVALUATION.margin_in_words,
        EVALUATION.alarm_in_words,
        "Not a fair comparison (little-support): only 25 % of the decisions were seen.",
    ]


def test_the_plot_of_values_warns_where_they_are_no_fair_comparison() -> None:
    objections = (Objection("little-support", "few"), Objection("few-episodes", "two"))
    (axes,) = value_plot(replace(EVALUATION, objections=objections)).axes
    assert axes.get_title() == "not a fair comparison: little-support, few-episodes"
    (axes,) = value_plot(EVALUATION).axes
    assert axes.get_title() == ""


def test_the_plot_of_values_marks_what_was_judged_in_sample() -> None:
    in_sample = {"new": Interval(0.5, 0.4, 0.6, 0.9)}
    (axes,) = value_plot(replace(EVALUATION, in_sample=in_sample)).axes
    hollow = [line for line in axes.get_lines() if line.get_fillstyle() == "none"]
    places = [(line.get_xdata(), line.get_ydata()) for line in hollow]
    assert places == [([0.5], [0])]
