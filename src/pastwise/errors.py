"""Exceptions and warnings: who erred, and what to do about it.

A `PastwiseError` is something the user can fix; its message says what is wrong, where, and what to
do. The command line turns it into one line and exit code 2. Anything else that escapes is a bug.

Each error is also the built-in exception that a Python user would expect.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice

MOST_CHARACTERS = 2000
"""Length of the longest message of an error: a screen. Data may be quoted in it."""


Suggestion = str | Sequence[str] | None
"""Known labels that are near an unknown one, as text."""


class PastwiseError(Exception):
    """Something the user can fix."""

    def __str__(self) -> str:
        return shortened(super().__str__())


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text of at most about ``most`` characters: its beginning and its end.

    >>> shortened("abcdefgh" * 1000, most=12)
    'abcdefgh... (7,988 characters left out) ...efgh'
    """
    if len(text) <= most:
        return text
    end = most // 3
    left_out = len(text) - most
    return f"{text[: most - end]}... ({left_out:,} characters left out) ...{text[-end:]}"


def shown(value: object, most: int = 200) -> str:
    """A value as a message quotes it: bounded, whatever the data hold.

    Parameters
    ----------
    most : int
        About the number of characters; the default is two lines.
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than some thousand digits
        text = "a number of thousands of digits"
    return shortened(text, most)


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names as a message lists them: the first ones, and how many there are besides.

    Parameters
    ----------
    most : int
        How many names are listed. The default fits a few lines.
    """
    first = ", ".join(shortened(name, 100) for name in islice(names, most))
    others = len(names) - most
    return first if others <= 0 else f"{first} and {others:,} more"


class ParameterError(PastwiseError, ValueError):
    """An argument is out of range, of the wrong shape, or does not fit another argument."""


class LabelError(PastwiseError, ValueError):
    """A state, action or task is not known, or a value cannot be a label."""


class UnknownLabelError(LabelError):
    """A label that is not among the known ones.

    The nearest known labels are looked for only when the message is shown, because the search among
    thousands of labels takes far longer than the look-up that failed.

    Attributes
    ----------
    label : hashable
        The unknown label.
    suggest : callable
        Returns the nearest known labels as text, or the nearest one; None if none is near.
    where : str
        Put before the message, such as the part of a goal that has the label.
    advice : str
        Put after the message: what to do. Code that catches the error may set both and raise it
        again.
    """

    def __init__(
        self,
        label: Hashable,
        suggest: Callable[[], Suggestion],
        where: str = "",
        advice: str = "",
    ) -> None:
        super().__init__(label, suggest, where, advice)
        self.label = label
        self.suggest = suggest
        self.where = where
        self.advice = advice

    def __str__(self) -> str:
        message = f"unknown label {shown(self.label)}"
        if self.where:
            message = f"{self.where}: {message}"
        suggestion = self.suggest()
        nearest = [suggestion] if isinstance(suggestion, str) else suggestion
        if nearest:
            message += f"; did you mean {' or '.join(shown(key) for key in nearest)}?"
        if self.advice:
            message += f" ({self.advice})"
        return shortened(message)


class LogError(PastwiseError, ValueError):
    """A log cannot be read or counted as requested."""


