"""A sampled action, and a rule under conditions of the moment: possible actions and a floor."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

from pastwise.data.space import Label
from pastwise.errors import InfeasibleError, ParameterError, shown


class Choice(NamedTuple):
    """An action, and the very probability that it was sampled with."""

    action: Label
    propensity: float


def conditioned(
    weights: Sequence[float], possible: Sequence[int], floor: float = 0.0
) -> list[float]:
    """The rule among k possible actions, each with probability at least ``floor``: [A].

    With p proportional to the weights of the possible actions, or uniform where all of these are
    zero, the rule is ``floor + (1 - k floor) p``.

    Parameters
    ----------
    weights : [A]
        Numbers proportional to the rule.
    possible : [k]
        Indices of the possible actions.
    floor : float

    Examples
    --------
    >>> conditioned([3.0, 1.0, 4.0], [0, 1])
    [0.75, 0.25, 0.0]
    >>> conditioned([3.0, 1.0, 4.0], [0, 1], floor=0.25)
    [0.625, 0.375, 0.0]
    """
    number = len(possible)
    if number == 0:
        raise InfeasibleError(
            "the goal forbids every action that is allowed now; allow another one"
        )
    free = 1.0 - number * floor
    if free < 0:
        raise ParameterError(
            f"floor={floor} is too large for {number} possible actions; "
            f"it can be at most {1 / number:.4g}"
        )

    # The weights of the possible actions, or equal ones.
    kept = [weights[action] for action in possible]
    total = fsum(kept)
    if total == 0:
        kept = [1.0] * number
        total = float(number)

    rule = [0.0] * len(weights)
    for action, weight in zip(possible, kept, strict=True):
        rule[action] = floor + free * (weight / total)
    return rule


def require_uniform(uniform: float) -> None:
    """Refuse what is no number from [0, 1)."""
    if not 0.0 <= uniform < 1.0:
        raise ParameterError(f"uniform must be a number from [0, 1), not {shown(uniform)}")


def require_floor(floor: float) -> None:
    """Refuse what is no probability."""
    if not 0.0 <= floor <= 1.0:
        raise ParameterError(f"floor must be a probability, from 0 to 1, not {shown(floor)}")
