"""The comparison of methods: shares, cells, files and the command, on small runs."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from pastwise.methods import registry
from pastwise.methods.baselines import Rand, Scripted
from pastwise.methods.foresight import TLForesight
from pastwise.studies.families import FAMILIES
from pastwise.studies.long_run import long_run_values, optimal_rule
from pastwise.studies.planner_agents import act, episodes_in, online_scores, registered_agents
from pastwise.studies.planner_tables import FLAT, Outcome, Scores
from pastwise.studies.planner_tasks import PASTS, Place, ideal_of, past_rules, random_rule
from pastwise.studies.planners import (
    Learner,
    PlannerStudy,
    compare_planners,
    learner_of,
    offline_scores,
    registered_learners,
)
from pastwise.studies.runner import Runner
from pastwise.studies.synthetic import System
from tests.helpers.command import shell_of

SMALL = ["forest", "treatment", "null walk"]

QUICK = PlannerStudy(
    methods=("TL", "clone"),
    families=SMALL,
    systems=2,
    online_systems=1,
    records=(10, 160),
    online_records=(40,),
    epochs=(20,),
)


def uniform(counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
    return np.full((ideal.num_states, ideal.num_actions), 1 / ideal.num_actions)


# What the methods are given.


@pytest.mark.parametrize("family", ["queue", "forest", "epidemic", "maze"])
def test_the_utility_of_the_goal_is_the_score(family: str) -> None:
    system = FAMILIES[family].system(0)
    utility = Utility.of(ideal_of(system), system.terminal)
    np.testing.assert_allclose(utility.next_state_part[0, 0], system.score, atol=1e-12)


def test_pasts_serve_the_goal_as_their_names_say() -> None:
    """Mean of ten systems of the same kind."""
    value = dict.fromkeys(PASTS, 0.0)
    for index in range(10):
        system = FAMILIES["dirichlet"].system(3, index)
        for past in PASTS:
            rules = past_rules(system, past, np.random.default_rng(index))
            value[past] += system.value(rules) / 10
    assert value["opposed"] < value["random"] < value["overlapping"] < value["matched"]
    assert value["opposed"] < value["mixed"] < value["matched"]


def test_a_past_is_the_same_with_others_and_without() -> None:
    alone = offline_scores(families=["forest"], pasts=["opposed"], records=[40], systems=2)
    among = offline_scores(families=["forest"], records=[40], systems=2)
    assert alone.outcomes == among.where(past="opposed").outcomes


# Shares.


@pytest.mark.parametrize("family", ["river swim", "maze"])
def test_random_actions_have_share_0_and_the_best_rule_share_1(family: str) -> None:
    best = optimal_rule(FAMILIES[family].system(0))
    learners: dict[str, Learner] = {
        "mine": uniform,
        "best": lambda counts, ideal: best,
        "Rand": learner_of(Rand()),
    }
    scores = offline_scores(learners, [family], ["mixed"], [10], systems=1)
    assert scores.mean("mine") == pytest.approx(0, abs=1e-12)
    assert scores.mean("Rand") == pytest.approx(0, abs=1e-12)
    assert scores.mean("best") == pytest.approx(1, abs=1e-12)


def test_long_logs_make_planners_good() -> None:
    learners = registered_learners(["TL_foresight"])
    scores = offline_scores(learners, ["dirichlet"], ["random"], [10, 20_000], systems=4)
    assert scores.mean("TL_foresight", records=20_000) > 0.95
    assert scores.mean("TL_foresight", records=10) < 0.8


def test_learners_see_all_states_and_the_requested_records() -> None:
    seen = []

    def look(counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
        seen.append((counts.num_records, len(counts.states), counts.terminal.tolist()))
        return uniform(counts, ideal)

    offline_scores({"look": look}, ["treatment"], ["random"], [10, 40], systems=1)
    system = FAMILIES["treatment"].system(0)
    ends = system.terminal.tolist()
    assert seen == [(10, system.num_states, ends), (40, system.num_states, ends)]


def test_nothing_to_gain_counts_separately() -> None:
    scores = offline_scores(families=["forest", "null walk"], records=[40], systems=2)
    assert len(scores.flat) == len(scores.to_gain) == 2 * len(PASTS)
    cells = scores.cells("TL_foresight")
    assert {cell.family for cell in cells} == {"forest", FLAT}
    for cell in cells:
        if cell.family == FLAT:
            assert cell.difference.mean == pytest.approx(0, abs=1e-9)


# Cells.


def outcomes_with(shares: dict[str, list[float]]) -> Scores:
    """One system for each number, two logs each that lie around it; optimum 1, random 0."""
    outcomes = []
    for index in range(len(next(iter(shares.values())))):
        for records, change in ((10, -0.1), (40, 0.1)):
            values = {name: each[index] + change for name, each in shares.items()}
            outcomes.append(Outcome("forest", index, "random", records, 5, 2, 0.0, 1.0, values))
    return Scores(tuple(shares), outcomes)


def test_a_cell_compares_with_the_best_of_the_others() -> None:
    scores = outcomes_with(
        {"new": [0.5, 0.6, 0.7], "TL": [0.4, 0.4, 0.4], "clone": [0.1, 0.9, 0.5]}
    )
    (cell,) = scores.cells("new")
    assert cell.systems == 3
    assert cell.means == pytest.approx({"new": 0.6, "TL": 0.4, "clone": 0.5})
    assert cell.best_other == "clone"
    assert cell.difference.mean == pytest.approx(0.1)

    # Student's t of three systems, whose paired differences are 0.4, -0.3 and 0.2.
    half_width = 4.302653 * np.std([0.4, -0.3, 0.2], ddof=1) / np.sqrt(3)
    assert cell.difference.high == pytest.approx(0.1 + half_width, rel=1e-6)
    assert scores.cells("new", others=["TL"])[0].difference.mean == pytest.approx(0.2)
    assert scores.overall("new").mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("shares", "is_fault"),
    [([0.3, 0.3, 0.31], True), ([0.395, 0.395, 0.396], False), ([0.2, 0.3, 0.9], False)],
)
def test_a_fault_is_clear_and_exceeds_the_margin(shares: list[float], is_fault: bool) -> None:
    scores = outcomes_with({"new": shares, "TL": [0.4, 0.4, 0.4]})
    assert scores.cells("new")[0].is_fault == is_fault
    assert ("- forest, random:" in scores.page("new")) == is_fault


# Acting and learning.


@pytest.mark.parametrize("family", ["forest", "treatment", "gridworld", "clinic"])
def test_fixed_rules_achieve_their_values(family: str) -> None:
    """400 runs of 60 epochs, or of as many episodes: means within five standard errors."""
    place = Place(family, 0, seed=0)
    system = place.system()
    log = place.log(system, "random", 10)
    batch = Transitions(*(np.tile(column, (400, 1)) for column in log))
    streams = Streams(place.seeds("random").spawn(400))
    length = system.horizon if system.has_ends else 60
    for rule in (random_rule(system), optimal_rule(system)):
        values = act(system, Scripted(rule[None]), batch, 60, streams)
        expected = long_run_values(system, rule[None], length)[0]
        error = values.std(ddof=1) / np.sqrt(400)
        assert values.mean() == pytest.approx(expected, abs=5 * error)


def test_random_actions_have_as_many_episodes_as_fit() -> None:
    """A chain that ends in the second epoch has 50 episodes in 100 epochs."""
    transition = np.zeros((3, 2, 3))
    transition[0, :, 1] = 1.0
    transition[1, :, 2] = 1.0
    system = System.of(transition, np.array([0.0, 0.0, 1.0]), initial=np.eye(3)[0], terminal=(2,))
    assert episodes_in(system, 100) == 50
    assert episodes_in(system, 1) == 1


def test_an_episode_that_goes_nowhere_has_score_0() -> None:
    system = FAMILIES["gridworld"].system(0)
    up = np.zeros((system.num_states, 4))
    up[:, 3] = 1.0
    place = Place("gridworld", 0, seed=0)
    log = place.log(system, "random", 10)
    batch = Transitions(*(column[None] for column in log))
    streams = Streams(place.seeds("random").spawn(1))
    stuck = replace(system, model=type(system.model)(_without_slips(system.model.transition)))
    assert act(stuck, Scripted(up[None]), batch, 250, streams) == 0


def _without_slips(transition: FloatArray) -> FloatArray:
    """Each action has its most probable next state only."""
    best = transition.argmax(axis=-1)
    return np.asarray(np.eye(transition.shape[-1])[best])


def test_methods_learn_while_they_act() -> None:
    """After an opposed past a method that learns leaves one that repeats the past behind."""
    agents = registered_agents(["TL_foresight", "clone"])
    scores = online_scores(agents, ["forest"], ["opposed"], records=[10], epochs=[200], systems=3)
    assert scores.mean("TL_foresight") > scores.mean("clone") + 0.3


# The study.


@pytest.fixture
def extra_method() -> Iterator[str]:
    """A method that is registered for one test."""

    @registry.register(colour="#000000")
    @dataclass(frozen=True)
    class Extra(Rand):
        """Another method."""

        name: ClassVar[str] = "extra"

    yield Extra.name
    del registry._ENTRIES[Extra.name]


def test_a_registered_method_takes_part(extra_method: str) -> None:
    study = replace(QUICK, methods=[extra_method], families=["forest"], online_systems=0)
    result = compare_planners(study)
    assert result.offline.methods == (extra_method, "TL_foresight", "Rand")
    assert result.offline.mean(extra_method) == pytest.approx(0)
    assert extra_method in PlannerStudy().methods


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    one = compare_planners(QUICK)
    two = compare_planners(QUICK, Runner(2))
    assert one.offline == two.offline
    assert one.online == two.online


def test_the_command_writes_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = shell_of(monkeypatch, capsys)
    options = "--family forest --method TL --systems 1 --online-systems 0 --out results --json"
    done = shell("study", "planners", "--family", "null walk", *options.split())
    assert done.code == 0
    result = done.json
    assert result["settings"]["methods"] == ["TL"]
    assert len(result["cells"]) == 2 * len(PASTS)
    assert set(result["overall"]) == {"offline"}

    names = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert names == ["offline.csv", "planners.csv", "planners.json", "planners.md"]
    with (tmp_path / "results" / "offline.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 5 * len(PASTS)
    assert {float(row["Rand"]) for row in rows if row["family"] == "forest"} == {0.0}
    page = (tmp_path / "results" / "planners.md").read_text()
    assert "| forest | matched |" in page


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ParameterError, match="unknown family 'desert'"):
        compare_planners(replace(QUICK, families=["desert"]))
    with pytest.raises(ParameterError, match="unknown past 'golden'"):
        compare_planners(replace(QUICK, pasts=["golden"]))
    with pytest.raises(ParameterError, match="unknown method 'guess'"):
        compare_planners(replace(QUICK, methods=["guess"]))


def test_a_study_needs_systems_and_something_to_compare_with() -> None:
    with pytest.raises(ParameterError, match="no systems"):
        compare_planners(replace(QUICK, systems=0, online_systems=0))
    with pytest.raises(ParameterError, match="nothing to be compared with"):
        compare_planners(replace(QUICK, candidate="Rand", methods=["Rand"]))


def test_other_hyper_parameters_make_another_learner() -> None:
    learners = {"near": learner_of(TLForesight(discount=0.1)), "far": learner_of(TLForesight())}
    scores = offline_scores(learners, ["ladder"], ["random"], [2500], systems=4)
    assert scores.mean("far") > scores.mean("near") + 0.2
