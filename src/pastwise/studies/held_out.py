"""Statements about real logs, compared with episodes that were held out.

Nobody knows the truth about a real log, but part of it can be kept back. The episodes are split at
random, many times. A method learns from one part, and `evaluate` states values and a verdict from
this part alone. They are compared with the other part:

* *what was done*: the mean utility of the held-out episodes;
* *the new rule* in a panel: its value on the transition frequencies of the held-out episodes, from
  their starts and over their length, with a bootstrap over people. This compares held-out people
  in the same state who acted differently, so it shares an assumption with the statement: the state
  contains what matters;
* *the new rule* for recommendations: importance sampling with logged propensities on the log of
  *another* policy, which needs no such assumption.

A stated value m with a 90 % interval and a held-out one h with the standard error e *agree* if

    |m - h| <= sqrt(d^2 + (z e)^2),

where d is the distance from m to the bound of the interval on the side of h, and z the normal
quantile of the level. If both are calibrated, they agree in 90 % of the splits on average over data
sets. The rate of one data set scatters more than that many independent trials would: its splits
share their records, and the other policy's log is the same in all of them.

*Null*: with actions exchanged among all records of the same state they have no effect, and any
verdict other than "cannot tell" is false. Objections turn a verdict into "cannot tell", so the
study also counts the verdicts *by the log*, without them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from pastwise._numerics.arrays import FloatArray, IntArray, normalise, sample
from pastwise._numerics.interval import Interval
from pastwise.errors import LogWarning, ParameterError
from pastwise.evaluation.result import Evaluation
from pastwise.policy.learner import TransferLearner
from pastwise.report.text import markdown_table, write_csv
from pastwise.studies.output import save_json
from pastwise.studies.real_data import RealLog, Texts
from pastwise.studies.runner import Runner

METHODS = ("TL", "FPD_learn", "TL_foresight")
"""Methods that learn from a log alone."""

QUANTITIES = {"logged": "what was done", "rule": "the new rule", "difference": "difference"}
"""What is stated and compared, and its name in a table."""

RuleByLabel = Mapping[str, Mapping[str, float]]
"""Probability of each action in each state."""


@dataclass(frozen=True)
class HeldOutStudy:
    """Settings of the study.

    Attributes
    ----------
    splits : int
        Number of random splits, and of permutations. 50 fix a rate of 0.9 to about 0.04.
    samples : int
        Sampled models in each evaluation. 400 fix the bounds of an interval to about 3 % of its
        width.
    train_share : float
        Share of the episodes to learn from. Equal parts make the comparison sharpest.
    resamples : int
        Bootstrap samples of the held-out episodes. 200 fix a standard error to about 5 %.
    seed : int
    methods : names
    """

    splits: int = 50
    samples: int = 400
    train_share: float = 0.5
    resamples: int = 200
    seed: int = 0
    methods: tuple[str, ...] = METHODS

    def __post_init__(self) -> None:
        if self.splits < 1 or self.resamples < 2:
            raise ParameterError("the study needs at least one split and two resamples")
        if not 0 < self.train_share < 1:
            raise ParameterError(
                f"train_share must lie between 0 and 1, not {self.train_share}: "
                "both parts need episodes"
            )


# What held-out episodes say.


@dataclass(frozen=True)
class Measured:
    """A value measured on held-out episodes, with its standard error."""

    value: float
    error: float


def agrees(stated: Interval, measured: Measured) -> bool:
    """Whether a stated interval and a held-out value agree, at the level of the interval.

    >>> stated = Interval(mean=0.5, low=0.4, high=0.7, level=0.9)
    >>> agrees(stated, Measured(0.69, 0.0)), agrees(stated, Measured(0.39, 0.0))
    (True, False)
    >>> agrees(stated, Measured(0.39, 0.1))
    True
    """
    distance = measured.value - stated.mean
    bound = stated.high if distance > 0 else stated.low
    quantile = ndtri((1 + stated.level) / 2)
    return abs(distance) <= float(np.hypot(bound - stated.mean, quantile * measured.error))


def measure_on_panel(
    rule: RuleByLabel,
    held_out: RealLog,
    resamples: int,
    rng: np.random.Generator,
    prior_people: float = 1.0,
) -> dict[str, Measured]:
    """The rule, what was done and their difference, on held-out episodes of equal length.

    The standard errors are the spread under a Bayesian bootstrap, in which every episode has a
    random weight. An action that few people took in a state would hardly vary in it, so each pair
    of state and action has one more person, to whom happens what happens to anybody there.

    Parameters
    ----------
    resamples : int
        Number of bootstrap samples.
    prior_people : float
        Weight of the additional person. With one, both halves of the panel of occupations agree in
        88 % of the splits for rules of one arbitrary occupation in each state; with none in 80 %,
        with two in 95 %.
    """
    # The records as indices.
    states, actions, probabilities = _rule_table(rule, held_out)
    state = np.searchsorted(states, held_out.state)
    action = np.searchsorted(actions, held_out.action)
    next_state = np.searchsorted(states, held_out.next_state)
    episodes, episode = np.unique(held_out.episode, return_inverse=True)
    E = len(episodes)
    S = len(states)
    A = len(actions)

    # What each episode adds: transitions [E, S * A * S], its start [E, S], its utility [E].
    transition = (state * A + action) * S + next_state
    transitions = _table(episode, transition, E, S * A * S)
    is_start = np.zeros(len(state), dtype=bool)
    is_start[_first_records(held_out, episode, E)] = True
    starts = _table(episode[is_start], state[is_start], E, S)
    total_utility = np.bincount(episode, held_out.utility, E)
    length = np.bincount(episode, minlength=E)

    # Weight of each episode, [1 + resamples, E]; in the first sample all have weight one.
    weight = np.concatenate([np.ones((1, E)), rng.standard_exponential((resamples, E))])

    # Values in each sample: [1 + resamples].
    counts = (weight @ transitions).reshape(-1, S, A, S)
    counts += prior_people * _additional_people(transitions.reshape(E, S, A, S), resamples, rng)
    following = counts / counts.sum(axis=-1, keepdims=True)
    closed_loop = np.einsum("sa,rsat->rst", probabilities, following)
    start = weight @ starts / weight.sum(axis=-1, keepdims=True)
    utility = np.isin(states, held_out.wanted).astype(np.float64)
    horizon = round(float(np.median(length)))
    new = _mean_utility(closed_loop, start, utility, horizon)
    logged = (weight @ total_utility) / (weight @ length)
    return {
        "rule": _of_resamples(new),
        "logged": _of_resamples(logged),
        "difference": _of_resamples(new - logged),
    }


def _additional_people(
    transitions: FloatArray, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Records of one more person in each state and action: [1 + resamples, S, A, S].

    The person has as many records as others have there on average, with a random weight. All of
    them lead to one next state, sampled from those that follow the state; in the first sample they
    have weight one and are spread over the next states.

    Parameters
    ----------
    transitions : [E, S, A, S]
        Records of each episode.
    """
    by_pair = transitions.sum(axis=-1)
    num_people = (by_pair > 0).sum(axis=0)
    records = np.maximum(by_pair.sum(axis=0), 1.0) / np.maximum(num_people, 1)

    # What follows each state: [S, S]; anything, if nobody left it.
    of_state = transitions.sum(axis=(0, 2))
    is_left = of_state.sum(axis=-1, keepdims=True) > 0
    following = normalise(np.where(is_left, of_state, 1.0))

    expected = records[..., None] * following[:, None]
    shape = (resamples, *records.shape)
    chosen = sample(
        np.broadcast_to(following[:, None], (*shape, len(following))), rng.random(shape)
    )
    size = records * rng.standard_exponential(shape)
    sampled = size[..., None] * np.eye(len(following))[chosen]
    return np.concatenate([expected[None], sampled])


