"""Exceptions and warnings: who erred, and what to do about it.

A `PastwiseError` is something the user can fix; its message says what is wrong, where, and what to
do. The command line turns it into one line and exit code 2. Anything else that escapes is a bug.

Each error is also the built-in exception that a Python user would expect.
"""


class PastwiseError(Exception):
    """Something the user can fix."""


class ParameterError(PastwiseError, ValueError):
    """An argument is out of range, of the wrong shape, or does not fit another argument."""


class LabelError(PastwiseError, ValueError):
    """A state, action or task is not known, or a value cannot be a label."""


class LogError(PastwiseError, ValueError):
    """A log cannot be read or counted as requested."""


class GoalError(PastwiseError, ValueError):
    """A goal is incomplete, contradictory, or does not fit the log."""


class InfeasibleError(PastwiseError, ValueError):
    """A rule was requested in a state where every action may lead to what the goal forbids."""


class PolicyFileError(PastwiseError, ValueError):
    """A file of a policy or of counts is damaged, foreign, or of a newer format."""


class FileError(PastwiseError, OSError):
    """A file or folder cannot be read or written."""


class WorkerError(PastwiseError, ChildProcessError):
    """A process of a study died."""


class NotFittedError(PastwiseError, ValueError, AttributeError):
    """A learner was asked for something before it learned from a log."""


class MissingDependencyError(PastwiseError, ImportError):
    """An optional library is not installed."""


class LogWarning(UserWarning):
    """Records of a log were left out."""


class UnseenStateWarning(UserWarning):
    """A rule was requested in a state that the log does not have; the prior answered."""
