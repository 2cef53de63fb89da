"""Verdict and alarm: what samples of paired differences say about a rule.

A *difference* is the value of the new rule minus that of a reference, such as what was done, on the
same sampled model. With ``[low, high]``, the central interval of the differences that decides, the
verdict against that reference is

    *better*        if  low > margin,
    *worse*         if  high < -margin,
    *cannot tell*   otherwise.

The *margin* is the smallest difference that matters. Objections to the comparison (see
`evaluation.objections`) turn any verdict into *cannot tell*; what the samples say on their own is
kept as the verdict *by the log*. The *alarm* warns of negative transfer: the new rule is expected
to be worse than acting at random. It weighs how much may be lost, which a probability does not, and
so finds more of the harm with as many false alarms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from numbers import Real
from typing import Any, Literal

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval, require_level
from pastwise.errors import ParameterError

Verdict = Literal["better", "worse", "cannot tell"]


@dataclass(frozen=True)
class Thresholds:
    """How much the samples must agree, and how much of a difference matters.

    Attributes
    ----------
    level : float
        Level of the intervals that are reported.
    deciding_level : float
        Level of the interval that decides a verdict, against any reference. The default is that of
        the reported intervals, so that what is shown decides.
    margin_share : float
        Smallest difference that matters, as a share of the range of the utility. One hundredth is
        one epoch in a hundred spent in a preferred state instead of another.
    margin : float, optional
        Smallest difference that matters, in the unit of the measure; it overrides
        ``margin_share``.
    min_samples : int
        Fewer samples give no verdict. Below 40, no sample lies outside a 95 % interval.
    harm_margins : float
        How many margins worse than acting at random is harm, whose chance is stated.
    alarm_margins : float
        The alarm is raised where the rule is expected to be worse than acting at random by more
        margins than this. Chosen on the families of ``pastwise study calibration --group chosen``,
        between harm that is missed and alarms that are false.
    """

    level: float = 0.9
    deciding_level: float = 0.9
    margin_share: float = 0.01
    margin: float | None = None
    min_samples: int = 40
    harm_margins: float = 3.0
    alarm_margins: float = 0.3

    def __post_init__(self) -> None:
        require_level("level", self.level)
        require_level("deciding_level", self.deciding_level)
        require_margin("margin_share", self.margin_share)
        require_margin("harm_margins", self.harm_margins)
        require_margin("alarm_margins", self.alarm_margins)
        if self.margin is not None:
            require_margin("margin", self.margin)
        if self.min_samples < 1:
            raise ParameterError(f"min_samples must be at least 1, not {self.min_samples}")

    def margin_for(self, utility_range: float) -> float:
        """The smallest difference that matters, in the unit of the measure.

        Parameters
        ----------
        utility_range : float
            Largest minus smallest utility.
        """
        if self.margin is not None:
            return float(self.margin)
        return self.margin_share * utility_range

    @property
    def margin_choice(self) -> str:
        """How the margin was chosen, in words."""
        if self.margin is not None:
            return "as requested"
        return f"{100 * self.margin_share:g} % of the range of the utility"


def require_margin(name: str, margin: object) -> None:
    """Refuse a smallest difference that is none."""
    is_number = isinstance(margin, Real) and not isinstance(margin, bool)
    if not is_number or not 0 <= float(margin) < inf:  # type: ignore[arg-type]
        raise ParameterError(f"{name} must be a finite number that is not negative, not {margin!r}")


DEFAULT_THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class Comparison:
    """The new rule compared with a reference.

    Attributes
    ----------
    reference : str
        Name of the rule that the new one is compared with.
    difference : Interval
        Value of the new rule minus that of the reference, at the reported level.
    deciding : Interval
        The same difference at the level that decides.
    by_the_log : Verdict
        What the deciding interval and the margin say.
    verdict : Verdict
        The same, or ``cannot tell`` where the comparison is not fair.
    chance_better : float
        Share of the samples in which the new rule has the larger value.
    """

    reference: str
    difference: Interval
    deciding: Interval
    by_the_log: Verdict
    verdict: Verdict
    chance_better: float

    @classmethod
    def of_samples(
        cls,
        reference: str,
        samples: FloatArray,
        margin: float,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        *,
        is_fair: bool = True,
    ) -> Comparison:
        """The comparison that samples [n] of the difference make.

        Parameters
        ----------
        margin : float
            Smallest difference that matters; see `Thresholds.margin_for`.
        is_fair : bool
            Whether there are no objections.
        """
        deciding = Interval.of_samples(samples, thresholds.deciding_level)
        by_the_log: Verdict = "cannot tell"
        if len(samples) >= thresholds.min_samples:
            by_the_log = decide(deciding, margin)
        return cls(
            reference=reference,
            difference=Interval.of_samples(samples, thresholds.level),
            deciding=deciding,
            by_the_log=by_the_log,
            verdict=by_the_log if is_fair else "cannot tell",
            chance_better=float((samples > 0).mean()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "reference": self.reference,
            "difference": self.difference.to_dict(),
            "deciding": self.deciding.to_dict(),
            "by_the_log": self.by_the_log,
            "verdict": self.verdict,
            "chance_better": self.chance_better,
        }


def decide(deciding: Interval, margin: float) -> Verdict:
    """On which side of the margin the whole interval of a difference lies."""
    if deciding.low > margin:
        return "better"
    if deciding.high < -margin:
        return "worse"
    return "cannot tell"


def compare(
    differences: Mapping[str, FloatArray],
    margin: float,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    *,
    is_fair: bool = True,
) -> dict[str, Comparison]:
    """The new rule compared with each reference; see `Comparison.of_samples`.

    Parameters
    ----------
    differences : reference -> [samples]
        Value of the new rule minus that of the reference.
    """
    comparisons = {}
    for reference, samples in differences.items():
        comparisons[reference] = Comparison.of_samples(
            reference, samples, margin, thresholds, is_fair=is_fair
        )
    return comparisons


@dataclass(frozen=True)
class Alarm:
    """Whether negative transfer is to be expected. It counts as true where it is raised.

    Objections do not silence it: a comparison that is not fair is no reason to be calm.

    Attributes
    ----------
    expected_difference : float
        Mean of the samples of the difference to acting at random.
    limit : float
        The alarm is raised where the expected difference is below minus this number.
    chance_of_harm : float
        Share of the samples in which the rule does harm: it is worse than acting at random by more
        than ``harm``.
    harm : float
        Smallest difference that is harm, in the unit of the measure.
    worse_than_logged : bool
        Whether the rule is worse than what was done, by the log; this raises the alarm too.
    """

    expected_difference: float
    limit: float
    chance_of_harm: float
    harm: float
    worse_than_logged: bool

    @classmethod
    def of_samples(
        cls,
        to_random: FloatArray,
        to_logged: Comparison,
        margin: float,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
    ) -> Alarm:
        """The alarm that a comparison makes.

        Parameters
        ----------
        to_random : [samples]
            Value of the new rule minus that of acting at random.
        to_logged : Comparison
            With what was done.
        """
        harm = thresholds.harm_margins * margin
        return cls(
            expected_difference=float(to_random.mean()),
            limit=thresholds.alarm_margins * margin,
            chance_of_harm=float((to_random < -harm).mean()),
            harm=harm,
            worse_than_logged=to_logged.by_the_log == "worse",
        )

    @property
    def worse_than_random(self) -> bool:
        """Whether the rule is expected to be worse than acting at random."""
        return self.expected_difference < -self.limit

    @property
    def raised(self) -> bool:
        """Whether harm is to be expected."""
        return self.worse_than_random or self.worse_than_logged

    def __bool__(self) -> bool:
        return self.raised

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"raised": self.raised, **asdict(self)}
