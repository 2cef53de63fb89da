"""Policies as files: everything comes back, damage is refused, a failed save keeps the old file."""

from __future__ import annotations

import errno
import os
import re
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import SafetensorError

import pastwise
from pastwise import Goal, Space, TransferLearner, TransitionCounts, load
from pastwise._files import replacing
from pastwise.data.bins import Bins
from pastwise.data.counts import Decay
from pastwise.data.space import Label
from pastwise.errors import FileError, ParameterError, PolicyFileError
from pastwise.methods import TL
from pastwise.policy import file as policy_file
from pastwise.policy.file import FORMAT
from pastwise.theory.similarity import kl_divergence, normalised_similarity, plain_similarity
from tests.helpers.disk import full_disk
from tests.helpers.policy_files import (
    as_tensor,
    digest,
    forge,
    forge_header,
    header_of,
    parts,
)

LOG = {
    "room": ["cold", "cold", "mild", "warm"],
    "did": ["heat", "wait", "wait", "heat"],
    "then": ["mild", "cold", "warm", "mild"],
}


COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "next_state": "then"}


def learner() -> TransferLearner:
    return TransferLearner(Goal(prefer={"mild": 1}), method="TL").fit(LOG, **COLUMNS)


def settled(learner: TransferLearner) -> TransferLearner:
    """The same learner with the method itself instead of its name, as a file has it."""
    return learner.set_params(method=learner.method_)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A saved policy."""
    learner().save(tmp_path / "policy.safetensors")
    return tmp_path / "policy.safetensors"


def assert_same(one: TransferLearner, other: TransferLearner) -> None:
    """All that is kept is equal, to the last bit and to the type of every label."""
    assert settled(one).get_params() == settled(other).get_params()
    assert one.counts_ == other.counts_
    assert repr((one.counts_.states, one.counts_.actions, one.counts_.tasks)) == repr(
        (other.counts_.states, other.counts_.actions, other.counts_.tasks)
    )
    assert one.columns_ == other.columns_
    assert np.array_equal(one.rule_.probabilities, other.rule_.probabilities)
    assert one.support().to_dict() == other.support().to_dict()
    for state in one.rule_:
        assert one.explain(state) == other.explain(state)


def reloaded(saved: TransferLearner) -> TransferLearner:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.safetensors"
        saved.save(path)
        return load(path)


scalars = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["žluté kolo", "日本", "a b", "a=b:c", "", '"', "\n", "🦊", "[0, 10)"]),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Labels of any kind, plain or of two fields."""
    if draw(st.booleans()):
        return Space(
            draw(st.lists(scalars, min_size=1, max_size=4, unique=True)),
            draw(st.sampled_from([(), ("x",)])),
        )
    return Space(
        draw(st.lists(st.tuples(scalars, scalars), min_size=1, max_size=4, unique=True)),
        ("one", "two"),
    )


@st.composite
def goals(draw: st.DrawFn, states: Space, actions: Space) -> Goal:
    """A goal of any kind over these labels."""
    weights = st.floats(0.1, 10)
    state, action = st.sampled_from(states.labels), st.sampled_from(actions.labels)
    some = st.dictionaries(state, weights, min_size=1)
    number = st.floats(-3, 3)
    kinds: list[st.SearchStrategy[dict[str, Any]]] = [
        st.fixed_dictionaries({"prefer": some, "floor": st.sampled_from([None, 0.01])}),
        st.fixed_dictionaries(
            {
                "prefer_actions": st.dictionaries(action, weights, min_size=1),
                "action_floor": st.just(0.01),
            }
        ),
        st.fixed_dictionaries(
            {"reward": st.dictionaries(state, number, min_size=1), "temperature": weights}
        ),
        st.fixed_dictionaries(
            {
                "reward": st.dictionaries(
                    state, st.dictionaries(action, number, min_size=1), min_size=1
                )
            }
        ),
        st.fixed_dictionaries(
            {
                "reward": st.dictionaries(
                    state,
                    st.dictionaries(action, st.dictionaries(state, number, min_size=1), min_size=1),
                    min_size=1,
                )
            }
        ),
        st.just({"table": {label: 1 / len(states) for label in states.labels}}),
        st.just({"table": {s: {a: {s: 1} for a in actions.labels} for s in states.labels}}),
    ]
    if states.is_product:
        targets = {
            name: draw(st.sampled_from(states.field(name)[0].labels)) for name in states.fields
        }
        kinds.append(st.just({"targets": {name: {label: 2} for name, label in targets.items()}}))
    wanted = draw(st.one_of(kinds))
    if len(actions) > 1:
        where = st.one_of(st.none(), state)
        wanted["forbid"] = tuple((s, actions.labels[0]) for s in draw(st.lists(where, max_size=2)))
    return Goal(**wanted)


