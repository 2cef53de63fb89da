"""The decision service under load at a fixed rate, next to what a user might take instead.

k6 sends requests at a fixed rate, whether or not the server keeps up; half of them are decisions
and half outcomes. pastwise decides, learns at once, and answers after a commit that is on disk
(SQLite, `synchronous=FULL`). BentoML answers every request by a scikit-learn classifier; it stores
nothing and learns nothing, and its access log is off. The echo is Starlette alone: the limit for a
service of this kind. Servers take turns; k6 shares the machine's cores with them, and everything
stays on the loopback interface. Numbers are medians over the turns.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import httpx

from benchmarks.harness import MIB, Scale, Section, about
from benchmarks.load.k6 import Measured, Running, load
from benchmarks.load.servers import bento, echo, pastwise
from benchmarks.load.usage import resident
from benchmarks.report import table
from pastwise.service.client import Client
from tests.helpers.server import LOG, POLICY, STATES, Server

OURS = "pastwise"

AT_ONCE = 1000
"""Decisions in one request: the most that the service takes."""


def measure(scale: Scale) -> list[Section]:
    """The job of the suite."""
    section = Section("Decision service", about(__doc__))
    rates = scale.pick((200,), (500, 1000), (500, 1000))
    seconds = scale.pick(3, 30, 120)
    turns = scale.pick(1, 3, 3)
    events = scale.pick(10_000, 1_000_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        # More than one token may request by default.
        options = ("--decide-rate", "1000000", "--worker-niceness", "10")
        server = Server(Path(folder) / "data", *options)
        section.summarise("start without events", seconds_to_start(server), "s")
        server.stop()

        ours = stack.enter_context(pastwise(server, Path(folder) / "policy.safetensors"))
        section.summarise("memory at start", resident(ours.process) / MIB, "MiB")
        servers = {
            OURS: ours,
            "BentoML": stack.enter_context(bento()),
            "echo": stack.enter_context(echo()),
        }
        compare(section, servers, rates, seconds, turns)
        compare_with_work(section, server, ours, rates[0], seconds, turns)

        with server.client() as client, direct(server) as http:
            add_events(client, http, events)
            memory = resident(ours.process) / MIB
            section.summarise(f"memory after {events:,} more events", memory, "MiB")
            replay(section, client)
        server.stop()
        section.summarise("start with these events", seconds_to_start(server), "s")
    return [section]


def seconds_to_start(server: Server) -> float:
    """Seconds until a new process is ready."""
    begin = time.perf_counter()
    server.start()
    return time.perf_counter() - begin


# Latency.


def compare(
    section: Section,
    servers: Mapping[str, Running],
    rates: Sequence[int],
    seconds: int,
    turns: int,
) -> None:
    """Load all servers in turns; add a table, and how we compare."""
    runs: dict[tuple[int, str], list[Measured]] = {
        (rate, name): [] for rate in rates for name in servers
    }
    for _ in range(turns):
        for rate, name in runs:
            runs[rate, name].append(load(servers[name], rate, seconds))

    medians = {which: summary(each) for which, each in runs.items()}
    lines = [line(f"{rate}/s", name, measured) for (rate, name), measured in medians.items()]
    section.notes.append(table(HEADER, lines))

    for rate in rates:
        mine = medians[rate, OURS]
        section.summarise(f"{rate} requests/s: median", mine.median, "ms")
        section.summarise(f"{rate} requests/s: 99 %", mine.p99, "ms")
        section.summarise(f"{rate} requests/s: 99.9 %", mine.p999, "ms")
        for name in servers:
            if name != OURS:
                other = medians[rate, name]
                title = f"{rate} requests/s: {name}'s"
                section.summarise(f"{title} 99 % relative to ours", other.p99 / mine.p99)
                relative = other.processor / mine.processor
                section.summarise(f"{title} processor time relative to ours", relative)


HEADER = (
    "load",
    "server",
    "median, ms",
    "99 %, ms",
    "99.9 %, ms",
    "processor, µs",
    "answered",
    "failed",
    "not sent",
)


def line(size: str, name: str, measured: Measured) -> list[str]:
    """A line of the table."""
    times = (measured.median, measured.p99, measured.p999)
    counts = (measured.answered, measured.failed, measured.not_sent)
    return [
        size,
        name,
        *(f"{each:.2f}" for each in times),
        f"{measured.processor:.0f}",
        *(f"{each:,}" for each in counts),
    ]


def summary(runs: Sequence[Measured]) -> Measured:
    """Medians over the turns; requests are added up."""
    columns = list(zip(*runs, strict=True))
    return Measured(*(median(each) for each in columns[:5]), *(sum(each) for each in columns[5:]))


def compare_with_work(
    section: Section, server: Server, ours: Running, rate: int, seconds: int, turns: int
) -> None:
    """Decisions alone, and while evaluations and uploads run."""
    alone = []
    busy = []
    for _ in range(turns):
        alone.append(load(ours, rate, seconds))
        with at_work(server):
            busy.append(load(ours, rate, seconds))
    section.notes.append(
        table(
            HEADER,
            [
                line(f"{rate}/s", "pastwise alone", summary(alone)),
                line(f"{rate}/s", "with evaluations and uploads", summary(busy)),
            ],
        )
    )
    ratio = summary(busy).decide_p99 / summary(alone).decide_p99
    section.summarise(f"{rate} requests/s with an evaluation and an upload: 99 % of decide", ratio)


@contextmanager
def at_work(server: Server) -> Iterator[None]:
    """Evaluations and uploads one after the other, as long as this lasts."""
    ends = threading.Event()
    tasks = (evaluate_until, upload_until)
    threads = [threading.Thread(target=task, args=(server, ends)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def evaluate_until(server: Server, ends: threading.Event) -> None:
    """Evaluate the policy on its decisions, again and again."""
    with direct(server) as http, server.client() as client:
        while not ends.is_set():
            address = f"/v1/policies/{POLICY}/evaluations"
            job = http.post(address, json={"samples": 20_000}).raise_for_status().json()
            client.finished(job["id"])


def upload_until(server: Server, ends: threading.Event, size: int = 32 * 1024 * 1024) -> None:
    """Upload a log of about this size, again and again."""
    header, _, records = LOG.read_text(encoding="utf-8").partition("\n")
    log = "\n".join([header, *[records.strip()] * (size // len(records))]).encode()
    with direct(server) as http:
        while not ends.is_set():
            kept = http.post("/v1/logs", content=log).raise_for_status().json()
            http.delete(f"/v1/logs/{kept['id']}").raise_for_status()
            ends.wait(0.5)


def direct(server: Server) -> httpx.Client:
    """A connection for what `Client` has no call for."""
    headers = {"Authorization": f"Bearer {server.token}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=120.0)


# Many events.


def add_events(client: Client, http: httpx.Client, number: int, patience: float = 900.0) -> None:
    """Make decisions whose outcomes go missing: two events each.

    Parameters
    ----------
    patience : float
        Seconds after which it gives up.
    """
    client.change(POLICY, outcome_due_s=1.0)
    target = client.policy(POLICY).seq + number
    until = time.monotonic() + patience
    items = [{"state": state} for state in STATES] * (AT_ONCE // len(STATES))
    for _ in range(0, number, 2 * AT_ONCE):
        answer = http.post(f"/v1/policies/{POLICY}/decide-many", json={"items": items})
        answer.raise_for_status()
    while client.policy(POLICY).seq < target:
        if time.monotonic() > until:
            raise RuntimeError(f"the service has not reached event {target:,} in {patience:g} s")
        time.sleep(1.0)


def replay(section: Section, client: Client) -> None:
    """Replay everything from the policy file on."""
    job = client.finished(client.replay(POLICY).id)
    if job.result is None or not job.result["equal"]:
        raise AssertionError(f"the replay differs: {job.problem or job.result}")
    rate = int(str(job.result["events"])) / float(str(job.result["seconds"]))
    section.summarise("replay", rate, "events/s")
