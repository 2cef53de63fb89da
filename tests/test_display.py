"""Small pieces of HTML, and data frames."""

from __future__ import annotations

from pastwise._display import MAX_LABEL, MAX_WIDTH, Table, number_table, paragraph

TABLE = Table(
    columns=("state", "best action", "prob."),
    rows=(("cold", "heat", "0.750"), ("mild", "wait", "0.250")),
    labels=(0, 1),
    caption="What is advised",
    note="… and 3 more states",
    dimmed=(False, True),
    shades={2: [0.75, 0.25]},
)


def test_plain_text_aligns_labels_left_and_numbers_right() -> None:
    assert str(TABLE).splitlines() == [
        "What is advised",
        "state  best action  prob.",
        "cold   heat         0.750",
        "mild   wait         0.250",
        "… and 3 more states",
    ]


def test_html_shades_probabilities_and_dims_rows() -> None:
    shown = TABLE.to_html()
    assert shown.startswith(f"{paragraph('What is advised')}<table>")
    assert shown.endswith(f"</table>{paragraph('… and 3 more states')}")
    assert "background:rgba(0,114,178,0.750);color:white" in shown  # white on dark blue only:
    assert 'background:rgba(0,114,178,0.250)">' in shown  # elsewhere the page's own colour
    assert shown.count("opacity") == 1


def test_labels_in_tables_are_data_and_nothing_else() -> None:
    hostile = Table(("<b>",), (("<script>x</script>",), ("\x1b[2J",), ("a" * 500,)))
    shown = hostile.to_html()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<b>" not in shown
    assert len(shown) < 1000
    text = str(hostile)
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) == MAX_WIDTH
    assert len(text) < 2 * MAX_LABEL


def test_long_labels_are_shown_in_full_on_several_lines() -> None:
    label = "lactate >= 2.3 and map < 65 and age >= 40 and ward == general"
    table = Table(("state", "records"), ((label, "12"), ("lactate < 2.3", "7")))
    assert str(table).splitlines() == [
        "state                                   records",
        "lactate >= 2.3 and map < 65 and age >=       12",
        "40 and ward == general",
        "lactate < 2.3                                 7",
    ]


def test_numbers_stand_under_a_sentence() -> None:
    shown = number_table({"new": {"mean": 0.123456, "low": 1e-7}}, "Is <this> better?")
    assert shown == (
        '<p style="overflow-wrap:anywhere">Is &lt;this&gt; better?</p>'
        "<table><thead><tr><th></th><th>mean</th><th>low</th></tr></thead>"
        "<tbody><tr><th>new</th><td>0.1235</td><td>1e-07</td></tr></tbody></table>"
    )
