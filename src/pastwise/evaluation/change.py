r"""Has the world changed? A sequential test on outcomes as they come in.

**Null hypothesis.** The probabilities of the next states have not changed since the log was made.
They are not known exactly. The row of a state s and an action a has as its prior a mixture of
Dirichlet distributions with masses :math:`m_1, m_2, \ldots` in records and the mean
:math:`b_{sa}` of `models.belief`; the records of the row in the log make its posterior. What comes
next is predicted by the *long memory*, the records of the log and all outcomes since:

.. math::

    p_t(n) = \sum_k w_k\, \frac{c(n) + m_k\, b(n)}{c + m_k} ,

where c counts the records of the row, c(n) those that led to n, and :math:`w_k` is the posterior
probability of a mass. A short log leaves the prediction broad, so that noise of the log is no
evidence of a change.

**Alternative.** The row is a new one since some time: then the *short memory* predicts better. It
differs only in its counts r, which forget the outcomes of a row exponentially and know nothing of
the log. A row that has seen nothing but recent outcomes predicts the same by both memories, right
or wrong, and gives no evidence. Whether a row has changed is uncertain as well; with the
probability :math:`\pi` that it has, the alternative predicts

.. math::

    q_t(n) = (1 - \pi)\, p_t(n) + \pi \sum_k w_k\, \frac{r(n) + m_k\, b(n)}{r + m_k} .

After each outcome, :math:`\pi` follows Bayes' rule, and returns to its start at the rate at which
the short memory forgets.

**Evidence.** Let :math:`L_t = q_t / p_t` at the observed outcome. Under the null hypothesis
its expectation, given everything before, is :math:`\sum_n p_t\, q_t / p_t = 1`, for any way of
choosing the decisions: s and a are known before the outcome is. The product of the L since a time
is the evidence for a change at that time, and the largest of these products is

.. math:: M_t = \max(1, M_{t-1})\, L_t .

A change may concern everything, one action, or a single row. So there is one M of all outcomes, one
of each action and one of each row, updated by the outcomes that belong to it. The evidence
:math:`D_t` is a third of the largest of them all.

**Guarantee.** Let :math:`\tau` be the first time that :math:`D_t \ge A`. If nothing has changed,

.. math:: E[\tau] \ge A , \qquad P(\tau \le T) \le T / A \quad \text{for any } T .

To see this, add the products up instead of taking the largest: :math:`R_t = (1 + R_{t-1}) L_t` of
all outcomes (Shiryaev and Roberts), the sum of such statistics over the actions, and their sum over
the rows. Every outcome starts one new product in each of the three, so that the expectation of each
grows by exactly 1, and a third of their total has the expectation :math:`E[\min(\tau, T)]` at the
time :math:`\min(\tau, T)`. It is never less than :math:`D_t`. Hence
:math:`A\, P(\tau \le T) \le E[\min(\tau, T)] \le T`, and :math:`E[\tau] \ge A` as T grows.

So an alarm at ``run_length`` = A is raised at most once in A outcomes on average if nothing has
changed; under any policy, also one that learns from the outcomes. No table of critical values and
no independence of successive states are needed. The expectation is over the posterior of the log.
Two things are not covered: a prior that misleads, and outcomes that depend on more than the state
and the action, such as hidden types of episodes. `pastwise study change` measures both.

The detector is an e-detector (Shin, Ramdas & Rinaldo, *E-detectors: a nonparametric framework for
sequential change detection*, 2024).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import exp, fsum, lgamma, log10
from typing import Any, NamedTuple

from pastwise._numerics.checks import require_number
from pastwise.data.counts import TransitionCounts
from pastwise.errors import ParameterError
from pastwise.models.belief import Belief

KINDS = 3
"""Kinds of statistics: of everything, of an action, of a row."""

LARGEST = 1e200
"""Statistics stop growing here, long before floating-point numbers do."""

LARGEST_UNIT = 1e100
"""Units of the short memory start again from 1 here."""


class RowEvidence(NamedTuple):
    """Evidence that one row has changed.

    Attributes
    ----------
    state, action : int
    evidence : float
        log10 of a third of the row's statistic, to compare with that of the detector.
    since : float
        Most probable time of the change, if there is one.
    outcomes : int
        Outcomes of the row so far.
    """

    state: int
    action: int
    evidence: float
    since: float
    outcomes: int


class RowShares(NamedTuple):
    """Where a row led to.

    Attributes
    ----------
    log : dict from next states to numbers of records
        In the log.
    lately : dict from next states to shares
        In the short memory of the outcomes; they add up to 1.
    """

    log: dict[int, float]
    lately: dict[int, float]


class _Statistic:
    """Largest evidence for a change at any time so far, and that time."""

    __slots__ = ("since", "value")

    def __init__(self, value: float = 1.0, since: float = 0.0) -> None:
        self.value = value
        self.since = since

    def update(self, ratio: float, time: float) -> float:
        """Take in one outcome; the new value."""
        value = self.value
        if value <= 1.0:
            value = 1.0
            self.since = time
        value *= ratio
        if value > LARGEST:
            value = LARGEST
        self.value = value
        return value


class _Row:
    """Both memories of a row.

    Attributes
    ----------
    anywhere, entered, prior : float, float, dict
        Mean of the prior: of any next state, see `PriorRow`, and what else some next states have.
    long, total : dict, float
        Records by next state, and all of them.
    recent, recent_total, unit : dict, float, float
        Short memory, in a unit that grows with each outcome: the same as if all older ones faded.
    weights : list
        Probability of each mass of the prior.
    changed : float
        Probability that the row has changed, if anything has.
    outcomes : int
        Outcomes so far.
    statistic : _Statistic
    """

    __slots__ = (
        "anywhere",
        "changed",
        "entered",
        "long",
        "outcomes",
        "prior",
        "recent",
        "recent_total",
        "statistic",
        "total",
        "unit",
        "weights",
    )

    def __init__(self, anywhere: float, entered: float, prior: dict[int, float]) -> None:
        self.anywhere = anywhere
        self.entered = entered
        self.prior = prior
        self.long: dict[int, float] = {}
        self.total = 0.0
        self.recent: dict[int, float] = {}
        self.recent_total = 0.0
        self.unit = 1.0
        self.weights: list[float] = []
        self.changed = 0.0
        self.outcomes = 0
        self.statistic = _Statistic()

    def rescale(self) -> None:
        """Express the short memory in the unit 1."""
        for n in self.recent:
            self.recent[n] /= self.unit
        self.recent_total /= self.unit
        self.unit = 1.0

    def to_list(self) -> list[Any]:
        """All that outcomes have changed, for JSON, which keeps floats exactly."""
        return [
            list(self.long.items()),
            self.total,
            list(self.recent.items()),
            self.recent_total,
            self.unit,
            self.weights,
            self.changed,
            self.outcomes,
            self.statistic.value,
            self.statistic.since,
        ]

    def restore(self, values: list[Any]) -> None:
        """Take over what `to_list` gave."""
        long, self.total, recent, self.recent_total, self.unit, *others = values
        self.weights, self.changed, self.outcomes, value, since = others
        self.long = dict(map(tuple, long))
        self.recent = dict(map(tuple, recent))
        self.statistic = _Statistic(value, since)


class ChangeDetector:
    """Sequential test of whether the outcomes of decisions are still those of the log.

    It takes a few microseconds per outcome, and its memory grows with the number of different
    transitions since the start, not with their number. The same outcomes in the same order give
    the same numbers. It is for one thread.

    Parameters
    ----------
    counts : TransitionCounts
        The log: of one task.
    run_length : float
        Outcomes per false alarm, on average and at least. A tenfold run length makes the delay of
        an alarm longer by about a fifth.
    memory : float
        Short memory, in outcomes of a row. Chosen with `share` on families of the group *chosen*
        and logs of up to 4,000 records: from 30 to 100, changes are found about equally soon where
        the log is long; where it is short a shorter memory is quicker.
    share : float
        Probability that a row has changed, if anything has. On the same families, with 0.4 changes
        are found a fifth earlier, and quiet systems raise two to three times as many alarms.
    masses : numbers
        Masses of the prior of a row, in records. They need to cover rows that lead to few states
        (small) and rows that lead anywhere, or are similar to each other (large). With a single
        mass, inferred from the log, quiet systems in which every state can follow raised alarms.

    Attributes
    ----------
    observed : int
        Number of outcomes so far.
    alarm : bool
        Whether the evidence has ever reached the run length. It stays until `restart`.
    belief : Belief
        The posterior of the log, from which the means of the priors come.

    Examples
    --------
    >>> from pastwise.data.space import Space
    >>> states, actions = Space.of_size(2), Space.of_size(1)
    >>> log = TransitionCounts.from_records([0] * 50, [0] * 50, [0] * 50, states, actions)
    >>> detector = ChangeDetector(log, run_length=1000)
    >>> for _ in range(10):
    ...     detector.observe(0, 0, 1)
    >>> detector.alarm
    True
    """

    def __init__(
        self,
        counts: TransitionCounts,
        *,
        run_length: float = 1_000_000,
        memory: float = 50.0,
        share: float = 0.2,
        masses: Sequence[float] = (1.0, 8.0, 64.0),
    ) -> None:
        if counts.shape:
            raise ParameterError(
                "a change is looked for in one log, and these counts hold several; "
                "take one of them, or their total()"
            )
        require_number("run_length", run_length, 10, 1e15)
        require_number("memory", memory, 1, 1e9)
        require_number("share", share, 0, 1)
        if not masses:
            raise ParameterError("masses must have at least one number")
        for mass in masses:
            require_number("a mass", mass, 1e-3, 1e6)
        self.run_length = float(run_length)
        self._rate = 1.0 / memory
        self._share = float(share)
        self._masses = [float(mass) for mass in masses]
        self._num_states = len(counts.states)
        self._num_actions = len(counts.actions)

        # The reference, of which rows are made when they are first visited.
        self._log = counts.evenly_weighted().without_rewards()
        self.belief = Belief(self._log)
        self._entered: list[float] = self.belief.entered[0].tolist()
        self.restart()

    def restart(self) -> None:
        """Begin anew with what the log says, and forget the outcomes since."""
        self.observed = 0
        self.alarm = False
        self._rows: dict[int, _Row] = {}
        self._actions: dict[int, _Statistic] = {}
        self._all = _Statistic()

    # Outcomes.

    def observe(self, state: int, action: int, next_state: int, time: float | None = None) -> None:
        """Take in the outcome of a decision.

        Parameters
        ----------
        state, action, next_state : int
            Indices of the log's labels.
        time : float, optional
            When it happened, in any unit; by default the number of the outcome.
        """
        row = self._rows.get(state * self._num_actions + action)
        if row is None or not 0 <= next_state < self._num_states:
            self._require_known(state, action, next_state)
            row = self._visit(state, action)
        self.observed += 1
        if time is None:
            time = float(self.observed)

        # What both memories predict.
        prior = row.prior.get(next_state, 0.0)
        prior += row.anywhere + row.entered * self._entered[next_state]
        seen = row.long.get(next_state, 0.0)
        total = row.total
        unit = row.unit
        recent = row.recent.get(next_state, 0.0) / unit
        recent_total = row.recent_total / unit
        by_mass = []
        short = 0.0
        for weight, mass in zip(row.weights, self._masses, strict=True):
            expected = mass * prior
            by_mass.append(weight * (seen + expected) / (total + mass))
            short += weight * (recent + expected) / (recent_total + mass)
        long = sum(by_mass)

        # The ratio of the alternative to the null hypothesis.
        changed = row.changed * short / long
        ratio = 1.0 - row.changed + changed
        of_row = row.statistic.update(ratio, time)
        of_action = self._actions[action].update(ratio, time)
        of_all = self._all.update(ratio, time)
        limit = KINDS * self.run_length
        if of_row >= limit or of_action >= limit or of_all >= limit:
            self.alarm = True

        # Both memories learn the outcome.
        row.outcomes += 1
        row.weights = [value / long for value in by_mass]
        row.changed = changed / ratio + self._rate * (self._share - changed / ratio)
        row.long[next_state] = seen + 1.0
        row.total = total + 1.0
        unit += unit * self._rate
        row.recent[next_state] = row.recent.get(next_state, 0.0) + unit
        row.recent_total += unit
        row.unit = unit
        if unit > LARGEST_UNIT:
            row.rescale()

    def _require_known(self, state: int, action: int, next_state: int) -> None:
        """Refuse indices that the log has no labels for."""
        limits = {
            "state": (state, self._num_states),
            "action": (action, self._num_actions),
            "next_state": (next_state, self._num_states),
        }
        for name, (index, limit) in limits.items():
            if not 0 <= index < limit:
                raise ParameterError(f"{name} must be an index below {limit:,}, not {index!r}")

    def _visit(self, state: int, action: int) -> _Row:
        """The row of a state and an action, at first as the log has it."""
        # Mean of the prior.
        mean = self.belief.prior_row(state, action)
        prior: dict[int, float] = {}
        for n, probability in zip(mean.next_state.tolist(), mean.probability.tolist(), strict=True):
            prior[n] = prior.get(n, 0.0) + probability
        row = _Row(mean.anywhere, mean.entered, prior)

        # Records of the log.
        key = state * self._num_actions + action
        row.long = self._logged(key)
        row.total = fsum(row.long.values())

        row.weights = self._weights(row)
        row.changed = self._share
        self._rows[key] = row
        self._actions.setdefault(action, _Statistic())
        return row

    def _logged(self, key: int) -> dict[int, float]:
        """Records of a row in the log, by next state."""
        first, last = self._log.row.searchsorted([key, key + 1])
        next_states = self._log.next_state[first:last].tolist()
        records = self._log.weight[first:last].tolist()
        return dict(zip(next_states, records, strict=True))

    def _weights(self, row: _Row) -> list[float]:
        """Posterior probability of each mass, given the row's records in the log."""
        log_likelihoods = []
        for mass in self._masses:
            terms = [lgamma(mass) - lgamma(mass + row.total)]
            for n, records in row.long.items():
                mean = row.prior.get(n, 0.0) + row.anywhere + row.entered * self._entered[n]
                terms.append(lgamma(mass * mean + records) - lgamma(mass * mean))
            log_likelihoods.append(fsum(terms))
        best = max(log_likelihoods)
        likelihoods = [exp(value - best) for value in log_likelihoods]
        total = fsum(likelihoods)
        return [likelihood / total for likelihood in likelihoods]

    # Evidence. Reading it takes a look at every row.

    @property
    def evidence(self) -> float:
        """log10 of D; an alarm is raised where it reaches log10 of the run length."""
        return _log10(self._largest().value)

    @property
    def since(self) -> float:
        """Most probable time of the change, if there is one; 0 before the first outcome."""
        return self._largest().since

    def _largest(self) -> _Statistic:
        """The statistic with the most evidence."""
        rows = (row.statistic for row in self._rows.values())
        statistics: Iterable[_Statistic] = (self._all, *self._actions.values(), *rows)
        return max(statistics, key=lambda statistic: statistic.value)

    def rows(self, first: int | None = None) -> list[RowEvidence]:
        """The rows with the most evidence of a change, at most so many."""
        found = []
        for key, row in self._rows.items():
            state, action = divmod(key, self._num_actions)
            evidence = _log10(row.statistic.value)
            found.append(RowEvidence(state, action, evidence, row.statistic.since, row.outcomes))
        found.sort(key=lambda row: (-row.evidence, row.state, row.action))
        return found[:first]

    def shares(self, state: int, action: int) -> RowShares:
        """Where a row led to: in the log, and lately."""
        key = state * self._num_actions + action
        lately: dict[int, float] = {}
        row = self._rows.get(key)
        if row is not None and row.recent_total > 0:
            lately = {n: value / row.recent_total for n, value in row.recent.items()}
        return RowShares(self._logged(key), lately)

    # Storing it.

    def snapshot(self) -> bytes:
        """All that outcomes have changed; `restore` goes on from there to the last bit."""
        actions = []
        for action, statistic in self._actions.items():
            actions.append([action, statistic.value, statistic.since])
        content = {
            "reference": self._reference(),
            "observed": self.observed,
            "alarm": self.alarm,
            "all": [self._all.value, self._all.since],
            "actions": actions,
            "rows": [[key, row.to_list()] for key, row in self._rows.items()],
        }
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a detector of the same log and settings."""
        try:
            content = json.loads(snapshot)
            reference = content["reference"]
        except (ValueError, TypeError, KeyError):
            raise ParameterError("this is no snapshot of a change detector") from None
        if reference != self._reference():
            raise ParameterError(
                "the snapshot is of a detector of another log or of other settings; "
                "start again from the outcomes"
            )
        self.restart()
        for key, values in content["rows"]:
            state, action = divmod(key, self._num_actions)
            self._visit(state, action).restore(values)
        for action, value, since in content["actions"]:
            self._actions[action] = _Statistic(value, since)
        self._all = _Statistic(*content["all"])
        self.observed = content["observed"]
        self.alarm = content["alarm"]

    def _reference(self) -> str:
        """Hash of the log and of the settings."""
        sizes = (self._num_states, self._num_actions)
        settings = (*sizes, self.run_length, self._rate, self._share, *self._masses)
        digest = blake2b(repr(settings).encode(), digest_size=16)
        digest.update(self._log.key.tobytes())
        digest.update(self._log.weight.tobytes())
        return digest.hexdigest()


def _log10(statistic: float) -> float:
    """log10 of a third of a statistic, which may underflow to 0."""
    return log10(max(statistic, 1.0 / LARGEST) / KINDS)
