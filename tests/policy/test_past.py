"""How much a rule depends on who left the log, and who is asked about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pastwise import Goal, TransferLearner
from pastwise.methods import TLForesight
from tests.helpers.command import Shell, shell_of

GOAL = Goal(prefer="good")
ONE_SIDED = {
    "state": ["start"] * 5 + ["good", "bad"],
    "action": ["usual"] * 4 + ["rare"] + ["usual"] * 2,
    "next": ["good", "bad", "good", "bad", "good", "start", "start"],
}
"""People nearly always did the same. If they had a reason, it is not in the log."""


def learner_of(method: str | TLForesight, copies: int = 1) -> TransferLearner:
    log = {name: values * copies for name, values in ONE_SIDED.items()}
    learner = TransferLearner(GOAL, method=method)
    return learner.fit(log, state="state", action="action", next_state="next")


def test_shares_are_those_of_learners_that_know_the_past() -> None:
    """Decisions in which the rules differ, weighted by the records of each state."""
    inferred = learner_of("TL_foresight")
    visits = inferred.counts_.by_state_action(inferred.counts_.weight).sum(axis=1)
    dependence = inferred.past_dependence()
    assert dependence is not None
    for past_skill, share in ((1, dependence.skilled), (-1, dependence.opposed)):
        known = learner_of(TLForesight(past_skill=past_skill))
        differ = np.abs(known.rule_.probabilities - inferred.rule_.probabilities).sum(axis=1) / 2
        assert share == pytest.approx(float(visits @ differ / visits.sum()), abs=1e-9)


def test_a_short_one_sided_log_depends_on_its_past_and_a_long_one_does_not() -> None:
    short = learner_of("TL_foresight").past_dependence()
    long = learner_of("TL_foresight", copies=300).past_dependence()
    assert short is not None
    assert long is not None
    assert short.matters
    assert not long.matters


def test_only_a_method_that_infers_the_skill_depends_on_it() -> None:
    assert learner_of("TL").past_dependence() is None
    known = learner_of(TLForesight(past_skill=1))
    assert known.past_dependence() is None
    assert known.retarget(Goal(prefer="bad")).past_dependence() is not None


def test_a_system_in_which_plans_take_long_is_not_planned_twice_more() -> None:
    states = np.arange(1101)
    log = {"state": states[:-1], "action": ["on"] * 1100, "next": states[1:]}
    learner = TransferLearner(Goal(prefer=1100)).fit(
        log, state="state", action="action", next_state="next"
    )
    assert learner.past_dependence() is None


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(monkeypatch, capsys)


def test_learn_asks_who_left_the_log_where_it_matters(tmp_path: Path, shell: Shell) -> None:
    table = tmp_path / "log.csv"
    rows = zip(*ONE_SIDED.values(), strict=True)
    table.write_text("state,action,next\n" + "".join(",".join(row) + "\n" for row in rows))
    learn = ["learn", str(table), "--state", "state", "--action", "action", "--next-state", "next"]
    learn += ["--prefer", "good", "-o", str(tmp_path / "policy"), "--no-verdict"]
    asked = shell(*learn)
    assert "the rule depends on how good the past was" in asked.err
    assert "--param past_skill=1" in asked.err
    (warning,) = json.loads(shell(*learn, "--json").out)["warnings"]
    assert warning in asked.err
    assert "how good the past was" not in shell(*learn, "--param", "past_skill=1").err
