"""Fully probabilistic design on a sparse model: 8 actions, 8 successors of each state and action.

As for dense models, the peer solves a Markov decision process with the same transitions over the
same horizon, in its form by state-action pairs with a sparse matrix, and models are built
beforehand. What SciPy and NumPy do by hand is the design itself. Peak memory is that of a fresh
process that loads the matrix from a file, builds the model and designs, less what the same process
takes to load the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import (
    DATA,
    Contender,
    Scale,
    Section,
    Times,
    about,
    peak_memory,
    require_close,
)
from benchmarks.report import number, table
from pastwise._files import staged
from pastwise._numerics.arrays import FloatArray
from pastwise.goals.ideal import IdealModel
from pastwise.models.sparse import SparseModel
from pastwise.theory.fpd import Design, design, mdp_optimum

HORIZON, ACTIONS, SUCCESSORS = 10, 8, 8


def matrix_file(states: int) -> Path:
    """A random model: a file of a sparse matrix [S * A, S]."""
    path = DATA / f"sparse-{states}.npz"
    if not path.exists():
        rng = np.random.default_rng(states)
        shape = (states * ACTIONS, SUCCESSORS)
        first = rng.integers(states, size=(shape[0], 1))
        column = np.sort(
            (first + np.cumsum(rng.integers(1, states // SUCCESSORS, size=shape), axis=1)) % states
        )
        weight = rng.random(shape)
        weight /= weight.sum(axis=1, keepdims=True)
        starts = np.arange(0, column.size + 1, SUCCESSORS)
        with staged(DATA) as stage:
            matrix = sp.csr_array(
                (weight.ravel(), column.ravel().astype(np.int32), starts), shape=(shape[0], states)
            )
            sp.save_npz(stage / path.name, matrix, compressed=False)
    return path


def wanted_of(states: int) -> FloatArray:
    """A tenth of the next states is preferred: [S]."""
    wanted = np.where(np.arange(states) % 10 == 0, 100.0, 1.0)
    return np.asarray(wanted / wanted.sum())


def design_on(model: SparseModel) -> Design:
    ideal = IdealModel.of(wanted_of(model.num_states), num_actions=ACTIONS)
    return design(model, ideal, HORIZON)


def by_scipy(
    matrix: Any, negentropy: FloatArray, log_wanted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Theorem 1 by SciPy's product and NumPy: policy [H, S, A], ln gamma [H + 1, S]."""
    states = matrix.shape[1]
    liking = (matrix @ log_wanted).reshape(states, ACTIONS) - negentropy - np.log(ACTIONS)
    policy, log_gamma = np.empty((HORIZON, states, ACTIONS)), np.zeros((HORIZON + 1, states))
    for epoch in reversed(range(HORIZON)):
        preference = liking + (matrix @ log_gamma[epoch + 1]).reshape(states, ACTIONS)
        peak = preference.max(axis=1)
        log_gamma[epoch] = peak + np.log(np.exp(preference - peak[:, None]).sum(axis=1))
        policy[epoch] = np.exp(preference - log_gamma[epoch][:, None])
    return policy, log_gamma


def quantecon(matrix: Any, reward: FloatArray) -> Callable[[], FloatArray]:
    """Values [H + 1, S] by quantecon."""
    from quantecon.markov import DiscreteDP, backward_induction

    from benchmarks.dense_fpd import silence

    states, actions = np.divmod(np.arange(matrix.shape[0]), ACTIONS)
    with silence():
        model = DiscreteDP(reward, sp.csr_matrix(matrix), 1.0, states, actions)
    return lambda: np.asarray(backward_induction(model, HORIZON)[0])


def load(path: Path) -> Any:
    return sp.load_npz(path)


def load_and_design(path: Path) -> None:
    design_on(SparseModel(load(path), ACTIONS))


def load_and_design_by_scipy(path: Path) -> None:
    matrix = load(path)
    negentropy = _negentropy(matrix)
    by_scipy(matrix, negentropy, np.log(wanted_of(matrix.shape[1])))


def load_and_solve_by_quantecon(path: Path) -> None:
    matrix = load(path)
    quantecon(matrix, matrix @ np.log(wanted_of(matrix.shape[1])))()


def _negentropy(matrix: Any) -> FloatArray:
    entropy = matrix.copy()
    entropy.data = entropy.data * np.log(entropy.data)
    return np.asarray(entropy.sum(axis=1)).reshape(-1, ACTIONS)


def measure(scale: Scale) -> list[Section]:
    """The sparse job of the suite."""
    section = Section("FPD, sparse", f"Horizon {HORIZON}.\n\n{about(__doc__)}")
    points, memory = {}, []
    for states in scale.pick([1000], [10**4, 10**5], [10**4, 10**5, 10**6]):
        path, size = matrix_file(states), f"S = {states:,}"
        times = points[float(states)] = _one_size(section, size, load(path))
        taken = _memory(path)
        memory.append([size, *(number(multiple) for multiple in taken.values())])
        if states >= 10**5:
            section.summarise(
                f"{size}: faster than quantecon", times.faster_than("quantecon, sparse pairs")
            )
            section.summarise(
                f"{size}: faster than SciPy + NumPy", times.faster_than("SciPy + NumPy")
            )
            section.summarise(f"{size}: peak memory, in sizes of the matrix", taken["pastwise"])
    section.notes.append(
        "Peak memory in sizes of the matrix (12 bytes for each non-zero; contenders that compile "
        "also load a compiler); the "
        f"policy alone is {number(HORIZON * 8 / SUCCESSORS / 12)} of it:\n\n"
        + table(["size", *MEMORY], memory)
    )
    section.plot("sparse-fpd", "states", points)
    return [section]


def _one_size(section: Section, size: str, matrix: Any) -> Times:
    model, log_wanted = SparseModel(matrix, ACTIONS), np.log(wanted_of(matrix.shape[1]))
    contenders = [
        Contender("pastwise", partial(design_on, model)),
        Contender(
            "pastwise, first goal of a model", lambda: design_on(SparseModel(matrix, ACTIONS))
        ),
        Contender("pastwise, MDP optimum", lambda: mdp_optimum(model, log_wanted, HORIZON).value),
        Contender("SciPy + NumPy", partial(by_scipy, matrix, _negentropy(matrix), log_wanted)),
        Contender("quantecon, sparse pairs", quantecon(matrix, matrix @ log_wanted)),
    ]

    def same(results: Mapping[str, Any]) -> None:
        for name in ("policy", "log_gamma"):
            theirs = results["SciPy + NumPy"][name == "log_gamma"]
            require_close({"pastwise": getattr(results["pastwise"], name), "SciPy + NumPy": theirs})
        require_close(results, ["pastwise, MDP optimum", "quantecon, sparse pairs"])

    return section.compare(size, contenders, same)


MEMORY = {
    "pastwise": load_and_design,
    "SciPy + NumPy": load_and_design_by_scipy,
    "quantecon, sparse pairs": load_and_solve_by_quantecon,
}


def _memory(path: Path) -> dict[str, float]:
    """Peak memory beyond that of loading, in sizes of the matrix."""
    loading, matrix = peak_memory(load, path), load(path)
    size = matrix.data.nbytes + matrix.indices.nbytes
    return {name: (peak_memory(way, path) - loading) / size for name, way in MEMORY.items()}
