"""Optimal values of published systems, ours beside quantecon's: pip install quantecon.

ICU-Sepsis and gymnasium's toy systems: the largest probability of ending well from the start, by our value iteration
and by quantecon's policy iteration on the same tables, with a discount so near to one that it does not show.
"""

from __future__ import annotations

import time

import numpy as np
from quantecon.markov import DiscreteDP

from pastwise.experiments.known import KnownSystem, icu_sepsis, toy_system

NEARLY_ONE = 1 - 1e-9


def peer_value(system: KnownSystem) -> float:
    """The largest probability of ending well, by quantecon."""
    transition = system.transition.copy()
    reward = transition @ system.success
    transition[system.terminal] = 0.0
    transition[system.terminal, :, system.terminal] = 1.0
    reward[system.terminal] = 0.0
    result = DiscreteDP(reward, transition, NEARLY_ONE).solve(method="policy_iteration")
    return float(result.v @ system.initial)


def main() -> None:
    """Print both values and times; fail where they differ."""
    systems = {
        "ICU-Sepsis": icu_sepsis(),
        "FrozenLake 4x4": toy_system("FrozenLake-v1"),
        "FrozenLake 8x8": toy_system("FrozenLake-v1", map_name="8x8"),
        "CliffWalking": toy_system("CliffWalking-v1"),
        "Taxi": toy_system("Taxi-v4"),
    }
    print(f"{'system':<16}{'ours':>10}{'seconds':>9}{'quantecon':>11}{'seconds':>9}")
    for name, system in systems.items():
        begin = time.perf_counter()
        ours = system.success_and_length(system.best)[0]
        middle = time.perf_counter()
        theirs = peer_value(system)
        end = time.perf_counter()
        print(f"{name:<16}{ours:>10.6f}{middle - begin:>9.2f}{theirs:>11.6f}{end - middle:>9.2f}")
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


if __name__ == "__main__":
    main()
