"""The public names; `__init__.py` loads each when it is first used."""

from . import (
    data,
    errors,
    evaluation,
    goals,
    logs,
    methods,
    models,
    policy,
    report,
    simulation,
    studies,
    theory,
)
from .data.counts import TransitionCounts
from .data.space import Space
from .errors import LogWarning, PastwiseError, UnseenStateWarning
from .evaluation.result import Evaluation
from .goals.goal import Goal
from .logs.columns import Columns
from .logs.read import count_transitions
from .logs.validate import validate_log
from .policy.choice import Choice
from .policy.file import load_counts, merge_counts, save_counts
from .policy.learner import TransferLearner, load
from .policy.live import LivePolicy
from .policy.rule import Rule

__version__: str

__all__ = [
    "Choice",
    "Columns",
    "Evaluation",
    "Goal",
    "LivePolicy",
    "LogWarning",
    "PastwiseError",
    "Rule",
    "Space",
    "TransferLearner",
    "TransitionCounts",
    "UnseenStateWarning",
    "count_transitions",
    "data",
    "errors",
    "evaluation",
    "goals",
    "load",
    "load_counts",
    "logs",
    "merge_counts",
    "methods",
    "models",
    "policy",
    "report",
    "save_counts",
    "simulation",
    "studies",
    "theory",
    "validate_log",
]
