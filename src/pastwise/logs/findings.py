"""Findings: what there is in a log that its owner should know, and the catalogue of their codes.

Every finding is made by `finding_of` from an entry of `CATALOGUE`, so the catalogue lists all codes
that exist, and the reference page that is generated from it cannot drift from the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pastwise._display import Table, paragraph
from pastwise.errors import shortened

Example = Mapping[str, Any]
"""Values of one record by column, with its ``row`` where the source has an order."""

Severity = Literal["note", "warn", "blocks-verdict"]
"""How much a finding matters: good to know; something is lost or probably wrong; or no verdict on a
policy is a fair comparison."""


@dataclass(frozen=True)
class Remedy:
    """Something that would help against a finding, by reading the log another way.

    Attributes
    ----------
    label : str
        What to do, in a few words.
    patch : mapping
        Parameters of `Columns.of` to change, with their new values.
    """

    label: str
    patch: Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """Something in a log that its owner should know.

    Attributes
    ----------
    code : str
        Which kind of finding this is; a key of `CATALOGUE`.
    message : str
        What was found.
    rows : int
        How many records, or episodes, it concerns.
    fix : str
        What to do about it.
    examples : tuple of mappings
        The first records that it concerns; only from `validate_log`.
    severity : "note", "warn" or "blocks-verdict"
    remedies : tuple of Remedy
        Other ways to read the log that would help; only from `usable`.
    """

    code: str
    message: str
    rows: int
    fix: str
    examples: tuple[Example, ...] = ()
    severity: Severity = "warn"
    remedies: tuple[Remedy, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}. {self.fix}."


@dataclass(frozen=True)
class RemedyKind:
    """A kind of remedy.

    Attributes
    ----------
    label : str
        What to do; ``{value}`` is filled in.
    parameter : str
        The parameter of `Columns.of` that changes.
    removes : bool
        Whether it is removed; otherwise its new value depends on the log.
    """

    label: str
    parameter: str
    removes: bool = False

    def of(self, patch: Any, shown_value: str = "") -> Remedy:
        """The remedy that gives the parameter a new value."""
        return Remedy(self.label.format(value=shown_value), {self.parameter: patch})


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding.

    Attributes
    ----------
    code : str
        Its stable name.
    meaning : str
        What it says about a log, and what happens to the records; for the reference.
    message : str
        The message of such a finding. ``{records}`` and further fields are filled in.
    fix : str
        What to do about it.
    severity : "note", "warn" or "blocks-verdict"
    remedies : tuple of RemedyKind
        Other ways to read the log that would help.
    """

    code: str
    meaning: str
    message: str
    fix: str
    severity: Severity = "warn"
    remedies: tuple[RemedyKind, ...] = ()


def _label_kinds(code: str, field: str) -> tuple[FindingKind, ...]:
    """What can be wrong with the label of a state, an action or a next state."""
    article = "an" if field[0] in "aeiou" else "a"
    return (
        FindingKind(
            f"missing-{code}",
            f"Records without {article} {field}. They are left out.",
            f"{{records}} without {field} left out",
            "Fill the gaps",
        ),
        FindingKind(
            f"not-finite-{code}",
            f"Records in which the {field} is infinite or not a number. They are left out.",
            f"{{records}} with an infinite or undefined {field} left out",
            "Correct those records",
        ),
        FindingKind(
            f"out-of-range-{code}",
            f"Records in which the {field} lies outside its bins. They are left out.",
            f"{{records}} outside the bins of their {field} left out",
            "Widen the bins",
        ),
    )


