"""Counts in memory: what does not depend on a goal, made once for each file of counts.

`Counted` has the learner of a file with everything that previews need of it again and again. The
order in which a person wants to see states and actions is applied when something is shown.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space, key_of
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.visits import expected_visits
from pastwise.methods.baselines import behaviour_rule
from pastwise.policy.advice import WEAK
from pastwise.policy.learner import TransferLearner, load
from pastwise.workbench.types import (
    CountedState,
    CountsField,
    CountsView,
    OrderView,
    SmallestProbability,
)
from pastwise.workbench.types_log import Mapping

MOST_TRANSITIONS = 200_000
"""Distinct transitions that a page gets; with more, a page would not follow a slider by itself."""

Item = TypeVar("Item")


class Counted:
    """A file of counts, loaded.

    Parameters
    ----------
    path : Path
        What `readings.save_base` wrote.
    """

    def __init__(self, counts_id: str, path: Path) -> None:
        self.id = counts_id
        self.learner: TransferLearner = load(path)
        self.counts: TransitionCounts = self.learner.counts_.total()
        self.state_keys = [key_of(label) for label in self.counts.states.labels]
        self.action_keys = [key_of(label) for label in self.counts.actions.labels]
        self._visits: Cache[FloatArray] = Cache(most=4)

    @cached_property
    def behaviour(self) -> FloatArray:
        """What was done: [S, A]."""
        return behaviour_rule(self.counts)

    @cached_property
    def records(self) -> IntArray:
        """Records of each state: [S]."""
        return np.asarray(self.records_of_pairs.sum(axis=-1))

    @cached_property
    def records_of_pairs(self) -> IntArray:
        """Records of each state and action: [S, A]."""
        by_pair = self.counts.by_state_action(self.counts.records.astype(np.float64))
        return by_pair.astype(np.int64)

    @cached_property
    def is_terminal(self) -> npt.NDArray[np.bool_]:
        """Whether an episode ends in a state: [S]."""
        is_terminal = np.zeros(len(self.state_keys), dtype=bool)
        is_terminal[self.counts.terminal] = True
        return is_terminal

    def visits_before(self, criterion: Criterion) -> FloatArray:
        """Share of time in each state as it was done, kept for each horizon: [S]."""
        key = f"{criterion.horizon} {hash(criterion.goes_on.tobytes())}"
        return self._visits.get(
            key, lambda: expected_visits(self.behaviour, self.counts, criterion)
        )

    def states_in(self, order: OrderView | None) -> IntArray:
        """Indices of the states in the order in which they are shown."""
        return _places(self.state_keys, None if order is None else order.states)

    def actions_in(self, order: OrderView | None) -> IntArray:
        """Indices of the actions in the order in which they are shown."""
        return _places(self.action_keys, None if order is None else order.actions)

    def view(self, project: str, mapping: Mapping | None, order: OrderView | None) -> CountsView:
        """The counts as pages get them."""
        counts = self.counts
        states = self.states_in(order)
        actions = self.actions_in(order)
        has_few = len(counts.key) <= MOST_TRANSITIONS
        return CountsView(
            id=self.id,
            project=project,
            records=counts.num_records,
            states=[
                CountedState(self.state_keys[i], int(self.records[i]), bool(self.is_terminal[i]))
                for i in states.tolist()
            ],
            actions=[self.action_keys[i] for i in actions.tolist()],
            fields=_fields(counts.states, states),
            transitions=self._transitions(states, actions) if has_few else None,
            smallest_probability=SmallestProbability(1e-5, 0.01),
            weak=WEAK,
            has_rewards=counts.has_rewards,
            has_episodes=self.learner.episodes_ is not None,
            mapping=mapping,
        )

    def _transitions(
        self, states: IntArray, actions: IntArray
    ) -> list[tuple[int, int, int, int, float, float]]:
        """All distinct transitions, by place in the order that is shown."""
        counts = self.counts
        place_of_state = np.argsort(states)
        place_of_action = np.argsort(actions)
        return list(
            zip(
                place_of_state[counts.state].tolist(),
                place_of_action[counts.action].tolist(),
                place_of_state[counts.next_state].tolist(),
                counts.records.tolist(),
                counts.weight.tolist(),
                counts.weight_squared.tolist(),
                strict=True,
            )
        )


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _places(keys: list[str], order: list[str] | None) -> IntArray:
    """Indices of keys in a wanted order; those that it does not name come last.

    Labels that are all numbers are in the order of the numbers: 2 before 10.
    """
    are_numbers = all(_NUMBER.fullmatch(key) for key in keys)
    ranks = [float(key) for key in keys] if are_numbers else range(len(keys))
    wanted = {key: place for place, key in enumerate(order or [])}
    last = len(wanted)
    places = sorted(range(len(keys)), key=lambda i: (wanted.get(keys[i], last), ranks[i]))
    return np.array(places, int)


def _fields(states: Space, shown: IntArray) -> list[CountsField]:
    """The fields of states that have several, with the value of each state that is shown."""
    if not states.is_product:
        return []
    labels = [states.labels[i] for i in shown.tolist()]
    fields = []
    for place, name in enumerate(states.fields):
        is_product = [isinstance(label, tuple) and place < len(label) for label in labels]
        keys = [
            key_of(label[place]) if has else None
            for label, has in zip(labels, is_product, strict=True)
        ]
        values = list(dict.fromkeys(key for key in keys if key is not None))
        number = {key: index for index, key in enumerate(values)}
        of_state = [-1 if key is None else number[key] for key in keys]
        fields.append(CountsField(name, values, of_state))
    return fields


class Cache(Generic[Item]):
    """The last few results of a function, for several threads.

    Parameters
    ----------
    most : int
        Results that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: str) -> Item | None:
        """The result of this key; None if it is not known."""
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key]

    def put(self, key: str, item: Item) -> None:
        """Keep a result; the one that was not used for longest goes."""
        with self._lock:
            self._items[key] = item
            while len(self._items) > self._most:
                self._items.popitem(last=False)

    def get(self, key: str, make: Callable[[], Item]) -> Item:
        """The result of this key, made if it is not known."""
        item = self.find(key)
        if item is None:
            item = make()
            self.put(key, item)
        return item
