"""What a user might take instead: a scikit-learn classifier behind BentoML.

Runs in an environment of its own, without pastwise. The classifier imitates the log of the
thermostat; nothing is stored and nothing is learned while it serves.
"""

from __future__ import annotations

import csv
from pathlib import Path

import bentoml
import numpy as np
from sklearn.linear_model import LogisticRegression

LOG = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
STATES = ("cold", "cool", "comfortable", "warm", "hot")


@bentoml.service(workers=1, logging={"access": {"enabled": False}})
class Thermostat:
    """Predicts the action of a state."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng()
        with LOG.open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["room"] in STATES]
        features = np.array([one_hot(row["room"]) for row in rows])
        self.model = LogisticRegression().fit(features, [row["did"] for row in rows])

    @bentoml.api  # type: ignore[untyped-decorator, unused-ignore]
    async def predict(self, state: str) -> dict[str, object]:
        """An action sampled by its probability, and the probability."""
        probabilities = self.model.predict_proba(np.array([one_hot(state)]))[0]
        chosen = self.rng.choice(len(probabilities), p=probabilities)
        return {"action": str(self.model.classes_[chosen]), "propensity": probabilities[chosen]}


def one_hot(state: str) -> list[float]:
    """The state as features."""
    return [float(state == each) for each in STATES]
