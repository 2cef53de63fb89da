"""TL_foresight next to its peers, on systems whose best rule is known: ``study planners``.

Run it from the root of the repository: ``python -m benchmarks.peers.planners``. The parts are

`offline`
    The NumPy learners of `offline`, on logs of all pasts and lengths.
`trees`
    Fitted Q iteration with extra trees, which takes longer, on fewer logs.
`deep`
    d3rlpy's DiscreteBC and DiscreteCQL, which take minutes for each log, on very few. They need an
    environment of their own, see README.md; ``--deep`` adds them.
`online`
    Posterior sampling that acts and learns.
`skill`
    TL_foresight with a skill of the past that trees predict (`skill`): trees of the families to
    choose on, and, as no user could have them, of other systems of the very families of the table.
`sepsis`
    Survival under the rules learned from logs of the ICU-Sepsis expert. *Known values* knows the
    value of every next state under the best rule, and has the rows of TL_foresight's posterior and
    the past's example, with several weights.

Every learner gets the same counts and the same goal. The mean share of what there is to gain comes
first, then the mean of TL_foresight less each peer, paired, with a 95 % interval over systems.
Discounts and constants of the peers were chosen on the families to choose on, the tables are of the
others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import offline
from benchmarks.peers.deep import ALGORITHMS, learn_deep
from benchmarks.peers.sampling import PosteriorSampling, count_tensor
from benchmarks.peers.skill import learned_skill
from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval
from pastwise.data.counts import TransitionCounts
from pastwise.evaluation.values import value_until_absorption
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from pastwise.methods.foresight import TLForesight
from pastwise.report.text import markdown_table
from pastwise.studies.families import of_group
from pastwise.studies.icu import icu_settings
from pastwise.studies.planner_agents import online_scores, registered_agents
from pastwise.studies.planner_tables import Scores
from pastwise.studies.planners import Learner, offline_scores, registered_learners
from pastwise.studies.summary import mean_interval
from pastwise.studies.systems import KnownSystem

OURS = "TL_foresight"
REFERENCES = ("TL", "FPD_learn", "clone")
"""Other methods of pastwise that the tables show."""

EXAMPLES = (0, 1, 2, 4)
"""Weights of the example for who knows the values of all next states."""

DEEP_SEEDS = 2
"""Trainings on each log; their mean is reported."""


# The learners.


def learn_from_counts(
    learner: Callable[..., FloatArray],
    needs_chance: bool,
    counts: TransitionCounts,
    ideal: IdealModel,
) -> FloatArray:
    """The rule of a learner of `offline`: [S, A].

    Random numbers follow from the log, so that a result does not depend on what ran before.
    """
    score = Utility.of(ideal, counts.terminal).next_state_part[0, 0]
    given = (count_tensor(counts), score, counts.terminal, offline.DISCOUNT)
    if not needs_chance:
        return learner(*given)
    seeds = [counts.num_records, int(counts.key.sum())]
    return learner(*given, rng=np.random.default_rng(seeds))


NUMPY_PEERS: Mapping[str, Learner] = {
    "certainty equivalence": partial(learn_from_counts, offline.certainty_equivalence, False),
    "SPIBB": partial(learn_from_counts, offline.spibb, False),
    "soft SPIBB": partial(learn_from_counts, offline.soft_spibb, False),
    "posterior sampling": partial(learn_from_counts, offline.posterior_sampling, True),
}
TREE_PEERS: Mapping[str, Learner] = {
    "fitted Q iteration": partial(learn_from_counts, offline.fitted_q_iteration, True),
}


def sampling_agent(epochs: int) -> PosteriorSampling:
    """Posterior sampling for any number of epochs."""
    return PosteriorSampling()


# Tables.


def page(scores: Scores, peers: Sequence[str], levels: Sequence[str]) -> list[str]:
    """Means of all methods, then paired differences to the peers, by each level: Markdown."""
    lines = []
    for level in levels:
        choices = list(dict.fromkeys(getattr(outcome, level) for outcome in scores.to_gain))
        groups = {str(choice): scores.where(**{level: choice}) for choice in choices}
        groups["all"] = scores
        means = []
        differences = []
        for name, group in groups.items():
            means.append([name, *[f"{group.mean(method):.3f}" for method in scores.methods]])
            intervals = [group.overall(OURS, [peer]) for peer in peers]
            differences.append([name, *[shown(interval) for interval in intervals]])
        lines += [*markdown_table([level, *scores.methods], means), ""]
        header = [level, *[f"{OURS} - {peer}" for peer in peers]]
        lines += [*markdown_table(header, differences), ""]
    return lines


def cell_table(scores: Scores, peers: Sequence[str]) -> list[str]:
    """Every family with every past: Markdown."""
    rows = []
    for cell in scores.cells(OURS, peers):
        means = [f"{cell.means[method]:.2f}" for method in scores.methods]
        rows.append([cell.family, cell.past, *means, cell.best_other, shown(cell.difference)])
    header = ["family", "past", *scores.methods, "best peer", f"{OURS} - best peer"]
    return [*markdown_table(header, rows), ""]


def shown(interval: Interval) -> str:
    """A difference with its interval."""
    return f"{interval.mean:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"


# The parts.


def scores_of(learners: Mapping[str, Learner], options: argparse.Namespace) -> Scores:
    """Learners on logs of all pasts and lengths."""
    return offline_scores(
        learners,
        families=options.families,
        systems=options.systems,
        seed=options.seed,
        jobs=options.jobs,
    )


def run_offline(options: argparse.Namespace) -> list[str]:
    """Learners in plain NumPy."""
    learners = {**registered_learners([OURS, *REFERENCES]), **NUMPY_PEERS}
    scores = scores_of(learners, options)
    lines = [f"## From logs alone: {len(scores.outcomes):,} logs", ""]
    lines += page(scores, list(NUMPY_PEERS), ("past", "family", "records"))
    if options.cells:
        lines += cell_table(scores, list(NUMPY_PEERS))
    return lines


def run_trees(options: argparse.Namespace) -> list[str]:
    """Fitted Q iteration."""
    learners = {**registered_learners([OURS, *REFERENCES]), **TREE_PEERS}
    scores = offline_scores(
        learners,
        families=options.families,
        records=(40, 640),
        systems=options.tree_systems,
        seed=options.seed,
        jobs=options.jobs,
    )
    lines = [f"## Extra trees: {len(scores.outcomes):,} logs of 40 and 640 records", ""]
    return lines + page(scores, list(TREE_PEERS), ("past", "family"))


def run_deep(options: argparse.Namespace) -> list[str]:
    """d3rlpy; the value of an algorithm is the mean over its trainings."""
    trainings: dict[str, Learner] = {}
    for algorithm in ALGORITHMS:
        for seed in range(DEEP_SEEDS):
            trainings[f"{algorithm}, seed {seed}"] = partial(learn_deep, algorithm, seed)
    ours = registered_learners([OURS, *REFERENCES])
    scores = offline_scores(
        {**ours, **trainings},
        families=options.deep_families,
        pasts=options.deep_pasts,
        records=(640,),
        systems=options.deep_systems,
        seed=options.seed,
        jobs=options.jobs,
    )

    # The trainings on a log become one value for each algorithm.
    outcomes = []
    for outcome in scores.outcomes:
        values = {name: outcome.values[name] for name in ours}
        for algorithm in ALGORITHMS:
            by_seed = [outcome.values[f"{algorithm}, seed {seed}"] for seed in range(DEEP_SEEDS)]
            values[algorithm] = float(np.mean(by_seed))
        outcomes.append(replace(outcome, values=values))
    merged = Scores((*ours, *ALGORITHMS), outcomes)

    lines = [f"## d3rlpy: {len(outcomes):,} logs of 640 records, {DEEP_SEEDS} trainings each", ""]
    return lines + page(merged, ALGORITHMS, ("past", "family"))


def run_online(options: argparse.Namespace) -> list[str]:
    """Posterior sampling that acts and learns."""
    agents: dict[str, Any] = registered_agents([OURS, "TL", "FPD_learn"])
    agents["posterior sampling"] = sampling_agent
    scores = online_scores(
        agents,
        families=options.families,
        systems=options.online_systems,
        seed=options.seed,
        jobs=options.jobs,
    )
    lines = [f"## Acting and learning: {len(scores.outcomes):,} outcomes", ""]
    return lines + page(scores, ["posterior sampling"], ("past", "family", "records", "epochs"))


def run_skill(options: argparse.Namespace) -> list[str]:
    """Skills of the past that trees predict."""
    learners: dict[str, Learner] = {
        **registered_learners([OURS, *REFERENCES]),
        "learned skill": learned_skill(options.skill_systems, options.seed + 1),
        "learned here": learned_skill(options.skill_systems, options.seed + 1, options.families),
    }
    scores = scores_of(learners, options)
    lines = [f"## Learned skill: {len(scores.outcomes):,} logs", ""]
    return lines + page(scores, ["learned skill", "learned here"], ("past", "family", "records"))


def known_values(
    system: KnownSystem, example: float, counts: TransitionCounts, ideal: IdealModel
) -> FloatArray:
    """The actions of the best index, if the value of every next state is known: [S, A].

    The index is that of TL_foresight, with what an example of this weight adds.
    """
    loop = system.closed_loop(system.best)
    survival = value_until_absorption(loop, (loop @ system.success)[None], system.terminal)
    value = survival + system.success

    # The index, from what TL_foresight starts with.
    memory = TLForesight().start(counts, ideal)
    belief = memory.belief
    expected = belief.mean(value)
    variance = np.maximum(belief.mean(value**2) - expected**2, 0.0) / (belief.weight + 1)
    index = expected + example * memory.past.preference * np.sqrt(variance)
    return np.asarray(np.eye(system.num_actions)[index[0].argmax(axis=-1)])


def run_sepsis(options: argparse.Namespace) -> list[str]:
    """Survival after logs of the published expert, sampled as the study icu-sepsis does."""
    setting = icu_settings()[0]
    learners: dict[str, Learner] = {
        **registered_learners([OURS, *REFERENCES]),
        **NUMPY_PEERS,
        **TREE_PEERS,
        **{
            f"known values, example {weight:g}": partial(known_values, setting.system, weight)
            for weight in EXAMPLES
        },
    }
    lines = [f"## ICU-Sepsis: survival, {options.sepsis_logs} logs of each size", ""]
    for episodes in options.episodes:
        survival: dict[str, list[float]] = {name: [] for name in learners}
        for index in range(options.sepsis_logs):
            seed = np.random.SeedSequence(options.seed, spawn_key=(0, episodes, index))
            counts = setting.log(episodes, np.random.default_rng(seed))
            ideal = setting.goal().on(counts.states, counts.actions)
            for name, learn in learners.items():
                survival[name].append(setting.success(learn(counts, ideal)))

        rows = []
        for name, values in survival.items():
            ours_less = np.array(survival[OURS]) - np.array(values)
            difference = "" if name == OURS else shown4(mean_interval(ours_less))
            rows.append([name, f"{np.mean(values):.4f}", f"{min(values):.4f}", difference])
        header = [f"{episodes:,} episodes", "mean", "least", f"{OURS} - this"]
        lines += [*markdown_table(header, rows), ""]
    return lines


def shown4(interval: Interval) -> str:
    """A difference of survivals with its interval."""
    return f"{interval.mean:+.4f} ({interval.low:+.4f} to {interval.high:+.4f})"


PARTS: Mapping[str, Callable[[argparse.Namespace], list[str]]] = {
    "offline": run_offline,
    "trees": run_trees,
    "deep": run_deep,
    "online": run_online,
    "skill": run_skill,
    "sepsis": run_sepsis,
}


def chosen_parts(options: argparse.Namespace) -> Iterator[str]:
    """The parts to run, in their order; d3rlpy only where it is requested."""
    for name in PARTS:
        is_deep = name == "deep"
        if options.only:
            if name in options.only or (is_deep and options.deep):
                yield name
        elif options.deep or not is_deep:
            yield name


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.planners",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = list(of_group("reported", "planners"))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="some of the parts")
    parser.add_argument("--deep", action="store_true", help="d3rlpy as well")
    parser.add_argument("--families", nargs="+", default=known, help="default: the reported ones")
    parser.add_argument("--systems", type=int, default=20, help="of each family, offline")
    parser.add_argument("--tree-systems", type=int, default=2, help="for extra trees")
    parser.add_argument("--online-systems", type=int, default=4, help="for acting and learning")
    parser.add_argument("--skill-systems", type=int, default=12, help="to learn the skill from")
    parser.add_argument("--deep-systems", type=int, default=2, help="for d3rlpy")
    parser.add_argument(
        "--deep-families", nargs="+", default=["forest", "river swim", "combination lock"]
    )
    parser.add_argument("--deep-pasts", nargs="+", default=["matched", "opposed", "random"])
    parser.add_argument("--sepsis-logs", type=int, default=10, help="of each size")
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--cells", action="store_true", help="every family with every past, too")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    for name in chosen_parts(options):
        print("\n".join(PARTS[name](options)), flush=True)


if __name__ == "__main__":
    main()
