"""The OpenAPI 3.1 document, made from the operations and from the types that parse requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from pastwise import __version__
from pastwise.service.calls import OCTETS, Operation
from pastwise.service.problems import PROBLEMS, ProblemPart

Schema = dict[str, Any]

_PARAMETER = re.compile(r"\{(\w+)\}")

COMMON = (
    "token-missing",
    "token-invalid",
    "role-missing",
    "rate-limited",
    "starting",
    "stopping",
    "store-unavailable",
)
"""Problems of everything that needs a token."""

QUERY = ("malformed", "invalid-value", "unknown-member")
"""Problems of everything that has parameters in its query."""

BODY = (*QUERY, "too-slow", "too-large", "unsupported-kind")
"""Problems of everything that has a body."""


class ProblemView(msgspec.Struct):
    """A problem (RFC 9457); kinds of problems may have more members."""

    type: str
    title: str
    status: int
    detail: str = ""
    instance: str = ""
    errors: list[ProblemPart] = []
    request_id: str = ""


def openapi_document(operations: Sequence[Operation], also: Sequence[type] = ()) -> Schema:
    """Describe operations.

    Parameters
    ----------
    also : sequence of types
        Further types to describe, such as those of results of jobs.

    Returns
    -------
    dict
        Plain values for JSON.
    """
    # Schemas of all types, with names to refer to them by.
    types: list[Any] = [ProblemView, *also]
    for operation in operations:
        types += [kind for kind in _types(operation) if kind not in types]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=_schema_of, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(types, schemas, strict=True))

    paths: dict[str, Schema] = {}
    for operation in operations:
        path = paths.setdefault(operation.path, {})
        path[operation.method.lower()] = _description(operation, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pastwise decision service",
            "version": __version__,
            "description": "Decide, report what followed, and learn from it.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(operation: Operation) -> list[Any]:
    """Types that an operation parses or answers."""
    kinds = [
        operation.query,
        operation.body,
        operation.or_json,
        operation.answer,
        operation.later,
    ]
    return [kind for kind in kinds if kind is not None and not isinstance(kind, str)]


def _schema_of(kind: type) -> Schema:
    """Schema of a type that msgspec does not describe: any JSON value."""
    if kind is object:
        return {"description": "Any JSON value."}
    raise NotImplementedError(f"{kind} has no schema")


def _description(operation: Operation, schema_of: dict[Any, Schema], components: Schema) -> Schema:
    """One operation."""
    description: Schema = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        "parameters": _parameters(operation, schema_of, components),
        "responses": _responses(operation, schema_of),
    }
    if operation.role is not None:
        description["security"] = [{"token": []}]
        description["description"] = f"Needs a token with the role `{operation.role}`."
    if operation.body == "upload":
        content = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
        if operation.or_json is not None:
            content["application/json"] = {"schema": schema_of[operation.or_json]}
        description["requestBody"] = {"required": True, "content": content}
    elif operation.body is not None:
        content = {"application/json": {"schema": schema_of[operation.body]}}
        description["requestBody"] = {"required": True, "content": content}
    return description


def _parameters(
    operation: Operation, schema_of: dict[Any, Schema], components: Schema
) -> list[Schema]:
    """Parameters of the path, of the query and of the headers."""
    text = {"type": "string"}
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _PARAMETER.findall(operation.path)
    ]
    if operation.query is not None:
        name = schema_of[operation.query]["$ref"].rpartition("/")[2]
        required = components[name].get("required", [])
        for member, schema in components[name]["properties"].items():
            is_required = member in required
            parameters.append(
                {"name": member, "in": "query", "required": is_required, "schema": schema}
            )
    if operation.rate == "decide":
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": text})
    if "precondition-required" in operation.problems:
        parameters.append({"name": "If-Match", "in": "header", "required": True, "schema": text})
    if operation.status == 202:
        parameters.append({"name": "Prefer", "in": "header", "schema": text})
    return parameters


def _responses(operation: Operation, schema_of: dict[Any, Schema]) -> Schema:
    """The answers, and the problems by status."""
    success: Schema = {"description": operation.summary}
    if isinstance(operation.answer, str):
        success["content"] = {operation.answer: {"schema": {"type": "string"}}}
    elif operation.answer is not None:
        success["content"] = {"application/json": {"schema": schema_of[operation.answer]}}
    responses = {str(operation.status): success}
    if operation.later is not None:
        content = {"application/json": {"schema": schema_of[operation.later]}}
        responses["202"] = {"description": "It takes longer: the job.", "content": content}

    # What is asked for again, tried out, or done while the client waits is not new.
    if operation.status == 202 or (operation.rate == "decide" and operation.status == 201):
        responses["200"] = success

    by_status: dict[int, list[str]] = {}
    for slug in _problems(operation):
        by_status.setdefault(PROBLEMS[slug].status, []).append(slug)
    problem = {"application/problem+json": {"schema": schema_of[ProblemView]}}
    for status, found in sorted(by_status.items()):
        names = ", ".join(dict.fromkeys(found))
        responses[str(status)] = {"description": names, "content": problem}
    return responses


def _problems(operation: Operation) -> list[str]:
    """Slugs of the problems of an operation: its own, and those of its kind."""
    slugs = list(operation.problems)
    if operation.role is not None:
        slugs += COMMON
    if operation.rate == "decide":
        slugs.append("idempotency-key-missing")
    if operation.query is not None:
        slugs += QUERY
    if operation.body is not None:
        slugs += BODY
    if "{" in operation.path:
        slugs.append("not-found")
    return slugs
