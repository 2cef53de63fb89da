"""A hand-made evaluation, and parts of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pastwise._numerics.interval import Interval
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary, random_folds
from pastwise.evaluation.result import Evaluation, EvaluationSupport
from pastwise.evaluation.verdict import Alarm, Comparison, Verdict


def episode_summary(
    counts: TransitionCounts,
    by_action: Sequence[int],
    number: int = 20,
    records: int = 200,
    several: int = 20,
    varied: int = 15,
) -> EpisodeSummary:
    """Episodes with freely chosen numbers: by default twenty long ones in which actions vary."""
    return EpisodeSummary(
        number=number,
        records=records,
        shortest=1,
        median=records // number,
        longest=records,
        starts=np.zeros(len(counts.states), dtype=np.int64),
        varied=varied,
        several=several,
        by_action=np.array(by_action, dtype=np.int64),
        folds=random_folds(counts),
    )


def comparison(
    reference: str, mean: float, low: float, high: float, by_the_log: Verdict
) -> Comparison:
    """A comparison to which nobody objects; its reported interval is a little narrower."""
    narrower = 0.1 * (high - low)
    return Comparison(
        reference=reference,
        difference=Interval(mean, low + narrower, high - narrower, 0.9),
        deciding=Interval(mean, low, high, 0.95),
        by_the_log=by_the_log,
        verdict=by_the_log,
        chance_better=0.99,
    )


EVALUATION = Evaluation(
    values={
        "new": Interval(0.464, 0.45, 0.48, 0.9),
        "logged": Interval(0.411, 0.4, 0.42, 0.9),
        "random": Interval(0.3, 0.28, 0.32, 0.9),
        "optimum": Interval(0.6, 0.5, 0.7, 0.9),
    },
    comparisons={
        "logged": comparison("logged", 0.053, 0.041, 0.066, "better"),
        "random": comparison("random", 0.164, 0.1, 0.2, "better"),
    },
    alarm=Alarm(
        expected_difference=0.15,
        limit=0.003,
        chance_of_harm=0.03,
        harm=0.03,
        worse_than_logged=False,
    ),
    objections=(),
    margin=0.01,
    unit="12 episodes, 440 records",
    support=EvaluationSupport(440, 179.0, 208.1, 0.99, 5, ("hot",), 12),
    measure="share of time as wanted",
    horizon=100,
    design_effect=1.0,
    samples=400,
    samples_requested=400,
)
