"""Operation of S3 that a request is, and its resource: by its method, its path and its query, as botocore has it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

from local.aws.corrections.rest_services import service_model


def request(environ: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Operation and the parameters that permissions look at. An operation that no model has is empty."""
    path = unquote(urlsplit(environ.get("RAW_URI") or environ["PATH_INFO"]).path).lstrip("/")
    bucket, _, key = path.partition("/")
    query = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", ""), True).items()}
    parameters = {"Bucket": bucket, "Key": key, **({"Prefix": query["prefix"]} if "prefix" in query else {})}
    operation = _operation(environ["REQUEST_METHOD"], bool(bucket) + bool(key), query)
    if operation == "DeleteObjects":
        parameters["Delete"] = {"Objects": _objects(environ)}
    return operation, {name: value for name, value in parameters.items() if value}


def _operation(method: str, depth: int, query: Mapping[str, str]) -> str:
    for name, fixed in _routes().get((method, depth), ()):
        if all(flag in query and value in ("", query[flag]) for flag, value in fixed.items()):
            return name
    return ""


@cache
def _routes() -> dict[tuple[str, int], list[tuple[str, dict[str, str]]]]:
    """(method, how much of bucket and key the path names) -> operations with the query that each has to have, those
    with the most of it first."""
    routes: dict[tuple[str, int], list[tuple[str, dict[str, str]]]] = {}
    model = service_model("s3")
    for name in model.operation_names:
        operation = model.operation_model(name)
        path, _, query = operation.http["requestUri"].partition("?")
        fixed = {flag: value for flag, _, value in (part.partition("=") for part in query.split("&") if part)}
        if operation.deprecated:
            continue  # its successor looks alike
        headers = [inner for inner in _members(operation) if inner.serialization.get("location") == "header"]
        if any(inner.serialization.get("name") == "x-amz-copy-source" for inner in headers):
            continue  # a copy looks as the call that puts
        depth = path.count("{Bucket}") + path.count("{Key")
        routes.setdefault((operation.http["method"], depth), []).append((name, fixed))
    return {
        method_and_depth: sorted(named, key=lambda route: -len(route[1])) for method_and_depth, named in routes.items()
    }


def _members(operation: Any) -> list[Any]:
    return list(operation.input_shape.members.values()) if operation.input_shape is not None else []


def _objects(environ: dict[str, Any]) -> list[dict[str, str]]:
    """The objects that the body names; the body is there for who reads it next."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    root = ElementTree.fromstring(body)  # noqa: S314 - our own client wrote it
    return [
        {part.tag.rpartition("}")[2]: part.text or "" for part in item}
        for item in root
        if item.tag.rpartition("}")[2] == "Object"
    ]
