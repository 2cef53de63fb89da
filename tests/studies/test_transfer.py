"""The applications: known systems, logs made for other goals, exact success."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from pastwise.goals.goal import Goal
from pastwise.methods import registry
from pastwise.methods.baselines import Clone
from pastwise.methods.foresight import TLForesight
from pastwise.methods.tl import TL
from pastwise.report.style import colour_of
from pastwise.studies import icu, paper
from pastwise.studies.gridworlds import aiming_at, gridworlds, mostly_best, taxi
from pastwise.studies.icu import treat
from pastwise.studies.systems import KnownSystem, icu_sepsis, toy_system
from pastwise.studies.transfer import Setting, Success, Transfer, survey
from tests.helpers.command import call


@pytest.fixture(scope="module")
def settings() -> list[Setting]:
    return gridworlds(sizes=(30,))


def test_success_within_steps_is_what_simulation_shows() -> None:
    """100,000 episodes of FrozenLake: within 5 standard errors, error probability below 1e-6."""
    lake = toy_system("FrozenLake-v1")
    rule = mostly_best(lake)
    exact = lake.success_within(rule, 30)
    log = lake.log(rule, 100_000, np.random.default_rng(0), max_steps=30)
    won = log.records[log.next_state == 15].sum() / 100_000
    assert won == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 100_000))
    assert lake.success_within(rule, 5000) == pytest.approx(lake.success_and_length(rule)[0])


def test_another_target_is_reached_by_its_own_rule(settings: list[Setting]) -> None:
    lake = toy_system("FrozenLake-v1")
    other = aiming_at(lake, 13)
    assert other.success_within(other.best, 500) > 0.5
    assert lake.success_within(mostly_best(other), 200) < 0.05
    with pytest.raises(ValueError, match="does not end an episode"):
        aiming_at(lake, 15)


def test_a_taxi_without_a_destination_in_its_state() -> None:
    """Driving does not depend on the destination; episodes end there; the best rule delivers."""
    one, two = taxi(1), taxi(0)
    both = ~np.isin(np.arange(125), np.union1d(one.terminal, two.terminal))
    np.testing.assert_array_equal(one.transition[both], two.transition[both])
    assert (one.num_states, one.num_actions, len(one.terminal)) == (125, 6, 25)
    assert one.success_within(one.best, 200) == pytest.approx(1)
    np.testing.assert_allclose(one.transition.sum(axis=-1), 1)


def test_foresight_finds_the_new_target_where_the_log_shows_it(settings: list[Setting]) -> None:
    found = survey("lakes", settings[2:3], seeds=2)
    success = {row.method: row.interval.mean for row in found.summaries()}
    assert success["TL_foresight"] > 0.99
    assert success["TL_foresight"] > success["clone"]
    (reference,) = found.references
    assert reference.optimum == pytest.approx(1)
    assert "**CliffWalking**" in found.page()


def mean_success(setting: Setting, episodes: int, logs: int) -> float:
    """Mean success of TL_foresight after some logs."""
    method = TLForesight()
    total = 0.0
    for seed in range(logs):
        counts = setting.log(episodes, np.random.default_rng(seed))
        ideal = setting.goal().on(counts.states, counts.actions)
        total += setting.success(method.plan(method.start(counts, ideal)).rule)
    return total / logs


def test_numbers_of_cells_do_not_lead_past_the_end_of_a_row() -> None:
    """Left of the first cell of a row is a wall, though the numbers go on in the row above."""
    assert mean_success(gridworlds(numbered=True)[2], episodes=30, logs=5) > 0.99


def test_rows_and_columns_show_how_moves_work_where_nobody_was() -> None:
    """Ten episodes, none of which comes near the goal of the large lake."""
    by_fields = mean_success(gridworlds()[1], episodes=10, logs=5)
    by_number = mean_success(gridworlds(numbered=True)[1], episodes=10, logs=5)
    assert by_fields > 0.2
    assert by_fields > 5 * by_number


def test_the_summary_is_over_seeds() -> None:
    rows = [Success("x", "y", 1, i, "TL", value) for i, value in enumerate((0.2, 0.4))]
    (row,) = Transfer("study", rows, []).summaries()
    half = 1.96 * np.std([0.2, 0.4], ddof=1) / np.sqrt(2)
    assert row.interval.mean == pytest.approx(0.3)
    assert (row.interval.low, row.interval.high) == pytest.approx((0.3 - half, 0.3 + half))
    assert row.smallest == 0.2
    assert Transfer("study", rows[:1], []).to_dict()["rows"][0]["low"] is None


def test_a_method_treats_patients_until_the_end() -> None:
    """A system of one decision: who is treated well survives with 0.9, and TL learns to do so."""
    transition = np.zeros((3, 2, 3))
    transition[0] = [[0, 0.1, 0.9], [0, 0.9, 0.1]]
    transition[1:] = np.eye(3)[1:][:, None]
    ward = KnownSystem(transition, np.eye(3)[0], np.array([1, 2]), np.eye(3)[2], {})
    log = ward.log(ward.random, 50, np.random.default_rng(0))
    ideal = Goal(prefer={2: 1.0}).on(log.states, log.actions)
    survived = treat(ward, TL(), ideal, log, 300, np.random.default_rng(1))
    assert survived[-100:].mean() > 0.75


def test_a_newly_registered_method_is_in_the_studies(
    settings: list[Setting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry.entries()))

    @registry.register()
    @dataclass(frozen=True)
    class Again(Clone):
        """Do what the log did, under another name."""

        name: ClassVar[str] = "again"

    lake = settings[0]
    rules = lake.rules(lake.log(30, np.random.default_rng(0)))
    np.testing.assert_array_equal(rules["again"], rules["clone"])
    assert paper.all_methods()[5:] == ("TL_foresight", "again", "clone", "optimum")
    gains = paper.collect(paper.PaperStudy(runs=2, methods=("again", "clone")))
    np.testing.assert_array_equal(gains["p3", "again"], gains["p3", "clone"])
    assert colour_of("again") in registry.SPARE_COLOURS


@pytest.mark.parametrize("name", ["gridworlds", "icu-sepsis"])
def test_studies_from_the_command_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Small logs, and without the method that plans longest."""
    monkeypatch.setattr(icu, "QUICK_SIZES", (20,))
    monkeypatch.delitem(icu.ONLINE_METHODS, "TL_foresight")
    out = tmp_path / "out"
    small = ["--seeds", "1"] + (["--patients", "10"] if name == "icu-sepsis" else [])
    assert call(monkeypatch, "study", name, "--quick", *small, "--out", str(out), "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in content["rows"]} == {
        "TL",
        "TL_explore",
        "FPD_learn",
        "TL_foresight",
        "clone",
    }
    assert all(0 <= row["mean"] <= 1 for row in content["rows"])
    assert {f"{name}.{kind}" for kind in ("csv", "json", "md", "png", "pdf")} <= {
        path.name for path in out.iterdir()
    }
    if name == "icu-sepsis":
        assert list(content["online"]["survival"]) == list(icu.ONLINE_METHODS)


def test_foresight_is_not_below_the_expert_on_icu_sepsis() -> None:
    """2,000 expert episodes: more survive than under the expert, and than under TL's rule."""
    system = icu_sepsis()
    expert = system.rules["expert"]
    setting = Setting("ICU-Sepsis", "expert", system, expert, (2000,), max_steps=None)
    rules = setting.rules(setting.log(2000, np.random.default_rng(3)))
    assert setting.success(rules["TL_foresight"]) > setting.success(expert) + 0.005
    assert setting.success(rules["TL_foresight"]) > setting.success(rules["TL"])
