"""Which method decides best? Families of systems whose best rule is known.

In each system somebody leaves a log (`planner_tasks`). *Offline*, every method learns a rule from
the first records of the log, and the value of the rule is exact (`long_run`). *Online*, it acts and
learns from there (`planner_agents`). Both are given as a share of what there is to gain,

    share = (value - value of random actions) / (optimum - value of random actions),

so that random actions have 0 and the best rule has 1. Systems in which there is hardly anything to
gain count separately, by the difference itself.

From Python, any function from a log and a goal to a rule can take part:

    scores = offline_scores(
        {"mine": rule_of, **registered_learners()},  # (counts, ideal) -> [S, A], by name
        families=["river swim", "queue"],            # default: the reported ones
        pasts=PASTS, records=RECORDS, systems=40, seed=0, jobs=2,
    )
    scores.mean("mine")                      # of all cells; mean("mine", past="random", records=40)
    scores.overall("mine")                   # mean paired difference to the best of the others
    scores.cells("mine")                     # family x past: means, best other, paired difference
    print(scores.page("mine"))               # the same as Markdown

``learner_of(TLForesight(horizon=50))`` makes a learner of a method with other hyper-parameters.
``of_group("chosen", "planners")`` names the families to choose constants on. With several jobs a
learner must be picklable: a function of a module, or a `functools.partial` of one.
`planner_agents.online_scores` is the same for methods that act and learn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.studies.families import of_group
from pastwise.studies.long_run import long_run_values
from pastwise.studies.planner_agents import EPOCHS, ONLINE_RECORDS, online_parts, registered_agents
from pastwise.studies.planner_tables import OTHERS, Comparison, Outcome, Scores
from pastwise.studies.planner_tasks import (
    PASTS,
    RECORDS,
    Place,
    counts_of,
    ideal_of,
    places,
    reference_values,
)
from pastwise.studies.runner import Part, Runner

# Who learns.

Learner = Callable[[TransitionCounts, IdealModel], FloatArray]
"""From a log and a goal to a rule [S, A]."""


def learner_of(method: AnyMethod) -> Learner:
    """What a method recommends after a log."""
    return partial(_planned_rule, method)


def _planned_rule(method: AnyMethod, counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
    return method.plan(method.start(counts, ideal)).rule


def registered_learners(names: Sequence[str] | None = None) -> dict[str, Learner]:
    """Registered methods with their default hyper-parameters, by name; all by default."""
    return {name: learner_of(methods.create(name)) for name in names or methods.names()}


# From logs alone.


def offline_scores(
    learners: Mapping[str, Learner] | None = None,
    families: Sequence[str] | None = None,
    pasts: Sequence[str] = PASTS,
    records: Sequence[int] = RECORDS,
    systems: int = 40,
    seed: int = 0,
    *,
    numbered: bool = False,
    jobs: int = 1,
) -> Scores:
    """The value of every learner's rule, in shares of what there is to gain.

    Parameters
    ----------
    learners : by name, optional
        All registered methods by default. Random actions need not be among them.
    families : names, optional
        By default the reported ones.
    pasts, records
        Who left the logs, and how long they are.
    systems : int
        Number of systems of each family. In each, every past leaves a log.
    seed : int
    numbered : bool
        Whether states are known by their number alone, also where they have fields.
    jobs : int
        Number of processes.
    """
    learners = registered_learners() if learners is None else learners
    families = of_group("reported", "planners") if families is None else families
    parts = offline_parts(learners, families, pasts, records, systems, seed, numbered)
    return Scores.of_parts(tuple(learners), Runner(jobs).run("Learning", parts, {}))


def offline_parts(
    learners: Mapping[str, Learner],
    families: Sequence[str],
    pasts: Sequence[str],
    records: Sequence[int],
    systems: int,
    seed: int,
    numbered: bool = False,
) -> list[Part[list[dict[str, Any]]]]:
    """A part for every system, with all that happens in it; see `offline_scores`."""
    return [
        partial(offline_part, dict(learners), place, pasts, records)
        for place in places(families, pasts, systems, seed, numbered)
    ]


def offline_part(
    learners: Mapping[str, Learner],
    place: Place,
    pasts: Sequence[str],
    records: Sequence[int],
) -> list[dict[str, Any]]:
    """Outcomes of one system, as plain values."""
    system = place.system()
    ideal = ideal_of(system)
    random, optimum = reference_values(system)

    rows = []
    for past in pasts:
        log = place.log(system, past, max(records))
        for num_records in records:
            first = Transitions(*(column[:num_records] for column in log))
            counts = counts_of(first, system)
            rules = [learn(counts, ideal) for learn in learners.values()]
            values = long_run_values(system, np.stack(rules)).tolist()
            outcome = Outcome(
                family=place.family,
                index=place.index,
                past=past,
                records=num_records,
                num_states=system.num_states,
                num_actions=system.num_actions,
                random=random,
                optimum=optimum,
                values=dict(zip(learners, values, strict=True)),
            )
            rows.append(asdict(outcome))
    return rows


# The study.


@dataclass(frozen=True)
class PlannerStudy:
    """Settings of the study.

    Parameters
    ----------
    candidate : name of a method
        The method in question.
    methods : names of methods
        Who takes part, with the candidate and random actions; all registered ones by default.
    families : names
        By default the reported ones.
    systems, online_systems : int
        Number of systems of each family, offline and online; 0 leaves a part out.
    pasts : names
    records, online_records : numbers
        Lengths of the logs, offline and online.
    epochs : numbers
        Numbers of epochs to act for.
    seed : int
    numbered : bool
        Whether states are known by their number alone, also where they have fields.
    """

    candidate: str = "TL_foresight"
    methods: Sequence[str] = field(default_factory=lambda: tuple(methods.names()))
    families: Sequence[str] = field(default_factory=lambda: of_group("reported", "planners"))
    systems: int = 40
    online_systems: int = 10
    pasts: Sequence[str] = PASTS
    records: Sequence[int] = RECORDS
    online_records: Sequence[int] = ONLINE_RECORDS
    epochs: Sequence[int] = EPOCHS
    seed: int = 0
    numbered: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON."""
        settings = {}
        for name, value in asdict(self).items():
            settings[name] = list(value) if isinstance(value, (tuple, list)) else value
        return settings


def compare_planners(study: PlannerStudy, runner: Runner | None = None) -> Comparison:
    """Run the study: a method against the best of the others, offline and online."""
    if study.systems == 0 and study.online_systems == 0:
        raise ParameterError("no systems, neither offline nor online; give a number of either")
    names = tuple(dict.fromkeys([*study.methods, study.candidate, "Rand"]))
    if not set(names) & set(OTHERS) - {study.candidate}:
        raise ParameterError(
            f"{study.candidate} has nothing to be compared with; add a method, such as TL"
        )
    offline_part_list = offline_parts(
        registered_learners(names),
        study.families,
        study.pasts,
        study.records,
        study.systems,
        study.seed,
        study.numbered,
    )
    online_part_list = online_parts(
        registered_agents(names),
        study.families,
        study.pasts,
        study.online_records,
        study.epochs,
        study.online_systems,
        study.seed,
        study.numbered,
    )

    settings = {"study": "planners", **study.to_dict()}
    parts = [*offline_part_list, *online_part_list]
    results = (runner or Runner()).run("Learning", parts, settings)
    num_offline = len(offline_part_list)
    return Comparison(
        candidate=study.candidate,
        offline=Scores.of_parts(names, results[:num_offline]),
        online=Scores.of_parts(names, results[num_offline:]),
        settings=settings,
    )
