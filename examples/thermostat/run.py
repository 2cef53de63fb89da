"""From a log that was made to save energy to a rule for comfort.

On the command line, from the root of the repository:

    LOG=examples/thermostat/log.csv
    GOAL=examples/thermostat/goal.toml
    pastwise learn $LOG --state room --action did --episode day --time hour --goal $GOAL
"""

import sys
from pathlib import Path

import pastwise as pw
from pastwise._files import staged
from pastwise.report.figures import draw_policy

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Learn, explain, evaluate, change the goal, and draw."""
    learner = pw.TransferLearner(pw.Goal.from_toml(HERE / "goal.toml"))
    learner.fit(HERE / "log.csv", state="room", action="did", episode="day", time="hour")
    print(learner.goal)

    # The policy.
    frame = learner.rule_.to_frame("pandas")
    table = frame.pivot(index="state", columns="action", values="probability")
    print(f"\n{table.round(3)}")

    # The evidence and the verdict.
    print(f"\n{learner.explain('cool', 'heat')}")
    print(f"\n{learner.evaluate().sentence}")

    # Another goal from the same counts.
    cooler = learner.retarget(pw.Goal(prefer="cool"))
    rule = {action: round(p, 3) for action, p in cooler.rule("comfortable").items()}
    print(f"\nIf the goal were cool rooms, in a comfortable one: {rule}")
    with staged(folder) as stage:
        draw_policy(learner, stage)
    print(f"Figures are in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "thermostat_figures"))
