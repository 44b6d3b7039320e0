"""The OpenAPI 3.1 document, from the routes that the functions declare. Never imported while serving."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from stockyard.domain.platform import PLATFORM
from stockyard.edge import etag, paths, problems
from stockyard.edge.contract import Route, model_of
from stockyard.edge.identity import ROLE_NAMES, TENANT_HEADER
from stockyard.edge.query import DRY_RUN, PAGE, Query
from stockyard.edge.route import HttpFunction

_REF = "#/components/schemas/{model}"
_PLAN = "plan:PlanView"
_GATEWAY_ALSO = frozenset({401, 413, 429, 500, 503})
_DONE = {200: "Done.", 201: "Made.", 202: "Accepted; the operation does the rest."}
_REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("MalformedBody", "The body is not JSON."),
    401: ("Unauthorized", "The token is missing, malformed, expired or not for us."),
    403: ("Forbidden", "The role, the tenant or a quota does not allow it."),
    404: ("NotFound", "There is no such resource in this tenant."),
    409: ("Conflict", "Not possible in this state, or the first request with the key still runs."),
    412: ("PreconditionFailed", "`If-Match` is stale."),
    413: ("BodyTooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The body is not JSON by its type."),
    422: ("InvalidInput", "The input is not valid; `errors` says where."),
    428: ("PreconditionRequired", "`If-Match` is missing."),
    429: ("Throttled", "Too many requests."),
    500: ("Internal", "An error of ours; the request id finds it in the logs."),
    502: ("UnexpectedBehavior", "A service we depend on failed."),
    503: ("Unavailable", "Not available just now."),
}
"""Status -> the name of the shared response, and what it says."""


def build(functions: Iterable[HttpFunction], *, version: str = "1") -> dict[str, Any]:
    """The document of all routes of ``functions``, in order of path and method.

    What several routes have alike stands once, among the components. ``x-stockyard-function`` names the function that
    serves a route, ``x-stockyard-open`` says why a route takes no token: the gateway is built from these.
    """
    pairs = sorted(
        ((route, function.name) for function in functions for route in function.routes),
        key=lambda pair: (pair[0].path, pair[0].method),
    )
    routes = [route for route, _ in pairs]
    schemas, references = _schemas(routes)
    shared = _shared_parameters(routes)
    documented: dict[str, dict[str, Any]] = {}
    for route, function in pairs:
        operation = {"x-stockyard-function": function, **_operation(route, references, shared)}
        documented.setdefault(route.path, {})[route.method.lower()] = operation
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
            "parameters": dict(sorted(shared.items())),
            "headers": _HEADERS,
            "responses": {name: _refusal(status) for status, (name, _) in _REFUSALS.items()},
            "schemas": {**schemas, "Problem": _PROBLEM, "GatewayMessage": _GATEWAY_MESSAGE},
        },
    }


def _models(routes: Iterable[Route]) -> Iterator[tuple[type[BaseModel], JsonSchemaMode]]:
    yield model_of(_PLAN), "serialization"
    for route in routes:
        if route.body is not None:
            yield model_of(route.body), "validation"
        for answer in route.answers.values():
            if answer is not None:
                yield model_of(answer), "serialization"


def _schemas(routes: Iterable[Route]) -> tuple[dict[str, Any], Mapping[type[BaseModel], dict[str, Any]]]:
    """Component schemas, and where each model is in them."""
    models = list(dict.fromkeys(_models(routes)))
    references, document = models_json_schema(models, ref_template=_REF)
    for schema in document["$defs"].values():
        # pydantic's titles repeat the names of the model and of its fields
        for titled in (schema, *schema.get("properties", {}).values()):
            titled.pop("title", None)
    return dict(sorted(document["$defs"].items())), {
        model: ref for (model, _), ref in references.items() if issubclass(model, BaseModel)
    }


def _shared_parameters(routes: Iterable[Route]) -> dict[str, dict[str, Any]]:
    """What several routes have alike, by the name of its component. ``ValueError`` for two of one name."""
    counts: Counter[str] = Counter()
    definitions: dict[str, tuple[str, dict[str, Any]]] = {}
    for route in routes:
        for name, definition in _parameters(route):
            text = json.dumps(definition, sort_keys=True)
            counts[text] += 1
            definitions[text] = name, definition
    repeated = [definitions[text] for text, count in counts.items() if count > 1]
    if len(dict(repeated)) < len(repeated):
        raise ValueError("two parameters that several routes have are called alike")
    return dict(repeated)


def _operation(
    route: Route, references: Mapping[type[BaseModel], dict[str, Any]], shared: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.action,
        "summary": route.summary,
        "tags": [route.path.split("/")[2]],
        "x-stockyard-roles": [name for name, role in ROLE_NAMES.items() if role & route.roles],
        "parameters": [
            _component("parameters", name) if shared.get(name) == definition else definition
            for name, definition in _parameters(route)
        ],
        "responses": {str(status): answer for status, answer in sorted(_responses(route, references).items())},
    }
    if description := route.description or ("With `dry_run` the answer is a plan." if route.dry_run else ""):
        operation["description"] = description
    if route.machine:
        operation["x-stockyard-machine"] = True
    if route.platform:
        operation["x-stockyard-platform"] = True
    if route.open_because:
        operation["security"] = []
        operation["x-stockyard-open"] = route.open_because
    if route.body is not None:
        content = {"application/json": {"schema": references[model_of(route.body)]}}
        if route.method == "PATCH":
            content["application/merge-patch+json"] = content["application/json"]
        if route.yaml:
            content["application/yaml"] = content["application/json"]
        if route.large:
            content["application/gzip"] = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": not route.optional, "content": content}
    return operation


def _parameters(route: Route) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parameters of a route, each with the name that it has as a component."""
    for name in re.findall(r"\{(\w+)\}", route.path):
        schema = {"type": "string", "pattern": paths.PARAMETER}
        yield name.title(), {"name": name, "in": "path", "required": True, "schema": schema}
    extra = (*(PAGE if route.paged else ()), *((DRY_RUN,) if route.dry_run else ()))
    for query in (*route.query, *extra):
        definition = {"name": query.name, "in": "query", "description": query.description}
        yield query.name.title().replace("_", ""), {**definition, "schema": _query_schema(query)}
    if not route.open_because:
        tenant = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
        text = "The tenant to act in; only for the role stockyard-platform."
        if route.platform:
            text += f" `{PLATFORM}` is the platform itself."
            tenant = f"({tenant}|{PLATFORM})"
        name = "TenantOrPlatform" if route.platform else "Tenant"
        yield name, _header(TENANT_HEADER.title(), text, pattern=f"^{tenant}$")
    if route.if_match:
        header = _header("If-Match", "The `ETag` that was last read.", pattern=etag.PATTERN)
        yield "IfMatch", {**header, "required": True}
    if route.idempotent:
        text = "The same key gives the same answer for 24 hours."
        pattern = "^[!-~]([ -~]*[!-~])?$"
        yield "IdempotencyKey", _header("Idempotency-Key", text, minLength=1, maxLength=255, pattern=pattern)


