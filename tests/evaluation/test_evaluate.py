"""The verdict on a learned rule, as a user gets it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import pastwise as pw
from pastwise._numerics.arrays import FloatArray
from pastwise.errors import LogError, ParameterError
from pastwise.evaluation.evaluate import evaluate_rule
from pastwise.evaluation.result import Evaluation
from pastwise.methods import Scripted
from pastwise.models.hierarchy import Assumptions
from pastwise.report.figures import value_plot
from pastwise.theory.learning import gather_evidence, prior_concentration, rule_interval
from tests.helpers.episodes import DOOR_COLUMNS, door_episodes, with_next_states
from tests.helpers.evaluations import episode_summary
from tests.helpers.oracles import random_rows, simulated_counts

THERMOSTAT = Path(__file__).parents[2] / "examples" / "thermostat"
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "episode": "day", "time": "hour"}


@pytest.fixture(scope="module")
def learner() -> pw.TransferLearner:
    goal = pw.Goal.from_toml(THERMOSTAT / "goal.toml")
    return pw.TransferLearner(goal).fit(THERMOSTAT / "log.csv", **COLUMNS)


@pytest.fixture(scope="module")
def evaluation(learner: pw.TransferLearner) -> Evaluation:
    return learner.evaluate(samples=400)


def test_a_good_rule_is_found_to_be_better(evaluation: Evaluation) -> None:
    assert evaluation.verdict == {"logged": "better", "random": "better"}
    assert not evaluation.alarm
    assert evaluation.sentence.startswith("The new rule (share of time as wanted 0.")
    assert "better than what was done" in evaluation.sentence
    for value in (*evaluation.values.values(), *evaluation.differences.values()):
        assert value.low <= value.mean <= value.high
    learned = ["TL", "FPD_learn"]
    assert list(evaluation.values) == ["new", "logged", "random", *learned, "optimum"]


def test_intervals_are_stretched_within_what_is_possible(learner: pw.TransferLearner) -> None:
    """Means stay, widths grow by the factor; a share of time is never above one."""
    plain = learner.evaluate(samples=100, assumptions=Assumptions(stretch=1.0))
    wide = learner.evaluate(samples=100, assumptions=Assumptions(stretch=2.0))
    for name, difference in plain.differences.items():
        assert wide.differences[name].mean == pytest.approx(difference.mean, abs=1e-9)
        width = difference.high - difference.low
        assert wide.differences[name].high - wide.differences[name].low == pytest.approx(2 * width)
    huge = learner.evaluate(samples=100, assumptions=Assumptions(stretch=50.0))
    for value in (*huge.values.values(), *huge.in_sample.values()):
        assert 0 <= value.low <= value.high <= 1


def test_a_harmful_rule_raises_the_alarm(learner: pw.TransferLearner) -> None:
    """Airing at all times keeps the building cold."""
    airing = np.eye(3)[np.full(5, 2)]
    support = learner.support().arrays
    result = evaluate_rule(airing, support, learner.goal, learner.counts_, samples=300)
    assert result.alarm
    assert result.verdict == {"logged": "worse", "random": "worse"}
    assert "Warning" in result.sentence


def test_a_log_that_supports_nothing_cannot_tell() -> None:
    log = {"s": ["a", "b"], "a": ["x", "y"], "n": ["b", "c"]}
    found = pw.TransferLearner(pw.Goal(prefer={"c": 1})).fit(
        log, state="s", action="a", next_state="n"
    )
    result = found.evaluate(samples=400)
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    width = result.values["new"].high - result.values["new"].low
    assert width > 0.3
    assert result.support.states_by_extrapolation == ("c",)


def test_ending_well_is_what_counts_where_the_wanted_state_is_terminal() -> None:
    rng = np.random.default_rng(1)
    did = rng.choice(["good", "bad"], size=400)
    then = np.where(rng.random(400) < np.where(did == "good", 0.8, 0.3), "well", "ill")
    log = {"s": ["start"] * 400, "a": did.tolist(), "n": then.tolist()}
    found = pw.TransferLearner(pw.Goal(prefer={"well": 1})).fit(
        log, state="s", action="a", next_state="n", terminal=["well", "ill"]
    )
    result = found.evaluate(samples=300, horizon=20)
    assert result.measure == "chance of ending well"
    assert result.values["logged"].mean == pytest.approx(np.mean(then == "well"), abs=0.03)
    assert result.values["optimum"].mean == pytest.approx(0.8, abs=0.06)
    assert result.verdict["logged"] == "better"


def test_episodes_start_where_the_log_starts() -> None:
    log = door_episodes()
    found = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(log, **DOOR_COLUMNS)
    result = found.evaluate(samples=200)
    won = log["s"].count("win") / 300
    assert result.values["logged"].mean == pytest.approx(won, abs=0.01)
    assert result.support.visits_well_seen > 0.95, "what comes after the end is no visit"
    weighted = replace(result, estimates=found.estimates(log, 100))
    assert weighted.estimates["logged"].mean == pytest.approx(won)
    assert weighted.to_frame("polars")["quantity"].to_list().count("estimate") == 3


def test_next_states_may_be_in_a_column_or_in_the_next_record() -> None:
    goal = pw.Goal(prefer={"win": 1})
    log = door_episodes()
    plain = pw.TransferLearner(goal).fit(log, **DOOR_COLUMNS)
    longer_log = with_next_states(log)
    other = pw.TransferLearner(goal).fit(longer_log, next_state="n", **DOOR_COLUMNS)
    assert other.counts_ == plain.counts_
    assert other.evaluate(samples=100).values == plain.evaluate(samples=100).values
    expected = plain.estimates(log, 100)
    assert other.estimates(longer_log, 100) == expected
    assert expected["importance sampling"].effective_episodes > 30


def part_of(log: dict[str, list[Any]], first: int, last: int) -> dict[str, list[Any]]:
    """The episodes from a first one to before a last one."""
    kept = [row for row, episode in enumerate(log["e"]) if first <= episode < last]
    return {name: [values[row] for row in kept] for name, values in log.items()}


def test_a_rule_is_learned_anew_only_for_the_log_that_it_was_learned_from() -> None:
    """Both halves of a log: the first was learned from, the second is new."""
    log = door_episodes()
    half = part_of(log, 0, 150)
    other_half = part_of(log, 150, 300)
    found = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(half, **DOOR_COLUMNS)
    rule = found.rule_.probabilities

    own = found.estimates(half, 100)["importance sampling"]
    assert "in 5 folds: rule and behaviour" in own.assumption
    assert own == found.estimates(half, 100, learned_from_log=True)["importance sampling"]

    new = found.estimates(other_half, 100, learned_from_log=False)["importance sampling"]
    assert "in 5 folds: behaviour" in new.assumption
    given = found.estimates(other_half, 100, rule=rule)["importance sampling"]
    assert given == new


def test_a_longer_log_than_was_learned_from_is_new() -> None:
    log = door_episodes()
    found = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(part_of(log, 0, 150), **DOOR_COLUMNS)
    estimate = found.estimates(log, 100)["doubly robust"]
    assert "in 5 folds: behaviour and model" in estimate.assumption


def test_propensities_named_when_learning_are_used() -> None:
    log = door_episodes()
    log["p"] = [0.5] * len(log["s"])
    goal = pw.Goal(prefer={"win": 1})
    named = pw.TransferLearner(goal).fit(log, propensity="p", **DOOR_COLUMNS)
    later = pw.TransferLearner(goal).fit(log, **DOOR_COLUMNS)
    found = named.estimates(log, 100)
    assert found == later.estimates(log, 100, "p")
    assert "as logged" in found["importance sampling"].assumption


def test_an_unusable_estimate_is_listed_as_such() -> None:
    log = door_episodes()
    found = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(log, **DOOR_COLUMNS)
    estimates = found.estimates(part_of(log, 0, 6), 100)
    assert "effective episodes, fewer than 10" in estimates["importance sampling"].why_not
    result = replace(found.evaluate(samples=50), estimates=estimates)
    assert result.to_frame("polars")["quantity"].to_list().count("unusable estimate") == 3


def test_episodes_in_which_records_are_missing_are_taken_in_pieces_with_a_warning() -> None:
    log = {
        "e": [1, 1, 1, 2, 2],
        "t": [1, 2, 4, 1, 2],
        "s": list("aabaa"),
        "a": list("xyxxy"),
        "n": list("aaaab"),
    }
    columns: dict[str, Any] = {
        "state": "s",
        "action": "a",
        "next_state": "n",
        "episode": "e",
        "time": "t",
    }
    found = pw.TransferLearner(pw.Goal(prefer={"b": 1})).fit(log, **columns)
    with pytest.warns(
        pw.LogWarning, match="1 record in another state than the one before"
    ) as caught:
        estimates = found.estimates(log, 10)
    assert {warning.filename for warning in caught} == {__file__}
    assert estimates["logged"].mean == pytest.approx(1 / 3)


def test_a_reward_is_summed_until_the_end() -> None:
    """Each step costs 1 and the win earns 10: the measure is the total.

    The arrival at an end counts once.
    """
    log = door_episodes()
    goal = pw.Goal(reward={"win": 10.0, "room": -1.0, "lose": -2.0})
    found = pw.TransferLearner(goal).fit(log, **DOOR_COLUMNS)
    result = found.evaluate(samples=200)
    assert result.measure == "total reward of an episode"
    total = 10.0 * log["s"].count("win") - log["s"].count("room") - 2.0 * log["s"].count("lose")
    assert result.values["logged"].mean == pytest.approx(total / 300, abs=0.1)


@pytest.mark.parametrize("weight", [1e-3, 100.0])
def test_the_unit_of_the_weights_does_not_matter(weight: float) -> None:
    log = door_episodes()
    log["w"] = [weight] * len(log["s"])
    columns: dict[str, Any] = {"state": "s", "action": "a", "episode": "e", "time": "t"}
    goal = pw.Goal(prefer={"win": 1})
    plain = pw.TransferLearner(goal).fit(log, **columns).evaluate(samples=50)
    weighted = pw.TransferLearner(goal).fit(log, weight="w", **columns).evaluate(samples=50)
    assert weighted.values["logged"].low == pytest.approx(plain.values["logged"].low, rel=1e-6)


def test_a_log_to_evaluate_on_may_be_a_file(
    learner: pw.TransferLearner, evaluation: Evaluation
) -> None:
    assert learner.evaluate(THERMOSTAT / "log.csv", samples=400).values == evaluation.values


def test_small_values_are_shown_with_enough_digits(learner: pw.TransferLearner) -> None:
    goal = pw.Goal(reward={"warm": 1e-6, "hot": -1e-6}, temperature=1e-6)
    tiny = learner.retarget(goal).evaluate(samples=50)
    assert "0.000;" not in tiny.sentence


def test_few_samples_give_no_verdict_and_say_so(learner: pw.TransferLearner) -> None:
    result = learner.evaluate(samples=1)
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    assert "Fewer than 40 samples give no verdict" in result.sentence


def test_evaluation_is_shown_in_every_form(evaluation: Evaluation) -> None:
    frame = evaluation.to_frame("polars")
    learned = ["new", "TL", "FPD_learn"]
    others = ["to_logged", "to_random", "to_TL", "to_FPD_learn"]
    assert frame["of"].to_list() == [*evaluation.values, *learned, *others, *others]
    kinds = ["value"] * 6 + ["in-sample value"] * 3
    kinds += ["difference"] * 4 + ["deciding difference"] * 4
    assert frame["quantity"].to_list() == kinds
    assert frame["level"].to_list() == [0.9] * 17
    assert "<table>" in evaluation._repr_html_()
    labels = [label.get_text() for label in value_plot(evaluation).axes[0].get_yticklabels()]
    assert labels == list(evaluation.values)


def test_the_margin_is_a_hundredth_of_the_range_of_the_utility(
    learner: pw.TransferLearner, evaluation: Evaluation
) -> None:
    assert evaluation.margin == pytest.approx(0.01)
    reward = learner.retarget(pw.Goal(reward={"comfortable": 5.0, "hot": -15.0}))
    assert reward.evaluate(samples=50).margin == pytest.approx(0.2)


def test_a_margin_beyond_all_differences_leaves_nothing_to_decide(
    learner: pw.TransferLearner, evaluation: Evaluation
) -> None:
    result = learner.evaluate(samples=400, margin=0.5)
    assert result.margin == 0.5
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    assert "is within 0.5 of what was done" in result.sentence
    assert result.differences == evaluation.differences
    with pytest.raises(ValueError, match="margin must be a finite number that is not negative"):
        learner.evaluate(margin=-1)


def test_a_state_that_records_the_decision_gives_no_verdict() -> None:
    """By the log it is best to switch on, since the lamp is on wherever it was switched on."""
    rng = np.random.default_rng(4)
    did = rng.choice(["on", "off"], 200, p=[0.2, 0.8])
    log = {"before": rng.permutation(did).tolist(), "did": did.tolist(), "after": did.tolist()}
    found = pw.TransferLearner(pw.Goal(prefer="on"))
    found.fit(log, state="before", action="did", next_state="after")
    result = found.evaluate(samples=200)
    assert [objection.code for objection in result.objections] == ["action-determines-outcome"]
    assert result.comparisons["logged"].by_the_log == "better"
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    assert not result.is_better
    assert "better by the log than what was done" in result.sentence
    assert "but this is not a fair comparison: the next state depends" in result.sentence


def test_what_comes_after_the_end_is_no_decision() -> None:
    """Half of the episodes end after a step; the value counts the time at home afterwards."""
    log = {"s": ["out", "out"] * 50, "a": ["walk", "bus"] * 50, "n": ["home", "out"] * 50}
    goal = pw.Goal(prefer={"home": 1.0, "out": 0.5})
    found = pw.TransferLearner(goal).fit(
        log, state="s", action="a", next_state="n", terminal=["home"]
    )
    result = found.evaluate(samples=100)
    assert result.measure == "share of time as wanted"
    assert result.support.visits_well_seen == pytest.approx(1)
    assert result.objections == ()


def test_episodes_are_counted_and_may_object(learner: pw.TransferLearner) -> None:
    constant = episode_summary(
        learner.counts_, [20, 10, 10], number=40, records=440, several=40, varied=0
    )
    result = learner.evaluate(samples=100, episodes=constant)
    assert result.unit == "40 episodes, 440 records"
    assert [objection.code for objection in result.objections] == ["action-constant"]


def patients() -> dict[str, list[Any]]:
    """Thirty patients with one drug each; those with the drug happen to be the healthier ones."""
    rng = np.random.default_rng(8)
    log: dict[str, list[Any]] = {"patient": [], "day": [], "state": [], "drug": []}
    for patient in range(30):
        is_healthy = patient % 2 == 0
        for day in range(20):
            is_well = rng.random() < (0.8 if is_healthy else 0.3)
            log["patient"].append(patient)
            log["day"].append(day)
            log["state"].append("well" if is_well else "ill")
            log["drug"].append("new" if is_healthy else "old")
    return log


PATIENTS: dict[str, Any] = {"state": "state", "action": "drug", "episode": "patient", "time": "day"}


@pytest.mark.filterwarnings("ignore::pastwise.LogWarning")
def test_a_log_that_compares_patients_gives_no_verdict() -> None:
    log = patients()
    found = pw.TransferLearner(pw.Goal(prefer="well")).fit(log, **PATIENTS)
    for result in (found.evaluate(samples=200), found.evaluate(log, samples=200)):
        assert result.unit == "30 episodes, 570 records"
        assert [objection.code for objection in result.objections] == ["action-constant"]
        assert result.comparisons["logged"].by_the_log == "better"
        assert result.verdict["logged"] == "cannot tell"
        assert "each of the 30 episodes has one action" in result.sentence
    by_counts = found.evaluate(found.counts_, samples=200)
    assert by_counts.unit == "570 records"
    assert by_counts.objections == ()


@pytest.mark.filterwarnings("ignore::pastwise.LogWarning")
def test_a_drug_of_two_patients_gives_no_verdict() -> None:
    """Everybody has the old drug on most days; two patients also have the new one, and do well."""
    log = patients()
    rng = np.random.default_rng(9)
    for i, patient in enumerate(log["patient"]):
        has_new = patient < 2 and rng.random() < 0.7
        log["drug"][i] = "new" if has_new else "old"
        if has_new and i + 1 < len(log["state"]):
            log["state"][i + 1] = "well"
    found = pw.TransferLearner(pw.Goal(prefer="well"), method="FPD_learn").fit(log, **PATIENTS)
    result = found.evaluate(samples=200)
    messages = {objection.code: objection.message for objection in result.objections}
    assert messages["few-episodes"].endswith("which was done in only 2 of 30 episodes")
    assert not result.is_better


def test_episodes_of_another_log_are_those_that_count() -> None:
    """Learned where the drug varies, judged where it does not."""
    log = patients()
    varied = {**log, "drug": np.random.default_rng(2).permutation(log["drug"]).tolist()}
    found = pw.TransferLearner(pw.Goal(prefer="well")).fit(varied, **PATIENTS)
    assert found.evaluate(samples=100).objections == ()
    (objection,) = found.evaluate(log, samples=100).objections
    assert objection.code == "action-constant"
    assert found.evaluate(found.read(log), samples=100) == found.evaluate(log, samples=100)


def test_fewer_samples_than_requested_are_reported(learner: pw.TransferLearner) -> None:
    def impatient(done: int) -> None:
        raise KeyboardInterrupt

    result = learner.evaluate(samples=5000, on_step=impatient)
    assert f"Only {result.samples} of 5000 samples were taken" in result.sentence


def test_an_interrupt_ends_all_that_is_sampled(learner: pw.TransferLearner) -> None:
    """Ctrl-C comes once, while the halves of the log are sampled."""
    calls: list[int] = []

    def interrupted_once() -> bool:
        calls.append(len(calls))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return False

    result = learner.evaluate(samples=5000, should_stop=interrupted_once)
    assert calls == [0]
    assert f"Only {result.samples} of 5000 samples were taken" in result.sentence
    assert "new" in result.in_sample


@pytest.mark.parametrize("method", ["TL", "TL_foresight", "Rand"])
def test_rounding_decides_nothing(method: str) -> None:
    """Where nothing matters, no rule is better, worse or harmful."""
    log = simulated_log()
    goal = pw.Goal(reward={"low": 3.0, "middle": 3.0, "high": 3.0})
    found = pw.TransferLearner(goal, method=method).fit(log, state="s", action="a", next_state="n")
    result = found.evaluate(samples=100)
    assert result.margin == 0
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    assert result.alarm.chance_of_harm == 0
    assert (
        "as good as what was done (3.000, in the log 3.000; 90 %: +0.000 to +0.000)"
        in result.sentence
    )


def simulated_log() -> dict[str, list[Any]]:
    """300 records of three states and two actions, at random."""
    rng = np.random.default_rng(0)
    labels = ["low", "middle", "high"]
    return {
        "s": rng.choice(labels, 300).tolist(),
        "a": rng.choice(["stay", "go"], 300).tolist(),
        "n": rng.choice(labels, 300).tolist(),
    }


def test_records_of_no_episode_are_counted_on_their_own() -> None:
    log = simulated_log()
    log["e"] = [None if row < 60 else row // 10 for row in range(300)]
    found = pw.TransferLearner(pw.Goal(prefer="low"))
    found.fit(log, state="s", action="a", next_state="n", episode="e")
    unit = found.evaluate(samples=100).unit
    assert unit == "24 episodes, 300 records (60 of them of no episode)"


def test_a_log_without_decisions_is_refused() -> None:
    log = {"s": ["end"] * 4, "a": ["x", "y"] * 2, "n": ["on"] * 4}
    found = pw.TransferLearner(pw.Goal(prefer="on"))
    with pytest.warns(pw.LogWarning, match="leave a terminal state"):
        found.fit(log, state="s", action="a", next_state="n", terminal=["end"])
    with pytest.raises(LogError, match="no record to evaluate on"):
        found.evaluate(samples=100)


def test_extra_rules_are_compared_by_name(
    learner: pw.TransferLearner, evaluation: Evaluation
) -> None:
    airing = np.eye(3)[np.full(5, 2)]
    same = learner.rule_.probabilities
    result = learner.evaluate(samples=400, rules={"airing": airing, "same": same})
    extra = ["airing", "same", "optimum"]
    assert list(result.values) == ["new", "logged", "random", "TL", "FPD_learn", *extra]
    assert result.verdict == {**evaluation.verdict, "airing": "better", "same": "cannot tell"}
    for name, value in evaluation.values.items():
        assert result.values[name].mean == pytest.approx(value.mean, abs=2e-5)


def test_eight_rules_are_compared_on_forty_states() -> None:
    """Three extra rules next to the five that every evaluation compares; models are sparse here."""
    num_states = 40
    rng = np.random.default_rng(3)
    counts = simulated_counts(random_rows(rng, num_states, 2, num_states), 2000, rng)
    learner = pw.TransferLearner(pw.Goal(prefer={0: 1})).fit(counts)
    plain = learner.evaluate(samples=60)
    rules = {f"extra {i}": random_rows(rng, num_states, 2) for i in range(2)}
    rules["same"] = learner.rule_.probabilities
    result = learner.evaluate(samples=60, rules=rules)
    assert len(result.values) == 9
    for name, value in plain.values.items():
        assert result.values[name].mean == pytest.approx(value.mean, abs=2e-5)
    in_sample = result.in_sample["new"].mean
    assert result.values["same"].mean == pytest.approx(in_sample, abs=1e-12)
    assert set(result.verdict) == {"logged", "random", *rules}


# Alternatives.


def test_alternatives_are_judged_as_if_they_had_been_chosen(
    learner: pw.TransferLearner, evaluation: Evaluation
) -> None:
    """Same models, same cross-fitting: the value of TL is that of a learner by TL."""
    by_tl = learner.retarget(learner.goal, "TL").evaluate(samples=400)
    assert evaluation.values["TL"].mean == pytest.approx(by_tl.values["new"].mean, abs=2e-5)
    assert evaluation.in_sample["TL"].mean == pytest.approx(by_tl.in_sample["new"].mean, abs=2e-5)
    assert list(evaluation.alternatives) == ["TL", "FPD_learn"]
    assert list(by_tl.alternatives) == ["TL_foresight", "FPD_learn"]
    there = evaluation.alternatives["TL"].deciding
    back = by_tl.alternatives["TL_foresight"].deciding
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=2e-5)


def test_a_second_opinion_is_what_its_method_learns_from_old_records() -> None:
    """A log that has lost its weight teaches FPD_learn nothing."""
    rng = np.random.default_rng(0)
    did = rng.choice(["x", "y"], 300)
    led = np.where(rng.random(300) < np.where(did == "x", 0.9, 0.1), "good", "bad")
    log = {"was": ["good"] * 300, "did": did, "then": led, "day": np.arange(300.0)}
    columns: dict[str, Any] = {"state": "was", "action": "did", "next_state": "then"}
    columns |= {"age": "day", "half_life": 1.0, "as_of": 345.0}
    learner = pw.TransferLearner(pw.Goal(prefer="good"), method="FPD_learn").fit(log, **columns)
    assert learner.rule("good")["x"] == pytest.approx(0.5, abs=0.01)
    by_foresight = learner.retarget(learner.goal, "TL_foresight").evaluate(samples=100)
    itself = learner.evaluate(samples=100).values["new"].mean
    assert by_foresight.values["FPD_learn"].mean == pytest.approx(itself, abs=1e-3)


def test_a_better_alternative_is_named(learner: pw.TransferLearner) -> None:
    """A method that only airs is worse than any that learns."""
    airing = learner.retarget(learner.goal, Scripted(np.eye(3)[np.full((1, 5), 2)]))
    words = airing.evaluate(samples=100).alternatives_in_words
    assert words.startswith("Alternatives by the log: TL_foresight 0.")
    assert "TL_foresight is better by the log than the new rule (90 %: +0." in words
    assert "TL is better by the log than the new rule (90 %: +0." in words


def test_alternatives_can_be_chosen(learner: pw.TransferLearner) -> None:
    result = learner.evaluate(samples=50, alternatives=["clone", "TL_foresight"])
    assert list(result.alternatives) == ["clone", "FPD_learn"], "not the learner's own method"
    none = learner.evaluate(samples=50, alternatives=[])
    assert not none.alternatives
    assert none.alternatives_in_words == ""
    given = learner.evaluate(samples=50, rules={"TL": learner.rule_.probabilities})
    assert list(given.alternatives) == [], "a rule that is given has the name"
    assert list(given.comparisons) == ["logged", "random", "TL"]
    with pytest.raises(ParameterError, match="unknown method 'best'"):
        learner.evaluate(samples=50, alternatives=["best"])


def test_alternatives_are_not_cross_fitted_on_another_log(learner: pw.TransferLearner) -> None:
    held_out = learner.evaluate(learner.counts_, samples=50, learned_from_log=False)
    assert "TL" in held_out.alternatives
    assert set(held_out.in_sample) == {"FPD_learn"}


@pytest.mark.parametrize(
    ("name", "rule", "message"),
    [
        ("logged", np.eye(3)[np.full(5, 2)], "the name 'logged' of an extra rule is taken"),
        ("mine", np.eye(3), r"rules\['mine'\] must be of shape \(5, 3\)"),
        ("mine", np.ones((5, 3)), r"rules\['mine'\]\[0\] sums to 3"),
    ],
)
def test_bad_extra_rules_are_refused(
    learner: pw.TransferLearner, name: str, rule: FloatArray, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        learner.evaluate(rules={name: rule})


def test_what_is_no_array_is_no_extra_rule(learner: pw.TransferLearner) -> None:
    for rule in (learner.rule_, {"cold": {"heat": 1.0}}):
        options: dict[str, Any] = {"rules": {"mine": rule}}
        with pytest.raises(ParameterError, match=r"rules\['mine'\] must be an array of numbers"):
            learner.evaluate(**options)


def test_bad_input_is_refused(learner: pw.TransferLearner) -> None:
    starts: dict[str, Any] = {"initial": ["cold"]}
    with pytest.raises(ParameterError, match="initial takes states with their probabilities"):
        learner.evaluate(**starts)
    other = pw.TransitionCounts.from_records(
        [0], [0], [0], pw.Space(("elsewhere",)), pw.Space(("heat",))
    )
    with pytest.raises(
        ValueError, match="the log has other labels than the policy: unknown label 'elsewhere'"
    ):
        learner.evaluate(other)
    with pytest.raises(ValueError, match="from 1 to 1,000,000"):
        learner.evaluate(horizon=0)
    with pytest.raises(ValueError, match="number of samples must be a whole number"):
        learner.evaluate(samples=0)
    with pytest.raises(ParameterError, match="threads must be a whole number from 1"):
        learner.evaluate(threads=-1)
    with pytest.raises(ValueError, match="record_share must be above 0"):
        learner.evaluate(assumptions=Assumptions(record_share=0.0))
    with pytest.raises(ValueError, match="initial"):
        learner.evaluate(initial={"cold": 0.4})
    many = pw.TransitionCounts.from_records(
        [0], [0], [0], pw.Space.of_size(5000), pw.Space.of_size(2)
    )
    with pytest.raises(ValueError, match=r"at most 3,000 states \(got 5,000\)"):
        pw.TransferLearner(pw.Goal(prefer={0: 1})).fit(many).evaluate()


def test_a_goal_with_hard_zeros_goes_without_fpd_learn(learner: pw.TransferLearner) -> None:
    result = learner.retarget(pw.Goal(table={"comfortable": 1.0})).evaluate(samples=50)
    assert "FPD_learn" not in result.values


@pytest.mark.parametrize(
    "goal",
    [
        pw.Goal(reward={"warm": 2.0, "hot": -1.0}),
        pw.Goal(table={"warm": 0.5, "cool": 0.25, "cold": 0.25}),
        pw.Goal(targets={"room": {"warm": 1.0}}),
    ],
)
def test_every_goal_over_states_is_evaluated(learner: pw.TransferLearner, goal: pw.Goal) -> None:
    result = learner.retarget(goal).evaluate(samples=50)
    assert result.values["optimum"].mean >= result.values["random"].mean


@pytest.mark.parametrize(
    "goal",
    [
        pw.Goal(prefer_actions={"idle": 1}),
        pw.Goal(reward={"cold": {"heat": 1.0, "idle": {"cold": -1.0}}}),
        pw.Goal(reward={state: {"idle": 1.0} for state in ("cold", "cool", "warm", "hot")}),
    ],
)
def test_a_goal_over_actions_is_evaluated_too(learner: pw.TransferLearner, goal: pw.Goal) -> None:
    result = learner.retarget(goal).evaluate(samples=50)
    assert result.measure == ("mean reward" if goal.reward else "mean utility of a step")
    assert result.values["optimum"].mean >= result.values["random"].mean
    if not goal.reward:
        assert result.values["random"].mean == pytest.approx(1 / len(learner.counts_.actions))
        assert result.values["optimum"].mean == pytest.approx(1)


def test_intervals_of_the_rule_are_those_of_the_beta_marginals(learner: pw.TransferLearner) -> None:
    low, high = learner.rule_intervals()
    counts = learner.counts_
    ideal = learner.goal.on(counts.states, counts.actions)
    V = gather_evidence(counts, ideal) + prior_concentration(ideal)
    rest = V.sum(axis=-1, keepdims=True) - V
    inner = (V > 0) & (rest > 0)
    np.testing.assert_allclose(
        low[inner], beta.ppf(0.05, V[inner], rest[inner]), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(
        high[inner], beta.ppf(0.95, V[inner], rest[inner]), rtol=1e-6, atol=1e-12
    )
    hot = 3
    heat = 0
    assert (low[hot, heat], high[hot, heat]) == (0.0, 0.0)


def test_the_only_action_is_certain() -> None:
    low, high = rule_interval(np.array([[2.0]]), np.array([[1.0]]))
    assert (low.item(), high.item()) == (1.0, 1.0)


def test_actions_are_judged_until_the_end() -> None:
    """What would be done after the end is of no interest."""
    log = {"s": ["x"] * 200, "a": ["u", "v"] * 100, "n": ["end"] * 200}
    learner = pw.TransferLearner(pw.Goal(prefer_actions={"u": 1}))
    learner.fit(log, state="s", action="a", next_state="n", terminal="end")
    result = learner.evaluate(samples=50)
    assert result.measure == "total utility of an episode"
    assert result.values["new"].mean == pytest.approx(1, abs=5e-3)
    assert result.values["logged"].mean == pytest.approx(0.5, abs=0.01)


def test_records_left_out_of_the_log_are_reported() -> None:
    log = {"room": ["cold", None, "cool"], "did": ["heat"] * 3, "then": ["cool", "cool", "warm"]}
    fitted = pw.TransferLearner(pw.Goal(prefer="warm"))
    fitted.fit(
        {"room": ["cold", "cool", "warm"], "did": ["heat"] * 3, "then": ["cool", "warm", "warm"]},
        state="room",
        action="did",
        next_state="then",
    )
    with pytest.warns(pw.LogWarning, match="1 record without state left out") as caught:
        fitted.evaluate(log, samples=50)
    assert {warning.filename for warning in caught} == {__file__}
