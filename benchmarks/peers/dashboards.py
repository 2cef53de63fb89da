"""Fill a folder with what the peers of the workbench show: a hundred trials, a hundred runs.

``python dashboards.py FOLDER`` in an environment with optuna and mlflow.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mlflow
import optuna

TRIALS = 100


def fill(folder: Path) -> None:
    """Write ``optuna.db`` and ``mlflow.db``."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(study_name="thermostat", storage=f"sqlite:///{folder}/optuna.db")
    study.optimize(lambda trial: trial.suggest_float("weight", 0, 1) ** 2, n_trials=TRIALS)

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("thermostat", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("thermostat")
    for trial in study.trials:
        with mlflow.start_run(run_name=f"trial-{trial.number}"):
            mlflow.log_params(trial.params)
            mlflow.log_metric("value", trial.value)


if __name__ == "__main__":
    fill(Path(sys.argv[1]).resolve())
