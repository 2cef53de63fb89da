"""The public names, for type checkers; `__init__.py` loads each when it is first asked for."""

from ._numerics.streams import Streams
from .data.counts import TransitionCounts
from .data.records import Trajectory, Transitions
from .data.space import Space
from .errors import InfeasibleError, LogWarning, UnseenStateWarning
from .evaluation.result import Evaluation
from .goals.goal import Goal
from .goals.ideal import IdealModel
from .logs.columns import Columns
from .logs.read import count_transitions
from .logs.validate import validate_log
from .methods.base import Agent
from .methods.baselines import Clone, Rand, Scripted
from .methods.foresight import Optimism, Pessimism, TLForesight
from .methods.fpd import FPD
from .methods.fpd_learn import FPDLearn
from .methods.tl import TL
from .methods.tl_explore import TLExplore
from .models.base import TransitionModel
from .models.dense import DenseModel
from .models.learned import LearnedModel
from .models.sparse import SparseModel
from .policy.file import load, load_counts, merge_counts, save_counts
from .policy.learner import TransferLearner
from .policy.live import LivePolicy
from .policy.rule import Rule
from .simulation.loop import FiniteSystem, System, run
from .theory.closed_loop import log_probability
from .theory.exploration import UCB, EpsilonGreedy, Gate, PosteriorSampling
from .theory.fpd import Design, Optimum, design, first_rule, implied_reward, mdp_optimum
from .theory.learning import (
    concentration,
    default_prior_count,
    gather_evidence,
    learned_rule,
    predictive,
    prior_concentration,
    transition_weight,
)
from .theory.similarity import (
    kl_divergence,
    normalised_similarity,
    plain_similarity,
    task_weight,
    weigh_tasks,
)

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
