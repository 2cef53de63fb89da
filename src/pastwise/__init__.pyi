"""The public names, for type checkers; `__init__.py` loads each when it is first asked for."""

from pastwise.adapters.columns import Columns
from pastwise.adapters.tables import LogWarning, count_transitions
from pastwise.adapters.validate import validate_log
from pastwise.agents import FPD, TL, Agent, Clone, FPDLearn, Rand, Scripted, TLExplore
from pastwise.counts import TransitionCounts, Transitions
from pastwise.design import Design, InfeasibleError, Optimum, design, first_rule, implied_reward, mdp_optimum
from pastwise.explore import UCB, EpsilonGreedy, Gate, PosteriorSampling
from pastwise.foresight import Optimism, Pessimism, TLForesight
from pastwise.goal import Goal
from pastwise.ideal import IdealModel
from pastwise.learner import TransferLearner
from pastwise.live import LivePolicy
from pastwise.loading import load, load_counts, merge_counts, save_counts
from pastwise.loop import FiniteSystem, System, Trajectory, log_probability, run
from pastwise.models import DenseModel, LearnedModel, SparseModel, TransitionModel
from pastwise.numerics import Streams
from pastwise.posterior import (
    concentration,
    default_prior_count,
    gather_evidence,
    learned_rule,
    predictive,
    prior_concentration,
    transition_weight,
)
from pastwise.results import Evaluation, Rule, UnseenStateWarning
from pastwise.similarity import kl_divergence, normalised_similarity, plain_similarity, task_weight, weigh_tasks
from pastwise.spaces import Space

__version__: str

__all__ = [
    "FPD",
    "TL",
    "UCB",
    "Agent",
    "Clone",
    "Columns",
    "DenseModel",
    "Design",
    "EpsilonGreedy",
    "Evaluation",
    "FPDLearn",
    "FiniteSystem",
    "Gate",
    "Goal",
    "IdealModel",
    "InfeasibleError",
    "LearnedModel",
    "LivePolicy",
    "LogWarning",
    "Optimism",
    "Optimum",
    "Pessimism",
    "PosteriorSampling",
    "Rand",
    "Rule",
    "Scripted",
    "Space",
    "SparseModel",
    "Streams",
    "System",
    "TLExplore",
    "TLForesight",
    "Trajectory",
    "TransferLearner",
    "TransitionCounts",
    "TransitionModel",
    "Transitions",
    "UnseenStateWarning",
    "concentration",
    "count_transitions",
    "default_prior_count",
    "design",
    "first_rule",
    "gather_evidence",
    "implied_reward",
    "kl_divergence",
    "learned_rule",
    "load",
    "load_counts",
    "log_probability",
    "mdp_optimum",
    "merge_counts",
    "normalised_similarity",
    "plain_similarity",
    "predictive",
    "prior_concentration",
    "run",
    "save_counts",
    "task_weight",
    "transition_weight",
    "validate_log",
    "weigh_tasks",
]
