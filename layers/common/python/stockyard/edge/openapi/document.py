"""The OpenAPI 3.1 document, from the routes that the functions declare. Never imported while serving."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, RootModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from stockyard.domain.platform import PLATFORM
from stockyard.edge import paths
from stockyard.edge.contract import Route, model_of
from stockyard.edge.http import etag
from stockyard.edge.http.query import COUNT, DRY_RUN, PAGE, WAIT, Query
from stockyard.edge.identity import ROLE_NAMES, TENANT_HEADER
from stockyard.edge.openapi import words as openapi_words
from stockyard.edge.openapi.descriptions import DescribedSchema, first_sentence, plain
from stockyard.edge.route import HttpFunction

_REF = "#/components/schemas/{model}"
_PLAN = "plan:PlanView"
_LICENCE = {"name": "Proprietary", "identifier": "LicenseRef-Stockyard"}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "A token of the realm; `stockyard token` prints one.",
}


@dataclass(frozen=True, slots=True)
class _Components:
    """Components that routes refer to: the schemas by their models, shared parameters by name, examples by the model's
    name."""

    schemas: Mapping[type[BaseModel], dict[str, Any]]
    parameters: Mapping[str, dict[str, Any]]
    examples: Mapping[str, Any]

    def content(
        self, model: type[BaseModel] | str | None, *, paged: bool = False, waits: bool = False, counted: bool = False
    ) -> dict[str, Any]:
        """Content that has the form of the model, or is a page of a list of it, with an example; of one that ``waits``
        the page has a cursor, and of one that is ``counted`` a total."""
        if model is None:
            return {"schema": {"type": "object"}}
        names = [candidate.__name__ for candidate in _forms(model_of(model))]
        name = next((name for name in names if name in self.examples), None)
        schema, samples = self.schemas[model_of(model)], dict[str, Any]()
        if paged:
            cursor = {**({"cursor": None} if waits else {}), **({"total": None} if counted else {})}
            page = {"items": [] if name is None else [self.examples[name]], "next_page_token": None, **cursor}
            return {
                "schema": _page(schema, waits=waits, counted=counted),
                **({} if name is None else {"example": page}),
            }
        samples = {} if name is None else {"examples": {"example": _component("examples", name)}}
        return {"schema": schema, **samples}


def _forms(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model, and where it is one of several those: an example of one of them is an example of it."""
    several = get_args(model.model_fields["root"].annotation) if issubclass(model, RootModel) else ()
    return [model, *(part for part in several if isinstance(part, type) and issubclass(part, BaseModel))]


