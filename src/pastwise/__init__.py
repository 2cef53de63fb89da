"""Turn yesterday's decisions into a policy for today's goal.

From a log of past transitions and a new goal, pastwise learns a stochastic decision policy for that goal. The public
names are here; `docs/design.md` tells where each comes from.
"""

from importlib import import_module
from typing import Any

from pastwise.design import design as design  # at once: later its module would take its name

__version__ = "0.1.0"

_NAMES = {
    "adapters.columns": "Columns",
    "adapters.tables": "LogWarning count_transitions",
    "adapters.validate": "validate_log",
    "agents": "FPD TL Agent Clone FPDLearn Rand Scripted TLExplore",
    "counts": "TransitionCounts Transitions",
    "design": "Design InfeasibleError Optimum design first_rule implied_reward mdp_optimum",
    "explore": "UCB EpsilonGreedy Gate PosteriorSampling",
    "foresight": "Optimism Pessimism TLForesight",
    "goal": "Goal",
    "ideal": "IdealModel",
    "learner": "TransferLearner",
    "live": "LivePolicy",
    "loading": "load load_counts merge_counts save_counts",
    "loop": "FiniteSystem System Trajectory log_probability run",
    "models": "DenseModel LearnedModel SparseModel TransitionModel",
    "numerics": "Streams",
    "posterior": "concentration default_prior_count gather_evidence learned_rule predictive prior_concentration "
    "transition_weight",
    "results": "Evaluation Rule UnseenStateWarning",
    "similarity": "kl_divergence normalised_similarity plain_similarity task_weight weigh_tasks",
    "spaces": "Space",
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