class UnknownColumnError(LogError):
    """A column that the log does not have.

    Attributes
    ----------
    column : str
        The name.
    near : tuple of str
        Columns of the log with similar names.
    """

    def __init__(self, message: str, column: str, near: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.args = (message, column, tuple(near))
        self.column = column
        self.near = tuple(near)

    def __str__(self) -> str:
        return shortened(str(self.args[0]))


class GoalError(PastwiseError, ValueError):
    """A goal is incomplete, contradictory, or does not fit the log.

    Attributes
    ----------
    part : str
        The part of the goal that is wrong, such as ``"prefer"`` or ``"targets.room"``; empty where
        the goal as a whole is.
    """

    def __init__(self, message: str, part: str = "") -> None:
        super().__init__(message)
        self.part = part


class ConditionError(GoalError):
    """A condition cannot be read.

    Attributes
    ----------
    problem : str
        What is wrong, without the place.
    text : str
        The condition.
    position : int
        Where in the text reading stopped, from 0.
    """

    def __init__(self, problem: str, text: str, position: int, part: str = "") -> None:
        super().__init__(problem, part)
        self.args = (problem, text, position, part)
        self.problem = problem
        self.text = text
        self.position = position

    def __str__(self) -> str:
        where = f"{self.part}: " if self.part else ""
        message = f"{where}{self.problem} (character {self.position + 1} of the condition)"

        # The text around the place, on one line, with a mark below.
        begin = max(0, self.position - 60)
        excerpt = self.text[begin : self.position + 20]
        line = "".join(each if each.isprintable() else " " for each in excerpt)
        mark = " " * (self.position - begin) + "^"
        return shortened(f"{message}\n  {line}\n  {mark}")


class StraddleError(GoalError):
    """A state has values on both sides of a comparison that a goal makes.

    Attributes
    ----------
    state : label
        The state.
    comparison : str
        What is true of some of its values and false of others.
    """

    def __init__(self, message: str, part: str, state: Hashable, comparison: str) -> None:
        super().__init__(message, part)
        self.args = (message, part, state, comparison)
        self.state = state
        self.comparison = comparison

    def __str__(self) -> str:
        return shortened(str(self.args[0]))


class GoalLabelError(GoalError, UnknownLabelError):
    """A goal names a state, action or field value that the log does not have.

    ``part`` is the part of the goal that names it, ``label`` the unknown label.
    """

    def __init__(self, part: str, label: Hashable, suggest: Callable[[], Suggestion]) -> None:
        UnknownLabelError.__init__(self, label, suggest, where=part)
        self.args = (part, label, suggest)
        self.part = part

    def __str__(self) -> str:
        return UnknownLabelError.__str__(self)


class InfeasibleError(PastwiseError, ValueError):
    """A rule was requested in a state where every action may lead to what the goal forbids."""


class PolicyFileError(PastwiseError, ValueError):
    """A file of a policy or of counts is damaged, foreign, or of a newer format."""


class FileError(PastwiseError, OSError):
    """A file or folder cannot be read or written."""


class ConflictError(FileError):
    """A file was changed by somebody else since it was read; nothing was written."""


class StoreError(PastwiseError, OSError):
    """The database of the service cannot be read or written.

    Attributes
    ----------
    full : bool
        Whether the disk is full; freeing space helps.
    """

    def __init__(self, message: str, *, full: bool = False) -> None:
        super().__init__(message)
        self.full = full


class ReplayError(PastwiseError, ValueError):
    """The history of a served policy does not come out as it was stored."""


class WorkerError(PastwiseError, ChildProcessError):
    """A process of a study died."""


class NotFittedError(PastwiseError, ValueError, AttributeError):
    """A learner cannot answer before it has learned from a log."""


class MissingDependencyError(PastwiseError, ImportError):
    """An optional library is not installed."""


class PluginError(PastwiseError, ImportError):
    """A package that adds methods cannot be loaded."""


class ServiceError(PastwiseError):
    """A decision service refused a request.

    Attributes
    ----------
    status : int
        HTTP status; 0 if nothing was answered.
    slug : str
        Kind of the problem, such as ``"unknown-label"``; empty if the answer has none.
    members : mapping
        All members of the problem, such as ``errors`` with pointers and similar labels, and
        ``request_id``.
    retry_after : float
        Seconds after which the service suggests another attempt; 0 if it does not.
    """

    def __init__(
        self,
        message: str,
        status: int = 0,
        slug: str = "",
        members: Mapping[str, object] | None = None,
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.slug = slug
        self.members = members or {}
        self.retry_after = retry_after


class UnreachableError(ServiceError, ConnectionError):
    """A decision service did not answer, or its answer was lost on the way."""


class LogWarning(UserWarning):
    """Records of a log were left out."""


class UnseenStateWarning(UserWarning):
    """A rule was requested in a state that the log does not have; the prior answered."""
