"""Do the stated intervals and verdicts hold? Families of systems whose true values are known.

In each system a past leaves a log of episodes, a method learns from it, and the evaluation states
values, differences, verdicts and an alarm from the log alone. The study compares these statements
with the truth and pools the results by family, past, length of the log, and method.

Each system of a family meets one kind of past, one length and one method. Within a family every
past occurs equally often, and so does every length and every method; how they meet is random.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args
from zlib import crc32

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.space import Label
from pastwise.errors import LogWarning, ParameterError
from pastwise.evaluation.result import Evaluation
from pastwise.evaluation.verdict import DEFAULT_THRESHOLDS, Verdict
from pastwise.goals.goal import Goal
from pastwise.policy.learner import TransferLearner
from pastwise.report.study_figures import coverage_plot
from pastwise.report.text import markdown_table, write_csv
from pastwise.studies.families import FAMILIES, of_group
from pastwise.studies.output import save_figure, save_json
from pastwise.studies.runner import Runner
from pastwise.studies.summary import share_interval
from pastwise.studies.synthetic import OWN, PASTS, Log, System, past_rules, simulate

# Settings.

RECORDS = (60, 250, 1000, 10_000)
"""Lengths of the logs: an episode that has begun goes on, so a log may be a little longer."""

Reference = Literal["logged", "random"]
"""What the learned rule is compared with."""

REFERENCES: tuple[Reference, ...] = get_args(Reference)

QUANTITIES: Mapping[str, str] = {
    "new": "new rule",
    "logged": "logged",
    "random": "random",
    "to_logged": "new - logged",
    "to_random": "new - random",
}
"""What the evaluation states intervals of: names and titles."""

HARMFUL_DIFFERENCE = 0.03
"""A rule is harmful if it is worse than random by this share of the range of the score."""

CLEAR_GAIN = 0.1
"""A gain of more than this share of the range of the score should be found,"""

CLEAR_GAIN_RECORDS = 1000
"""in logs of this length."""

NO_DIFFERENCE = 1e-9
"""True differences up to this come from rounding."""

STATED_ERROR = 1e-5
"""Values are stated to this error, at which their recursion stops: see `values.rule_values`. Where
a value is certain, its interval has no width, and the truth may be off it by as much."""

Starts = Literal["given", "log"]
"""Where episodes start: the evaluation is given the distribution, or infers it from the log."""

Level = TypeVar("Level")


@dataclass(frozen=True)
class Case:
    """One system, and what happens in it.

    Attributes
    ----------
    family : str
    index : int
        Number of the system in its family.
    past : str
        Who left the log; see `synthetic.PASTS`.
    records : int
        Length of the log.
    method : str
        Who learns from it.
    """

    family: str
    index: int
    past: str
    records: int
    method: str


@dataclass(frozen=True)
class Design:
    """The cases of a study.

    Attributes
    ----------
    families : names
    systems : int
        Number of systems of each family.
    samples : int
        Number of models that an evaluation samples.
    seed : int
    starts : "given" or "log"
        Whether an evaluation is given the distribution of starts.
    pasts, methods : names
    records : lengths of logs
    """

    families: tuple[str, ...]
    systems: int
    samples: int
    seed: int
    starts: Starts
    pasts: tuple[str, ...]
    records: tuple[int, ...]
    methods: tuple[str, ...]

    def case(self, family: str, index: int) -> Case:
        """What happens in a system; it does not depend on the number of systems."""
        return Case(
            family,
            index,
            past=self._balanced("past", self.pasts, family, index),
            records=self._balanced("records", self.records, family, index),
            method=self._balanced("method", self.methods, family, index),
        )

    def _balanced(self, name: str, levels: Sequence[Level], family: str, index: int) -> Level:
        """Each level once, in random order, then each once again, and so on."""
        block, place = divmod(index, len(levels))
        rng = np.random.default_rng([self.seed, crc32(f"{family} {name}".encode()), block])
        return levels[int(rng.permutation(len(levels))[place])]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: _listed(value) for name, value in asdict(self).items()}


def _listed(value: Any) -> Any:
    """A tuple as a list, which is what it is in JSON."""
    return list(value) if isinstance(value, tuple) else value


def learning_methods() -> tuple[str, ...]:
    """The registered methods that learn from a log, without references."""
    entries = methods.entries()
    return tuple(name for name in methods.names() if not entries[name].is_reference)


# One system.


@dataclass(frozen=True)
class Stated:
    """A stated mean and interval, and the truth."""

    mean: float
    low: float
    high: float
    truth: float

    @property
    def covers(self) -> bool:
        """Whether the interval contains the truth, up to `STATED_ERROR`."""
        return self.low - STATED_ERROR <= self.truth <= self.high + STATED_ERROR

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low


@dataclass(frozen=True)
class Outcome:
    """What was stated about one system, and the truth.

    Attributes
    ----------
    case : Case
    num_states, num_actions : int
        Size of the system.
    stated : by the names of `QUANTITIES`
    verdict : by reference
    alarm : bool
        Whether the alarm of negative transfer was raised.
    objections : tuple of str
        Codes of the objections, which turn a verdict into "cannot tell".
    outside : float
        True share of time that the rule spends in states which the log does not have. No statement
        from the log can know of these.
    """

    case: Case
    num_states: int
    num_actions: int
    stated: Mapping[str, Stated]
    verdict: Mapping[str, Verdict]
    alarm: bool
    objections: tuple[str, ...] = ()
    outside: float = 0.0

    @property
    def family(self) -> str:
        """Family of the system."""
        return self.case.family

    @property
    def actions(self) -> str:
        """Whether actions have any effect in the family."""
        return WITHOUT_EFFECT if FAMILIES[self.family].is_null else WITH_EFFECT

    @property
    def past(self) -> str:
        """Who left the log."""
        return self.case.past

    @property
    def records(self) -> int:
        """Length of the log."""
        return self.case.records

    @property
    def method(self) -> str:
        """Who learned from it."""
        return self.case.method

    def gain(self, reference: Reference) -> float:
        """True value of the rule minus that of a reference."""
        return self.stated[f"to_{reference}"].truth

    def is_decided(self, reference: Reference) -> bool:
        """Whether the verdict decides."""
        return self.verdict[reference] != "cannot tell"

    def is_equal(self, reference: Reference) -> bool:
        """Whether there is no true difference, so that any decision is false."""
        return abs(self.gain(reference)) <= NO_DIFFERENCE

    def is_wrong(self, reference: Reference) -> bool:
        """Whether the verdict says the opposite of the truth."""
        if self.is_equal(reference):
            return False
        opposite: Verdict = "worse" if self.gain(reference) > 0 else "better"
        return self.verdict[reference] == opposite

    def is_clear_gain(self, reference: Reference) -> bool:
        """Whether the log is long and the rule so much better that this should be found."""
        is_long = self.records == CLEAR_GAIN_RECORDS
        return is_long and self.gain(reference) > CLEAR_GAIN

    @property
    def is_harmful(self) -> bool:
        """Whether the rule is clearly worse than acting at random."""
        return self.gain("random") <= -HARMFUL_DIFFERENCE

    @property
    def is_harmless(self) -> bool:
        """Whether the rule is worse neither than acting at random nor than what was done."""
        return min(self.gain(reference) for reference in REFERENCES) >= -NO_DIFFERENCE

    def to_dict(self) -> dict[str, Any]:
        """One level of names and plain values, for a table or JSON."""
        row: dict[str, Any] = asdict(self.case)
        row["num_states"] = self.num_states
        row["num_actions"] = self.num_actions
        for quantity, stated in self.stated.items():
            for name, number in asdict(stated).items():
                row[f"{quantity}_{name}"] = number
        for reference, verdict in self.verdict.items():
            row[f"verdict_{reference}"] = verdict
        row["alarm"] = self.alarm
        row["objections"] = " ".join(self.objections)
        row["outside"] = self.outside
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Outcome:
        """The outcome that `to_dict` described."""
        stated = {}
        for quantity in QUANTITIES:
            numbers = {name: row[f"{quantity}_{name}"] for name in Stated.__annotations__}
            stated[quantity] = Stated(**numbers)
        return cls(
            case=Case(**{name: row[name] for name in Case.__annotations__}),
            num_states=row["num_states"],
            num_actions=row["num_actions"],
            stated=stated,
            verdict={reference: row[f"verdict_{reference}"] for reference in REFERENCES},
            alarm=row["alarm"],
            objections=tuple(row["objections"].split()),
            outside=row["outside"],
        )


def run_case(case: Case, *, samples: int = 400, seed: int = 0, starts: Starts = "given") -> Outcome:
    """What is stated about one system, compared with the truth.

    Parameters
    ----------
    case : Case
    samples : int
        Number of models that the evaluation samples.
    seed : int
        Seed of the system and of its log.
    starts : "given" or "log"
        Whether the evaluation is given the distribution of starts.
    """
    family = FAMILIES[case.family]
    system = family.system(seed, case.index)
    rng = np.random.default_rng(family.seeds(seed, case.index).spawn(1)[0])

    # The past leaves a log, from which a method learns.
    if case.past == OWN:
        learner, rules, other_log = _rule_in_use(case, system, rng)
    else:
        rules = past_rules(system, case.past, rng)
        learner = _learned(_log_with_goal(system, rules, case.records, rng), system, case.method)
        other_log = None

    # Its rule is evaluated, and the statements are compared with the truth.
    judged = system.judged_on(_known_states(learner))
    if starts == "given":
        judged = judged.starting_in(_known_states(learner))
    initial = judged.initial if starts == "given" else None
    evaluation = _statements(learner, other_log, system.horizon, initial, samples, case.index)
    return _outcome(case, judged, learner, rules, evaluation)


def _rule_in_use(
    case: Case, system: System, rng: np.random.Generator, first_records: int = 10_000
) -> tuple[TransferLearner, FloatArray, Log]:
    """A learner, its rule [1, S, A] over the whole system, and the log that this rule leaves.

    Parameters
    ----------
    first_records : int
        Records of the log from random actions that the rule was learned from: enough to see nearly
        all states of the families here. Episodes with further states are left out, as a log with
        new states could not be evaluated.
    """
    while True:
        first_log = _log_with_goal(system, past_rules(system, "random", rng), first_records, rng)
        learner = _learned(first_log, system, case.method)
        rules = _whole_rule(learner, system)[None]
        own_log = simulate(system, rules, case.records, rng).within(first_log.states)
        if len(own_log):
            return learner, rules, own_log

        # All its episodes met new states: learn from a longer log.
        first_records *= 2


def _log_with_goal(
    system: System, rules: FloatArray, num_records: int, rng: np.random.Generator
) -> Log:
    """A log in which some state of a positive score occurs, since a goal must name one.

    A log without any is replaced by one that is longer by a tenth.
    """
    log = simulate(system, rules, num_records, rng)
    while not system.score[log.states].any():
        num_records += -(-num_records // 10)
        log = simulate(system, rules, num_records, rng)
    return log


# All that the study asks of the library: learn from a table, evaluate.


def _learned(log: Log, system: System, method: str) -> TransferLearner:
    """A learner after a log, as a user would make it."""
    goal = Goal(prefer={int(s): float(system.score[s]) for s in log.states if system.score[s] > 0})
    learner = TransferLearner(goal, method=method)
    ends = np.intersect1d(log.states, system.terminal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        return learner.fit(
            log.table(),
            state="state",
            action="action",
            next_state="next_state",
            episode="episode",
            time="time",
            terminal=ends.tolist(),
        )


def _statements(
    learner: TransferLearner,
    log: Log | None,
    horizon: int,
    initial: FloatArray | None,
    samples: int,
    seed: int,
) -> Evaluation:
    """What is stated about the learner's rule from its own log, or from another one.

    The horizon and, unless it is None, the distribution of starts [S] are given, so that statements
    and truth are of the same quantity.
    """
    starts: dict[Label, float] | None = None
    if initial is not None:
        starts = {int(state): float(initial[state]) for state in np.flatnonzero(initial)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        evaluation = learner.evaluate(
            None if log is None else log.table(),
            initial=starts,
            horizon=horizon,
            samples=samples,
            seed=seed,
        )
    if evaluation.samples < samples:
        raise KeyboardInterrupt  # it cut the sampling short
    return evaluation


def _known_states(learner: TransferLearner) -> IntArray:
    """The states that the learner has labels of: [number]."""
    return np.array(learner.counts_.states.labels, dtype=np.int64)


def _known_actions(learner: TransferLearner) -> IntArray:
    """The actions that the learner has labels of: [number]."""
    return np.array(learner.counts_.actions.labels, dtype=np.int64)


def _whole_rule(learner: TransferLearner, system: System) -> FloatArray:
    """The learned rule over all states and actions; uniform in states without a label: [S, A]."""
    rule = _uniform_rule(learner, system)
    known = np.ix_(_known_states(learner), _known_actions(learner))
    rule[known] = learner.rule_.probabilities
    return rule


def _uniform_rule(learner: TransferLearner, system: System) -> FloatArray:
    """The same probability for every action that the log has: [S, A]."""
    actions = _known_actions(learner)
    rule = np.zeros((system.num_states, system.num_actions))
    rule[:, actions] = 1 / len(actions)
    return rule


def _outcome(
    case: Case,
    system: System,
    learner: TransferLearner,
    past: FloatArray,
    evaluation: Evaluation,
) -> Outcome:
    """Statements next to the truth, of which ``past`` [M, S, A] is what was done."""
    new_rule = _whole_rule(learner, system)
    truth = {
        "new": system.value(new_rule),
        "logged": system.value(past),
        "random": system.value(_uniform_rule(learner, system)),
    }
    for reference in REFERENCES:
        truth[f"to_{reference}"] = truth["new"] - truth[reference]

    all_states = np.arange(system.num_states)
    unknown_states = np.setdiff1d(all_states, _known_states(learner))
    intervals = {**evaluation.values, **evaluation.differences}
    stated = {}
    for quantity in QUANTITIES:
        interval = intervals[quantity]
        stated[quantity] = Stated(interval.mean, interval.low, interval.high, truth[quantity])
    return Outcome(
        case=case,
        num_states=system.num_states,
        num_actions=system.num_actions,
        stated=stated,
        verdict={reference: evaluation.verdict[reference] for reference in REFERENCES},
        alarm=bool(evaluation.alarm),
        objections=tuple(objection.code for objection in evaluation.objections),
        outside=system.share_of_time(new_rule, unknown_states),
    )


# Rates.


@dataclass(frozen=True)
class Share:
    """How many of so many cases."""

    number: int
    of: int

    @classmethod
    def count(cls, hits: Iterable[bool]) -> Share:
        """The share of cases that are true."""
        cases = list(hits)
        return cls(sum(cases), len(cases))

    @property
    def rate(self) -> float | None:
        """The share; None if there is no case."""
        return self.number / self.of if self.of else None

    def __str__(self) -> str:
        return "" if self.rate is None else f"{100 * self.rate:.0f} %"


@dataclass(frozen=True)
class Rates:
    """How often statements hold, over some evaluations.

    Attributes
    ----------
    evaluations : int
    coverage, width : by the names of `QUANTITIES`
        Share of intervals that contain the truth; mean width of the intervals.
    decided, wrong : by reference
        Verdicts other than "cannot tell"; verdicts that say the opposite of the truth.
    false, false_better : by reference
        Where there is no true difference: verdicts that decide; verdicts "better".
    found : by reference
        Where there is a clear gain in a log of `CLEAR_GAIN_RECORDS`: verdicts "better".
    caught, false_alarms : Share
        Alarms among harmful cases, and among harmless ones.
    objected : Share
        Cases in which an objection overrules the verdicts.
    """

    evaluations: int
    coverage: Mapping[str, Share]
    width: Mapping[str, float]
    decided: Mapping[Reference, Share]
    wrong: Mapping[Reference, Share]
    false: Mapping[Reference, Share]
    false_better: Mapping[Reference, Share]
    found: Mapping[Reference, Share]
    caught: Share
    false_alarms: Share
    objected: Share

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Rates:
        """Rates over some outcomes, at least one."""
        coverage = {}
        width = {}
        for name in QUANTITIES:
            coverage[name] = Share.count(x.stated[name].covers for x in outcomes)
            width[name] = float(np.mean([x.stated[name].width for x in outcomes]))

        decided: dict[Reference, Share] = {}
        wrong: dict[Reference, Share] = {}
        false: dict[Reference, Share] = {}
        false_better: dict[Reference, Share] = {}
        found: dict[Reference, Share] = {}
        for name in REFERENCES:
            equal = [x for x in outcomes if x.is_equal(name)]
            clear = [x for x in outcomes if x.is_clear_gain(name)]
            decided[name] = Share.count(x.is_decided(name) for x in outcomes)
            wrong[name] = Share.count(x.is_wrong(name) for x in outcomes)
            false[name] = Share.count(x.is_decided(name) for x in equal)
            false_better[name] = Share.count(x.verdict[name] == "better" for x in equal)
            found[name] = Share.count(x.verdict[name] == "better" for x in clear)

        return cls(
            evaluations=len(outcomes),
            coverage=coverage,
            width=width,
            decided=decided,
            wrong=wrong,
            false=false,
            false_better=false_better,
            found=found,
            caught=Share.count(x.alarm for x in outcomes if x.is_harmful),
            false_alarms=Share.count(x.alarm for x in outcomes if x.is_harmless),
            objected=Share.count(len(x.objections) > 0 for x in outcomes),
        )

    def to_dict(self) -> dict[str, Any]:
        """One level of names and plain values: shares, and where they vary the numbers of cases."""
        row: dict[str, Any] = {"evaluations": self.evaluations}
        for name in QUANTITIES:
            row[f"cover_{name}"] = self.coverage[name].rate
            row[f"width_{name}"] = self.width[name]
        for name in REFERENCES:
            row[f"decided_{name}"] = self.decided[name].rate
            row[f"wrong_{name}"] = self.wrong[name].rate
            row[f"equal_{name}"] = self.false[name].of
            row[f"false_{name}"] = self.false[name].rate
            row[f"false_better_{name}"] = self.false_better[name].rate
            row[f"clear_gains_{name}"] = self.found[name].of
            row[f"found_{name}"] = self.found[name].rate
        row["objected"] = self.objected.rate
        row["harmful"] = self.caught.of
        row["caught"] = self.caught.rate
        row["harmless"] = self.false_alarms.of
        row["false_alarms"] = self.false_alarms.rate
        return row


# The study.

POOLED_BY = ("family", "actions", "past", "records", "method")
"""What the rates are given for, each pooled over all others."""

WITHOUT_EFFECT = "without effect"
WITH_EFFECT = "with effect"
"""The two kinds of actions, by which families are pooled."""

BLOCK_SIZE = 5
"""Systems of a family that are one part of the study."""


@dataclass(frozen=True)
class Calibration:
    """Results of the study.

    Attributes
    ----------
    design : Design
    outcomes : list of Outcome
        Family by family.
    """

    design: Design
    outcomes: Sequence[Outcome]

    @property
    def overall(self) -> Rates:
        """Rates over all evaluations."""
        return Rates.of(self.outcomes)

    def pooled(self, by: str) -> dict[str, Rates]:
        """Rates for each level of one of `POOLED_BY` that occurs, in their order."""
        levels: dict[str, Sequence[Any]] = {
            "family": self.design.families,
            "actions": (WITHOUT_EFFECT, WITH_EFFECT),
            "past": self.design.pasts,
            "records": self.design.records,
            "method": self.design.methods,
        }
        rates = {}
        for level in levels[by]:
            chosen = [x for x in self.outcomes if getattr(x, by) == level]
            if chosen:
                rates[str(level)] = Rates.of(chosen)
        return rates

    def rows(self) -> list[dict[str, Any]]:
        """All rates, as rows of a table: overall, then by each of `POOLED_BY`."""
        rows = [{"by": "all", "level": "all", **self.overall.to_dict()}]
        for by in POOLED_BY:
            for level, rates in self.pooled(by).items():
                rows.append({"by": by, "level": level, **rates.to_dict()})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"settings": self.design.to_dict(), "rows": self.rows()}

    def write(self, folder: Path) -> None:
        """Write tables, the page and the figure into a folder."""
        write_csv(folder / "calibration.csv", self.rows())
        write_csv(folder / "evaluations.csv", [x.to_dict() for x in self.outcomes])
        save_json(folder / "calibration.json", self.to_dict())
        (folder / "calibration.md").write_text(self.page(), encoding="utf-8")
        figure = coverage_plot(self._coverage(), DEFAULT_THRESHOLDS.level)
        save_figure(figure, folder, "calibration")

    def _coverage(self) -> dict[str, dict[str, Any]]:
        """For the figure: quantity -> family -> share with its interval."""
        by_family = self.pooled("family")
        panels = {}
        for name, title in QUANTITIES.items():
            shares = {}
            for family, rates in by_family.items():
                share = rates.coverage[name]
                shares[family] = share_interval(share.number, share.of)
            panels[title] = shares
        return panels

    def page(self) -> str:
        """The rates as a page of Markdown."""
        lines = [
            f"{len(self.outcomes):,} systems of {len(self.design.families)} families, "
            f"{self.design.samples} samples each.",
            "",
        ]
        for by in POOLED_BY:
            rates = {**self.pooled(by), "all": self.overall}
            lines += [f"## By {by}", "", *_interval_table(by, rates), ""]
            lines += [*_verdict_table(by, rates), ""]

        descriptions = []
        for name in self.design.families:
            family = FAMILIES[name]
            descriptions.append([name, family.group, family.summary])
        lines += ["## Families", ""]
        lines += [*markdown_table(["family", "group", "systems"], descriptions), ""]
        return "\n".join(lines)


def _interval_table(by: str, rates: Mapping[str, Rates]) -> list[str]:
    """Coverage of the intervals of each quantity, with their mean width."""
    rows = []
    for level, rate in rates.items():
        cells = [f"{rate.coverage[name]} ({rate.width[name]:.2f})" for name in QUANTITIES]
        rows.append([level, str(rate.evaluations), *cells])
    titles = [f"{title} (width)" for title in QUANTITIES.values()]
    return markdown_table([by, "systems", *titles], rows)


def _verdict_table(by: str, rates: Mapping[str, Rates]) -> list[str]:
    """Verdicts against both references, logged / random, and the alarm."""
    rows = []
    for level, rate in rates.items():
        cells = []
        for shares in (rate.decided, rate.wrong):
            cells.append(" / ".join(str(shares[name]) for name in REFERENCES))
        for shares in (rate.false, rate.false_better, rate.found):
            cells.append(" / ".join(_with_number(shares[name]) for name in REFERENCES))
        cells.append(_with_number(rate.caught))
        cells.append(_with_number(rate.false_alarms))
        cells.append(str(rate.objected))
        rows.append([level, *cells])
    titles = [
        "decided",
        "opposite of the truth",
        "decided where equal",
        '"better" where equal',
        "clear gain found",
        "harm caught",
        "false alarm",
        "objections",
    ]
    return markdown_table([by, *titles], rows)


def _with_number(share: Share) -> str:
    """A share with the number of cases behind it."""
    return f"{share} of {share.of}" if share.of else "-"


def calibrate(
    families: Sequence[str] | None = None,
    *,
    systems: int = 100,
    samples: int = 400,
    seed: int = 0,
    starts: Starts = "given",
    pasts: Sequence[str] = PASTS,
    records: Sequence[int] = RECORDS,
    methods: Sequence[str] | None = None,
    runner: Runner | None = None,
) -> Calibration:
    """Run the study.

    Parameters
    ----------
    families : names, optional
        By default those of the group "reported".
    systems : int
        Number of systems of each family.
    samples : int
        Number of models that an evaluation samples. 400 fix the bounds of an interval to about
        3 % of its width.
    starts : "given" or "log"
        Whether an evaluation is given the distribution of starts, or infers it from the log.
    pasts, records, methods
        What the cases are made of; all by default.
    """
    design = Design(
        families=tuple(families or of_group("reported", "calibration")),
        systems=systems,
        samples=samples,
        seed=seed,
        starts=starts,
        pasts=tuple(pasts),
        records=tuple(records),
        methods=tuple(methods or learning_methods()),
    )
    unknown = [name for name in design.families if name not in FAMILIES]
    if unknown:
        raise ParameterError(f"unknown family {unknown[0]!r}; choose of {', '.join(FAMILIES)}")

    # A part is a block of systems of one family.
    parts = []
    for family in design.families:
        for start in range(0, systems, BLOCK_SIZE):
            indices = range(start, min(start + BLOCK_SIZE, systems))
            parts.append(partial(_block, design, family, indices))
    settings = {"study": "calibration", **design.to_dict()}
    blocks = (runner or Runner()).run("Simulating", parts, settings)
    outcomes = [Outcome.from_dict(row) for block in blocks for row in block]
    return Calibration(design, outcomes)


def _block(design: Design, family: str, indices: Iterable[int]) -> list[dict[str, Any]]:
    """Outcomes of some systems of a family, as plain values."""
    rows = []
    for index in indices:
        outcome = run_case(
            design.case(family, index),
            samples=design.samples,
            seed=design.seed,
            starts=design.starts,
        )
        rows.append(outcome.to_dict())
    return rows