def _component(kind: str, name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string", **schema}}


def _query_schema(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": query.kind}
    if query.kind == "string":
        schema |= {"minLength": 1, "maxLength": 1024}
    enum = list(query.values) or None
    bounds = {"pattern": query.pattern, "enum": enum, "minimum": query.minimum, "maximum": query.maximum}
    return schema | {name: value for name, value in bounds.items() if value is not None}


def _responses(route: Route, references: Mapping[type[BaseModel], dict[str, Any]]) -> dict[int, dict[str, Any]]:
    responses = {status: _component("responses", _REFUSALS[status][0]) for status in sorted(_refusals(route))}
    for status, model in route.answers.items():
        responses[status] = _answer(route, status, {"type": "object"} if model is None else references[model_of(model)])
    if route.dry_run and route.answers.get(200) != _PLAN:
        plan = references[model_of(_PLAN)]
        if 200 in route.answers:
            content = responses[200]["content"]["application/json"]
            content["schema"] = {"anyOf": [content["schema"], plan]}
        else:
            responses[200] = {
                "description": "The plan of a dry run.",
                "content": {"application/json": {"schema": plan}},
            }
    return responses


def _refusals(route: Route) -> set[int]:
    """Every status a route can refuse with, the gateway's own included."""
    statuses = {413, 422, 429, 500, 502, 503}
    if not route.open_because or route.body is not None:
        statuses |= {401, 403}
    if "{" in route.path:
        statuses.add(404)
    if route.method in ("POST", "PUT", "PATCH"):
        statuses |= {400, 409, 415}
    if route.method == "DELETE" or ("{" in route.path and not route.path.endswith("}")):
        statuses.add(409)
    if route.if_match:
        statuses |= {412, 428}
    return statuses


def _refusal(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {problems.CONTENT_TYPE: {"schema": _component("schemas", "Problem")}}
    if status in _GATEWAY_ALSO:
        content["application/json"] = {"schema": _component("schemas", "GatewayMessage")}
    refusal = {"description": _REFUSALS[status][1], "content": content}
    if status in (409, 429, 503):
        refusal["headers"] = {"Retry-After": _component("headers", "RetryAfter")}
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
        headers["ETag"] = _component("headers", "ETag")
    if status == 202:
        headers["Location"] = _component("headers", "Location")
    answer = {"description": _DONE.get(status, "Done."), "content": {"application/json": {"schema": schema}}}
    return {**answer, "headers": headers} if headers else answer


_HEADERS: dict[str, Any] = {
    name: {"description": description, "required": False, "schema": {"type": kind}}
    for name, description, kind in (
        ("ETag", "The resource's version.", "string"),
        ("Location", "The operation that does the work.", "string"),
        ("RetryAfter", "Seconds to wait, where trying again may help.", "integer"),
    )
}
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
                "properties": {
                    "pointer": {"type": "string"},
                    "detail": {"type": "string"},
                    "index": {"type": "integer", "description": "Of several manifests the number of this one, from 0."},
                    "kind": {"type": "string", "description": "The kind of that manifest."},
                    "name": {"type": "string", "description": "The name of that manifest."},
                },
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
