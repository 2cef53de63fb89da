"""Goal & policy: what the page shows is what the service computes, whatever happens in between."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from tests.helpers.browser import Bench, Visitor, rule_of
from tests.helpers.browser_logs import write_features, write_rows

STATES = ["cold", "cool", "comfortable", "warm", "hot"]
ACTIONS = ["heat", "idle", "vent"]
PREVIEWS = "**/v1/counts/*/preview"
COMFORT = {"prefer": {"comfortable": 1, "warm": 0.5}}


def view_of(goal: dict[str, Any], **query: str) -> str:
    """The address of a goal."""
    more = "".join(f"&{name}={value}" for name, value in query.items())
    return f"#/thermostat/policy?g={quote(json.dumps(goal))}{more}"


def served(
    bench: Bench, goal: dict[str, Any], method: str = "TL", log: str = "thermostat"
) -> dict[tuple[str, str], float]:
    """The rule by the service."""
    body = {"goal": goal, "method": method}
    counts = bench.counts_of(log)
    rule = bench.call("POST", f"v1/counts/{counts}/preview", body)["rule"]
    return {
        (state, action): probability
        for state, row in zip(rule["states"], rule["p"], strict=True)
        for action, probability in zip(rule["actions"], row, strict=True)
    }


@contextmanager
def held(page: Page) -> Iterator[list[Route]]:
    """Requests for previews, which wait until the test lets them go."""
    waiting: list[Route] = []
    page.route(PREVIEWS, lambda route: waiting.append(route))
    yield waiting
    page.unroute(PREVIEWS)


def release(page: Page, waiting: list[Route]) -> None:
    """Let requests go, the oldest first, and those that follow from them."""
    page.wait_for_timeout(100)
    while waiting:
        waiting.pop(0).continue_()
        page.wait_for_timeout(200)


def random_goal(rng: random.Random) -> dict[str, Any]:
    """A goal of those that sliders and checkboxes make."""
    wanted = rng.sample(STATES, rng.randint(1, 4))
    goal: dict[str, Any] = {"prefer": {state: rng.randint(1, 20) / 20 for state in wanted}}
    if rng.random() < 0.3:
        goal["forbid"] = [[rng.choice(STATES), rng.choice(ACTIONS)]]
    if rng.random() < 0.2:
        goal["prefer_actions"] = {rng.choice(ACTIONS): rng.randint(1, 20) / 20}
    if rng.random() < 0.2:
        goal["floor"] = 0.001
    return goal


def test_the_browser_equals_the_service_for_200_goals(visitor: Visitor) -> None:
    """No answer of the service arrives: all numbers are the browser's own."""
    rng = random.Random(4)
    goals = [random_goal(rng) for _ in range(200)]
    page = visitor.open(view_of(COMFORT))
    with held(page):
        shown = page.evaluate(
            """async (views) => {
                const rules = [];
                for (const view of views) {
                    location.hash = view;
                    await new Promise(requestAnimationFrame);
                    await new Promise(requestAnimationFrame);
                    const cells = [...document.querySelectorAll('[data-probability]')];
                    rules.push(cells.map((cell) => Number(cell.dataset.probability)));
                }
                return rules;
            }""",
            [view_of(goal) for goal in goals],
        )
    for goal, rule in zip(goals, shown, strict=True):
        expected = served(visitor.bench, goal)
        assert rule == pytest.approx(list(expected.values()), abs=1e-9), goal


def test_rules_sum_to_1_and_what_is_forbidden_is_0(visitor: Visitor) -> None:
    goal = {**COMFORT, "forbid": [["hot", "heat"], ["warm", "heat"]]}
    page = visitor.open(view_of(goal))
    for method in ("Similarity", "Planning", "Model only"):
        page.locator("label").filter(has_text=method).click()
        visitor.settle(page)
        rule = rule_of(page)
        assert len(rule) == 15
        for state in STATES:
            assert sum(rule[state, action] for action in ACTIONS) == pytest.approx(1, abs=1e-9)
        assert rule["hot", "heat"] == rule["warm", "heat"] == 0
        cell = page.get_by_role("gridcell", name="hot, heat: never")
        expect(cell).to_contain_text("never")


