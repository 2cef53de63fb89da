"""Encoders: objects that give raw rows their state, in Python.

Any object with scikit-learn's ``predict`` or ``apply`` will do: a clustering, a tree, a pipeline.
The rows of a log then leave their engine, and their features become a matrix of numbers; booleans
are 0 and 1, and missing values not-a-number. A partition (`data.partition`) needs none of that;
encoders are for comparison, and for who has one already.

`KMeans` is built in. It is plain numbers, so a policy file keeps it. Of any other encoder a file
keeps the labels only: a policy that was loaded reads logs, and decides, by labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.partition import Feature
from pastwise.data.space import Label
from pastwise.errors import LogError, ParameterError


class Predicting(Protocol):
    """An object with scikit-learn's ``predict``."""

    def predict(self, values: Any, /) -> Any:
        """The label of each row of a matrix [N, F]: [N]."""


class Applying(Protocol):
    """An object with scikit-learn's ``apply``, such as a decision tree."""

    def apply(self, values: Any, /) -> Any:
        """The label of each row of a matrix [N, F]: [N]."""


Encoder = Predicting | Applying
"""Anything that gives rows a label."""


STATE = "encoded state"
NEXT_STATE = "encoded next state"
"""Names of the columns that hold the labels of an encoder."""


@dataclass(frozen=True)
class KMeans:
    """States are the cells of the nearest of several centres, in standardised features.

    Parameters
    ----------
    num_states : int
        Number of centres. 750 is that of Komorowski et al. (2018) for intensive care.
    seed : int
        Seed of the first centres.
    max_rows : int
        How many records the centres are learned from at most; the first in the order of their
        values, evenly spaced.
    mean, scale : tuple of float
        Of each feature, once learned.
    centres : tuple of tuples of float
        In standardised features, once learned.
    """

    num_states: int = 750
    seed: int = 0
    max_rows: int = 100_000
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    centres: tuple[tuple[float, ...], ...] = ()

    @property
    def is_fitted(self) -> bool:
        """Whether the centres are known."""
        return bool(self.centres)

    def fitted(self, values: FloatArray) -> KMeans:
        """The encoder with centres for rows of values [N, F]; a missing value is the mean."""
        from scipy.cluster.vq import kmeans2

        # The result must not depend on the order of rows.
        ordered = values[np.lexsort(values.T)]
        places = np.linspace(0, len(ordered) - 1, min(len(ordered), self.max_rows))
        sample = ordered[places.astype(np.int64)]
        mean = np.nanmean(sample, axis=0)
        scale = np.nanstd(sample, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        learned = replace(self, mean=tuple(mean.tolist()), scale=tuple(scale.tolist()))
        standard = learned._standardised(sample)
        number = min(self.num_states, len(np.unique(standard, axis=0)))
        centres, _ = kmeans2(standard, number, iter=20, minit="++", rng=self.seed)
        return replace(learned, centres=tuple(map(tuple, centres.tolist())))

    def predict(self, values: FloatArray) -> IntArray:
        """The number of the nearest centre of each row [N, F]: [N]."""
        from scipy.cluster.vq import vq

        if not self.is_fitted:
            raise ParameterError("this encoder has learned no centres yet")
        nearest, _ = vq(self._standardised(np.asarray(values, dtype=np.float64)), self.centres)
        return np.asarray(nearest, dtype=np.int64)

    def _standardised(self, values: FloatArray) -> FloatArray:
        standard = (values - np.array(self.mean)) / np.array(self.scale)
        return np.where(np.isfinite(standard), standard, 0.0)


@dataclass(frozen=True)
class Encoding:
    """An encoder, and the columns that it reads.

    Attributes
    ----------
    encoder : object
        With ``predict`` or ``apply``.
    features, next_features : tuple of str
    """

    encoder: Any
    features: tuple[str, ...]
    next_features: tuple[str, ...] = ()

    def labels_of(self, values: FloatArray) -> list[Label]:
        """The label of each row of values: [N, F] to [N]."""
        method = getattr(self.encoder, "predict", None) or self.encoder.apply
        found = np.asarray(method(values))
        if found.ndim != 1 or len(found) != len(values):
            raise LogError(
                f"the encoder gave an array of shape {found.shape} for {len(values)} rows; it must "
                "give one label for each"
            )
        return [_plain_label(label) for label in found.tolist()]

    def label_of(self, row: Mapping[str, object]) -> Label:
        """The label of one row."""
        values = [[_number(name, row.get(name)) for name in self.features]]
        return self.labels_of(np.array(values, dtype=np.float64))[0]

    def to_dict(self) -> dict[str, Any] | None:
        """Plain values by name; None for an encoder that is not ours."""
        if not isinstance(self.encoder, KMeans):
            return None
        plain = {name: getattr(self.encoder, name) for name in self.encoder.__dataclass_fields__}
        return {
            "k-means": plain,
            "features": list(self.features),
            "next_features": list(self.next_features),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Encoding:
        """The encoding that `to_dict` described."""
        try:
            plain = dict(content["k-means"])
            for name in ("mean", "scale"):
                plain[name] = tuple(map(float, plain[name]))
            plain["centres"] = tuple(tuple(map(float, centre)) for centre in plain["centres"])
            encoder = KMeans(**plain)
            return cls(encoder, tuple(content["features"]), tuple(content["next_features"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ParameterError(f"not an encoder: {error}") from None


def is_encoder(state: object) -> TypeGuard[Encoder]:
    """Whether this is an object that gives states to raw rows."""
    return hasattr(state, "predict") or hasattr(state, "apply")


def matrix_of(columns: Sequence[Sequence[object]], names: Sequence[str]) -> FloatArray:
    """Columns of numbers and booleans as a matrix: [N, F]."""
    arrays = []
    for name, values in zip(names, columns, strict=True):
        arrays.append(np.array([_number(name, value) for value in values], dtype=np.float64))
    return np.stack(arrays, axis=-1)


def _number(name: str, value: object) -> float:
    """A value as an encoder sees it."""
    number = Feature(name, "number").value_of(value)
    return float("nan") if number is None else float(number)


def _plain_label(label: Any) -> Label:
    """A whole number, where floating point holds one; otherwise the label as it is."""
    is_whole = isinstance(label, float) and label.is_integer()
    return int(label) if is_whole else label