def _rule_table(rule: RuleByLabel, log: RealLog) -> tuple[Texts, Texts, FloatArray]:
    """Labels of rule and log, sorted, and the rule over them: [S], [A], [S, A].

    The rule of a state that it does not have is zero.
    """
    own_actions = [action for row in rule.values() for action in row]
    states = np.unique(np.concatenate([log.state, log.next_state, list(rule)]))
    actions = np.unique(np.concatenate([log.action, own_actions]))
    probabilities = np.zeros((len(states), len(actions)))
    for state, row in rule.items():
        columns = np.searchsorted(actions, list(row))
        probabilities[np.searchsorted(states, state), columns] = list(row.values())
    return states, actions, probabilities


def _table(row: IntArray, column: IntArray, num_rows: int, num_columns: int) -> FloatArray:
    """How often each pair of row and column occurs: [num_rows, num_columns]."""
    cell = row * num_columns + column
    counts = np.bincount(cell, minlength=num_rows * num_columns)
    return counts.reshape(num_rows, num_columns).astype(np.float64)


def _first_records(log: RealLog, episode: IntArray, num_episodes: int) -> IntArray:
    """Index of the first record of each episode: [E]."""
    order = np.lexsort((log.time, episode))
    first = np.searchsorted(episode[order], np.arange(num_episodes))
    return np.asarray(order[first])