@st.composite
def learners(draw: st.DrawFn) -> TransferLearner:
    """Learners with any labels, goal and settings, over any counts."""
    states, actions = draw(spaces()), draw(spaces())
    tasks = draw(st.one_of(st.none(), spaces()))
    n = draw(st.integers(0, 6))
    sizes = (1 if tasks is None else len(tasks), len(states), len(actions), len(states))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    t, s, a, following = (rng.integers(size, size=n) for size in sizes)
    weight = rng.uniform(0.1, 3, n)
    decay = draw(st.one_of(st.none(), st.builds(Decay, st.floats(-1e9, 1e9), st.floats(0.1, 1e9))))
    sums = (rng.integers(1, 9, n), weight, weight**2)
    counts = TransitionCounts.from_groups(states, actions, (t, s, a, following), sums, tasks, decay)
    counts = counts.ending_in(np.arange(draw(st.integers(0, len(states))), dtype=np.int64))
    goal = draw(goals(states, actions))
    past = None
    if tasks is not None and not goal.reward:
        past = {tasks.labels[0]: Goal(prefer={states.labels[0]: 1}, floor=1e-3)}
    method = TL(
        prior_count=draw(st.one_of(st.none(), st.floats(1e-9, 10))),
        similarity=draw(st.sampled_from([normalised_similarity, plain_similarity])),
    )
    on_unseen: Any = draw(st.sampled_from(["prior", "refuse"]))
    return TransferLearner(goal, method=method, past_goals=past, on_unseen=on_unseen).fit(counts)


@given(learners())
def test_everything_comes_back(saved: TransferLearner) -> None:
    assert_same(reloaded(saved), saved)


def test_a_named_method_comes_back_as_a_method() -> None:
    """A file has its hyper-parameters, so that a later default does not change the policy."""
    saved = learner()
    assert saved.method == "TL"
    assert reloaded(saved).method == TL()


def test_a_table_with_nothing_in_it_comes_back() -> None:
    saved = TransferLearner(Goal(reward={"cold": {}, "mild": {"wait": 1}})).fit(LOG, **COLUMNS)
    assert_same(reloaded(saved), saved)


@pytest.mark.filterwarnings("ignore:no record leads to anything that the goal wants")
def test_columns_and_bins_come_back() -> None:
    """A loaded policy reads a further log as the first: quantiles, terminal states, decay."""
    log = {
        "temp": [1.0, 2.0, 3.0, 4.0, 2.0, 1.0],
        "place": ["in", "in", "in", "in", "out", "out"],
        "did": [1, 2, 1, 2, 1, 1],
        "day": [1, 1, 1, 1, 2, 2],
        "hour": [1, 2, 3, 4, 1, 2],
        "n": [1, 2, 3, 4, 5, 6],
        "w": [0.5, 1.0, 0.5, 1.0, 0.5, 1.0],
        "job": ["a", "a", "a", "b", "b", "b"],
        "at": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    }
    options: dict[str, Any] = {
        "state": ["temp", "place"],
        "action": "did",
        "episode": "day",
        "time": "hour",
        "max_gap": 2,
        "count": "n",
        "weight": "w",
        "task": "job",
        "age": "at",
        "half_life": 2,
    }
    goal = Goal(targets={"temp": {"< 2": 1}, "place": {"in": 1}})
    first = TransferLearner(goal).fit(log, **options, bins={"temp": 2}, terminal=[("< 2", "out")])
    second = reloaded(first)
    assert_same(second, first)
    assert second.columns_ is not None
    assert second.columns_.bins == {"temp": Bins((2.0,))}
    assert second.columns_.terminal == (("< 2", "out"),)
    assert_same(second.update(log), first.update(log))
    assert second.counts_.num_records > 12


