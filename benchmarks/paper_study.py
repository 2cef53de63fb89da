"""The paper's whole study: by the letter, by NumPy, and by pastwise.

Three pasts and five methods, each a loop of 100 epochs after a log of 60 records, on a new random
system in every run. Ours runs two thousand systems side by side, and Rand and FPD, which do not
read the log, once for all three pasts. The others (`by_the_letter`) run one system at a time, and
fewer of them; their time is scaled. *By the letter* works out every decision anew from the log, as
Section IV-B counts its cost; *plan once* is the same, but plans on a known model once for each
loop. All draw the same random numbers, within the time measured, and must get the same gain in
every run, past and method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from benchmarks.by_the_letter import METHODS, Gains, run_literal, run_vectorised
from benchmarks.harness import Contender, Scale, Section, about
from pastwise.studies.paper import PaperStudy, collect


def run_ours(study: PaperStudy) -> Gains:
    """Gains of the study, by pastwise."""
    return {key: gains.tolist() for key, gains in collect(study).items()}


def require_same_gains(results: Mapping[str, Gains]) -> None:
    """Refuse gains that differ, run by run, on the runs that all did."""
    reference = results["pastwise"]
    for name, gains in results.items():
        if gains.keys() != reference.keys():
            raise AssertionError(
                f"{name}: pasts and methods are {sorted(gains)}, not {sorted(reference)}"
            )
        for (past, method), theirs in gains.items():
            if theirs != reference[past, method][: len(theirs)]:
                raise AssertionError(
                    f"{name} and ours disagree in the gains of {method} after {past}"
                )


def measure(scale: Scale) -> list[Section]:
    """The study of 1,000 runs."""
    runs = scale.pick(20, 1000, 1000)
    section = Section("The paper's study", f"{runs:,} runs. {about(__doc__)}")
    study = PaperStudy(seed=10, methods=METHODS)
    ways: dict[str, tuple[Callable[[PaperStudy], Gains], int]] = {
        "pastwise": (run_ours, runs),
        "by the letter": (run_literal, scale.pick(1, 4, 10)),
        "by the letter, plan once": (partial(run_literal, plan_once=True), scale.pick(1, 4, 10)),
        "NumPy, one run at a time": (run_vectorised, scale.pick(2, 20, 50)),
    }
    contenders = [
        Contender(name, partial(way, replace(study, runs=number)), work=number / runs)
        for name, (way, number) in ways.items()
    ]
    times = section.compare(f"{runs:,} runs", contenders, require_same_gains, rounds=3)
    section.summarise("faster than by the letter", times.faster_than("by the letter"))
    section.summarise("faster than NumPy", times.faster_than("NumPy, one run at a time"))
    return [section]