def test_a_slider_repaints_the_grid_at_every_frame(visitor: Visitor) -> None:
    """The browser paints by itself: nothing of the service arrives while the slider moves."""
    page = visitor.open(view_of(COMFORT))
    slider = page.get_by_role("slider", name="warm")
    with held(page) as waiting:
        painted = page.evaluate(
            """async (slider) => {
                const cell = document.querySelector('[data-cell="1-1"]');
                const seen = [];
                for (let step = 0; step <= 20; step += 1) {
                    slider.value = String(step / 20);
                    slider.dispatchEvent(new Event('input', { bubbles: true }));
                    await new Promise(requestAnimationFrame);
                    seen.push(cell.dataset.probability);
                }
                slider.dispatchEvent(new Event('change', { bubbles: true }));
                return seen;
            }""",
            slider.element_handle(),
        )
        assert len(set(painted)) == 21
        assert len(waiting) <= 2  # of 21: a rule and a verdict are under way, the newest wait

        # After release the service confirms what is shown.
        release(page, waiting)
        visitor.settle(page)
    goal = {"prefer": {"comfortable": 1, "warm": 1}}
    assert rule_of(page) == pytest.approx(served(visitor.bench, goal), abs=1e-9)
    expect(page).to_have_url(visitor.bench.url + view_of(goal).replace("%20", ""))


def test_a_late_answer_never_takes_the_place_of_a_newer_one(visitor: Visitor) -> None:
    """Planning comes from the service alone; its answers arrive late and one by one."""
    page = visitor.open(view_of(COMFORT, m="TL_foresight"))
    goals = [{"prefer": {state: 1}} for state in ("cold", "cool", "warm", "hot")]
    with held(page) as waiting:
        for goal in goals:
            page.evaluate("view => { location.hash = view; }", view_of(goal, m="TL_foresight"))
            page.wait_for_timeout(30)

        # Of four goals the first is under way, and only the last one is asked after it.
        assert len(waiting) <= 2
        release(page, waiting)
        visitor.settle(page)
        assert rule_of(page) == pytest.approx(
            served(visitor.bench, goals[-1], "TL_foresight"), abs=1e-9
        )


def test_an_answer_for_another_goal_does_not_change_the_numbers(visitor: Visitor) -> None:
    page = visitor.open(view_of(COMFORT))
    newer = {"prefer": {"hot": 1}}
    with held(page) as waiting:
        page.evaluate("view => { location.hash = view; }", view_of({"prefer": {"cold": 1}}))
        page.wait_for_timeout(50)
        page.evaluate("view => { location.hash = view; }", view_of(newer))
        page.wait_for_timeout(50)
        expected = pytest.approx(served(visitor.bench, newer), abs=1e-9)
        assert rule_of(page) == expected
        for route in waiting:
            route.continue_()
        page.wait_for_timeout(300)
        assert rule_of(page) == expected


def test_evidence_adds_up_as_it_is_shown(visitor: Visitor) -> None:
    page = visitor.open(view_of(COMFORT))
    for state in ("cool", "warm", "comfortable"):
        page.get_by_role("gridcell", name=f"{state}, idle").click()
        visitor.settle(page)
        table = page.get_by_role("table", name="What the probability is made of")
        texts = table.locator("tbody tr td:last-child").all_inner_texts()
        shown = [0.0 if text == "≈ 0" else float(text) for text in texts]
        total = float(table.locator("tfoot td:last-child").inner_text())
        assert sum(shown) == pytest.approx(total, abs=1e-9)
        exact = rule_of(page)[state, "idle"]
        assert total == pytest.approx(exact, abs=5e-4)


def test_reasons_lead_to_the_rows_of_the_log(visitor: Visitor) -> None:
    page = visitor.open(view_of(COMFORT, s="cool", a="heat"))
    page.get_by_role("link", name="row 11").click()
    row = page.locator("tr[aria-current=true]")
    expect(row).to_contain_text("cool")
    expect(row).to_contain_text("heat")
    page.go_back()
    expect(page.get_by_role("heading", name="Why heat in cool?")).to_be_visible()


