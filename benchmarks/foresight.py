"""Is TL_foresight ever the wrong choice? The paper's study in seven settings, paired.

For each setting and past: the mean gains of the methods that learn, and how far TL_foresight is
from the best of the others, with a 95 % interval over the runs. Nothing is timed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Scale, Section, about
from benchmarks.report import table
from pastwise.studies.paper import PASTS, PaperStudy, collect, dirichlet_rows

SEED = 2026
OTHERS = ("TL", "TL_explore", "FPD_learn")

SETTINGS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "Dirichlet rows": {"sample_rows": dirichlet_rows},
    "20 records": {"num_records": 20},
    "500 records": {"num_records": 500},
    "20 records, Dirichlet rows": {"num_records": 20, "sample_rows": dirichlet_rows},
    "10 states, 5 actions": {"num_states": 10, "num_actions": 5},
    "10 states, 5 actions, Dirichlet rows": {
        "num_states": 10,
        "num_actions": 5,
        "sample_rows": dirichlet_rows,
    },
}


def measure(scale: Scale) -> list[Section]:
    """Run every setting."""
    runs, lines = scale.pick(10, 100, 4000), []
    section = Section(
        "TL_foresight next to the others", f"{runs:,} runs of each setting. {about(__doc__)}"
    )
    methods = (*OTHERS, "TL_foresight")
    for setting, options in SETTINGS.items():
        gains = collect(PaperStudy(runs=runs, seed=SEED, methods=methods, **options))
        for past in PASTS:
            means = {name: float(gains[past, name].mean()) for name in methods}
            best = max(OTHERS, key=means.__getitem__)
            difference = gains[past, "TL_foresight"] - gains[past, best]
            mean, half = difference.mean(), 1.96 * difference.std(ddof=1) / np.sqrt(runs)
            interval = f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"
            lines.append([setting, past, *(f"{value:.2f}" for value in means.values()), interval])
    section.notes.append(
        table(["setting", "past", *methods, "foresight - best other [95 %]"], lines)
    )
    return [section]
