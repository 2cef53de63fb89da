"""The public names, for type checkers; `__init__.py` loads each when it is first asked for."""

from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.evaluation.result import Evaluation
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.logs.columns import Columns
from pastwise.logs.read import LogWarning, count_transitions
from pastwise.logs.validate import validate_log
from pastwise.methods.base import Agent
from pastwise.methods.baselines import Clone, Rand, Scripted
from pastwise.methods.foresight import Optimism, Pessimism, TLForesight
from pastwise.methods.fpd import FPD
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl import TL
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.models.sparse import SparseModel
from pastwise.policy.file import load, load_counts, merge_counts, save_counts
from pastwise.policy.learner import TransferLearner
from pastwise.policy.live import LivePolicy
from pastwise.policy.rule import Rule, UnseenStateWarning
from pastwise.simulation.loop import FiniteSystem, System, Trajectory, run
from pastwise.theory.closed_loop import log_probability
from pastwise.theory.exploration import UCB, EpsilonGreedy, Gate, PosteriorSampling
from pastwise.theory.fpd import (
    Design,
    InfeasibleError,
    Optimum,
    design,
    first_rule,
    implied_reward,
    mdp_optimum,
)
from pastwise.theory.learning import (
    concentration,
    default_prior_count,
    gather_evidence,
    learned_rule,
    predictive,
    prior_concentration,
    transition_weight,
)
from pastwise.theory.similarity import (
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
