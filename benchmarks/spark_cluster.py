"""A log on a Spark cluster of two executors, one of them killed; needs Java 17 or later.

Spark writes a partitioned Parquet log, whose labels follow from a formula, and counts its
transitions by next state and by episode and time, each with and without a killed executor. The
counts must be those that numpy makes from the formula. Spark's own event log says what moved.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, concat, lit

import pastwise as pw
from pastwise._numerics.arrays import IntArray

STATES, ACTIONS, LENGTH, FOLDERS = 100, 5, 50, 4
EXECUTORS, ATTEMPTS = 2, 5
NEXT_STATE, WINDOWED = {"next_state": "next_state"}, {"episode": "episode", "time": "time"}

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.pyspark.python": "there-is-no-python-on-the-executors",
    "spark.default.parallelism": "16",
    "spark.sql.shuffle.partitions": "16",
    # A small log has as many tasks as a large one.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.shuffle.io.retryWait": "1s",  # what a killed executor had is asked for three times
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


# The log: whole numbers by a formula, in Spark and in numpy.


def state_of(episode: Any, moment: Any) -> Any:
    """Number of the state: squares modulo a prime look like chance."""
    place = (episode * 31 + moment * 7919) % 1_000_003
    return place * place % 1_000_003 % STATES


def action_of(episode: Any, moment: Any) -> Any:
    """Number of the action."""
    place = (episode * 17 + moment * 104_729) % 999_983
    return place * place % 999_983 % ACTIONS


def write_log(spark: SparkSession, rows: int, path: str) -> DataFrame:
    """The log as Parquet, such that consecutive records of an episode lie in different folders."""

    def label(letter: str, number: Column) -> Column:
        return concat(lit(letter), number.cast("string"))

    moment = col("id") % LENGTH
    episode = col("id") - moment
    columns = {
        "episode": label("e", episode),
        "time": moment,
        "state": label("s", state_of(episode, moment)),
        "action": label("a", action_of(episode, moment)),
        "next_state": label("s", state_of(episode, moment + 1)),
        "folder": moment % FOLDERS,
    }
    log = spark.range(0, rows, numPartitions=FOLDERS).select(
        *(column.alias(name) for name, column in columns.items())
    )
    log.write.partitionBy("folder").parquet(path)
    return spark.read.parquet(path)


def expected(rows: int, windowed: bool) -> IntArray:
    """Number of records of every transition, by numpy: [state, action, next_state]."""
    row = np.arange(rows)
    moment = row % LENGTH
    episode = row - moment
    place = (state_of(episode, moment), action_of(episode, moment), state_of(episode, moment + 1))
    key = np.ravel_multi_index(place, (STATES, ACTIONS, STATES))
    if windowed:
        key = key[(moment + 1 < LENGTH) & (row + 1 < rows)]
    return np.bincount(key, minlength=STATES * ACTIONS * STATES).reshape(STATES, ACTIONS, STATES)


def dense(counts: pw.TransitionCounts) -> IntArray:
    """Counts as `expected` has them."""
    state, action = (
        np.array([int(str(label)[1:]) for label in s.labels])
        for s in (counts.states, counts.actions)
    )
    records = np.zeros((STATES, ACTIONS, STATES), dtype=np.int64)
    records[state[counts.state], action[counts.action], state[counts.next_state]] = counts.records
    return records


# The cluster.


@contextmanager
def cluster(folder: Path) -> Iterator[SparkSession]:
    """A session on a cluster of separate processes, whose executors use the folder."""
    home, events = folder / "spark", folder / "events"
    home.mkdir()
    events.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    os.environ["SPARK_HOME"] = str(home)
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,1024]").appName("pastwise")
    for name, value in {**SETTINGS, "spark.eventLog.dir": events.as_uri()}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def executors(spark: SparkSession) -> list[Any]:
    """Handles of the executors' processes."""
    jvm: Any = spark.sparkContext._jvm
    children = jvm.java.lang.ProcessHandle.current().children().toArray()
    return [
        child
        for child in children
        if "CoarseGrainedExecutorBackend" in child.info().commandLine().orElse("")
    ]


def wait_for_executors(spark: SparkSession) -> None:
    """Wait until all executors are there, as after one was killed."""
    context: Any = spark.sparkContext._jsc
    while (
        len(context.sc().statusTracker().getExecutorInfos()) < 1 + EXECUTORS
    ):  # the driver is one of them
        time.sleep(0.1)


