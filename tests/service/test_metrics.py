"""What the service counts, as Prometheus reads it."""

from __future__ import annotations

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pastwise.errors import ParameterError
from pastwise.service.metrics import OTHER, Counter, Distribution, Metrics

NAMES = {
    "decisions",
    "decision_seconds",
    "commit_seconds",
    "commit_batch",
    "outcomes",
    "outcomes_open",
    "outcome_lag_seconds",
    "idempotent_replays",
    "weak_decisions",
    "unknown_states",
    "change_evidence",
    "alarm",
    "share_wanted",
    "replay_seconds",
    "store_bytes",
    "jobs",
    "http_requests",
    "http_seconds",
}


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus' own parser reads."""
    found = {}
    for family in text_string_to_metric_families(metrics.render()):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_every_metric_of_the_service_has_a_name_and_help() -> None:
    families = list(text_string_to_metric_families(Metrics().render()))
    assert {family.name.removeprefix("pastwise_") for family in families} == NAMES
    assert all(family.documentation for family in families)


def test_counters_add_up_by_label() -> None:
    metrics = Metrics()
    metrics.decisions.add(1, policy="heating", version=3, mode="live")
    metrics.decisions.add(2, policy="heating", version=3, mode="live")
    metrics.decisions.add(1, policy="heating", version=3, mode="shadow")
    found = samples(metrics)
    live = (("mode", "live"), ("policy", "heating"), ("version", "3"))
    shadow = (("mode", "shadow"), ("policy", "heating"), ("version", "3"))
    assert found["pastwise_decisions_total", live] == 3
    assert found["pastwise_decisions_total", shadow] == 1


def test_a_histogram_counts_up_to_each_bound() -> None:
    metrics = Metrics()
    for seconds in (0.0004, 0.002, 0.0021, 99.0):
        metrics.decision_seconds.observe(seconds)
    found = samples(metrics)
    name = "pastwise_decision_seconds"
    assert found[f"{name}_bucket", (("le", "0.0005"),)] == 1
    assert found[f"{name}_bucket", (("le", "0.002"),)] == 2
    assert found[f"{name}_bucket", (("le", "0.005"),)] == 3
    assert found[f"{name}_bucket", (("le", "10"),)] == 3
    assert found[f"{name}_bucket", (("le", "+Inf"),)] == 4
    assert found[f"{name}_count", ()] == 4
    assert found[f"{name}_sum", ()] == pytest.approx(99.0045)


def test_values_of_labels_may_hold_anything() -> None:
    metrics = Metrics()
    odd = 'a"b\\c\nd,}{é'
    metrics.alarm.set(1, policy=odd)
    assert samples(metrics)["pastwise_alarm", (("policy", odd),)] == 1


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300, -0.25, 2.0**60])
def test_gauges_keep_any_number(value: float) -> None:
    metrics = Metrics()
    metrics.change_evidence.set(value, policy="a")
    assert samples(metrics)["pastwise_change_evidence", (("policy", "a"),)] == value


def test_not_a_number_is_written_as_such() -> None:
    metrics = Metrics()
    metrics.share_wanted.set(float("nan"), policy="a")
    value = samples(metrics)["pastwise_share_wanted", (("policy", "a"),)]
    assert value != value


def test_a_metric_does_not_grow_without_bound() -> None:
    counter = Counter("requests_total", "Requests.", ("route",), most=3)
    for number in range(10):
        counter.add(1, route=f"/{number}")
    lines = [line for line in counter.lines() if not line.startswith("#")]
    assert len(lines) == 4
    assert f'requests_total{{route="{OTHER}"}} 7' in lines


def test_a_label_that_a_metric_lacks_is_refused() -> None:
    with pytest.raises(ParameterError, match="has no label colour"):
        Metrics().decisions.add(1, colour="red")


def test_gauges_that_are_forgotten_are_not_written() -> None:
    metrics = Metrics()
    metrics.jobs.set(2, state="running")
    metrics.jobs.forget()
    assert "pastwise_jobs{" not in metrics.render()


def test_threads_lose_no_addition() -> None:
    metrics = Metrics()
    child = metrics.http_requests.child(route="/livez", status=200)

    def count() -> None:
        for _ in range(20_000):
            child.add()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert child.value == 80_000


def test_a_quantile_lies_between_the_bounds_that_it_is_counted_by() -> None:
    seconds = Distribution([1.0, 2.0, 4.0])
    for value in [0.5] * 50 + [3.0] * 49 + [9.0]:
        seconds.observe(value)

    assert seconds.count == 100
    assert seconds.quantile(0.5) == pytest.approx(1.0)
    assert seconds.quantile(0.25) == pytest.approx(0.5)
    assert 2.0 < seconds.quantile(0.8) < 4.0
    assert seconds.quantile(1.0) == 4.0  # more than the last bound is not known
