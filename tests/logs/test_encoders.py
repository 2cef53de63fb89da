"""Encoders: objects that give raw rows their states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pastwise import Goal, TransferLearner, count_transitions, load
from pastwise.errors import LogError, ParameterError
from pastwise.logs.encoders import Encoding, KMeans


class Halves:
    """The state is whether the first feature is below 3."""

    def predict(self, values: Any) -> Any:
        return np.where(values[:, 0] < 3, "low", "high")


class Numbers:
    """The same by numbers, as the leaves of a tree of scikit-learn."""

    def apply(self, values: Any) -> Any:
        return np.where(values[:, 0] < 3, 1.0, 2.0)


class Wide:
    """Gives two labels for each row, as a forest does."""

    def apply(self, values: Any) -> Any:
        return np.zeros((len(values), 2))


LOG = {
    "x": [1.0, 5.0, None, 2.0],
    "a": ["up", "down", "up", "up"],
    "y": [5.0, 1.0, 1.0, 4.0],
}
COLUMNS: dict[str, Any] = {"features": ["x"], "next_features": ["y"], "action": "a"}


def test_an_object_with_predict_gives_states() -> None:
    counts = count_transitions(LOG, Halves(), **COLUMNS)
    assert counts.states.labels == ("high", "low")
    assert counts.records.tolist() == [1, 1, 2]  # missing is not below 3


def test_an_object_with_apply_gives_whole_numbers() -> None:
    assert count_transitions(LOG, Numbers(), **COLUMNS).states.labels == (1, 2)


def test_a_policy_decides_rows_by_its_encoder_and_keeps_labels_in_files(tmp_path: Path) -> None:
    learner = TransferLearner(Goal(prefer="high")).fit(LOG, state=Halves(), **COLUMNS)
    assert learner.predict([{"x": 1.0}]).tolist() == ["up"]
    learner.save(tmp_path / "policy.safetensors")
    again = load(tmp_path / "policy.safetensors")
    assert again.predict(["low"]).tolist() == ["up"]
    with pytest.raises(LogError, match="no column 'encoded state'"):
        again.count(LOG)


def test_an_encoder_with_several_labels_for_a_row_is_refused() -> None:
    with pytest.raises(LogError, match="one label for each"):
        count_transitions(LOG, Wide(), **COLUMNS)


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_k_means_finds_clusters_and_survives_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 1000.0]])
    truth = rng.integers(3, size=300)
    values = centres[truth] + rng.normal(0, 0.1, (300, 2))
    log = {"x": values[:, 0], "y": values[:, 1], "a": truth, "t": np.arange(300)}
    log["e"] = np.arange(300) // 30
    columns: dict[str, Any] = {
        "features": ["x", "y"],
        "action": "a",
        "episode": "e",
        "time": "t",
    }
    learner = TransferLearner(Goal(prefer=[0])).fit(log, state=KMeans(3), **columns)

    # Every cluster is one of the true ones.
    assert len(learner.counts_.states) == 3
    pairs = set(zip(learner.counts_.state.tolist(), learner.counts_.action.tolist(), strict=True))
    assert len(pairs) == 3
    learner.save(tmp_path / "policy.safetensors")
    again = load(tmp_path / "policy.safetensors")
    assert again.columns_ == learner.columns_
    assert again.count(log).key.tolist() == learner.count(log).key.tolist()


def test_k_means_does_not_depend_on_the_order_of_rows() -> None:
    values = np.random.default_rng(0).normal(size=(200, 2))
    assert KMeans(5).fitted(values) == KMeans(5).fitted(values[::-1])


def test_k_means_that_learned_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="learned no centres"):
        KMeans(5).predict(np.zeros((1, 2)))


@pytest.mark.parametrize("content", [{}, {"k-means": {}}, {"k-means": {"seed": 1}, "features": []}])
def test_anything_but_an_encoder_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="not an encoder"):
        Encoding.from_dict(content)
