"""From a log made to save energy to a rule for comfort.

On the command line the same is

    pastwise learn log.csv --state room --action did --episode day --time hour --goal goal.toml
"""

import sys
from pathlib import Path

import pastwise as pw
from pastwise._files import staged
from pastwise.report.figures import draw_policy

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Learn, explain, change the goal, and draw."""
    learner = pw.TransferLearner(pw.Goal.from_toml(HERE / "goal.toml"))
    learner.fit(HERE / "log.csv", state="room", action="did", episode="day", time="hour")
    print(learner.goal, "\n")
    print(
        learner.rule_.to_frame("pandas")
        .pivot(index="state", columns="action", values="probability")
        .round(3),
        "\n",
    )
    print(learner.explain("cool", "heat"), "\n")
    cooler = learner.retarget(pw.Goal(prefer={"cool": 1.0}))
    advice = {action: round(p, 3) for action, p in cooler.rule("comfortable").items()}
    print(f"If cool rooms were wanted instead, in a comfortable one: {advice}")
    with staged(folder) as stage:
        draw_policy(learner, stage)
    print(f"Figures are in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "thermostat_figures"))