def build(
    functions: Iterable[HttpFunction], *, version: str = "1", examples: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The document of all routes of ``functions``, in order of path and method.

    What several routes have alike stands once, among the components. ``x-stockyard-function`` names the function that
    serves a route, ``x-stockyard-open`` says why a route takes no token: the gateway is built from these.
    ``examples`` are documents by the name of the model that they are of.
    """
    pairs = sorted(
        ((route, function.name) for function in functions for route in function.routes),
        key=lambda pair: (pair[0].path, pair[0].method),
    )
    routes = [route for route, _ in pairs]
    schemas, references = _schemas(routes)
    shared = _shared_parameters(routes)
    components = _Components(references, shared, examples or {})
    documented: dict[str, dict[str, Any]] = {}
    for route, function in pairs:
        operation = {"x-stockyard-function": function, **_operation(route, function, components)}
        documented.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stockyard",
            "version": version,
            "description": openapi_words.GUIDE,
            "license": _LICENCE,
        },
        "servers": [{"url": "/", "description": "The API that this document comes from."}],
        "security": [{"bearer": []}],
        "tags": [{"name": name, "description": openapi_words.TAGS[name]} for name in _tags(pairs)],
        "paths": documented,
        "components": {
            "securitySchemes": {"bearer": _BEARER},
            "parameters": dict(sorted(shared.items())),
            "headers": openapi_words.HEADERS,
            "responses": {name: openapi_words.refusal(status) for status, (name, _) in openapi_words.REFUSALS.items()},
            "examples": _named(components.examples, documented),
            "schemas": {
                **schemas,
                "Problem": openapi_words.PROBLEM,
                "GatewayMessage": openapi_words.GATEWAY_MESSAGE,
            },
        },
    }


def _named(examples: Mapping[str, Any], documented: Mapping[str, Any]) -> dict[str, Any]:
    """The examples that operations refer to; those of lists stand in the lists."""
    text = json.dumps(documented)
    return {
        name: {"value": value} for name, value in sorted(examples.items()) if f'"#/components/examples/{name}"' in text
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
    references, document = models_json_schema(models, ref_template=_REF, schema_generator=DescribedSchema)
    for schema in document["$defs"].values():
        # pydantic's titles repeat the names of the model and of its fields
        for titled in (schema, *schema.get("properties", {}).values()):
            titled.pop("title", None)
    return dict(sorted(document["$defs"].items())), {
        model: ref for (model, _), ref in references.items() if issubclass(model, BaseModel)
    }


def _shared_parameters(routes: Iterable[Route]) -> dict[str, dict[str, Any]]:
    """Parameters that several routes have alike, by the name of their component. ``ValueError`` for two of one name."""
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


def _tag(route: Route, function: str) -> str:
    """The resource that a route is about; what machines call has a place of its own."""
    if function == "machines":
        return function
    if route.open_because and (route.media or route.path == "/v1/health"):
        return "contract"
    return "pools" if "/pools" in route.path else route.path.split("/")[2]


def _tags(pairs: Iterable[tuple[Route, str]]) -> list[str]:
    return sorted({_tag(route, function) for route, function in pairs})


def _operation(route: Route, function: str, components: _Components) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.action,
        "summary": route.summary,
        "description": _description(route),
        "tags": [_tag(route, function)],
        "x-stockyard-roles": [name for name, role in ROLE_NAMES.items() if role & route.roles],
        "parameters": [
            _component("parameters", name) if components.parameters.get(name) == definition else definition
            for name, definition in _parameters(route)
        ],
        "responses": {str(status): answer for status, answer in sorted(_responses(route, components).items())},
    }
    if route.machine:
        operation["x-stockyard-machine"] = True
    if route.platform:
        operation["x-stockyard-platform"] = True
    if route.open_because:
        operation["security"] = []
        operation["x-stockyard-open"] = route.open_because
    if route.body is not None:
        content = {"application/json": components.content(route.body)}
        if route.method == "PATCH":
            content["application/merge-patch+json"] = content["application/json"]
        if route.yaml:
            content["application/yaml"] = content["application/json"]
        if route.large:
            content["application/gzip"] = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {
            "description": first_sentence(model_of(route.body)),
            "required": not route.optional,
            "content": content,
        }
    return operation


def _description(route: Route) -> str:
    """The words of the route, with a sentence on its dry run where they have none."""
    text = plain(route.description)
    return f"{text} With `dry_run` the answer is a plan.".strip() if route.dry_run and "dry_run" not in text else text


def _parameters(route: Route) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parameters of a route, each with the name that it has as a component."""
    for parameter in re.finditer(r"\{(\w+)\}", route.path):
        component, text = openapi_words.PATH_PARAMETERS[route.path[: parameter.end()]]
        schema = {"type": "string", "pattern": paths.PARAMETER}
        yield component, {"name": parameter[1], "in": "path", "required": True, "description": text, "schema": schema}
    extra = (
        *(PAGE if route.paged else ()),
        *((COUNT,) if route.counted else ()),
        *((DRY_RUN,) if route.dry_run else ()),
        *((WAIT,) if route.waits else ()),
    )
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
    if route.media or (route.waits and not route.paged):
        text = "An `ETag` that was read: the answer is 304, without a body, while it is the current one."
        yield "IfNoneMatch", _header("If-None-Match", text)
    if route.lenient_body is not None:
        text = "`handling=lenient` lets the body leave out what the description names (RFC 7240)."
        yield "Prefer", _header("Prefer", text)
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


def _responses(route: Route, components: _Components) -> dict[int, dict[str, Any]]:
    names = openapi_words.REFUSALS
    responses = {status: _component("responses", names[status][0]) for status in sorted(_refusals(route))}
    for status, model in route.answers.items():
        responses[status] = _answer(
            route, status, components.content(model, paged=route.paged, waits=route.waits, counted=route.counted)
        )
    if route.media:
        responses[304] = {"description": "The caller has it already.", "headers": responses[200]["headers"]}
    if route.waits and not route.paged:
        headers = {
            name: _component("headers", part) for name, part in (("ETag", "ETag"), ("Retry-After", "RetryAfter"))
        }
        responses[304] = {"description": "It is still as `If-None-Match` says.", "headers": headers}
    if route.dry_run and route.answers.get(200) != _PLAN:
        plan = components.content(_PLAN)
        if 200 in route.answers:
            content = responses[200]["content"]["application/json"]
            content["schema"] = {"anyOf": [content["schema"], plan["schema"]]}
        else:
            responses[200] = {"description": "The plan of a dry run.", "content": {"application/json": plan}}
    return responses


def _refusals(route: Route) -> set[int]:
    """Every status a route can refuse with, the gateway's own included."""
    statuses = {413, 422, 429, 500, 502, 503}
    if not route.open_because or route.body is not None or route.proof is not None:
        statuses |= {401, 403}
    if "{" in route.path or any(query.finds for query in route.query):
        statuses.add(404)
    if route.method in ("POST", "PUT", "PATCH"):
        statuses |= {400, 409, 415}
    if route.method == "DELETE" or ("{" in route.path and not route.path.endswith("}")):
        statuses.add(409)
    if route.if_match:
        statuses |= {412, 428}
    return statuses


def _answer(route: Route, status: int, content: dict[str, Any]) -> dict[str, Any]:
    media = {"application/json": content}
    if route.media:
        schema = {"type": "string" if route.media.startswith("text/") else "object"}
        media = {name: {"schema": schema} for name in (route.media, *route.other_media)}
    headers: dict[str, Any] = {}
    if not route.paged and status in (200, 201, 202):
        headers["ETag"] = _component("headers", "ETag")
    if status == 202 or (status == 201 and route.method == "POST"):
        headers["Location"] = _component("headers", "Location")
    if route.idempotent:
        headers["Idempotent-Replayed"] = _component("headers", "IdempotentReplayed")
    planned = status == 200 and route.answers[200] == _PLAN
    text = "The plan of a dry run." if planned else openapi_words.DONE.get(status, "Done.")
    answer = {"description": text, "content": media}
    return {**answer, "headers": headers} if headers else answer


def _page(schema: dict[str, Any], *, waits: bool, counted: bool) -> dict[str, Any]:
    """A page of a list of what has that form."""
    text = "The `page_token` of the next page; null on the last one."
    page: dict[str, Any] = {
        "type": "object",
        "required": ["items", "next_page_token"],
        "additionalProperties": False,
        "properties": {
            "items": {"type": "array", "description": "The items of this page.", "items": schema},
            "next_page_token": {"type": ["string", "null"], "description": text},
        },
    }
    if counted:
        text = "How many there are in the whole list; null where `count` was not given, or a list is followed."
        page["required"].append("total")
        page["properties"]["total"] = {
            "description": text,
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["count", "more"],
            "properties": {
                "count": {"type": "integer", "minimum": 0, "description": "So many are counted."},
                "more": {"type": "boolean", "description": "Whether there are, or may be, more than `count`."},
            },
        }
    if waits:
        text = "What `after` takes to go on; null on a page that `page_token` led to."
        page["required"].append("cursor")
        page["properties"]["cursor"] = {"type": ["string", "null"], "description": text}
    return page
