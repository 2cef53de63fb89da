"""FPD: fully probabilistic design on a known transition model (Theorem 1, `theory.fpd`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pastwise._numerics.arrays import FloatArray, batch_index
from pastwise._numerics.checks import require_truth_value
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.baselines import FixedPolicy, FollowsFixedPolicy, require_policy_fits
from pastwise.methods.registry import register
from pastwise.models.base import TransitionModel
from pastwise.theory.fpd import design, first_rule, require_horizon


def designed_policy(
    model: TransitionModel, ideal: IdealModel, horizon: int, replay: bool
) -> FloatArray:
    """The rules of a whole horizon, or the first of them: [..., 1 or horizon, S, A]."""
    if replay:
        return design(model, ideal, horizon).policy
    return first_rule(model, ideal, horizon)[..., None, :, :]


@register(colour="#D55E00", learns=False)
@dataclass(frozen=True)
class FPD(FollowsFixedPolicy):
    """Fully probabilistic design on the true model of the system.

    Parameters
    ----------
    model : TransitionModel
        The system, known.
    horizon : int
        Number of epochs designed for at a time.
    replay : bool
        False, re-planning: at every epoch act by the first rule of a fresh horizon. True: follow
        the rules of one horizon in turn, then begin them again.
    """

    name: ClassVar[str] = "FPD"
    exact_updates: ClassVar[bool] = False

    model: TransitionModel
    horizon: int = 10
    replay: bool = False

    def __post_init__(self) -> None:
        require_horizon(self.horizon)
        require_truth_value("replay", self.replay)

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> FixedPolicy:
        """Memory at the first epoch; of the log only its shape is used."""
        policy = designed_policy(self.model, ideal, self.horizon, self.replay)
        require_policy_fits(policy, counts)
        return FixedPolicy(policy, batch_index(counts.shape))