def test_weak_states_are_hatched_and_say_so(visitor: Visitor) -> None:
    page = visitor.open(view_of({"prefer": {"hot": 0.5}}))
    weak = page.locator("[role=gridcell][aria-label*='next to nothing']")
    expect(weak).to_have_count(6)
    assert "gradient" in weak.first.evaluate("cell => getComputedStyle(cell).backgroundImage")
    expect(page.get_by_text("no past record served this goal")).to_be_visible()

    # Hatching stays where the system chooses the colours, and on paper.
    page.emulate_media(forced_colors="active")
    assert "gradient" in weak.first.evaluate("cell => getComputedStyle(cell).backgroundImage")


def test_what_is_said_of_a_rule_is_true_of_it(visitor: Visitor) -> None:
    # With a prior, states without evidence do not repeat what was done.
    page = visitor.open(view_of({"prefer": {"hot": 0.5}}, m="TL(prior_count=5)"))
    expect(page.get_by_text("the rule rests on its prior alone")).to_be_visible()
    expect(page.get_by_text("repeats what was done")).to_have_count(0)

    # Nor do they where the records of a reward count still less.
    reward = {"cold": 0, "cool": 0, "comfortable": 0, "warm": 4, "hot": 20}
    page = visitor.open(view_of({"reward": reward}, s="cold", a="heat"))
    expect(page.get_by_text("the rule rests on next to nothing")).to_be_visible()
    expect(page.get_by_text("so the prior decides")).to_be_visible()
    expect(page.get_by_text("repeats what was done")).to_have_count(0)

    # A plan leaves out some actions, and not all but one everywhere.
    page = visitor.open(view_of(COMFORT, m="TL_foresight"))
    rule = rule_of(page)
    assert 0 in rule.values()
    assert any(0 < probability < 1 for probability in rule.values())
    expect(page.get_by_text("This rule never tries some actions")).to_be_visible()


def test_an_alarm_is_announced_once_and_offers_a_way_out(visitor: Visitor) -> None:
    page = visitor.open("#/thermostat/policy")
    page.evaluate(
        """() => {
            window.alarms = 0;
            new MutationObserver((changes) => {
                for (const change of changes) {
                    for (const node of change.addedNodes) {
                        if (node instanceof Element) {
                            const inside = node.querySelectorAll('[role=alert]').length;
                            window.alarms += inside + (node.matches('[role=alert]') ? 1 : 0);
                        }
                    }
                }
            }).observe(document.body, { childList: true, subtree: true });
        }"""
    )
    page.get_by_role("textbox", name="Weight of cold").fill("0.5")
    page.get_by_role("textbox", name="Weight of warm").fill("0.5")
    page.keyboard.press("Enter")
    alarm = page.get_by_role("alert")
    expect(alarm).to_contain_text("This policy may do harm.")
    expect(page.get_by_text("The chance that it loses more than")).to_be_visible()
    visitor.settle(page, quiet=25)
    assert page.evaluate("window.alarms") == 1
    page.get_by_role("button", name="Try planning").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_where_the_log_cannot_tell_no_mean_is_shown(visitor: Visitor) -> None:
    page = visitor.open(view_of({"prefer": {"comfortable": 1, "hot": 0.5}}))
    card = page.get_by_role("region", name="Verdict")
    expect(card).to_contain_text("Cannot tell")
    expect(card).to_contain_text("lies between")
    counts = visitor.bench.counts_of("thermostat")
    body = {
        "goal": {"prefer": {"comfortable": 1, "hot": 0.5}},
        "want": {"verdict": {"samples": 2000}},
    }
    verdict = visitor.bench.call("POST", f"v1/counts/{counts}/preview", body)["verdict"]
    text = card.inner_text().replace("−", "-")
    assert f"{verdict['values']['new']['mean']:.3f}" not in text
    assert f"{verdict['comparisons']['logged']['difference']['mean']:+.3f}" not in text


def test_an_impossible_goal_marks_its_control_and_keeps_the_policy(visitor: Visitor) -> None:
    visitor.expect_fault("status of 422")
    page = visitor.open(view_of(COMFORT))
    before = rule_of(page)
    forbidden = [["hot", action] for action in ACTIONS]
    page.evaluate("view => { location.hash = view; }", view_of({**COMFORT, "forbid": forbidden}))
    visitor.settle(page)
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("[aria-invalid=true]").first).to_be_visible()
    assert rule_of(page) == pytest.approx(before, abs=1e-9)


