"""The OpenAPI document against the routes and against real requests and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pastwise.service.calls import Operation
from pastwise.service.openapi import openapi_document
from pastwise.service.problems import PROBLEMS
from pastwise.service.routes import OPERATIONS
from tests.helpers.services import ROOM, InProcess, slug_of


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("service")) as service:
        yield service.with_policy()


@pytest.fixture(scope="module")
def document(service: InProcess) -> dict[str, Any]:
    found: dict[str, Any] = service.call("GET", "/v1/openapi.json", token=None).json()
    return found


def test_every_route_is_described_and_nothing_else(document: dict[str, Any]) -> None:
    described = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert described == {(operation.method, operation.path) for operation in OPERATIONS}
    assert document["openapi"].startswith("3.1")
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids))


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for part in value.values():
                yield from references(part)
        elif isinstance(value, list):
            for part in value:
                yield from references(part)

    found = set(references(document))
    assert found
    for reference in found:
        name = reference.removeprefix("#/components/schemas/")
        assert name in document["components"]["schemas"]


def test_path_parameters_are_declared(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            declared = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_problems_of_an_operation_exist(document: dict[str, Any]) -> None:
    for item in document["paths"].values():
        for operation in item.values():
            for status, answer in operation["responses"].items():
                if int(status) < 400:
                    continue
                for slug in answer["description"].split(", "):
                    assert PROBLEMS[slug].status == int(status)


def members(document: dict[str, Any], schema: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Known and required members of an object."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return set(schema["properties"]), set(schema.get("required", ()))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/policies/{policy}/decide", {"state": "cold"}),
        ("GET", "/v1/policies/{policy}", None),
        ("GET", "/v1/policies/{policy}/versions/{version}", None),
        ("GET", "/v1/policies/{policy}/rule", None),
        ("GET", "/v1/policies/{policy}/decisions", None),
        ("POST", "/v1/tokens", {"name": "x", "roles": ["read"]}),
        ("GET", "/v1/audit", None),
        ("GET", "/readyz", None),
    ],
)
def test_answers_have_the_described_members(
    service: InProcess, document: dict[str, Any], method: str, path: str, body: Any
) -> None:
    target = path.format(policy=ROOM, version=1)
    if path.endswith("/rule"):
        target += "?state=cold"
    answer = service.call(method, target, body)
    described = document["paths"][path][method.lower()]["responses"][str(answer.status_code)]
    schema = described["content"]["application/json"]["schema"]
    known, required = members(document, schema)
    assert required <= set(answer.json()) <= known


KEY = {"Idempotency-Key": "once"}
WAIT = {"Prefer": "wait=60"}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "/v1/policies/{policy}/decide", {"state": "cold"}, KEY, 201),
        ("POST", "/v1/policies/{policy}/decide", {"state": "cold"}, KEY, 200),
        ("POST", "/v1/policies/{policy}/decide", {"state": "cold", "dry_run": True}, {}, 200),
        ("POST", "/v1/policies/{policy}/decide", {"state": {"a": [1]}}, {}, 422),
        ("POST", "/v1/policies/{policy}/decide", {"state": {"a": 1}}, {}, 422),
        ("POST", "/v1/policies/{policy}/decide", {"state": "cold"}, {"Idempotency-Key": ""}, 400),
        ("POST", "/v1/policies/{policy}/replay", {}, WAIT, 200),
        ("POST", "/v1/policies/{policy}/replay", {}, {}, 202),
        ("PATCH", "/v1/policies/{policy}", {"on_unseen": "action:x"}, {"If-Match": "*"}, 422),
        ("GET", "/v1/policies/{policy}/decisions?limit=0", None, {}, 422),
        ("GET", "/v1/policies/{policy}/decisions?cursor=x", None, {}, 422),
        ("GET", "/v1/policies/{policy}/monitor?by=week", None, {}, 422),
        ("GET", "/v1/policies/{policy}/rule?state={{", None, {}, 422),
        ("GET", "/v1/policies/{policy}/rule?state=off", None, {}, 422),
        ("GET", "/v1/policies/{policy}/decisions.csv?since=x", None, {}, 422),
        ("GET", "/v1/audit?x=1", None, {}, 422),
    ],
)
def test_statuses_and_problems_are_described(
    service: InProcess,
    document: dict[str, Any],
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    status: int,
) -> None:
    answer = service.call(method, path.format(policy=ROOM), body, headers=headers)
    assert answer.status_code == status
    require_described(document, method, path.partition("?")[0], answer)


@pytest.mark.parametrize("route", ["decide", "decide-many", "replay", "learn", "evaluations"])
def test_a_policy_without_a_version_is_described(
    service: InProcess, document: dict[str, Any], route: str
) -> None:
    service.call("PUT", "/v1/policies/empty", {})
    body = {"decide": {"state": "x"}, "decide-many": {"items": [{"state": "x"}]}}.get(route, {})
    answer = service.call("POST", f"/v1/policies/empty/{route}", body)
    assert slug_of(answer) == "no-version"
    require_described(document, "POST", f"/v1/policies/{{policy}}/{route}", answer)


def require_described(
    document: dict[str, Any], method: str, path: str, answer: httpx.Response
) -> None:
    """The status, the type and the slug of an answer must be in the document."""
    described = document["paths"][path][method.lower()]["responses"][str(answer.status_code)]
    assert answer.headers["content-type"] in described["content"]
    if answer.status_code >= 400:
        assert slug_of(answer) in described["description"].split(", ")


def test_a_request_is_described_as_it_is_parsed(
    service: InProcess, document: dict[str, Any]
) -> None:
    operation = document["paths"]["/v1/policies/{policy}/decide"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    known, required = members(document, schema)
    assert required == {"state"}
    assert known == {"state", "allowed", "episode", "context", "dry_run"}
    name = schema["$ref"].rpartition("/")[2]
    assert document["components"]["schemas"][name]["additionalProperties"] is False
    assert json.dumps(document)  # plain values only


def texts(shortest: int = 0, longest: int = 20) -> st.SearchStrategy[str]:
    """Any text but what no store can hold."""
    characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    return st.text(characters, min_size=shortest, max_size=longest)


def matches_of(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Texts of a pattern, in one line."""
    shortest = schema.get("minLength", 0)
    longest = schema.get("maxLength", 200)

    def is_described(text: str) -> bool:
        return shortest <= len(text) <= longest and not set("\n\0") & set(text)

    return st.from_regex(schema["pattern"], fullmatch=True).filter(is_described)