def is_in_the_middle(spark: SparkSession, group: str, stages_done: int) -> bool:
    """Whether a group of jobs is in the middle of a stage after its first ones."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    known = [stage for stage in stages if stage]
    done = sum(stage.numCompletedTasks == stage.numTasks for stage in known)
    return done >= stages_done and any(
        stage.numCompletedTasks > 0
        and stage.numCompletedTasks + stage.numActiveTasks + 1 < stage.numTasks
        for stage in known
    )


def kill_one(spark: SparkSession, running: Future[Any], group: str, stages_done: int) -> bool:
    """Kill an executor while the jobs of a group run; whether that came in time."""
    while not running.done():
        if is_in_the_middle(spark, group, stages_done):
            executors(spark)[0].destroyForcibly()
            return True
        time.sleep(0.01)
    return False


# Runs.


@dataclass
class Run:
    """One count of the log, and what Spark reports on it; sizes in bytes."""

    name: str
    group: str
    seconds: float
    transitions: int
    is_exact: bool
    shuffled: int = 0
    brought_back: int = 0
    tasks: int = 0
    tasks_lost: int = 0
    executors_lost: int = 0


def count(
    spark: SparkSession, log: DataFrame, rows: int, columns: dict[str, Any], kill: bool
) -> Run:
    """Count the log, on request with an executor killed (after the shuffle, if there is one)."""
    windowed = columns is WINDOWED
    name = ("episode, time" if windowed else "next state") + (", killed" if kill else "")

    def counted(group: str) -> pw.TransitionCounts:
        spark.sparkContext.setJobGroup(group, name)
        return pw.count_transitions(log, "state", "action", **columns)

    for attempt in range(ATTEMPTS):
        wait_for_executors(spark)
        group = f"{name} {attempt}"
        with ThreadPoolExecutor(1) as pool:
            begin = time.perf_counter()
            running = pool.submit(counted, group)
            killed = kill and kill_one(spark, running, group, stages_done=int(windowed))
            counts = running.result()
            seconds = time.perf_counter() - begin
        if killed == kill:
            is_exact = np.array_equal(dense(counts), expected(rows, windowed))
            return Run(name, group, seconds, len(counts.key), is_exact)
    raise SystemExit("it was over each time before an executor could be killed; give more rows")


def add_events(runs: Sequence[Run], folder: Path) -> None:
    """Add to the runs what Spark's event log reports on them."""
    by_group, run = {run.group: run for run in runs}, None
    (path,) = folder.iterdir()
    for line in path.open(encoding="utf-8"):
        event = json.loads(line)
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            run = by_group.get(event["Properties"].get("spark.jobGroup.id"))
        elif run and kind == "SparkListenerExecutorRemoved":
            run.executors_lost += 1
        elif run and kind == "SparkListenerTaskEnd":
            run.tasks += 1
            if event["Task End Reason"]["Reason"] == "Success":
                run.shuffled += event["Task Metrics"]["Shuffle Write Metrics"][
                    "Shuffle Bytes Written"
                ]
                run.brought_back += event["Task Metrics"]["Result Size"]
            else:
                run.tasks_lost += 1


def measure(rows: int, kills: Sequence[bool], folder: Path) -> tuple[int, list[Run]]:
    """Bytes of a log of this many rows on disk, and all runs on it."""
    with cluster(folder) as spark:
        log = write_log(spark, rows, str(folder / "log"))
        runs = [
            count(spark, log, rows, columns, kill)
            for kill in kills
            for columns in (NEXT_STATE, WINDOWED)
        ]
    add_events(runs, folder / "events")
    return sum(path.stat().st_size for path in folder.glob("log/*/*.parquet")), runs


def show(rows: int, size: int, runs: Sequence[Run]) -> None:
    """Print a table."""
    print(
        f"{rows:,} rows, {size / 1e6:.0f} MB of Parquet; {EXECUTORS} executors of 1 core; "
        "sizes in MB"
    )
    print(
        f"{'path':<23}{'seconds':>8}{'transitions':>13}{'shuffled':>10}{'back':>7}{'tasks':>7}{'lost':>6}"
    )
    for run in runs:
        sizes = f"{run.shuffled / 1e6:>10.1f}{run.brought_back / 1e6:>7.2f}"
        print(
            f"{run.name:<23}{run.seconds:>8.1f}{run.transitions:>13,}{sizes}{run.tasks:>7}{run.tasks_lost:>6}"
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table, or JSON; fail where a count is not exact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--killed", action="store_true", help="only the runs in which an executor is killed"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="pastwise-") as folder:
        size, runs = measure(chosen.rows, (True,) if chosen.killed else (False, True), Path(folder))
    if chosen.json:
        print(json.dumps([asdict(run) for run in runs]))
    else:
        show(chosen.rows, size, runs)
    wrong = [run.name for run in runs if not run.is_exact]
    if wrong:
        raise SystemExit(f"the counts differ from those of the formula: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