@pytest.mark.parametrize(
    "bins",
    [
        Bins((0.1, 1 / 3)),
        Bins((-np.inf, 0.0, np.inf), is_open=False),
        Bins((0.0, 10.0, np.inf), is_open=False),
    ],
)
def test_bins_come_back(bins: Bins) -> None:
    log = {"temp": [1.0, 50.0], "did": ["a", "b"], "then": [50.0, 1.0]}
    columns: dict[str, Any] = {
        "state": "temp",
        "action": "did",
        "next_state": "then",
        "bins": {"temp": bins},
    }
    saved = TransferLearner(Goal(prefer_actions={"a": 1})).fit(log, **columns)
    assert_same(reloaded(saved), saved)


def test_bins_of_older_files_stay_closed(tmp_path: Path) -> None:
    """They have a plain list of edges; a further log is read with the same labels."""
    log = {"temp": [1.0, 50.0], "did": ["a", "b"], "then": [50.0, 1.0]}
    names: dict[str, Any] = {"state": "temp", "action": "did", "next_state": "then"}
    closed = Bins((0.0, 10.0, np.inf), is_open=False)
    path = tmp_path / "policy.safetensors"
    first = TransferLearner(Goal(prefer_actions={"a": 1})).fit(log, **names, bins={"temp": closed})
    first.save(path)
    tensors, content = parts(path)
    older = {**content["columns"], "bins": {"temp": [0.0, 10.0, "inf"]}}
    forge(path, tensors, {**content, "columns": older})
    second = load(path)
    assert second.columns_ == first.columns_
    assert second.update(log).counts_.states.labels == ("[0, 10)", "[10, inf]")


def test_a_span_between_dates_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("room,did,then,on\ncold,heat,mild,2024-01-01\nmild,wait,mild,2024-01-31\n")
    saved = TransferLearner(Goal(prefer={"mild": 1})).fit(
        str(path), **COLUMNS, age="on", half_life="30d"
    )
    again = reloaded(saved)
    assert again.counts_.weight.tolist() == pytest.approx([1 / 2, 1])
    path.write_text("room,did,then,on\ncold,heat,mild,2024-03-01\n")
    assert again.update(str(path)).counts_.weight.tolist() == pytest.approx([1 + 1 / 4, 1 / 2])


def test_a_loaded_policy_goes_on_as_if_it_had_never_been_saved() -> None:
    one, other = learner(), reloaded(learner())
    cold = Goal(prefer={"cold": 1}, forbid=(("cold", "heat"),))
    assert other.explain("cold") == one.explain("cold")
    assert_same(other.retarget(cold), one.retarget(cold))
    known = ("cold", "heat", "mild")
    assert other.observe(*known).counts_ == one.observe(*known).counts_
    for state in one.rule_:
        assert other.rule(state) == pytest.approx(one.rule(state), rel=1e-12)
    new = ("hot", "air", "mild")
    assert_same(other.observe(*new), one.observe(*new))
    assert_same(other.update(LOG), one.update(LOG))
    assert_same(reloaded(other), other)


def test_weights_of_any_number_type_are_kept() -> None:
    weights: dict[Any, Any] = {"mild": np.float32(2), "warm": np.int64(1)}
    saved = TransferLearner(Goal(prefer=weights)).fit(LOG, **COLUMNS)
    assert_same(reloaded(saved), saved)


