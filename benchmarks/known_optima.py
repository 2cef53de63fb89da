"""Optimal values of published systems, ours next to quantecon's.

ICU-Sepsis and gymnasium's toy systems: the largest probability of ending well from the start, by
our value iteration and by quantecon's policy iteration on the same tables, with a discount so near
to one that it does not show. Both start from the table of transition probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from benchmarks.harness import Contender, Scale, Section, about, require_close
from benchmarks.report import table
from pastwise.studies.systems import KnownSystem, icu_sepsis, toy_system

NEARLY_ONE = 1 - 1e-9


def our_value(system: KnownSystem) -> float:
    """The largest probability of ending well, by pastwise, on a fresh copy of the system."""
    fresh = replace(system)
    return fresh.success_and_length(fresh.best)[0]


def peer_value(system: KnownSystem) -> float:
    """The largest probability of ending well, by quantecon."""
    from quantecon.markov import DiscreteDP

    transition = system.transition.copy()
    reward = transition @ system.success
    transition[system.terminal] = 0.0
    transition[system.terminal, :, system.terminal] = 1.0
    reward[system.terminal] = 0.0
    result = DiscreteDP(reward, transition, NEARLY_ONE).solve(method="policy_iteration")
    return float(result.v @ system.initial)


def measure(scale: Scale) -> list[Section]:
    """The published systems; on ICU-Sepsis quantecon takes its time."""
    section, values = Section("Optimal values of published systems", about(__doc__)), []
    systems = {
        "FrozenLake 4x4": toy_system("FrozenLake-v1"),
        "FrozenLake 8x8": toy_system("FrozenLake-v1", map_name="8x8"),
        "CliffWalking": toy_system("CliffWalking-v1"),
        "Taxi": toy_system("Taxi-v4"),
    }
    if scale.name == "full":
        systems["ICU-Sepsis"] = icu_sepsis()
    for name, system in systems.items():

        def same(results: Mapping[str, float], name: str = name) -> None:
            require_close(results, atol=1e-4)
            values.append([name, *(f"{value:.6f}" for value in results.values())])

        ways = {"pastwise": our_value, "quantecon": peer_value}
        contenders = [Contender(peer, partial(way, system)) for peer, way in ways.items()]
        section.compare(name, contenders, same, rounds=3)
    section.notes.append(table(["system", "pastwise", "quantecon"], values))
    return [section]
