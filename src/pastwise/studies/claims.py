"""The paper's claims about its results, each put to the test.

A claim puts mean differences into regions: "TL does worse than random" puts the gain of TL minus
that of Rand below zero. `explanation` says what the claims' words mean in numbers, and how a
verdict is reached. The claims are those of the abstract and of Sections IV-A and IV-B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal

from pastwise._numerics.interval import Interval, finite_or_none
from pastwise.report.text import markdown_table
from pastwise.studies.paper import Gains
from pastwise.studies.summary import mean_interval
from pastwise.studies.timing import Timing

ClaimVerdict = Literal["holds", "does not hold", "cannot tell"]


@dataclass(frozen=True)
class Margins:
    """What the claims' words mean, in visits out of 100.

    The paper gives no numbers; the defaults are our reading of its words.

    Parameters
    ----------
    slightly : float
        Most of a *slight* or *little* difference.
    nearly : float
        Most of a difference between *nearly equal* gains.
    far : float
        Least of a difference that is *far*.
    same : float
        Most of a difference between gains that are *the same*.
    """

    slightly: float = 5.0
    nearly: float = 2.0
    far: float = 10.0
    same: float = 0.5


DEFAULT_MARGINS = Margins()


def explanation(margins: Margins = DEFAULT_MARGINS) -> str:
    """How to read the verdicts."""
    return (
        "A claim is a statement about a mean difference of gains (visits to the first state in 100 "
        "epochs), paired run by run, or, for time, about a difference of growth exponents. It "
        "*holds* if the 95 % interval of the difference lies inside the claimed region, *does not "
        "hold* if it lies outside, and we *cannot tell* at this number of runs if it straddles the "
        f"border. *Slightly* and *little* mean at most {margins.slightly:g} visits, *nearly equal* "
        f"within {margins.nearly:g}, *far* at least {margins.far:g}, *the same* within "
        f"{margins.same:g}."
    )


@dataclass(frozen=True)
class Comparison:
    """A measured difference, and the open region that the claim puts it in."""

    what: str
    difference: Interval
    above: float = -inf
    below: float = inf

    @property
    def verdict(self) -> ClaimVerdict:
        """Whether the interval lies inside the region, outside, or straddles its border."""
        low = self.difference.low
        high = self.difference.high
        if self.above < low and high < self.below:
            return "holds"
        if high <= self.above or low >= self.below:
            return "does not hold"
        return "cannot tell"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "what": self.what,
            "difference": self.difference.mean,
            "low": finite_or_none(self.difference.low),
            "high": finite_or_none(self.difference.high),
        }

    def __str__(self) -> str:
        difference = f"{self.what}: {self.difference.mean:+.2f}"
        if not isfinite(self.difference.low):
            return difference
        return f"{difference} [{self.difference.low:+.2f}, {self.difference.high:+.2f}]"


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, and whether it holds here."""

    claim: str
    comparisons: Sequence[Comparison]
    remark: str = ""

    @property
    def verdict(self) -> ClaimVerdict:
        """A claim holds if all of its comparisons do; it does not hold if one of them does not."""
        verdicts = {comparison.verdict for comparison in self.comparisons}
        if "does not hold" in verdicts:
            return "does not hold"
        return "holds" if verdicts == {"holds"} else "cannot tell"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "claim": self.claim,
            "verdict": self.verdict,
            "measured": [comparison.to_dict() for comparison in self.comparisons],
            "remark": self.remark,
        }


