"""Killed at random moments under load, the service loses nothing that it has acknowledged."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import pastwise as pw
from tests.helpers.crash import Load, require_durable, stored_in
from tests.helpers.server import POLICY, STATES, Server, deploy, write_policy

KILLS = 5
"""The benchmarks kill more often."""


def test_kill_9_under_load_loses_nothing(tmp_path: Path) -> None:
    policy = write_policy(tmp_path / "policy.safetensors")
    rng = random.Random()
    with Server(tmp_path / "data") as server:
        with server.client() as client:
            deploy(client, policy)

        # Every start replays what is stored, compares it with what was decided, and would refuse.
        with Load(server.url, server.token) as load:
            for _ in range(KILLS):
                load.wait_for_more(20)
                time.sleep(rng.uniform(0.0, 0.5))
                server.kill()
                require_durable(load, stored_in(server.folder))
                server.start()

        # Events from the policy file on lead to the same decisions, to the last bit.
        with server.client() as client:
            job = client.finished(client.replay(POLICY).id)
            served = {state: client.rule(POLICY, state).rule for state in STATES}
        assert job.result is not None, job.problem
        assert job.result["equal"] is True
        stored = stored_in(server.folder)
        require_durable(load, stored)
        assert len(stored.learned) >= len(load.outcomes) > KILLS

    # The served rule is that of a learner that gets the stored records as a log.
    learner = pw.load(policy)
    for record in stored.learned:
        learner.observe(*record)
    for state in STATES:
        assert served[state] == pytest.approx(dict(learner.rule(state)), abs=1e-9)
