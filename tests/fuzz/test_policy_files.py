"""Files of policies and counts: damaged and forged ones are refused, or they are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pastwise as pw
from pastwise.errors import PastwiseError
from pastwise.policy.file import load_counts, save_counts
from tests.helpers import policy_files

LOG = {
    "room": ["cold", "cold", "mild", "mild"],
    "did": ["heat", "wait", "wait", "heat"],
    "then": ["mild", "cold", "off", "mild"],
}

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 0, 1, 2**31, 2**53 + 1, 2**63, 10**400]),
    st.floats(),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
ARRAYS = st.sampled_from(
    [
        np.zeros(0),
        np.zeros((2, 2)),
        np.full(4, np.nan),
        np.full(4, np.inf),
        np.full(4, 1e308),
        np.full(4, -1),
        np.arange(4),
        np.full(4, 2**62),
        np.zeros(4, np.float16),
        np.ones(4, np.bool_),
        np.ones(3, np.uint8),
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    learner = pw.TransferLearner(pw.Goal(prefer={"mild": 1}))
    learner.fit(LOG, state="room", action="did", next_state="then", terminal="off")
    learner.save(folder / "policy.safetensors")
    save_counts(learner.counts_, folder / "counts.safetensors", learner.columns_)
    return folder


KINDS = st.sampled_from(["policy", "counts"])


def read_again(path: Path, kind: str) -> None:
    """Read a file. If that works, what was read can be written, and read again."""
    copy = path.with_name("copy.safetensors")
    copy.unlink(missing_ok=True)
    try:
        if kind == "policy":
            learner = pw.load(path)
        else:
            counts, columns = load_counts(path)
    except PastwiseError:
        return
    if kind == "policy":
        learner.save(copy)
        assert np.isfinite(np.asarray(learner.counts_.weight)).all()
        assert pw.load(copy).counts_.records.tolist() == learner.counts_.records.tolist()
    else:
        save_counts(counts, copy, columns)
        assert load_counts(copy)[0].records.tolist() == counts.records.tolist()


@settings(max_examples=300)
@given(kind=KINDS, data=st.data())
def test_damaged_files_are_refused(folder: Path, kind: str, data: st.DataObject) -> None:
    """Bytes that are cut, replaced or inserted."""
    good = (folder / f"{kind}.safetensors").read_bytes()
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 16)) | st.just(len(good)))
    inserted = data.draw(st.binary(max_size=16))
    damaged = good[:start] + inserted + good[end:]
    path = folder / "damaged.safetensors"
    path.write_bytes(damaged)
    try:
        if kind == "policy":
            pw.load(path)
        else:
            load_counts(path)
    except PastwiseError:
        return
    assert damaged == good


@settings(max_examples=300)
@given(kind=KINDS, data=st.data())
def test_forged_files_are_refused_or_whole(folder: Path, kind: str, data: st.DataObject) -> None:
    """Some content is replaced, and the checksum is right."""
    tensors, content = policy_files.parts(folder / f"{kind}.safetensors")
    if data.draw(st.booleans(), label="replace a tensor"):
        name = data.draw(st.sampled_from(sorted(tensors)))
        tensors[name] = data.draw(ARRAYS)
    else:
        place: Any = content
        keys = data.draw(st.sampled_from(list(paths_of(content))))
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = data.draw(VALUES)
    path = folder / "forged.safetensors"
    policy_files.forge(path, tensors, content)
    read_again(path, kind)


def paths_of(content: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that lead to each part of nested data."""
    inner: Any = ()
    if isinstance(content, dict):
        inner = content.items()
    elif isinstance(content, list):
        inner = enumerate(content)
    paths = []
    for key, value in inner:
        paths += [(*above, key), *paths_of(value, (*above, key))]
    return paths