def judge(gains: Gains, timing: Timing | None, margins: Margins = DEFAULT_MARGINS) -> list[Claim]:
    """Every claim, judged on these gains and, if it was measured, this timing."""

    def compare(
        past: str, method: str, other: str, above: float = -inf, below: float = inf
    ) -> Comparison:
        one = gains[past, method]
        two = gains[past, other]
        what = f"{method} - {other}, {past} (means {one.mean():.2f} and {two.mean():.2f})"
        return Comparison(what, mean_interval(one - two), above, below)

    def compare_pasts(method: str, past: str, other: str) -> Comparison:
        difference = mean_interval(gains[past, method] - gains[other, method])
        return Comparison(f"{method}: {past} - {other}", difference, -margins.same, margins.same)

    claims = [
        Claim(
            "TL does worse than random when the past goal was another (p3)",
            [compare("p3", "TL", "Rand", below=0)],
        ),
        Claim(
            "Exploration lifts TL slightly above random (p3)",
            [compare("p3", "TL_explore", "Rand", above=0, below=margins.slightly)],
        ),
        Claim(
            "Both stay far below FPD (p3)",
            [
                compare("p3", "TL", "FPD", below=-margins.far),
                compare("p3", "TL_explore", "FPD", below=-margins.far),
            ],
        ),
        Claim(
            "TL is nearly equal to FPD when the goals overlap (p12)",
            [compare("p12", "TL", "FPD", above=-margins.nearly, below=margins.nearly)],
        ),
        Claim(
            "TL outperforms FPD when the goals coincide (p1)",
            [compare("p1", "TL", "FPD", above=0)],
        ),
        Claim(
            "Exploration costs little when the goals coincide (p1)",
            [compare("p1", "TL_explore", "TL", above=-margins.slightly, below=margins.same)],
        ),
        Claim(
            "FPD with the known model is the same after all three pasts",
            [compare_pasts("FPD", "p3", "p1"), compare_pasts("FPD", "p12", "p1")],
            "here by construction: it does not read the log, and the random numbers of a run are "
            "shared",
        ),
    ]
    headline = "Under mismodelling the learned policy beats the FPD policy (TL above FPD_learn)"
    for past in ("p3", "p12", "p1"):
        comparison = compare(past, "TL", "FPD_learn", above=0)
        claims.append(Claim(f"{headline}, {past}", [comparison]))
    claims.append(_time_claim(timing))
    return claims


def _time_claim(timing: Timing | None) -> Claim:
    claim = "TL's time to the first rule grows slower with the number of states than FPD_learn's"
    if timing is None:
        return Claim(claim, [], "not measured: the timing was skipped")

    # Exponents of growth, compared with that of TL.
    growth = timing.growth("TL_explore")
    dense = mean_interval(timing.growth("FPD_learn (dense)") - growth)
    sparse = mean_interval(timing.growth("FPD_learn (sparse)") - growth)

    # Times at the largest size, as multiples of TL's.
    time = timing.median("TL_explore")[-1]
    dense_ratio = timing.median("FPD_learn (dense)")[-1] / time
    sparse_ratio = timing.median("FPD_learn (sparse)")[-1] / time
    remark = (
        f"at {timing.sizes[-1]} states FPD_learn on the dense tensor takes {dense_ratio:.0f} times "
        "as long as TL; kept as sparse counts plus a constant, with the same result, "
        f"{sparse_ratio:.0f} times, and the exponents differ by {sparse.mean:.2f} only: most of "
        "the gap that the paper shows is the tensor's, not the method's"
    )
    comparison = Comparison("exponent of FPD_learn (dense) - of TL_explore", dense, above=0)
    return Claim(claim, [comparison], remark)


def claims_page(claims: Sequence[Claim], runs: int, margins: Margins = DEFAULT_MARGINS) -> str:
    """The claims as a page of Markdown."""
    rows = []
    for claim in claims:
        measured = "<br>".join(str(comparison) for comparison in claim.comparisons)
        rows.append([claim.claim, f"**{claim.verdict}**", measured, claim.remark])
    header = ["claim", "verdict", "measured difference [95 % interval]", "remark"]
    lines = [
        "# What the paper claims, and what was measured",
        "",
        f"{runs} runs. {explanation(margins)}",
        "",
        *markdown_table(header, rows),
        "",
    ]
    return "\n".join(lines)
