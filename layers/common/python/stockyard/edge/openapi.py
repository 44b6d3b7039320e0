"""The OpenAPI 3.1 document, from the routes that the functions declare. Never imported while serving."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from stockyard.domain.platform import PLATFORM
from stockyard.edge import etag, paths, problems
from stockyard.edge.contract import Route, model_of
from stockyard.edge.identity import ROLE_NAMES, TENANT_HEADER
from stockyard.edge.query import DRY_RUN, PAGE, Query
from stockyard.edge.route import Door

_REF = "#/components/schemas/{model}"
_PLAN = "plan:PlanView"
_GATEWAY_ALSO = frozenset({401, 413, 429, 500, 503})
_REASONS = {
    200: "Done.",
    201: "Made.",
    202: "Accepted; the operation does the rest.",
    400: "The body is not JSON.",
    401: "The token is missing, malformed, expired or not for us.",
    403: "The role, the tenant or a quota does not allow it.",
    404: "There is no such resource in this tenant.",
    409: "Not possible in this state, or the first request with the key still runs.",
    412: "`If-Match` is stale.",
    413: "The body is too large.",
    415: "The body is not JSON by its type.",
    422: "The input is not valid; `errors` says where.",
    428: "`If-Match` is missing.",
    429: "Too many requests.",
    500: "An error of ours; the request id finds it in the logs.",
    502: "A service we depend on failed.",
    503: "Not available just now.",
}


def build(doors: Iterable[Door], *, version: str = "1") -> dict[str, Any]:
    """The document of all routes of ``doors``, in order of path and method."""
    routes = sorted((route for door in doors for route in door.routes), key=lambda one: (one.path, one.method))
    schemas, references = _schemas(routes)
    documented: dict[str, dict[str, Any]] = {}
    for route in routes:
        documented.setdefault(route.path, {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stockyard",
            "version": version,
            "description": "Creates Kubernetes clusters and hands them nodes.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "paths": documented,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "schemas": {**schemas, "Problem": _PROBLEM, "GatewayMessage": _GATEWAY_MESSAGE},
        },
    }


def _models(routes: Iterable[Route]) -> Iterator[tuple[type[BaseModel], str]]:
    yield model_of(_PLAN), "serialization"
    for route in routes:
        if route.body is not None:
            yield model_of(route.body), "validation"
        for answer in route.answers.values():
            if answer is not None:
                yield model_of(answer), "serialization"


def _schemas(routes: Iterable[Route]) -> tuple[dict[str, Any], Mapping[type[BaseModel], dict[str, Any]]]:
    """Component schemas, and where each model is in them."""
    wanted: Any = list(dict.fromkeys(_models(routes)))
    references, document = models_json_schema(wanted, ref_template=_REF)
    return dict(sorted(document["$defs"].items())), {
        model: ref for (model, _), ref in references.items() if issubclass(model, BaseModel)
    }


def _operation(route: Route, references: Mapping[type[BaseModel], dict[str, Any]]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.action,
        "summary": route.summary,
        "tags": [route.tag],
        "x-stockyard-roles": [name for name, role in ROLE_NAMES.items() if role & route.roles],
        "x-stockyard-machine": route.machine,
        "x-stockyard-platform": route.platform,
        "parameters": list(_parameters(route)),
        "responses": {str(status): answer for status, answer in sorted(_responses(route, references).items())},
    }
    if route.description:
        operation["description"] = route.description
    if not route.token:
        operation["security"] = []
    if route.body is not None:
        content = {"application/json": {"schema": references[model_of(route.body)]}}
        if route.method == "PATCH":
            content["application/merge-patch+json"] = content["application/json"]
        if route.yaml:
            content["application/yaml"] = content["application/json"]
        if route.large:
            content["application/gzip"] = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", route.path):
        schema = {"type": "string", "pattern": paths.PARAMETER}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    extra = (*(PAGE if route.paged else ()), *((DRY_RUN,) if route.dry_run else ()))
    for query in (*route.query, *extra):
        yield {"name": query.name, "in": "query", "description": query.description, "schema": _query_schema(query)}
    if route.token:
        name = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
        text = "The tenant to act in; only for the role stockyard-platform."
        if route.platform:
            text += f" `{PLATFORM}` is the platform itself."
            name = f"({name}|{PLATFORM})"
        yield _header(TENANT_HEADER.title(), text, pattern=f"^{name}$")
    if route.if_match:
        yield {**_header("If-Match", "The `ETag` that was last read.", pattern=etag.PATTERN), "required": True}
    if route.idempotent:
        text = "The same key gives the same answer for 24 hours."
        yield _header("Idempotency-Key", text, minLength=1, maxLength=255, pattern="^[!-~]([ -~]*[!-~])?$")


def _header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string", **schema}}


def _query_schema(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": query.kind}
    if query.kind == "string":
        schema |= {"minLength": 1, "maxLength": 1024}
    if query.pattern:
        schema["pattern"] = query.pattern
    if query.values:
        schema["enum"] = list(query.values)
    if query.minimum is not None:
        schema["minimum"] = query.minimum
    if query.maximum is not None:
        schema["maximum"] = query.maximum
    return schema


def _responses(route: Route, references: Mapping[type[BaseModel], dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found = {status: _refusal(status) for status in sorted(_refusals(route))}
    for status, answer in route.answers.items():
        found[status] = _answer(route, status, {"type": "object"} if answer is None else references[model_of(answer)])
    if route.dry_run:
        plan = references[model_of(_PLAN)]
        if 200 in route.answers:
            content = found[200]["content"]["application/json"]
            content["schema"] = {"anyOf": [content["schema"], plan]}
        else:
            found[200] = {
                "description": "The plan of a dry run.",
                "content": {"application/json": {"schema": plan}},
            }
    return found


def _refusals(route: Route) -> set[int]:
    """Every status a route can refuse with, the gateway's own included."""
    found = {413, 422, 429, 500, 502, 503}
    if route.token or route.body is not None:
        found |= {401, 403}
    if "{" in route.path:
        found.add(404)
    if route.method in ("POST", "PUT", "PATCH"):
        found |= {400, 409, 415}
    if route.method == "DELETE" or ("{" in route.path and not route.path.endswith("}")):
        found.add(409)
    if route.if_match:
        found |= {412, 428}
    return found


