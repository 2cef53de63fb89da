"""Compare: a link is a view, and only the states that differ are shown."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.helpers.browser import Bench, Visitor, rule_of
from tests.helpers.browser_logs import CHAIN, write_rows


def drafts_of(visitor: Visitor) -> dict[str, str]:
    """Ids of saved policies by name."""
    project = visitor.bench.call("GET", "v1/projects/thermostat")
    return {draft["name"]: draft["id"] for draft in project["drafts"]}


def compare(visitor: Visitor, *names: str, **query: str) -> str:
    """The address of a comparison."""
    drafts = drafts_of(visitor)
    chosen = ",".join(drafts[name] for name in names)
    more = "".join(f"&{name}={value}" for name, value in query.items())
    return f"#/thermostat/compare?p={chosen}{more}"


def test_a_link_shows_the_same_in_a_new_tab(visitor: Visitor) -> None:
    page = visitor.open(compare(visitor, "Comfort", "Warm"))
    page.get_by_label("Only where they differ").check()
    visitor.settle(page)
    page.get_by_role("link", name="Warm", exact=True).first.click()
    visitor.settle(page)
    expect(page.get_by_text("…", exact=True)).to_have_count(0)

    other = visitor.open(page.url.removeprefix(visitor.bench.url))
    expect(other.get_by_text("…", exact=True)).to_have_count(0)
    visitor.settle(other)
    assert other.get_by_role("main").inner_text() == page.get_by_role("main").inner_text()


def test_only_differences_hides_exactly_the_states_within_the_limit(visitor: Visitor) -> None:
    """Total variation between the rules, by the service."""
    counts = visitor.bench.counts_of("thermostat")
    goals = {
        "Comfort": {"prefer": {"comfortable": 1, "warm": 0.5}},
        "Warm": {"prefer": {"warm": 1}},
    }
    methods = {"Comfort": "TL", "Warm": "TL_foresight"}
    rules = {}
    for name, goal in goals.items():
        body = {"goal": goal, "method": methods[name]}
        rules[name] = visitor.bench.call("POST", f"v1/counts/{counts}/preview", body)["rule"]
    states = rules["Comfort"]["states"]
    variation = {
        state: sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2
        for state, one, other in zip(states, rules["Comfort"]["p"], rules["Warm"]["p"], strict=True)
    }
    limits = sorted(variation.values())
    middle = (limits[1] + limits[2]) / 2

    for limit in (0.05, round(middle, 3)):
        view = compare(visitor, "Comfort", "Warm", only="1", more=str(limit))
        page = visitor.open(view)
        field = page.get_by_label("by more than")
        field.fill(str(limit))
        field.press("Enter")
        visitor.settle(page)
        shown = {state for state, _ in rule_of(page)}
        assert shown == {state for state in states if variation[state] > limit}
        page.close()


def test_one_policy_is_offered_its_companions(visitor: Visitor) -> None:
    page = visitor.open(compare(visitor, "Comfort"))
    expect(page.get_by_role("button", name="Planning of Comfort")).to_be_visible()
    page.get_by_role("button", name="What was done").click()
    expect(page.get_by_role("grid")).to_have_count(2)


def test_cannot_tell_shows_no_mean(visitor: Visitor) -> None:
    bench = visitor.bench
    goal = {"prefer": {"comfortable": 1, "hot": 0.5}}
    unclear = bench.save("thermostat", goal, "Unclear")
    clear = drafts_of(visitor)["Comfort"]
    page = visitor.open(f"#/thermostat/compare?p={unclear},{clear}")
    values = page.get_by_role("region", name="Every policy by every goal, table")
    expect(values.get_by_text("…")).to_have_count(0)

    # The means of what was judged, as the service has them.
    jobs = bench.call("GET", "v1/jobs")["items"]
    [result] = [job["result"] for job in jobs if unclear in (job["result"] or {}).get("drafts", [])]
    text = page.get_by_role("main").inner_text()
    judged = result["goals"][0]
    own = judged["values"][unclear]
    assert judged["verdicts"][unclear] == "cannot tell"
    assert f"{own['low']:.2f} to {own['high']:.2f}" in text
    assert f"{own['mean']:.3f}" not in text
    known = [each for each in result["goals"] if each["verdicts"][clear] == "better"]
    assert known
    assert all(f"{each['values'][clear]['mean']:.2f}" in text for each in known)
    place = f"v1/drafts/{unclear}"
    etag = bench.client.get(place).headers["etag"]
    bench.call("DELETE", place, **{"If-Match": etag})


def test_long_goals_end_where_they_are_cut(own_bench: Bench, own_visitor: Visitor) -> None:
    states = [f"{number} {'in a state of some length ' * 3}" for number in range(8)]
    rows: list[list[object]] = [[state, "wait", state] for state in states]
    log = write_rows(own_bench.folder / "long.csv", ["state", "action", "next"], rows)
    project = own_bench.open_log({"path": str(log)}, CHAIN)
    own_bench.save(project, {"prefer": {states[0]: 1}}, "A name of several lines " * 8)
    own_bench.save(project, {"prefer": dict.fromkeys(states, 1)}, "B")
    page = own_visitor.open(f"#/{project}/compare")
    goals = page.locator(".multiple .head p.clamped")
    expect(goals).to_have_count(2)
    heights = goals.evaluate_all(
        """goals => goals.map((goal) =>
            goal.clientHeight / parseFloat(getComputedStyle(goal).lineHeight))"""
    )
    assert max(heights) < 3.5
