"""The decision service, killed again and again at random moments under load.

Six clients decide and report outcomes; they repeat what was not answered. After each kill -9 a copy
of the database is read without pastwise: every acknowledged decision and outcome must be in it, and
what is in it must be a prefix of what happened. Each start replays the events and compares actions,
propensities and states; at the end a replay from the policy file on must agree to the last bit.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Scale, Section, about
from tests.helpers.crash import Load, require_durable, stored_in
from tests.helpers.server import POLICY, Server, deploy, write_policy


def measure(scale: Scale) -> list[Section]:
    """The job of the suite."""
    section = Section("Crashes of the decision service", about(__doc__))
    most_kills = scale.pick(3, 60, 200)
    until = time.monotonic() + scale.pick(120, 1800, 3600)
    rng = random.Random(0)
    waits: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        policy = write_policy(Path(folder) / "policy.safetensors")
        with Server(Path(folder) / "data", "--decide-rate", "1000000") as server:
            with server.client() as client:
                deploy(client, policy)
            with Load(server.url, server.token) as load:
                while len(waits) < most_kills and time.monotonic() < until:
                    load.wait_for_more(20)
                    time.sleep(rng.uniform(0.0, 1.5))
                    server.kill()
                    require_durable(load, stored_in(server.folder))
                    begin = time.perf_counter()
                    server.start()
                    waits.append(time.perf_counter() - begin)
            with server.client() as client:
                job = client.finished(client.replay(POLICY).id)
            if job.result is None or not job.result["equal"]:
                raise AssertionError(f"the replay differs: {job.problem or job.result}")

    section.notes.append(
        f"{len(waits)} kills; {len(load.decisions):,} decisions and {len(load.outcomes):,} "
        f"outcomes were acknowledged, and none was lost. Longest start: {max(waits):.1f} s."
    )
    section.summarise("kills", len(waits), "times")
    section.summarise("acknowledged and lost", 0, "events")
    return [section]