def test_labels_of_numpys_types_are_kept() -> None:
    saved = learner().observe(np.int64(7), np.bool_(True), np.float64(0.5))
    assert reloaded(saved).rule_ == saved.rule_


def test_a_policy_is_one_plain_file(policy: Path) -> None:
    """Arrays and JSON, readable without this library."""
    tensors, content = parts(policy)
    plan = {"rule", "part:records", "part:prior"}
    assert set(tensors) == {"key", "records", "weight", "weight_squared", "terminal", *plan}
    assert np.array_equal(tensors["rule"], learner().rule_.probabilities)
    assert header_of(policy) == {"format": 5, "sha256": digest({**tensors, **as_tensor(content)})}
    assert content["states"] == {"labels": ["cold", "mild", "warm"], "fields": ["room"]}
    assert content["goal"] == {"prefer": [["mild", 1]]}
    assert content["method"] == {
        "name": "TL",
        "prior_count": None,
        "similarity": {"function": "normalised_similarity"},
    }
    assert (content["parts"], content["adds_up"]) == (["records", "prior"], True)


def test_nothing_is_ever_pickled() -> None:
    for source in Path(pastwise.__file__).parent.rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        assert not re.search(r"import \w*pickle|pickle\.|allow_pickle=True", text), source


def test_functions_of_the_users_own_are_not_saved(tmp_path: Path) -> None:
    def similarity(*arguments: Any) -> Any:
        return plain_similarity(*arguments)

    def divergence(*arguments: Any) -> Any:
        return kl_divergence(*arguments)

    own: list[tuple[dict[str, Any], str]] = [
        ({"method": TL(similarity=similarity)}, "similarity.* cannot be saved"),
        ({"divergence": divergence}, "own divergence can be saved"),
    ]
    for params, message in own:
        fitted = TransferLearner(Goal(prefer={"mild": 1}), **params).fit(LOG, **COLUMNS)
        with pytest.raises(ParameterError, match=message):
            fitted.save(tmp_path / "policy")
    assert list(tmp_path.iterdir()) == []


# Damage.


def test_a_forged_file_with_nothing_changed_is_read(policy: Path) -> None:
    """What the tests below refuse, they refuse for what they changed."""
    forge(policy, *parts(policy))
    assert_same(load(policy), learner())


def refuse(path: Path, message: str | None = None) -> None:
    with pytest.raises((PolicyFileError, FileError), match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    refuse(tmp_path / "nothing.safetensors", "no such file")
    refuse(tmp_path)
    (tmp_path / "empty").touch()
    refuse(tmp_path / "empty", "not a file of pastwise")


def test_a_truncated_file_is_refused_wherever_it_ends(policy: Path) -> None:
    content = policy.read_bytes()
    for size in range(len(content)):
        policy.write_bytes(content[:size])
        refuse(policy, "not a file of pastwise")
    policy.write_bytes(content + b"\0")
    refuse(policy, "not a file of pastwise")


def test_garbage_is_refused(policy: Path) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 7, 8, 9, 100, 5000):
        policy.write_bytes(rng.bytes(size))
        refuse(policy, "not a file of pastwise")
    for text in ("room,did,then\ncold,heat,mild\n", "{}", "\x80\x04N."):
        policy.write_text(text, encoding="latin-1")
        refuse(policy, "not a file of pastwise")


@pytest.mark.parametrize("length", [0, 1, 100, 2**31, 2**63 - 1, 2**64 - 1])
def test_a_forged_length_of_the_header_is_refused(policy: Path, length: int) -> None:
    policy.write_bytes(struct.pack("<Q", length) + policy.read_bytes()[8:])
    refuse(policy, "not a file of pastwise")


def test_every_flipped_bit_is_refused(policy: Path) -> None:
    """One random bit of every byte, and two thousand more; the checksum covers everything."""
    content = policy.read_bytes()
    rng = np.random.default_rng(0)
    places = np.concatenate([np.arange(len(content)), rng.integers(len(content), size=2000)])
    for place, bit in zip(places, rng.integers(8, size=len(places)), strict=True):
        changed = bytearray(content)
        changed[place] ^= 1 << int(bit)
        policy.write_bytes(changed)
        refuse(policy)
    policy.write_bytes(content)
    assert_same(load(policy), learner())


