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
        self._components = _closed(document["components"])
        self._validators: dict[int, Draft202012Validator] = {}
        """By the identity of a schema of the document, which lives as long as the judge."""
        self._document = document
        self._operations = [
            (_pattern(path), method.upper(), operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]

    def operation(self, method: str, path: str) -> tuple[str, Mapping[str, str]]:
        """The operation's name and the values of its path, whatever the rest of the request is. Raises ``Outside``."""
        operation, values = self._matching(method, path)
        return str(operation["operationId"]), values

    def judge(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Called:
        """The operation of a request. Raises ``Outside``."""
        operation, in_path = self._matching(method, path)
        parameters = {entry["name"]: entry for entry in operation.get("parameters", ())}
        for name, value in {**in_path, **query}.items():
            if name not in parameters:
                raise Outside(f"{operation['operationId']} has no parameter {name}")
            self._check(_as_type(value, parameters[name]["schema"]), parameters[name]["schema"], name)
        return Called(operation["operationId"], in_path, query, self._body(operation, body))

    def _matching(self, method: str, path: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        for pattern, its_method, operation in self._operations:
            match = pattern.fullmatch(path)
            if match is not None and its_method == method:
                return operation, match.groupdict()
        raise Outside(f"there is no {method} {path}")

    def _body(self, operation: Mapping[str, Any], body: bytes) -> Mapping[str, Any]:
        described = operation.get("requestBody")
        if described is None:
            if body:
                raise Outside(f"{operation['operationId']} takes no body")
            return {}
        try:
            document = json.loads(body) if body else {}
        except ValueError:
            raise Outside("the body is no JSON") from None
        self._check(document, described["content"]["application/json"]["schema"], "body")
        return dict(document)

    def _check(self, value: Any, schema: Mapping[str, Any], name: str) -> None:
        validator = self._validators.get(id(schema))
        if validator is None:
            closed = {**_closed(schema), "components": self._components}
            validator = self._validators[id(schema)] = Draft202012Validator(closed)
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
    """By what of the document is part of the repository."""
    return Judge(json.loads(DOCUMENT.read_text(encoding="utf-8")))