_KINDS = (
    *_label_kinds("state", "state"),
    *_label_kinds("action", "action"),
    *_label_kinds("next-state", "next state"),
    *_label_kinds("outcome", "outcome"),
    FindingKind(
        "gap",
        "Records whose next record comes later than max_gap. They have no next state and are "
        "left out.",
        "{records} followed too late, by more than max_gap",
        "This breaks the chain of records; raise max_gap if it should not",
        remedies=(
            RemedyKind("Allow gaps of up to {value}", "max_gap"),
            RemedyKind("Allow gaps of any length", "max_gap", removes=True),
        ),
    ),
    FindingKind(
        "duplicate-time",
        "Records with the episode and time of another record. Their order is not known; without "
        "a next-state column all but the last of them are left out.",
        "{records} with the episode and time of another",
        "Keep one of each, or use a finer time",
    ),
    FindingKind(
        "missing-episode",
        "Records without an episode. They have no place in a chain; without a next-state column "
        "they are left out.",
        "{records} without an episode left out of the chain",
        "Fill the gaps",
    ),
    FindingKind(
        "missing-time",
        "Records without a time. They have no place in a chain; without a next-state column they "
        "are left out.",
        "{records} without a time left out of the chain",
        "Fill the gaps",
    ),
    FindingKind(
        "missing-age",
        "Records without an age, although weights fall with age. They are left out.",
        "{records} without an age left out",
        "Fill the gaps",
    ),
    FindingKind(
        "missing-reward",
        "Records without a reward, in a log with a reward column. They are left out.",
        "{records} without a reward left out",
        "Fill the gaps",
    ),
    FindingKind(
        "one-episode",
        "The log has a time and neither an episode nor a next-state column: all records are one "
        "episode. They are counted, and judged as if they did not depend on each other.",
        "no episode column: {records} taken as one episode",
        "Name the episode column if the log has several; a single series shows little about how "
        "much its records depend on each other",
        severity="note",
    ),
    FindingKind(
        "after-terminal",
        "Records that leave a terminal state. They are left out.",
        "{records} that leave a terminal state left out",
        "Check that the state is terminal",
        remedies=(RemedyKind("Declare no state terminal", "terminal", removes=True),),
    ),
    FindingKind(
        "broken-chain",
        "Records whose next-state column differs from the state of the next record of the "
        "episode. They are counted; for importance sampling a new episode begins after them.",
        "{records} whose next state is not the state of the next record of the episode",
        "Look for records that are missing or out of order. The next-state column is what counts; "
        "for importance sampling the next record begins an episode of its own",
        remedies=(RemedyKind("Take the state of the next record", "next_state", removes=True),),
    ),
    FindingKind(
        "single-record",
        "Episodes of a single record. They have no transition.",
        "{episodes} with a single record, and so without a transition",
        "Check that the episode column is the right one",
        severity="note",
    ),
    FindingKind(
        "dead-end",
        "States that are entered, never left, and not declared terminal.",
        "{states} entered and never left: {names}",
        "If episodes end there, declare them terminal; otherwise the log shows nothing about "
        "acting there",
        remedies=(RemedyKind("Declare {value} terminal", "terminal"),),
    ),
    FindingKind(
        "action-constant",
        "In every episode of at least two records the action is the same throughout: the log "
        "compares episodes, such as people, and not decisions. The records are counted.",
        "the action never varies within any of {episodes}",
        "What looks like an effect of the action may be a difference between the episodes; "
        "trust a verdict only if the actions were assigned at random",
        severity="blocks-verdict",
    ),
    FindingKind(
        "few-episodes",
        "Actions that occur in only one or two episodes, in a log with an action that occurs in "
        "five or more. The records are counted.",
        "{actions} known from one or two {episodes} only: {names}",
        "What such an action leads to cannot be separated from what is special about those "
        "episodes; leave it out, or record more episodes with it",
    ),
    FindingKind(
        "one-action",
        "Every state has records of one action only. The records are counted.",
        "no state has records of several actions, so nothing shows what another one would lead to",
        "Check that the action column is the right one. If it is, keep what was done until other "
        "actions have been tried",
    ),
    FindingKind(
        "action-is-outcome",
        "The action determines the next state, in whatever state it is taken: it seems to record "
        "the outcome, such as an activity that is also the state that follows. The records are "
        "counted.",
        "the action determines the next state: it alone predicts {share} of them",
        "Such a policy advises to have the outcome. Take an action that somebody decides before "
        "the next state is known, and states that do not repeat the action",
        severity="blocks-verdict",
    ),
    FindingKind(
        "no-effect",
        "Actions with at least 100 records whose next states do not differ from those of the other "
        "actions in the same states, by a test at the level of 5 %. The records are counted.",
        "the effect of {actions} cannot be distinguished from none (test at {level}): {names}",
        "The log does not show that it matters whether these actions are taken; states that say "
        "more about the system, or more records, may show it",
        severity="note",
    ),
    FindingKind(
        "continuous-column",
        "A column of numbers without bins that has more different values than a tenth of the "
        "records. Each value is a label of its own, so nearly nothing is known about any of them.",
        "the column {column} has {different} in {records}, each a label of its own",
        'Give bins for it, such as bins="auto", or let features= learn states from it',
        remedies=(RemedyKind("Cut {value} into bins", "bins"),),
    ),
    FindingKind(
        "single-transition",
        "The log has a single usable record.",
        "the log has a single transition",
        "Check that this is the whole log",
    ),
)

CATALOGUE: Mapping[str, FindingKind] = {kind.code: kind for kind in _KINDS}
"""Every kind of finding, by code."""


def finding_of(code: str, rows: int, examples: tuple[Example, ...] = (), **details: str) -> Finding:
    """A finding of a kind of the catalogue; ``details`` are the further fields of its message.

    >>> finding_of("missing-age", 2).message
    '2 records without an age left out'
    """
    kind = CATALOGUE[code]
    message = kind.message.format(records=counted(rows, "record"), **details)
    return Finding(code, shortened(message), rows, kind.fix, examples, kind.severity)


def findings_text(findings: Sequence[Finding]) -> str:
    """A line for each finding."""
    return "\n".join(str(finding) for finding in findings) or "No findings."


def findings_html(findings: Sequence[Finding]) -> str:
    """A table of findings as HTML."""
    if not findings:
        return paragraph("No findings.")
    rows = []
    for finding in findings:
        rows.append((finding.code, finding.message, finding.fix, f"{finding.rows:,}"))
    columns = ("code", "what", "what to do", "rows")
    return Table(columns, tuple(rows), labels=(0, 1, 2)).to_html()


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "record"), counted(2000, "state")
    ('1 record', '2,000 states')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