def test_changed_bytes_are_refused_or_harmless(policy: Path) -> None:
    """Whatever byte changes: the same policy, or an error of one line."""
    content = policy.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(0, len(content), 3):
        new = rng.bytes(1)
        policy.write_bytes(content[:place] + new + content[place + 1 :])
        if new == content[place : place + 1]:
            assert_same(load(policy), learner())
        else:
            refuse(policy)


def test_flipped_bits_of_counts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.safetensors"
    pastwise.save_counts(learner().counts_, path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in range(0, len(content), 2):
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(PolicyFileError, match=r"counts\.safetensors"):
            pastwise.load_counts(path)


def test_somebody_elses_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    safetensors.numpy.save_file({"layer": np.ones(3)}, path)
    refuse(path, "not a file of pastwise")
    safetensors.numpy.save_file({"layer": np.ones(3)}, path, {"format": "pt"})
    refuse(path, "not a file of pastwise")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "5",
        "[1]",
        '"text"',
        "{}",
        '{"format": 3}',
        '{"format": "3"}',
        '{"format": null}',
        '{"format": 3, "sha256": null}',
        '{"format": 3, "sha256": "0"}',
        '{"format": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_a_header_that_is_none_of_ours_is_refused(policy: Path, text: str) -> None:
    tensors, content = parts(policy)
    forge_header(policy, {**tensors, **as_tensor(content)}, text)
    refuse(policy)


@pytest.mark.parametrize(
    "text",
    [b"", b"5", b"[1]", b"null", b"{}", b"\xff", b"[" * 100_000 + b"]" * 100_000],
)
def test_content_that_is_none_of_ours_is_refused(policy: Path, text: bytes) -> None:
    tensors, _ = parts(policy)
    tensors["content"] = np.frombuffer(text, dtype=np.uint8)
    forge_header(policy, tensors, {"format": FORMAT, "sha256": digest(tensors)})
    refuse(policy)


def test_a_file_without_content_is_refused(policy: Path) -> None:
    tensors, _ = parts(policy)
    forge_header(policy, tensors, {"format": FORMAT, "sha256": digest(tensors)})
    refuse(policy, "damaged: its checksum does not match its content")


@pytest.mark.parametrize("version", [FORMAT + 1, 99])
def test_a_newer_format_is_refused(policy: Path, version: int) -> None:
    tensors, content = parts(policy)
    everything = {**tensors, **as_tensor(content)}
    forge_header(policy, everything, {"format": version, "sha256": digest(everything, version)})
    refuse(policy, f"format {version}; this version of pastwise reads formats 3, 4 and {FORMAT}")


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_format_is_refused(policy: Path, version: int) -> None:
    """Format 1 had its JSON in the header, format 2 in a tensor; neither had a checksum."""
    tensors, content = parts(policy)
    if version == 1:
        forge_header(policy, tensors, {**content, "format": 1})
    else:
        forge_header(policy, {**tensors, **as_tensor(content)}, {"format": 2})
    refuse(policy, f"format {version}; .* Learn again, or use the version that wrote it")


def test_the_previous_format_is_read(policy: Path) -> None:
    """Format 3 knew no episodes."""
    tensors, content = parts(policy)
    del content["episodes"]
    everything = {**tensors, **as_tensor(content)}
    forge_header(policy, everything, {"format": 3, "sha256": digest(everything, 3)})
    assert_same(load(policy), learner())


def test_format_4_is_read(policy: Path) -> None:
    """It knew no rewards."""
    tensors, content = parts(policy)
    everything = {**tensors, **as_tensor(content)}
    forge_header(policy, everything, {"format": 4, "sha256": digest(everything, 4)})
    assert_same(load(policy), learner())


def test_counts_with_rewards_come_back(tmp_path: Path) -> None:
    path = tmp_path / "counts.safetensors"
    counts = TransitionCounts.from_records(
        [0, 0, 1], [0, 0, 1], [1, 1, 0], Space.of_size(2), Space.of_size(2), reward=[1, 0.5, -3]
    )
    policy_file.save_counts(counts, path)
    assert policy_file.load_counts(path)[0] == counts
    tensors, content = parts(path)
    forge(path, {**tensors, "reward": tensors["reward"] * 2}, content)
    with pytest.raises(PolicyFileError, match="squared rewards does not fit"):
        policy_file.load_counts(path)


@pytest.mark.parametrize("version", [1.5, "3", 0, None, [3], {}])
def test_a_format_that_is_none_is_refused(policy: Path, version: Any) -> None:
    tensors, content = parts(policy)
    everything = {**tensors, **as_tensor(content)}
    forge_header(policy, everything, {"format": version, "sha256": digest(everything, version)})
    refuse(policy, "format")


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "records",
        "weight",
        "weight_squared",
        "terminal",
        "rule",
        "part:records",
        "part:prior",
    ],
)
def test_a_missing_tensor_is_refused(policy: Path, name: str) -> None:
    tensors, content = parts(policy)
    del tensors[name]
    forge(policy, tensors, content)
    refuse(policy, name)


