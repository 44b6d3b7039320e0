"""Judges requests by Cudo's own OpenAPI document, of which ``openapi.json`` has what Stockyard calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

DOCUMENT = Path(__file__).with_name("openapi.json")


class Outside(Exception):
    """The request is not one that the document knows; the text says why."""


@dataclass(frozen=True, slots=True)
class Called:
    """An operation of the document, with the values of its path and query."""

    operation: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]


class Judge:
    """A document, read once."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        components = _closed(document["components"])
        self._operations = [
            (_pattern(path), method.upper(), _operation(operation, components))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]

    def operation(self, method: str, path: str) -> tuple[str, Mapping[str, str]]:
        """The operation's name and the values of its path, whatever the rest of the request is. Raises ``Outside``."""
        operation, values = self._matching(method, path)
        return operation.name, values

    def judge(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Called:
        """The operation of a request. Raises ``Outside``."""
        operation, in_path = self._matching(method, path)
        for name, value in {**in_path, **query}.items():
            if name not in operation.parameters:
                raise Outside(f"{operation.name} has no parameter {name}")
            schema, validator = operation.parameters[name]
            _check(_as_type(value, schema), validator, name)
        return Called(operation.name, in_path, query, _body(operation, body))

    def _matching(self, method: str, path: str) -> tuple[_Operation, Mapping[str, str]]:
        for pattern, its_method, operation in self._operations:
            match = pattern.fullmatch(path) if its_method == method else None
            if match is not None:
                return operation, match.groupdict()
        raise Outside(f"there is no {method} {path}")


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation with its schemas ready to judge by; ``body`` is None where it takes none."""

    name: str
    parameters: Mapping[str, tuple[Mapping[str, Any], Draft202012Validator]]
    body: Draft202012Validator | None


def _operation(described: Mapping[str, Any], components: Mapping[str, Any]) -> _Operation:
    def validator(schema: Mapping[str, Any]) -> Draft202012Validator:
        return Draft202012Validator({**_closed(schema), "components": components})

    parameters = {
        entry["name"]: (entry["schema"], validator(entry["schema"])) for entry in described.get("parameters", ())
    }
    body = described.get("requestBody")
    return _Operation(
        described["operationId"],
        parameters,
        None if body is None else validator(body["content"]["application/json"]["schema"]),
    )


def _body(operation: _Operation, body: bytes) -> Mapping[str, Any]:
    if operation.body is None:
        if body:
            raise Outside(f"{operation.name} takes no body")
        return {}
    try:
        document = json.loads(body) if body else {}
    except ValueError:
        raise Outside("the body is no JSON") from None
    _check(document, operation.body, "body")
    return dict(document)


def _check(value: Any, validator: Draft202012Validator, name: str) -> None:
    for fault in validator.iter_errors(value):
        where = "/".join(map(str, fault.absolute_path))
        raise Outside(f"{name}/{where}: {fault.message}")


def _closed(part: Any) -> Any:
    """The schema with no property but those that it names: a field that Cudo does not know is a mistake of ours."""
    if isinstance(part, dict):
        closed = {key: _closed(value) for key, value in part.items()}
        if isinstance(part.get("properties"), dict) and "additionalProperties" not in part:
            closed["additionalProperties"] = False
        return closed
    return [_closed(value) for value in part] if isinstance(part, list) else part


def _as_type(text: str, schema: Mapping[str, Any]) -> Any:
    is_number = schema.get("type") == "integer" and re.fullmatch(r"-?[0-9]+", text)
    return int(text) if is_number else text


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/:]+)", path))


@cache
def trimmed() -> Judge:
    """Judge by the part of the document that is in the repository."""
    return Judge(json.loads(DOCUMENT.read_text(encoding="utf-8")))