def _mean_utility(
    closed_loop: FloatArray, start: FloatArray, utility: FloatArray, horizon: int
) -> FloatArray:
    """Mean utility over the horizon in models [R, S, S] from starts [R, S]: [R]."""
    total = np.zeros(len(start))
    distribution = start
    for _ in range(horizon):
        distribution = np.einsum("rs,rst->rt", distribution, closed_loop)
        total += distribution @ utility
    return total / horizon


def _of_resamples(values: FloatArray) -> Measured:
    """The first value, and the spread of the others."""
    return Measured(float(values[0]), float(np.std(values[1:], ddof=1)))


def measure_on_other_log(
    rule: RuleByLabel, held_out: RealLog, other: RealLog
) -> dict[str, Measured]:
    """The rule on the log of another policy, and what was done in the held-out episodes.

    The rule's value is left out if the other log has none of its actions.

    Self-normalised importance sampling with logged propensities. The error of a rare outcome is
    underestimated where few episodes carry the weight, so it is at least that of the mean of all
    of them in an unweighted log of the effective size, (sum w)^2 / sum w^2.
    """
    if other.propensity is None:
        raise ParameterError(f"{other.name} has no propensities to weight its records with")
    logged = _mean_with_error(held_out.utility)
    measured = {"logged": logged}

    # Weights of the other log's records: [N].
    states, actions, probabilities = _rule_table(rule, other)
    state = np.searchsorted(states, other.state)
    action = np.searchsorted(actions, other.action)
    weight = probabilities[state, action] / other.propensity
    if not weight.any():
        return measured

    value = float(weight @ other.utility / weight.sum())
    spread = float(np.sqrt(weight**2 @ (other.utility - value) ** 2) / weight.sum())
    effective = weight.sum() ** 2 / (weight**2).sum()
    least = float(np.std(other.utility) / np.sqrt(effective))
    new = Measured(value, max(spread, least))
    measured["rule"] = new
    measured["difference"] = Measured(
        new.value - logged.value, float(np.hypot(new.error, logged.error))
    )
    return measured


def _mean_with_error(values: FloatArray) -> Measured:
    error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return Measured(float(values.mean()), error)


# One split.


