"""Turn yesterday's decisions into a policy for today's goal.

From a log of past transitions and a new goal, pastwise learns a stochastic decision policy for that goal. The public
names are here; `docs/design.md` tells where each comes from.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "_numerics.streams": "Streams",
    "data.counts": "TransitionCounts",
    "data.records": "Transitions",
    "data.space": "Space",
    "evaluation.result": "Evaluation",
    "goals.goal": "Goal",
    "goals.ideal": "IdealModel",
    "logs.columns": "Columns",
    "logs.read": "LogWarning count_transitions",
    "logs.validate": "validate_log",
    "methods.base": "Agent",
    "methods.baselines": "Clone Rand Scripted",
    "methods.foresight": "Optimism Pessimism TLForesight",
    "methods.fpd": "FPD",
    "methods.fpd_learn": "FPDLearn",
    "methods.tl": "TL",
    "methods.tl_explore": "TLExplore",
    "models.base": "TransitionModel",
    "models.dense": "DenseModel",
    "models.learned": "LearnedModel",
    "models.sparse": "SparseModel",
    "policy.file": "load load_counts merge_counts save_counts",
    "policy.learner": "TransferLearner",
    "policy.live": "LivePolicy",
    "policy.rule": "Rule UnseenStateWarning",
    "simulation.loop": "FiniteSystem System Trajectory run",
    "theory.closed_loop": "log_probability",
    "theory.exploration": "UCB EpsilonGreedy Gate PosteriorSampling",
    "theory.fpd": "Design InfeasibleError Optimum design first_rule implied_reward mdp_optimum",
    "theory.learning": "concentration default_prior_count gather_evidence "
    "learned_rule predictive prior_concentration transition_weight",
    "theory.similarity": "kl_divergence normalised_similarity plain_similarity task_weight weigh_tasks",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first asked for: a program waits only for what it uses."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pastwise' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"pastwise.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
