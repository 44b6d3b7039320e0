"""Services with REST and JSON that moto lacks: requests and answers as botocore's models describe them.

An imitation is a function of the caller's key, the region, the operation and its parameters. It is called over HTTP by
:func:`served`, and by the tests without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime
from functools import cache
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.loaders import Loader
from botocore.model import ServiceModel
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

Imitation = Callable[[str, str, str, Mapping[str, Any]], dict[str, Any]]
"""(access key, region, operation, parameters) -> what the service answers. Raises ``ServiceRefusal``."""
Refusing = Callable[[str, str, str, Mapping[str, Any]], None]
"""(access key, region, action as IAM writes it, parameters). Raises ``ServiceRefusal`` for a call that is not to be
answered."""
REFUSALS: list[Refusing] = []
"""Asked before an imitation that is served answers."""
_VARIABLE = re.compile(r"\{(\w+)\+?\}")


class ServiceRefusal(Exception):
    """The service says no. ``fields`` are those of the error's document besides its message."""

    def __init__(self, code: str, status: int, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.code, self.status, self.fields = code, status, fields


@cache
def service_model(service: str) -> Any:
    """botocore's model of a service, as its file has it.

    Clients of S3 take the bucket out of the paths of a model, and others may share that model.
    """
    description = deepcopy(Loader().load_service_model(service, "service-2"))
    for operation in description["operations"].values():
        if operation["http"].pop("authPath", None) is not None:
            operation["http"]["requestUri"] = f"/{{Bucket}}{operation['http']['requestUri']}"
    return ServiceModel(description, service)


@contextmanager
def served(service: str, imitation: Imitation) -> Iterator[None]:
    """Inside this context moto's server passes requests that are signed for the service to ``imitation``."""
    original = DomainDispatcherApplication.__call__
    signed_for = re.compile(rf"Credential=([^/]+)/\d{{8}}/([^/]+)/{service_model(service).signing_name}/")

    def call(self: Any, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        signed = signed_for.search(environ.get("HTTP_AUTHORIZATION", ""))
        if signed is None:
            passed: Iterable[bytes] = original(self, environ, start_response)
            return passed
        headers = [("Content-Type", "application/json")]
        try:
            operation, parameters = request(service_model(service), environ)
            for refusing in REFUSALS:
                refusing(signed[1], signed[2], f"{service_model(service).signing_name}:{operation}", parameters)
            body = imitation(signed[1], signed[2], operation, parameters)
            status = str(service_model(service).operation_model(operation).http.get("responseCode", 200))
        except ServiceRefusal as error:
            body, status = {"message": str(error), **error.fields}, str(error.status)
            headers.append(("x-amzn-ErrorType", error.code))
        start_response(f"{status} -", headers)
        return [b"" if status == "204" else json.dumps(body, default=_json).encode()]

    with patch.object(DomainDispatcherApplication, "__call__", call):
        yield


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    raise TypeError(type(value))


def request(model: Any, environ: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Operation and parameters of a request, by its method and path. Raises ``ServiceRefusal`` for none."""
    # Only the raw path tells a separator from a slash in a name.
    path = urlsplit(environ.get("RAW_URI") or environ["PATH_INFO"]).path
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = json.loads(environ["wsgi.input"].read(length) or b"{}") if length else {}
    query = parse_qs(environ.get("QUERY_STRING", ""))
    for name, method, pattern in _routes(model.service_name):
        fitting = pattern.fullmatch(path) if method == environ["REQUEST_METHOD"] else None
        if fitting:
            return name, dict(_parameters(model.operation_model(name).input_shape, fitting.groupdict(), query, body))
    raise ServiceRefusal("UnknownOperationException", 404, f"{environ['REQUEST_METHOD']} {path}")


@cache
def _routes(service: str) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """(operation, method, pattern of the path), the paths with the most fixed text first."""
    model = service_model(service)
    routes = []
    for name in model.operation_names:
        http = model.operation_model(name).http
        path = http["requestUri"].partition("?")[0]
        fixed = len(_VARIABLE.sub("", path))
        pattern = _VARIABLE.sub(lambda part: f"(?P<{part[1]}>[^/]+)", path)
        routes.append((fixed, (name, http["method"], re.compile(pattern + "/?"))))
    return tuple(route for _, route in sorted(routes, key=lambda pair: -pair[0]))


def _parameters(
    shape: Any, names: Mapping[str, str], query: Mapping[str, list[str]], body: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    for member, inner in shape.members.items() if shape is not None else ():
        location, sent = inner.serialization.get("location"), inner.serialization.get("name", member)
        if location == "uri" and sent in names:
            yield member, unquote(names[sent])
        elif location == "querystring" and sent in query:
            yield member, _plain(inner, query[sent])
        elif location is None and sent in body:
            yield member, body[sent]


def _plain(shape: Any, values: list[str]) -> Any:
    match shape.type_name:
        case "list":
            return values
        case "integer":
            return int(values[0])
        case "boolean":
            return values[0] == "true"
    return values[0]