def split_rows(log: RealLog, study: HeldOutStudy, split: int) -> list[dict[str, Any]]:
    """What each method stated after one split, compared: a row of plain values per method."""
    seeds = np.random.SeedSequence(study.seed, spawn_key=(split,)).spawn(3)
    split_rng, bootstrap_rng, null_rng = [np.random.default_rng(seed) for seed in seeds]
    train, held_out = log.split(study.train_share, split_rng)
    permuted = log.with_permuted_actions(null_rng)

    rows = []
    for method in study.methods:
        # State values from the training part, and compare them.
        learner, evaluation = _evaluated(train, method, study.samples)
        rule = _labelled(learner)
        if held_out.other is None:
            measured = measure_on_panel(rule, held_out, study.resamples, bootstrap_rng)
        else:
            measured = measure_on_other_log(rule, held_out, held_out.other)
        stated = {
            "rule": evaluation.values["new"],
            "logged": evaluation.values["logged"],
            "difference": evaluation.differences["to_logged"],
        }

        # The verdict where actions have no effect.
        _, without_effect = _evaluated(permuted, method, study.samples)

        row = {
            "data": log.name,
            "method": method,
            "split": split,
            "objections": " ".join(objection.code for objection in evaluation.objections),
            "verdict": evaluation.comparisons["logged"].verdict,
            "verdict_without_effect": without_effect.comparisons["logged"].verdict,
            "by_the_log_without_effect": without_effect.comparisons["logged"].by_the_log,
        }
        for name, interval in stated.items():
            row.update(_comparison_columns(name, interval, measured.get(name)))
        rows.append(row)
    return rows


