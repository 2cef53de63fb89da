"""A small log, goals and records for tests of running loops."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import pastwise as pw

LOG = {
    "s": ["cold", "cold", "mild", "hot", "mild", "cold"],
    "a": ["heat", "wait", "wait", "open", "heat", "heat"],
    "n": ["mild", "cold", "mild", "mild", "hot", "cold"],
}
COLUMNS: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}
STATES = ("cold", "hot", "mild")
ACTIONS = ("heat", "open", "wait")
GOALS = [
    pw.Goal(prefer="mild"),
    pw.Goal(
        prefer={"mild": 2, "hot": 1},
        prefer_actions="wait",
        forbid=[("hot", "heat"), (None, "open")],
    ),
    pw.Goal(reward={"mild": 1.0, "hot": -2.0}),
    pw.Goal(reward={"cold": {"heat": {"mild": 2.0}, "wait": -1.0}}),
]

Record = tuple[str, str, str]

records = st.lists(
    st.tuples(st.sampled_from(STATES), st.sampled_from(ACTIONS), st.sampled_from(STATES)),
    max_size=20,
)
"""Streams of records with known labels."""


def learned(goal: pw.Goal = GOALS[0], **options: Any) -> pw.TransferLearner:
    """A learner of the log, with TL unless another method is given."""
    return pw.TransferLearner(goal, **{"method": "TL", **options}).fit(LOG, **COLUMNS)
