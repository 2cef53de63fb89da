"""Write log.csv, the log of this example: simulated by this script, not measured.

A building's operator wanted to save energy: the heater ran only when rooms were cold, and nobody
ventilated much. Hour by hour the log has the state of the room and what was done.
"""

import csv
from pathlib import Path

import numpy as np

ROOM = ("cold", "cool", "comfortable", "warm", "hot")
DRIFT = {"heat": 1, "idle": 0, "vent": -1}
OPERATOR = {
    "cold": {"heat": 0.70, "idle": 0.25, "vent": 0.05},
    "cool": {"heat": 0.25, "idle": 0.65, "vent": 0.10},
    "comfortable": {"heat": 0.10, "idle": 0.80, "vent": 0.10},
    "warm": {"heat": 0.05, "idle": 0.75, "vent": 0.20},
    "hot": {"heat": 0.05, "idle": 0.65, "vent": 0.30},
}


def main() -> None:
    """Forty days of twelve hours."""
    rng = np.random.default_rng(7)
    with (Path(__file__).parent / "log.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["day", "hour", "room", "did"])
        for day in range(40):
            place = int(rng.integers(len(ROOM)))
            for hour in range(8, 20):
                habits = OPERATOR[ROOM[place]]
                did = str(rng.choice(list(habits), p=list(habits.values())))
                writer.writerow([day, hour, ROOM[place], did])
                sun = int(rng.choice((-1, 0, 1), p=(0.25, 0.5, 0.25)))
                place = int(np.clip(place + DRIFT[did] + sun, 0, len(ROOM) - 1))


if __name__ == "__main__":
    main()