def _refusal(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {problems.CONTENT_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    if status in _GATEWAY_ALSO:
        content["application/json"] = {"schema": {"$ref": _REF.format(model="GatewayMessage")}}
    refusal = {"description": _REASONS[status], "content": content}
    if status in (409, 429, 503):
        refusal["headers"] = {"Retry-After": _answer_header("Seconds to wait, where trying again may help.", "integer")}
    return refusal


def _answer(route: Route, status: int, schema: dict[str, Any]) -> dict[str, Any]:
    if route.paged:
        schema = {
            "type": "object",
            "required": ["items", "next_page_token"],
            "additionalProperties": False,
            "properties": {
                "items": {"type": "array", "items": schema},
                "next_page_token": {"type": ["string", "null"]},
            },
        }
    headers: dict[str, Any] = {}
    if not route.paged and status in (200, 201, 202):
        headers["ETag"] = _answer_header("The resource's version.")
    if status == 202:
        headers["Location"] = _answer_header("The operation that does the work.")
    answer = {"description": _REASONS.get(status, "Done."), "content": {"application/json": {"schema": schema}}}
    return {**answer, "headers": headers} if headers else answer


def _answer_header(description: str, kind: str = "string") -> dict[str, Any]:
    return {"description": description, "required": False, "schema": {"type": kind}}


_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "A problem document (RFC 9457). Switch on `error_type`.",
    "required": ["type", "title", "status", "detail", "instance", "error_type", "retryable", "request_id", "errors"],
    "additionalProperties": False,
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "error_type": {"type": "string"},
        "retryable": {"type": "boolean"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "additionalProperties": False,
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
_GATEWAY_MESSAGE: dict[str, Any] = {
    "type": "object",
    "description": "What the gateway answers itself.",
    "required": ["message"],
    "properties": {"message": {"type": "string"}},
}
