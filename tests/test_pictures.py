"""Pictures of rules, intervals and bars, as a notebook and a report show them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import pastwise as pw
from pastwise._pictures import (
    BarRow,
    IntervalRow,
    RuleRow,
    bar_picture,
    fitting,
    interval_picture,
    probability_text,
    rule_picture,
)
from pastwise.evaluation.pictures import difference_picture
from tests.helpers.markup import require_static

EVIL = "<script>alert('x')</script>"
ROOM = {
    "s": ["cold", "warm", EVIL, "cold", "warm", "cold", EVIL, "warm"] * 6,
    "a": ["heat", "wait", "wait", "wait", "heat", "heat", "heat", "wait"] * 6,
    "n": ["warm", "warm", "cold", "cold", EVIL, "warm", "warm", "cold"] * 6,
}


@cache
def learner() -> pw.TransferLearner:
    goal = pw.Goal(prefer={"warm": 1}, forbid=[("warm", "heat")])
    made = pw.TransferLearner(goal, method="TL")
    return made.fit(ROOM, state="s", action="a", next_state="n")


def circles(picture: str) -> list[float]:
    """Where the means of a picture are."""
    return [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', picture)]


def test_a_rule_shows_its_probabilities_next_to_what_was_done() -> None:
    rule = learner().rule_
    markup = require_static(rule._repr_html_())
    for state, row in rule.items():
        for action, probability in row.items():
            if (state, action) != ("warm", "heat"):
                assert probability_text(probability) in markup.text
    assert markup.text.count("⊘ never") == 1
    assert "was .333" in markup.text  # one of three in cold
    assert "Small numbers: what was done. Never: forbidden by the goal." in markup.text
    assert EVIL in " ".join(markup.text)


def test_what_rests_on_little_is_hatched_and_ends_decide_nothing() -> None:
    plain = RuleRow("a", [0.5, 0.5])
    assert "<path" not in rule_picture(["x", "y"], [plain])
    weak = rule_picture(["x", "y"], [RuleRow("a", [0.5, 0.5], is_weak=True)])
    assert weak.count("<path") == 2
    end = require_static(rule_picture(["x", "y"], [RuleRow("a", [0.5, 0.5], is_end=True)]))
    assert ".500" not in end.text
    assert "end" in end.text


def test_many_actions_are_strips_with_the_best_in_words() -> None:
    actions = [f"a{number}" for number in range(25)]
    row = np.full(25, 0.001)
    row[7] = 1 - row.sum() + row[7]
    markup = require_static(rule_picture(actions, [RuleRow("s", row.tolist())]))
    assert "a7" in markup.text
    assert probability_text(row[7]) in markup.text
    assert "a8" not in markup.text


def test_intervals_are_where_their_numbers_say() -> None:
    rows = [
        IntervalRow("first", 0.25, 0.0, 0.5),
        IntervalRow("second", 0.5, 0.5, 1.0, outer=(0.4, 1.0)),
        IntervalRow("third", None, 0.1, 0.2),
    ]
    picture = interval_picture(rows, label="Values")
    markup = require_static(picture)
    assert "0.250, 0.000 to 0.500" in markup.text
    assert "0.100 to 0.200" in markup.text
    means = circles(picture)
    assert len(means) == 2  # none for the third
    lane = 260
    assert means[1] - means[0] == pytest.approx(0.25 * lane, abs=0.2)
    signed = interval_picture([IntervalRow("d", -0.1, -0.2, 0.1)], is_difference=True, label="D")
    assert "−0.100, −0.200 to +0.100" in require_static(signed).text


def test_intervals_without_ends_are_left_out() -> None:
    rows = [IntervalRow("none", None, -np.inf, np.inf), IntervalRow("one", 2.0, 2.0, 2.0)]
    markup = require_static(interval_picture(rows, label="Values"))
    assert "none" not in markup.text
    assert "2.000, 2.000 to 2.000" in markup.text


def test_an_evaluation_shows_its_numbers_and_no_mean_where_it_cannot_tell() -> None:
    evaluation = learner().evaluate(samples=60)
    markup = require_static(evaluation._repr_html_())
    for value in evaluation.values.values():
        text = f"{value.mean:.3f}, {value.low:.3f} to {value.high:.3f}"
        assert text in markup.text
    unsure = [each for each in evaluation.comparisons.values() if each.verdict == "cannot tell"]
    differences = evaluation._repr_html_().split("</svg>")[0]
    sure = len(evaluation.comparisons) + len(evaluation.alternatives) - len(unsure)
    unsure_alternatives = [
        each for each in evaluation.alternatives.values() if each.verdict == "cannot tell"
    ]
    assert len(circles(differences)) == sure - len(unsure_alternatives)


def test_support_and_reasons_show_their_records() -> None:
    support = learner().support()
    markup = require_static(support._repr_html_())
    for each in support.values():
        assert f"{each.similarity:.3g} of {each.records} records" in markup.text
    explanation = learner().explain("cold")
    markup = require_static(explanation._repr_html_())
    for reason in explanation.actions.values():
        assert probability_text(reason.probability) in markup.text
        for evidence in reason.evidence:
            carries = f"carries {probability_text(evidence.share)}"
            assert any(carries in text for text in markup.text)


def test_many_states_stay_small() -> None:
    rng = np.random.default_rng(0)
    number = 8000
    state = rng.integers(715, size=number)
    log = {
        "s": [f"{EVIL} {label}" for label in state],
        "a": rng.integers(25, size=number),
        "n": [f"{EVIL} {label}" for label in (state + rng.integers(-2, 3, number)) % 715],
    }
    goal = pw.Goal(prefer={f"{EVIL} 3": 1})
    with pytest.warns(pw.LogWarning):
        made = pw.TransferLearner(goal, method="TL").fit(log, state="s", action="a", next_state="n")
    shown = {
        "learner": made._repr_html_(),
        "rule": made.rule_._repr_html_(),
        "support": made.support()._repr_html_(),
        "explanation": made.explain(f"{EVIL} 3")._repr_html_(),
    }
    for name, page in shown.items():
        require_static(page)
        assert len(page.encode()) < 60_000, name
    assert "… and 705 more states" in shown["learner"]
    assert "… and 695 more states" in shown["support"]


def test_a_thin_line_is_another_interval_that_decides() -> None:
    content = learner().evaluate(samples=100).to_dict()
    for comparison in content["comparisons"].values():
        assert comparison["deciding"]["level"] == comparison["difference"]["level"]
    assert 'height="1.5"' not in difference_picture(content)
    content["comparisons"]["logged"]["deciding"]["level"] = 0.95
    assert difference_picture(content).count('height="1.5"') == 1


def test_labels_fit_and_keep_both_ends() -> None:
    assert fitting("cold", 100) == "cold"
    assert fitting("", 100) == "(empty)"
    long = fitting("x" * 500 + "end", 70)
    assert len(long) == 8
    assert long.endswith("end")
    assert len(fitting("冷" * 50, 70)) <= 5
    assert len(fitting("W" * 50, 70)) == 5
    assert len(fitting("l" * 50, 70)) == 12
    assert "\x1b" not in fitting("a\x1b[2J", 100)
    markup = require_static(bar_picture([BarRow("y" * 300, 0.5, 1.0, "5 of 10")], "Bars"))
    assert any("y" * 100 in text for text in markup.text)  # its tooltip


def test_a_reason_shows_both_ends_of_where_its_records_led() -> None:
    lasting = "increase " * 30 + "at last"
    log = {"s": ["cold", lasting, ""] * 3, "a": ["heat"] * 9, "n": [lasting, "", "cold"] * 3}
    made = pw.TransferLearner(pw.Goal(prefer="cold"), method="TL")
    made.fit(log, state="s", action="a", next_state="n")
    text = require_static(made.explain("cold")._repr_html_()).text
    assert "led to increas…t last" in text
    assert any(each.startswith("led to increase increase") for each in text)  # its tooltip
    text = require_static(made.explain(lasting)._repr_html_()).text
    assert "led to (empty)" in text
