"""Small pieces of HTML, and data frames."""

from __future__ import annotations

from pastwise._display import MAX_ROWS, number_table, rule_table


def test_cells_of_a_rule_are_darker_for_more_probable_actions() -> None:
    shown = rule_table({"cold": {"heat": 0.75, "wait": 0.25}}, [False], 1)
    assert shown == (
        "<table><thead><tr><th></th><th>heat</th><th>wait</th></tr></thead>"
        '<tbody><tr style="opacity:1"><th>cold</th>'
        '<td style="background:rgba(0,114,178,0.750);color:white">0.750</td>'
        '<td style="background:rgba(0,114,178,0.250);color:black">0.250</td></tr></tbody></table>'
    )


def test_long_rule_says_what_it_leaves_out() -> None:
    number = MAX_ROWS + 1
    rule = {f"s{i}": {"a": 1.0} for i in range(number)}
    shown = rule_table(rule, [True] * number, number)
    assert "<caption>the first 200 of 201 states</caption>" in shown
    assert shown.count("<tr") == 1 + MAX_ROWS
    assert shown.count("opacity:0.45") == MAX_ROWS


def test_rule_that_is_shown_in_full_needs_no_caption() -> None:
    rule = {f"s{i}": {"a": 1.0} for i in range(MAX_ROWS)}
    shown = rule_table(rule, [True] * MAX_ROWS, MAX_ROWS)
    assert "<caption>" not in shown
    assert shown.count("<tr") == 1 + MAX_ROWS


def test_numbers_stand_under_a_sentence() -> None:
    shown = number_table({"new": {"mean": 0.123456, "low": 1e-7}}, "Is <this> better?")
    assert shown == (
        "<p>Is &lt;this&gt; better?</p>"
        "<table><thead><tr><th></th><th>mean</th><th>low</th></tr></thead>"
        "<tbody><tr><th>new</th><td>0.1235</td><td>1e-07</td></tr></tbody></table>"
    )


def test_labels_are_escaped() -> None:
    shown = rule_table({"<b>": {"a & b": 1.0}}, [False], 1)
    assert "<th>&lt;b&gt;</th>" in shown
    assert "<th>a &amp; b</th>" in shown