QUESTION = "What were these decisions made for?"


def test_who_left_the_log_is_asked_where_it_matters(own_bench: Bench, own_visitor: Visitor) -> None:
    """People nearly always did the same; if they had a reason, it is not in the log."""
    log = own_bench.folder / "ward.csv"
    rows = ["start,usual,good", "start,usual,bad", "good,usual,start", "bad,usual,start"]
    lines = ["state,action,next", *rows, *rows[:2], "start,rare,good"]
    log.write_text("\n".join(lines) + "\n")
    columns = {"state": ["state"], "action": ["action"], "next_state": ["next"]}
    ward = own_bench.open_log({"path": str(log)}, columns)
    goal = {"prefer": {"good": 1}}
    page = own_visitor.open(f"#/{ward}/policy?g={quote(json.dumps(goal))}")
    expect(page.get_by_role("heading", name=QUESTION)).to_have_count(0)
    page.locator("label").filter(has_text="Planning").click()
    asked = page.get_by_role("region", name=QUESTION)
    expect(asked).to_contain_text("of the policy's decisions would be different")
    expect(asked.get_by_role("radio", name="Not known")).to_be_checked()

    # The answer changes the policy.
    inferred = rule_of(page)
    asked.get_by_text("This goal, by experts").click()
    expect(asked).to_contain_text("takes the answer as given")
    own_visitor.settle(page)
    method = "TL_foresight(past_skill=1)"
    assert rule_of(page) == pytest.approx(served(own_bench, goal, method, ward), abs=1e-9)
    assert rule_of(page) != pytest.approx(inferred, abs=0.05)

    # It is saved with the policy, and Trust says that the policy rests on it.
    page.get_by_role("button", name="Save policy").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    [draft] = own_bench.call("GET", f"v1/projects/{ward}")["drafts"]
    assert draft["method"] == method
    page.get_by_role("link", name="How far to trust this").click()
    expect(page.get_by_text("on what somebody said of the past")).to_be_visible()
    page.get_by_role("link", name="See the answer.").click()
    expect(asked.get_by_role("radio", name="This goal, by experts")).to_be_checked()

    # Another goal asks again.
    page.get_by_role("textbox", name="Weight of start").fill("0.5")
    page.keyboard.press("Enter")
    expect(asked.get_by_role("radio", name="Not known")).to_be_checked()

    # An answer that is taken back leaves the question, and the focus, where they are.
    page = own_visitor.open(f"#/{ward}/policy?d={draft['id']}")
    asked = page.get_by_role("region", name=QUESTION)
    asked.get_by_role("radio", name="This goal, by experts").focus()
    page.keyboard.press("ArrowLeft")
    expect(asked.get_by_role("radio", name="Not known")).to_be_checked()
    expect(asked.get_by_role("radio", name="Not known")).to_be_focused()
    expect(asked).to_contain_text("of the policy's decisions would be different")
    expect(asked.get_by_role("radio", name="Not known")).to_be_focused()

    # An answer next to other hyper-parameters is saved like any other.
    optimistic = quote("TL_foresight(optimism=1.0)")
    page = own_visitor.open(
        f"#/{ward}/policy?d={draft['id']}&m={optimistic}&g={quote(json.dumps(goal))}"
    )
    asked = page.get_by_role("region", name=QUESTION)
    asked.get_by_text("The opposite goal").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("changed", exact=True)).to_have_count(0)
    saved = own_bench.call("GET", f"v1/drafts/{draft['id']}")["method"]
    assert "optimism=1.0" in saved
    assert "past_skill=-1" in saved
    page.get_by_role("link", name="How far to trust this").click()
    expect(page.get_by_text("Not saved")).to_have_count(0)

    # A goal that cannot be met has no answers.
    own_visitor.expect_fault("status of 422")
    forbidden = {**goal, "forbid": [["start", "usual"], ["start", "rare"]]}
    view = f"#/{ward}/policy?m=TL_foresight(past_skill=1)&g={quote(json.dumps(forbidden))}"
    page = own_visitor.open(view)
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("region", name=QUESTION)).to_have_count(0)