def strategy_of(schema: dict[str, Any], schemas: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema describes."""
    if "$ref" in schema:
        return strategy_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return st.one_of([strategy_of(part, schemas) for part in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        members = {name: strategy_of(part, schemas) for name, part in schema["properties"].items()}
        required = schema.get("required", ())
        return st.fixed_dictionaries(
            {name: members[name] for name in required},
            optional={name: part for name, part in members.items() if name not in required},
        )
    if kind == "object":
        values = strategy_of(schema.get("additionalProperties", {}), schemas)
        return st.dictionaries(texts(longest=5), values, max_size=3)
    if kind == "array":
        items = strategy_of(schema["items"], schemas)
        return st.lists(items, min_size=schema.get("minItems", 0), max_size=4)
    if kind == "string" and "pattern" in schema:
        return matches_of(schema)
    if kind == "integer":
        return st.integers(schema.get("minimum", -99), schema.get("maximum", 99))
    if kind == "number":
        least = schema.get("minimum", schema.get("exclusiveMinimum", -1e6))
        return st.floats(least, schema.get("maximum", 1e6), exclude_min="minimum" not in schema)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        "string": texts(schema.get("minLength", 0)),
        "boolean": st.booleans(),
        "null": st.none(),
        None: st.none() | st.integers(-9, 9) | texts(longest=5),
    }
    return simple[kind]


def described_requests() -> st.SearchStrategy[tuple[Operation, Any]]:
    """Operations that take JSON and start no job, with bodies that the document describes."""
    document = openapi_document(OPERATIONS)
    requests = []
    for operation in OPERATIONS:
        if isinstance(operation.body, type) and operation.status != 202:
            described = document["paths"][operation.path][operation.method.lower()]
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            body = strategy_of(schema, document["components"]["schemas"])
            requests.append(st.tuples(st.just(operation), body))
    return st.one_of(requests)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=described_requests())
def test_described_requests_are_parsed(service: InProcess, request: tuple[Operation, Any]) -> None:
    operation, body = request
    path = operation.path.format(policy="none", id="none")
    answer = service.call(operation.method, path, body, headers={"If-Match": "*"})
    if answer.status_code >= 400:
        problem = answer.json()
        is_paused = problem["type"] == "/problems/paused"  # a request before may have paused it
        assert answer.status_code < 500 or is_paused
        assert problem["type"] not in ("/problems/malformed", "/problems/unknown-member")
        assert "Expected" not in problem["detail"]