def _evaluated(log: RealLog, method: str, samples: int) -> tuple[TransferLearner, Evaluation]:
    """A learner fitted on a log, and what it states from it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)  # the same for every split
        learner = TransferLearner(log.goal, method=method).fit(log.table(), **log.columns())
    evaluation = learner.evaluate(samples=samples, margin=log.margin)
    if evaluation.samples < samples:
        raise KeyboardInterrupt  # it cut the sampling short
    return learner, evaluation


def _labelled(learner: TransferLearner) -> dict[str, dict[str, float]]:
    """The learned rule, by labels, which are text in every `RealLog`."""
    rule = {}
    for state, row in learner.rule_.items():
        rule[str(state)] = {str(action): probability for action, probability in row.items()}
    return rule


def _comparison_columns(name: str, stated: Interval, measured: Measured | None) -> dict[str, Any]:
    """Columns of a row; those of the held-out value are None where it is undefined."""
    return {
        name: stated.mean,
        f"{name}_low": stated.low,
        f"{name}_high": stated.high,
        f"{name}_held_out": None if measured is None else measured.value,
        f"{name}_held_out_error": None if measured is None else measured.error,
        f"{name}_agrees": None if measured is None else agrees(stated, measured),
    }


# All splits.


@dataclass(frozen=True)
class Agreement:
    """A quantity over all splits.

    Attributes
    ----------
    stated, low, high : float
        Means of the stated value and of the bounds of its interval.
    held_out, held_out_error : float, optional
        Means of the held-out value and of its standard error; None if it was never defined.
    rate : float, optional
        Share of the splits in which both agree.
    """

    stated: float
    low: float
    high: float
    held_out: float | None
    held_out_error: float | None
    rate: float | None


@dataclass(frozen=True)
class MethodSummary:
    """One method on one data set.

    Attributes
    ----------
    agreement : by the names of `QUANTITIES`
    better, worse : float
        Share of the splits with this verdict against what was done.
    objected : float
        Share of the splits in which the comparison was not found fair.
    false_verdicts, false_by_the_log : float
        Share of the permuted logs with a verdict other than "cannot tell", with objections and
        without.
    """

    data: str
    size: str
    method: str
    agreement: Mapping[str, Agreement]
    better: float
    worse: float
    objected: float
    false_verdicts: float
    false_by_the_log: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class HeldOutResult:
    """Results of the study.

    Attributes
    ----------
    rows : list of rows
        One for each data set, method and split; see `split_rows`.
    summaries : list of MethodSummary
    """

    study: HeldOutStudy
    rows: Sequence[Mapping[str, Any]]
    summaries: Sequence[MethodSummary]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "settings": asdict(self.study),
            "rows": [summary.to_dict() for summary in self.summaries],
        }

    def write(self, folder: Path) -> None:
        """Write the page, the summary and the table of all splits into a folder."""
        write_csv(folder / "held-out.csv", self.rows)
        save_json(folder / "held-out.json", self.to_dict())
        (folder / "held-out.md").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """Two tables of Markdown: values, then verdicts."""
        values = []
        verdicts = []
        for summary in self.summaries:
            for name, agreement in summary.agreement.items():
                # What was done does not depend on the method, so one row is enough.
                if name == "logged" and summary.method != self.study.methods[0]:
                    continue
                cells = _agreement_cells(agreement)
                values.append([summary.data, summary.method, QUANTITIES[name], *cells])
            shares = (
                summary.better,
                summary.worse,
                summary.objected,
                summary.false_verdicts,
                summary.false_by_the_log,
            )
            cells = [f"{share:.2f}" for share in shares]
            verdicts.append([summary.data, summary.method, *cells])
        sizes = dict.fromkeys(f"{summary.data}: {summary.size}." for summary in self.summaries)
        lines = [
            f"Statements from {self.study.train_share:.0%} of the episodes against the others, "
            f"means over {self.study.splits} splits. {' '.join(sizes)}",
            "",
            *markdown_table(
                ["data", "method", "value of", "stated", "90 % interval", "held out", "agree"],
                values,
            ),
            "",
            "Verdicts against what was done, as shares: of the splits; and false ones, where "
            "actions have no effect (exchanged among the records of each state)",
            "",
            *markdown_table(
                [
                    "data",
                    "method",
                    "better",
                    "worse",
                    "not fair",
                    "false",
                    "false, by the log",
                ],
                verdicts,
            ),
            "",
        ]
        return "\n".join(lines)


def _agreement_cells(agreement: Agreement) -> list[str]:
    held_out = "-"
    if agreement.held_out is not None:
        held_out = f"{agreement.held_out:.4f} ± {agreement.held_out_error:.4f}"
    return [
        f"{agreement.stated:.4f}",
        f"[{agreement.low:.4f}, {agreement.high:.4f}]",
        held_out,
        "-" if agreement.rate is None else f"{agreement.rate:.2f}",
    ]


def held_out_study(
    logs: Sequence[RealLog], study: HeldOutStudy | None = None, runner: Runner | None = None
) -> HeldOutResult:
    """Run the study on real logs."""
    study = study or HeldOutStudy()
    parts = []
    for log in logs:
        parts += [partial(split_rows, log, study, split) for split in range(study.splits)]
    identity = {
        "study": "held-out",
        "data": [log.checksum for log in logs],
        **asdict(study),
    }
    results = (runner or Runner()).run("Splitting", parts, identity)

    rows = [row for part in results for row in part]
    summaries = []
    for log in logs:
        for method in study.methods:
            own = [row for row in rows if (row["data"], row["method"]) == (log.name, method)]
            summaries.append(_summary(log, method, own))
    return HeldOutResult(study, rows, summaries)


def _summary(log: RealLog, method: str, rows: Sequence[Mapping[str, Any]]) -> MethodSummary:
    """The splits of one method on one data set."""
    verdicts = [row["verdict"] for row in rows]
    is_objected = [row["objections"] != "" for row in rows]
    is_false = [row["verdict_without_effect"] != "cannot tell" for row in rows]
    is_false_by_the_log = [row["by_the_log_without_effect"] != "cannot tell" for row in rows]
    return MethodSummary(
        data=log.name,
        size=log.size,
        method=method,
        agreement={name: _agreement(name, rows) for name in QUANTITIES},
        better=verdicts.count("better") / len(rows),
        worse=verdicts.count("worse") / len(rows),
        objected=float(np.mean(is_objected)),
        false_verdicts=float(np.mean(is_false)),
        false_by_the_log=float(np.mean(is_false_by_the_log)),
    )


def _agreement(name: str, rows: Sequence[Mapping[str, Any]]) -> Agreement:
    """One quantity over the splits."""

    def mean(column: str) -> float | None:
        values = [row[column] for row in rows if row[column] is not None]
        return float(np.mean(values)) if values else None

    return Agreement(
        stated=float(np.mean([row[name] for row in rows])),
        low=float(np.mean([row[f"{name}_low"] for row in rows])),
        high=float(np.mean([row[f"{name}_high"] for row in rows])),
        held_out=mean(f"{name}_held_out"),
        held_out_error=mean(f"{name}_held_out_error"),
        rate=mean(f"{name}_agrees"),
    )