def test_what_another_tab_saved_is_not_overwritten_unseen(visitor: Visitor) -> None:
    draft = visitor.bench.save("thermostat", COMFORT, "Shared")
    first = visitor.open(f"#/thermostat/policy?d={draft}")
    other = visitor.open(f"#/thermostat/policy?d={draft}")
    for page, method in ((other, "Planning"), (first, "Model only")):
        page.locator("label").filter(has_text=method).click()
        visitor.settle(page)
        page.get_by_role("button", name="Save", exact=True).click()
    expect(first.get_by_role("alert")).to_contain_text("Shared was changed elsewhere")
    place = f"v1/drafts/{draft}"
    assert visitor.bench.call("GET", place)["method"] == "TL_foresight"

    # Saving again says that this is what the reader wants.
    first.get_by_role("button", name="Save", exact=True).click()
    expect(first.get_by_role("alert")).to_have_count(0)
    expect(first.get_by_text("changed", exact=True)).to_have_count(0)
    assert visitor.bench.call("GET", place)["method"] == "FPD_learn"
    etag = visitor.bench.client.get(place).headers["etag"]
    visitor.bench.call("DELETE", place, **{"If-Match": etag})


def test_the_grid_is_one_stop_of_the_tab_key(visitor: Visitor) -> None:
    page = visitor.open(view_of(COMFORT))
    cell = page.get_by_role("gridcell", name="cold, heat")
    cell.focus()
    for key, name in [
        ("ArrowDown", "comfortable, heat"),
        ("End", "comfortable, vent"),
        ("]", "cool, vent"),
        ("[", "comfortable, vent"),
        ("Home", "comfortable, heat"),
    ]:
        page.keyboard.press(key)
        expect(page.get_by_role("gridcell", name=name)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Why heat in comfortable?")).to_be_visible()

    # Esc closes the drawer and returns to the cell.
    page.keyboard.press("Escape")
    expect(page.get_by_role("gridcell", name="comfortable, heat")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.locator("[role=gridcell]:focus").count() == 0


def test_states_of_features_take_conditions(own_bench: Bench, own_visitor: Visitor) -> None:
    own_visitor.expect_fault("status of 422")
    log = write_features(own_bench.folder / "tank.csv")
    columns = {"features": ["level"], "action": ["valve"], "episode": "run", "time": "minute"}
    project = own_bench.open_log({"path": str(log)}, columns)
    page = own_visitor.open(f"#/{project}/policy")

    # A comparison at an edge of the states is a wish like any other.
    [edge, *_] = [
        state["key"].split()[-1]
        for state in own_bench.call("GET", f"v1/counts/{own_bench.counts_of(project)}")["states"]
        if " < " in state["key"]
    ]
    field = page.get_by_role("searchbox", name="Add a state or a condition")
    field.fill(f"level >= {edge}")
    field.press("Enter")
    expect(page.get_by_role("gridcell")).not_to_have_count(0)

    # Elsewhere the page says what can be done on it.
    field.fill("level >= 5.0001")
    field.press("Enter")
    expect(page.get_by_text("compare with a number at which").first).to_be_visible()
    expect(page.get_by_text("--log")).to_have_count(0)


def test_outcomes_are_what_the_log_led_to(own_bench: Bench, own_visitor: Visitor) -> None:
    drugs = ["a", "b"] * 20
    results = ["well", "ill", "well", "well"] * 10
    log = own_bench.folder / "trial.csv"
    rows: list[list[object]] = [["who", *each] for each in zip(drugs, results, strict=True)]
    write_rows(log, ["patient", "drug", "result"], rows)
    columns = {"state": ["patient"], "action": ["drug"], "outcome": "result"}
    project = own_bench.open_log({"path": str(log)}, columns)
    goal = quote(json.dumps({"prefer": {"well": 1}}))
    page = own_visitor.open(f"#/{project}/policy?g={goal}")
    expect(page.get_by_text("75 % of the log led to it")).to_be_visible()
    expect(page.get_by_text("0 % of the log", exact=True)).to_have_count(0)

    # Nothing is decided there, so no time is spent there.
    card = page.get_by_role("region", name="Where the time goes")
    expect(card).to_contain_text("who")
    expect(card).not_to_contain_text("well")
