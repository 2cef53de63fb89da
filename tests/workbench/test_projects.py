"""Opening logs, mapping their columns, and everything that can be wrong with either."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import pastwise as pw
from pastwise.logs.usable import usable
from pastwise.policy.file import save_counts
from tests.helpers.services import slug_of
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT, InProcessBench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBench]:
    folder = tmp_path_factory.mktemp("bench")
    with InProcessBench(folder) as bench:
        (bench.root / "log.csv").write_bytes(THERMOSTAT.read_bytes())
        yield bench


@pytest.fixture(scope="module")
def project(bench: InProcessBench) -> dict[str, Any]:
    return opened(bench, path="log.csv")


def opened(bench: InProcessBench, **source: str) -> dict[str, Any]:
    answer = bench.call("POST", "/v1/projects", source)
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


def mapped(bench: InProcessBench, project: str, columns: Any, query: str = "") -> Any:
    return bench.call("POST", f"/v1/projects/{project}/mapping{query}", columns)


# Opening


def test_roles_are_guessed(project: dict[str, Any]) -> None:
    assert project["id"] == "log"
    assert project["rows"] == 480
    assert [column["name"] for column in project["columns"]] == ["day", "hour", "room", "did"]
    room = project["columns"][2]
    assert room["type"] == "text"
    assert room["distinct"] == 5
    assert room["missing"] == 0
    guess = project["guess"]
    assert {name: guess[name] for name in COLUMNS} == COLUMNS
    assert project["counts"] is None


def test_the_sample_is_the_log_of_the_example() -> None:
    example = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
    assert THERMOSTAT.read_bytes() == example.read_bytes()


def test_a_log_is_opened_once(bench: InProcessBench, project: dict[str, Any]) -> None:
    again = bench.call("POST", "/v1/projects", {"path": str(bench.root / "log.csv")})
    assert again.status_code == 200
    assert again.json()["id"] == project["id"]
    other = opened(bench, sample="thermostat", name="Other log!")
    assert other["id"] == "other-log"
    listed = bench.call("GET", "/v1/projects?limit=1").json()
    assert len(listed["items"]) == 1
    rest = bench.call("GET", f"/v1/projects?cursor={listed['next']}").json()
    assert listed["items"][0]["id"] not in [each["id"] for each in rest["items"]]


def test_paths_outside_the_root_are_refused(bench: InProcessBench, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("state,action\na,b\n")
    (bench.root / "link.csv").symlink_to(secret)
    (bench.root / "folder").symlink_to(tmp_path)
    tries = [str(secret), "link.csv", "folder/secret.csv", "../data/admin.token", "/etc/passwd"]
    tries += [f"../{bench.root.name}/../{tmp_path.name}/secret.csv"]
    for given in tries:
        answer = bench.call("POST", "/v1/projects", {"path": given})
        assert slug_of(answer) == "path-refused", given
        assert answer.json()["errors"][0]["pointer"] == "/path"


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("missing.csv", "not-found"),
        ("*.csv", "not-found"),
        (".", "unsupported-kind"),
        ("notes.pdf", "unsupported-kind"),
        ("pipe.csv", "unsupported-kind"),
        ("", "invalid-value"),
        ("a\x00b", "malformed"),
        ("x" * 300 + ".csv", "not-found"),
    ],
)
def test_what_is_no_log_is_refused(bench: InProcessBench, path: str, slug: str) -> None:
    (bench.root / "notes.pdf").write_text("x")
    if not (bench.root / "pipe.csv").exists():
        os.mkfifo(bench.root / "pipe.csv")
    assert slug_of(bench.call("POST", "/v1/projects", {"path": path})) == slug


def test_an_empty_file_is_refused_and_leaves_nothing(bench: InProcessBench) -> None:
    (bench.root / "empty.csv").write_text("")
    before = bench.call("GET", "/v1/projects").json()
    assert slug_of(bench.call("POST", "/v1/projects", {"path": "empty.csv"})) == "nothing-to-learn"
    assert bench.call("GET", "/v1/projects").json() == before
    assert slug_of(bench.call("POST", "/v1/projects", {})) == "invalid-value"
    both = {"path": "log.csv", "sample": "thermostat"}
    assert slug_of(bench.call("POST", "/v1/projects", both)) == "invalid-value"


def test_an_uploaded_log_is_opened(bench: InProcessBench) -> None:
    content = THERMOSTAT.read_bytes()
    upload = bench.call("POST", "/v1/logs?name=rooms.csv", content=content).json()
    view = opened(bench, log=upload["id"], name="rooms")
    assert view["rows"] == 480
    assert bench.call("DELETE", f"/v1/projects/{view['id']}").status_code == 204
    assert slug_of(bench.call("POST", "/v1/projects", {"log": upload["id"]})) == "not-found"


def test_counts_and_policies_are_opened(bench: InProcessBench) -> None:
    learner = pw.TransferLearner(COMFORT, method="TL").fit(THERMOSTAT, columns=COLUMNS)
    save_counts(learner.counts_, bench.root / "counts.safetensors", learner.columns_)
    view = opened(bench, path="counts.safetensors")
    assert view["kind"] == "counts"
    answer = bench.call("POST", f"/v1/counts/{view['counts']}/preview", {"goal": COMFORT})
    rule = dict(zip(answer.json()["rule"]["states"], answer.json()["rule"]["p"], strict=True))
    assert rule["cool"] == pytest.approx(list(learner.rule_["cool"].values()), abs=1e-9)
    assert bench.call("GET", f"/v1/projects/{view['id']}/rows").json()["rows"] == []

    # Other counts in their place are opened in their place.
    learner.update(THERMOSTAT)
    save_counts(learner.counts_, bench.root / "counts.safetensors", learner.columns_)
    answer = bench.call("POST", "/v1/projects", {"path": "counts.safetensors"})
    again = answer.json()
    assert (answer.status_code, again["id"]) == (200, view["id"])
    assert again["rows"] == 2 * view["rows"]
    answer = bench.call("POST", f"/v1/counts/{again['counts']}/preview", {"goal": COMFORT})
    rule = dict(zip(answer.json()["rule"]["states"], answer.json()["rule"]["p"], strict=True))
    assert rule["cool"] == pytest.approx(list(learner.rule_["cool"].values()), abs=1e-9)

    # Files that cannot be read change nothing.
    before = bench.call("GET", "/v1/projects").json()
    for name in ("broken.safetensors", "counts.safetensors"):
        (bench.root / name).write_bytes(b"\x00" * 100)
        answer = bench.call("POST", "/v1/projects", {"path": name})
        assert slug_of(answer) == "policy-file-refused"
    assert bench.call("GET", "/v1/projects").json() == before


def test_a_log_that_grows_is_looked_at_again(bench: InProcessBench) -> None:
    path = bench.root / "growing.csv"
    path.write_bytes(THERMOSTAT.read_bytes())
    view = opened(bench, path="growing.csv")
    with path.open("a") as file:
        file.write("40,8,hot,vent\n40,9,warm,idle\n")
    again = bench.call("POST", "/v1/projects", {"path": "growing.csv"})
    assert again.status_code == 200
    assert again.json()["id"] == view["id"]
    assert again.json()["rows"] == 482


def test_a_log_that_was_moved_away_is_said_by_its_name(bench: InProcessBench) -> None:
    path = bench.root / "moved.csv"
    path.write_bytes(THERMOSTAT.read_bytes())
    project = opened(bench, path="moved.csv")["id"]
    path.unlink()
    rows = bench.call("GET", f"/v1/projects/{project}/rows")
    tried = bench.call("POST", f"/v1/projects/{project}/mapping?dry_run=true", COLUMNS)
    for answer in (rows, tried):
        assert slug_of(answer) == "nothing-to-learn"
        assert "moved.csv is not there any more" in answer.json()["detail"]


def test_a_log_that_changed_is_not_mixed_with_what_was_read(bench: InProcessBench) -> None:
    path = bench.root / "changing.csv"
    path.write_bytes(THERMOSTAT.read_bytes())
    project = opened(bench, path="changing.csv")["id"]
    place = f"/v1/projects/{project}"
    counts = bench.call("POST", f"{place}/mapping", COLUMNS).json()["counts"]
    draft = bench.draft(counts)
    explain = f"/v1/drafts/{draft['id']}/explain"

    def evidence(state: str) -> tuple[int, str | None]:
        view = bench.call("GET", f"{explain}?state={state}").json()
        reasons = view["actions"].values()
        rows = [len(each["rows"]) for reason in reasons for each in reason["evidence"]]
        return sum(rows), view["without_rows"]

    number, why = evidence("cool")
    assert number > 0
    assert why is None

    # Other rows at the same place belong to no count and to no explanation.
    lines = THERMOSTAT.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:301]))
    number, why = evidence("warm")
    assert number == 0
    assert why is not None
    assert "changing.csv has changed since it was read" in why
    for answer in (
        bench.call("GET", f"{place}/rows"),
        bench.call("POST", f"{place}/mapping", COLUMNS),
    ):
        assert slug_of(answer) == "nothing-to-learn"
        assert why == answer.json()["detail"]

    # Opened again, it has to be counted again; what was saved still rests on the old counts.
    view = bench.call("POST", "/v1/projects", {"path": "changing.csv"}).json()
    assert (view["id"], view["rows"], view["counts"]) == (project, 300, None)
    assert view["mapping"] is not None
    assert evidence("hot") == (0, None)
    counted = bench.call("POST", f"{place}/mapping", COLUMNS)
    assert counted.status_code == 201
    assert counted.json()["validation"]["rows"] == 300


# Mapping


def test_a_dry_run_changes_nothing(bench: InProcessBench, project: dict[str, Any]) -> None:
    answer = mapped(bench, project["id"], COLUMNS, "?dry_run=true")
    assert answer.json()["counts"] is None
    validation = answer.json()["validation"]
    expected = json.loads(json.dumps(usable(THERMOSTAT, COLUMNS).to_dict()))
    assert validation == {**expected, "sampled": None}
    assert (validation["rows"], validation["used"], validation["ends"]) == (480, 440, 40)
    assert bench.call("GET", f"/v1/projects/{project['id']}").json() == project


def test_an_unknown_column_is_pointed_at(bench: InProcessBench, project: dict[str, Any]) -> None:
    answer = mapped(bench, project["id"], {**COLUMNS, "state": ["hour", "rom"], "time": None})
    assert slug_of(answer) in ("unknown-column", "invalid-value")
    answer = mapped(bench, project["id"], {**COLUMNS, "state": ["rom"]})
    assert slug_of(answer) == "unknown-column"
    part = answer.json()["errors"][0]
    assert part["pointer"] == "/state/0"
    assert part["near"] == ["room"]
    answer = mapped(bench, project["id"], {**COLUMNS, "time": "hours"}, "?dry_run=true")
    part = answer.json()["errors"][0]
    assert part["pointer"] == "/time"
    assert part["near"] == ["hour"]


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"state": ["room"], "action": ["did"]},
        {"state": ["room"], "action": ["room"], "episode": "day", "time": "hour"},
        {**COLUMNS, "bins": {"room": 3}},
        {**COLUMNS, "max_gap": "soon"},
        {**COLUMNS, "terminal": ["cosy"]},
        {**COLUMNS, "bins": {"nothing": 3}},
    ],
)
def test_a_mapping_that_cannot_be_is_refused(
    bench: InProcessBench, project: dict[str, Any], columns: dict[str, Any]
) -> None:
    answer = mapped(bench, project["id"], columns)
    assert slug_of(answer) in ("invalid-value", "nothing-to-learn", "invalid-label")
    assert bench.call("GET", f"/v1/projects/{project['id']}").json()["counts"] is None


def test_a_dry_run_reads_the_beginning_of_a_long_log(
    bench: InProcessBench, project: dict[str, Any]
) -> None:
    # Ten days of twelve hours.
    answer = mapped(bench, project["id"], COLUMNS, "?dry_run=true&first=120")
    found = answer.json()["validation"]
    assert (found["rows"], found["sampled"]) == (120, 120)
    first = "".join(THERMOSTAT.read_text().splitlines(keepends=True)[:121])
    (bench.root / "first.csv").write_text(first)
    expected = usable(bench.root / "first.csv", COLUMNS).to_dict()
    assert found["used"] == expected["used"]
    assert found["states"] == [dict(each) for each in expected["states"]]

    # A log that is no longer is read whole, and so is every log that is counted.
    answer = mapped(bench, project["id"], COLUMNS, "?dry_run=true&first=480")
    found = answer.json()["validation"]
    assert (found["rows"], found["sampled"]) == (480, None)


def test_a_mapping_is_counted(bench: InProcessBench) -> None:
    (bench.root / "counted.csv").write_bytes(THERMOSTAT.read_bytes())
    view = opened(bench, path="counted.csv")
    answer = mapped(bench, view["id"], COLUMNS)
    assert answer.status_code == 201
    counts = answer.json()["counts"]
    found = bench.call("GET", f"/v1/projects/{view['id']}").json()
    assert found["counts"] == counts
    assert found["mapping"]["state"] == ["room"]
    assert found["validation"] == answer.json()["validation"]
    items = bench.call("GET", "/v1/projects").json()["items"]
    listed = next(each for each in items if each["id"] == view["id"])
    assert (listed["states"], listed["actions"]) == (5, 3)
    rule = bench.call("POST", f"/v1/counts/{counts}/preview", {"goal": COMFORT}).json()["rule"]
    learner = pw.TransferLearner(COMFORT, method="TL").fit(THERMOSTAT, columns=COLUMNS)
    assert rule["p"][0] == pytest.approx(learner.rule_.probabilities[0].tolist(), abs=1e-9)

    # Rows behind a reason.
    draft = bench.draft(counts)
    address = f"/v1/drafts/{draft['id']}/explain?state=cool&action=heat&rows=2"
    evidence = bench.call("GET", address).json()["actions"]["heat"]["evidence"]
    assert all(len(each["rows"]) == min(2, each["records"]) for each in evidence)
    lines = THERMOSTAT.read_text().splitlines()
    for each in evidence:
        for row in each["rows"]:
            assert lines[row["row"]] == f"{row['episode']},{row['time']},cool,heat"

    # The same for a goal that is not saved; the log is not read again for another goal.
    want = {"explain": ["cool", "heat"], "rows": 2}
    body = {"goal": COMFORT, "want": want}
    preview = bench.call("POST", f"/v1/counts/{counts}/preview", body).json()
    assert preview["explain"]["actions"]["heat"]["evidence"] == evidence
    (bench.root / "counted.csv").rename(bench.root / "moved.csv")
    body["goal"] = {"prefer": {"cool": 1}}
    preview = bench.call("POST", f"/v1/counts/{counts}/preview", body).json()
    again = preview["explain"]["actions"]["heat"]["evidence"]
    assert {each["next_state"]: each["rows"] for each in again} == {
        each["next_state"]: each["rows"] for each in evidence
    }
    (bench.root / "moved.csv").rename(bench.root / "counted.csv")

    # Other columns make other counts; those of the draft stay.
    other = mapped(bench, view["id"], {**COLUMNS, "terminal": ["hot"]}).json()["counts"]
    assert other != counts
    assert bench.call("GET", f"/v1/counts/{counts}").status_code == 200
    third = mapped(bench, view["id"], COLUMNS).json()["counts"]
    assert slug_of(bench.call("GET", f"/v1/counts/{other}")) == "not-found"
    assert bench.call("GET", f"/v1/counts/{third}").status_code == 200


# Rows


def test_rows_show_what_follows(bench: InProcessBench, project: dict[str, Any]) -> None:
    address = f"/v1/projects/{project['id']}/rows"
    plain = bench.call("GET", f"{address}?limit=2").json()
    assert plain["rows"] == [["0", "8", "hot", "vent"], ["0", "9", "hot", "idle"]]
    assert plain["of"] == 480
    mapping = quote(json.dumps(COLUMNS))
    found = bench.call("GET", f"{address}?offset=10&limit=3&mapping={mapping}").json()
    lines = [line.split(",") for line in THERMOSTAT.read_text().splitlines()[1:]]
    assert found["rows"] == lines[10:13]
    assert found["then"] == [lines[11][2], None, lines[13][2]]
    gap = quote(json.dumps({**COLUMNS, "max_gap": 0.5}))
    found = bench.call("GET", f"{address}?limit=1&mapping={gap}").json()
    assert found["then"] == [{"break": "gap", "by": 1}]


def test_an_example_of_a_finding_is_a_row_of_the_log(bench: InProcessBench) -> None:
    lines = ["day,hour,room,did", *(f"0,{i},warm,idle" for i in range(30))]
    lines[20] = "0,19,,idle"
    (bench.root / "gaps.csv").write_text("\n".join(lines))
    view = opened(bench, path="gaps.csv")
    answer = mapped(bench, view["id"], COLUMNS)
    findings = {each["code"]: each for each in answer.json()["validation"]["findings"]}
    row = findings["missing-state"]["examples"][0]["row"]
    found = bench.call("GET", f"/v1/projects/{view['id']}/rows?limit=1&offset={row - 1}").json()
    assert found["rows"] == [["0", "19", None, "idle"]]
    assert found["then"] == [{"break": "missing-state", "by": None}]


def test_bad_queries_are_refused(bench: InProcessBench, project: dict[str, Any]) -> None:
    address = f"/v1/projects/{project['id']}/rows"
    assert slug_of(bench.call("GET", f"{address}?limit=0")) == "invalid-value"
    assert slug_of(bench.call("GET", f"{address}?mapping=x")) == "invalid-value"
    wrong = quote(json.dumps({**COLUMNS, "state": ["rom"]}))
    assert slug_of(bench.call("GET", f"{address}?mapping={wrong}")) == "unknown-column"
    assert slug_of(bench.call("GET", "/v1/projects/none/rows")) == "not-found"
    assert bench.call("GET", f"{address}?offset=100000").json()["rows"] == []
