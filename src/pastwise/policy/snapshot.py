"""Snapshots of a live policy: what it has learned and counted since its start, as bytes.

A snapshot is a safetensors file in memory, distrusted when it is read: its checksum must match,
and it must be of the policy that it is restored into. Its layout:

- tensors ``state`` [R] and ``row`` [R, A]: the rows that records have changed, exactly;
- tensors ``seen:key``, ``seen:records`` and ``seen:earned`` [distinct, 2]: records since the last
  `take`, by flat index of the transition, with the sums of their rewards and of the squares;
- counts with names ``earlier:...``, ``taken:...`` and ``grown:...``, where there are any, and the
  plan of the grown ones: see `LivePolicy`;
- the tensor ``content``: JSON with all else; and the tensor ``sha256`` of everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.errors import PolicyFileError
from pastwise.methods.base import Plan
from pastwise.policy.packing import (
    CONTENT,
    Content,
    Tensors,
    blaming,
    decoded,
    digest_of,
    encoded,
    pack_counts,
    pack_plan,
    require,
    tensor_of,
    unpack_counts,
    unpack_plan,
)

FORMAT = 1
"""Number of the layout above."""

CHECKSUM = "sha256"
EARLIER = "earlier:"
TAKEN = "taken:"
GROWN = "grown:"

WHAT = "the snapshot"
"""What messages call it."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a live policy has and its learner has not.

    Attributes
    ----------
    policy : str
        Fingerprint of the policy that the loop started with.
    is_fixed : bool
    revision : int
        Number of records since the start.
    deciding, exploring : mappings
        States of the sources of random numbers.
    state : [R]
        States whose rows records have changed.
    row : [R, A]
    seen : [distinct]
        Flat indices of the transitions observed since the last `take`.
    records : [distinct]
    earned : [distinct or 0, 2]
        Sums of the rewards of each, and of their squares.
    earlier, taken : TransitionCounts, optional
        Records over other labels that are not taken yet; records that are.
    grown : TransitionCounts, optional
        The log with all records up to the last new label, and
    plan : Plan, optional
        what was learned from it.
    """

    policy: str
    is_fixed: bool
    revision: int
    deciding: Mapping[str, Any]
    exploring: Mapping[str, Any]
    state: IntArray
    row: FloatArray
    seen: IntArray
    records: IntArray
    earned: FloatArray
    earlier: TransitionCounts | None = None
    taken: TransitionCounts | None = None
    grown: TransitionCounts | None = None
    plan: Plan | None = None

    def to_bytes(self) -> bytes:
        """The snapshot as bytes."""
        tensors: Tensors = {
            "state": self.state,
            "row": self.row,
            "seen:key": self.seen,
            "seen:records": self.records,
            "seen:earned": self.earned,
        }
        content: Content = {
            "format": FORMAT,
            "policy": self.policy,
            "is_fixed": self.is_fixed,
            "revision": self.revision,
            "deciding": self.deciding,
            "exploring": self.exploring,
        }

        # Counts over labels that the log does not have.
        parts = {EARLIER: self.earlier, TAKEN: self.taken, GROWN: self.grown}
        for prefix, counts in parts.items():
            if counts is not None:
                part_tensors, content[prefix] = pack_counts(counts, None)
                tensors |= _prefixed(prefix, part_tensors)
        if self.grown is not None and self.plan is not None:
            sizes = (len(self.grown.states), len(self.grown.actions))
            plan_tensors, plan_content = pack_plan(self.plan, sizes)
            tensors |= _prefixed(GROWN, plan_tensors)
            content[GROWN] |= plan_content

        # Everything is under the checksum.
        tensors[CONTENT] = np.frombuffer(encoded(content), dtype=np.uint8)
        tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        checksum = bytes.fromhex(digest_of(tensors, FORMAT))
        tensors[CHECKSUM] = np.frombuffer(checksum, dtype=np.uint8)
        return save(tensors)

    def require_fits(self, counts: TransitionCounts) -> None:
        """Refuse rows and records of other states and actions than these counts have."""
        num_states = len(counts.states)
        num_actions = len(counts.actions)
        number = len(self.state)
        require(self.row.shape == (number, num_actions), "its rows have the wrong shape")
        require(((self.state >= 0) & (self.state < num_states)).all(), "it has unknown states")
        is_weight = np.isfinite(self.row) & (self.row >= 0)
        require(is_weight.all(), "its rows have impossible values")

        # Records since the last `take`.
        number = len(self.seen)
        is_transition = (self.seen >= 0) & (self.seen < num_states * num_actions * num_states)
        require(is_transition.all(), "it has unknown transitions")
        require(self.records.shape == (number,), "its records have the wrong shape")
        require((self.records > 0).all(), "it has impossible numbers of records")
        number_earned = number if counts.has_rewards else 0
        require(self.earned.shape == (number_earned, 2), "its rewards have the wrong shape")
        has_sums = not np.isnan(self.earned).any()  # rewards were once taken in however large
        require(has_sums, "it has impossible rewards")

    @classmethod
    def from_bytes(cls, snapshot: bytes) -> Snapshot:
        """What `to_bytes` wrote; damaged or foreign bytes are a `PolicyFileError`."""
        tensors = _checked_tensors(snapshot)
        with blaming(WHAT):
            content = decoded(tensors.pop(CONTENT).tobytes())
            require(content["format"] == FORMAT, f"it has format {content['format']!r}")
            revision = content["revision"]
            require(type(revision) is int and revision >= 0, "an impossible number of records")
            grown = _unpacked(GROWN, tensors, content)
            plan = None
            if grown is not None:
                plan = unpack_plan(_without_prefix(GROWN, tensors), content[GROWN], grown)
            return cls(
                policy=content["policy"],
                is_fixed=bool(content["is_fixed"]),
                revision=revision,
                deciding=content["deciding"],
                exploring=content["exploring"],
                state=tensor_of(tensors, "state", np.int64),
                row=tensor_of(tensors, "row", np.float64),
                seen=tensor_of(tensors, "seen:key", np.int64),
                records=tensor_of(tensors, "seen:records", np.int64),
                earned=tensor_of(tensors, "seen:earned", np.float64),
                earlier=_unpacked(EARLIER, tensors, content),
                taken=_unpacked(TAKEN, tensors, content),
                grown=grown,
                plan=plan,
            )


def _prefixed(prefix: str, tensors: Tensors) -> Tensors:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _without_prefix(prefix: str, tensors: Tensors) -> Tensors:
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}


def _unpacked(prefix: str, tensors: Tensors, content: Content) -> TransitionCounts | None:
    """Counts whose names have a prefix, where there are any."""
    if prefix not in content:
        return None
    counts, _ = unpack_counts(_without_prefix(prefix, tensors), content[prefix])
    return counts


def _checked_tensors(snapshot: bytes) -> dict[str, NDArray[Any]]:
    """The tensors of a snapshot whose checksum matches."""
    try:
        tensors: Tensors = load(snapshot)
    except (SafetensorError, TypeError, ValueError, KeyError, OverflowError) as error:
        raise PolicyFileError(f"{WHAT} cannot be read, or is damaged: {error}") from None
    checksum = tensors.pop(CHECKSUM, np.empty(0)).tobytes()
    if CONTENT not in tensors or checksum.hex() != digest_of(tensors, FORMAT):
        raise PolicyFileError(f"{WHAT} is damaged: its checksum does not match its content")
    return tensors
