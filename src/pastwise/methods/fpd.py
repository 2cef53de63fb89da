"""FPD: fully probabilistic design on a known model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pastwise._numerics.arrays import FloatArray, batch_index
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import Script, _Follower
from pastwise.models.base import TransitionModel
from pastwise.theory.fpd import design, first_rule, require_horizon


def _planned(model: TransitionModel, ideal: IdealModel, horizon: int, replay: bool) -> FloatArray:
    """The rules of a horizon, or the first of them: [..., 1 or horizon, S, A]."""
    if replay:
        return design(model, ideal, horizon).policy
    return first_rule(model, ideal, horizon)[..., None, :, :]


@dataclass(frozen=True)
class FPD(_Follower):
    """Fully probabilistic design on a known model.

    Parameters
    ----------
    model : TransitionModel
    ideal : IdealModel
    horizon : int
        Number of epochs designed for at a time.
    replay : bool
        False, re-planning: at every epoch act by the first rule of a fresh horizon. True: follow the rules of
        one horizon in turn, then begin them again.
    """

    model: TransitionModel
    ideal: IdealModel
    horizon: int = 10
    replay: bool = False

    def __post_init__(self) -> None:
        require_horizon(self.horizon)

    @cached_property
    def policy(self) -> FloatArray:
        """The rules that are followed in turn: [..., 1 or horizon, S, A]."""
        return _planned(self.model, self.ideal, self.horizon, self.replay)

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory at the first epoch; of the log only its shape is used."""
        sizes = (len(counts.states), len(counts.actions))
        if self.policy.shape[-2:] != sizes:
            raise ValueError(
                f"the policy is over {self.policy.shape[-2:]} states and actions, the system has {sizes}"
            )
        return Script(self.policy, batch_index(counts.shape))