@pytest.mark.parametrize(
    "name",
    [
        *("states", "actions", "tasks", "decay", "columns"),
        *("past_goals", "method", "on_unseen", "parts", "adds_up"),
    ],
)
def test_missing_content_is_refused(policy: Path, name: str) -> None:
    tensors, content = parts(policy)
    del content[name]
    forge(policy, tensors, content)
    refuse(policy, name)


def put(place: Any, value: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def change(tensor: NDArray[Any]) -> NDArray[Any]:
        tensor = tensor.copy()
        tensor[place] = value
        return tensor

    return change


Change = Callable[[NDArray[Any]], Any]


WRONG: dict[str, list[tuple[str, Change]]] = {
    "two axes": [
        (name, lambda t: t[None])
        for name in ("key", "records", "weight", "weight_squared", "terminal")
    ],
    "one axis": [("rule", np.ravel)],
    "too long": [
        (name, lambda t: np.append(t, t[-1:]))
        for name in ("records", "weight", "weight_squared", "key")
    ],
    "too short": [
        (name, lambda t: t[:-1]) for name in ("records", "weight", "weight_squared", "rule", "key")
    ],
    "turned": [("rule", lambda t: np.ascontiguousarray(t.T))],
    "not whole": [
        (name, lambda t: t.astype(np.float64)) for name in ("key", "records", "terminal")
    ],
    "narrow": [(name, lambda t: t.astype(np.int32)) for name in ("key", "records", "terminal")],
    "not real": [
        (name, lambda t: t.astype(np.complex64)) for name in ("weight", "weight_squared", "rule")
    ],
    "not numbers": [
        (name, lambda t: t.astype(bool)) for name in ("weight", "weight_squared", "rule")
    ],
    "undefined": [(name, put(0, np.nan)) for name in ("weight", "weight_squared", "rule")],
    "infinite": [(name, put(-1, np.inf)) for name in ("weight", "weight_squared", "rule")],
    "negative": [
        (name, put(0, -1)) for name in ("key", "records", "weight", "weight_squared", "rule")
    ],
    "out of order": [("key", lambda t: np.ascontiguousarray(t[::-1]))],
    "repeated": [("key", lambda t: np.repeat(t[:1], len(t)))],
    "out of range": [("key", put(-1, 3 * 2 * 3)), ("terminal", lambda t: np.array([3]))],
    "bad terminal states": [
        ("terminal", lambda t: np.array([1, 0])),
        ("terminal", lambda t: np.array([-1])),
    ],
    "not normalised": [("rule", lambda t: t / 2)],
    "a part of another shape": [
        ("part:records", lambda t: t[:-1]),
        ("part:records", np.ravel),
        ("part:prior", lambda t: t[:, :1].copy()),
    ],
    "an undefined part": [("part:records", put(0, np.nan))],
}


CASES = [
    pytest.param(*case, id=f"{case[0]} {what}") for what, cases in WRONG.items() for case in cases
]


@pytest.mark.parametrize(
    ("name", "change"),
    [("rule", lambda t: np.full_like(t, 0.5)), ("weight", lambda t: t * 9)],
)
def test_numbers_that_could_be_are_refused_without_their_checksum(
    policy: Path, name: str, change: Change
) -> None:
    tensors, content = parts(policy)
    header = header_of(policy)
    tensors[name] = change(tensors[name])
    forge_header(policy, {**tensors, **as_tensor(content)}, header)
    refuse(policy, "damaged: its checksum does not match its content")


@pytest.mark.parametrize(("name", "change"), CASES)
def test_tensors_that_cannot_be_are_refused(
    policy: Path, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    tensors, content = parts(policy)
    tensors[name] = change(tensors[name])
    forge(policy, tensors, content)
    refuse(policy, "damaged")


ROOMS = ["cold", "mild", "warm"]


NORMALISED = {"function": "normalised_similarity"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("states", {"labels": ["cold", "mild"], "fields": []}),
        ("states", {"labels": ["cold", "mild", "mild"], "fields": []}),
        ("states", {"labels": [*ROOMS, "hot"], "fields": []}),
        ("states", {"labels": [], "fields": []}),
        ("states", {"labels": ROOMS, "fields": ["one", "two"]}),
        ("states", {"labels": ROOMS, "fields": [5]}),
        ("states", {"labels": ROOMS, "fields": None}),
        ("states", {"labels": ["cold", "mild", {}], "fields": []}),
        ("states", {"labels": ["cold", "mild", None], "fields": []}),
        ("states", {"labels": ["cold", "mild", float("nan")], "fields": []}),
        ("states", {"labels": {"range": -3}, "fields": []}),
        ("states", {"labels": {"range": 10**30}, "fields": []}),
        ("states", {"labels": {"range": "3"}, "fields": []}),
        ("states", {"labels": {}, "fields": []}),
        ("states", 5),
        ("actions", {"labels": ["heat"], "fields": []}),
        ("tasks", {"labels": 5, "fields": []}),
        ("decay", {"as_of": 0, "half_life": 0}),
        ("decay", {"as_of": 0, "half_life": -1}),
        ("decay", {"as_of": float("nan"), "half_life": 1}),
        ("decay", {"as_of": "today", "half_life": 1}),
        ("decay", {"as_of": 0}),
        ("goal", {}),
        ("goal", {"wish": 1}),
        ("goal", {"prefer": [["mild", -1]]}),
        ("goal", {"prefer": [["mild", 10**400]]}),
        ("goal", []),
        ("goal", {"prefer": [["hot", 1]]}),
        ("past_goals", [["a", {"prefer": [["mild", 1]]}]]),
        ("past_goals", [5]),
        ("method", {"name": "TL", "similarity": {"function": "eval"}}),
        ("method", {"name": "TL", "similarity": "eval"}),
        ("method", {"name": "TL", "similarity": []}),
        ("method", {"name": "TL", "similarity": {**NORMALISED, "more": 1}}),
        ("method", {"name": "TL", "prior_count": -1}),
        ("method", {"name": "TL", "prior_count": "much"}),
        ("method", {"name": "TL", "prior": 1}),
        ("method", {"name": []}),
        ("method", {}),
        ("method", "TL"),
        ("on_unseen", "guess"),
        ("parts", 5),
        ("parts", ["luck"]),
        ("columns", 5),
        ("columns", {"state": ["room"]}),
        ("columns", {"state": ["room"], "action": ["did"], "next_state": ["then"], "more": 1}),
        (
            "columns",
            {
                "state": ["room"],
                "action": ["did"],
                "next_state": ["then"],
                "bins": {"room": "four"},
            },
        ),
    ],
)
def test_content_that_cannot_be_is_refused(policy: Path, name: str, value: Any) -> None:
    tensors, content = parts(policy)
    forge(policy, tensors, {**content, name: value})
    refuse(policy, "damaged")


def test_method_of_a_package_that_is_not_installed_is_named(policy: Path) -> None:
    tensors, content = parts(policy)
    forge(policy, tensors, {**content, "method": {"name": "SARSA"}})
    refuse(policy, "was learned by the method 'SARSA', which is not installed; install the package")


# Writing.


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("size", [0, 10, 500])
def test_a_full_disk_costs_nothing(policy: Path, size: int) -> None:
    before = files(policy.parent)
    with full_disk(size), pytest.raises((OSError, ValueError), match=r"large|space"):
        learner().retarget(Goal(prefer={"cold": 1})).save(policy)
    assert files(policy.parent) == before
    assert_same(load(policy), learner())


@pytest.mark.parametrize("name", ["rule.csv", "rule.json", "rule.parquet"])
def test_a_full_disk_costs_no_export(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("old")
    with full_disk(4), pytest.raises(OSError, match="large"):
        learner().rule_.export(tmp_path / name)
    assert files(tmp_path) == {name: b"old"}


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_an_error_in_the_middle_of_writing_costs_nothing(
    policy: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    before = files(policy.parent)

    def fail(tensors: Any, path: Path, metadata: Any) -> None:
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(policy_file, "save_file", fail)
    with pytest.raises((OSError, ValueError), match="No space left"):
        learner().save(policy)
    assert files(policy.parent) == before


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.parent == tmp_path
    assert files(tmp_path) == {"file": b"new"}


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    learner().save(tmp_path / "policy")
    assert (tmp_path / "policy").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder"):
        learner().save(tmp_path)
    for folder in (tmp_path / "missing", Path("/sys")):  # not even root can make a file there
        with pytest.raises((OSError, ValueError), match=str(folder)):
            learner().save(folder / "policy.safetensors")
    assert files(tmp_path) == {}


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """A folder of somebody whom permissions bind, as they do not bind root."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        learner().save(Path(folder) / "first")  # and what is imported on the way, root can read
        os.seteuid(65534 if root else os.geteuid())
        try:
            yield Path(folder)
        finally:
            os.seteuid(0 if root else os.geteuid())


def test_a_read_only_file_stays(tmp_path: Path) -> None:
    with ordinary_user() as folder:
        path = folder / "policy"
        learner().save(path)
        path.chmod(0o444)
        before = path.read_bytes()
        with pytest.raises((OSError, ValueError), match="policy"):
            learner().retarget(Goal(prefer={"cold": 1})).save(path)
        assert path.read_bytes() == before


def test_a_read_only_folder_stays_as_it_is() -> None:
    with ordinary_user() as folder:
        inner = folder / "inner"
        inner.mkdir()
        inner.chmod(0o555)
        with pytest.raises((OSError, ValueError), match="inner"):
            learner().save(inner / "policy")
        assert files(inner) == {}
        inner.chmod(0o755)


def test_a_policy_without_read_permission_is_refused() -> None:
    with ordinary_user() as folder:
        path = folder / "policy"
        learner().save(path)
        path.chmod(0o000)
        with pytest.raises((OSError, ValueError), match=r"[Pp]ermission denied"):
            load(path)


def test_labels_are_what_they_were() -> None:
    """Types that compare equal are kept apart."""
    for labels in (
        [True, False],
        [1, 0],
        [1.0, 0.0],
        [("a", 1), ("a", 1.5)],
        ["1", 1, 2.5, "true"],
    ):
        states: list[Label] = list(labels)
        counts = TransitionCounts.from_records([0], [0], [1], Space(states), Space(("x",)))
        saved = TransferLearner(Goal(prefer_actions={"x": 1})).fit(counts)
        assert [(type(x), x) for x in reloaded(saved).counts_.states.labels] == [
            (type(x), x) for x in states
        ]
