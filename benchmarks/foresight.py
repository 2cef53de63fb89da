"""Is TL_foresight ever the wrong choice? The paper's study in its own setting and in six others, paired differences.

For each setting and past: the mean gains of the methods that learn, and how far TL_foresight is from the best of the
others, with a 95 % interval over the runs.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from pastwise.experiments.paper import ALL_METHODS, PASTS, PaperStudy, collect, dirichlet_rows

OTHERS = ("TL", "TL_explore", "FPD_learn")

SETTINGS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "Dirichlet rows": {"draw_rows": dirichlet_rows},
    "20 records": {"num_records": 20},
    "500 records": {"num_records": 500},
    "20 records, Dirichlet rows": {"num_records": 20, "draw_rows": dirichlet_rows},
    "10 states, 5 actions": {"num_states": 10, "num_actions": 5},
    "10 states, 5 actions, Dirichlet rows": {"num_states": 10, "num_actions": 5, "draw_rows": dirichlet_rows},
}


def main() -> None:
    """Run every setting and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args()
    methods = {name: ALL_METHODS[name] for name in (*OTHERS, "TL_foresight")}
    print("| setting | past | " + " | ".join(methods) + " | foresight - best other [95 %] |")
    print("|---|---|" + "---|" * (len(methods) + 1))
    for setting, options in SETTINGS.items():
        gains = collect(PaperStudy(runs=given.runs, seed=given.seed, methods=methods, **options))
        for past in PASTS:
            means = {name: float(gains[past, name].mean()) for name in methods}
            best = max(OTHERS, key=means.__getitem__)
            difference = gains[past, "TL_foresight"] - gains[past, best]
            half = 1.96 * difference.std(ddof=1) / np.sqrt(given.runs)
            numbers = " | ".join(f"{mean:.2f}" for mean in means.values())
            mean = difference.mean()
            interval = f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"
            print(f"| {setting} | {past} | {numbers} | {interval} |", flush=True)


if __name__ == "__main__":
    main()
