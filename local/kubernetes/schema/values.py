"""The values of a custom resource, judged as its definition says: what is required, types, enums, patterns, bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from local.kubernetes.schema.structural import INT_OR_STRING, Schema, field_schema

_INTEGERS = {"int32": 2**31, "int64": 2**63}
_LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NOT_CHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to"
_RULES: Mapping[str, Callable[[Any], bool]] = {
    "self.startsWith('/')": lambda value: value.startswith("/"),
    "!self.contains('..')": lambda value: ".." not in value,
    "self == true": lambda value: value is True,
}
"""The rules in the Common Expression Language that definitions here have."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A fault of one field: the reason of a ``StatusCause``, and its text."""

    reason: str
    text: str
    field: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def faults(document: Mapping[str, Any], schema: Schema) -> list[Cause]:
    """All faults of an object."""
    causes = [*_of_meta(document.get("metadata") or {}), *_of(document, schema, "")]
    is_unfit = any(cause.reason in ("FieldValueRequired", "FieldValueTypeInvalid") for cause in causes)
    if is_unfit and _has_rules(schema):
        causes.append(_invalid("<nil>", "null", f"{_NOT_CHECKED} complete validation"))
    return causes


def _of_meta(meta: Mapping[str, Any]) -> Iterator[Cause]:
    name = str(meta.get("name", ""))
    if not _NAME.fullmatch(name):
        yield _invalid("metadata.name", f'"{name}"', "a lowercase RFC 1123 subdomain must consist of lower case")
    for value in (meta.get("labels") or {}).values():
        if not _LABEL.fullmatch(value) or len(value) > 63:
            yield _invalid("metadata.labels", f'"{value}"', "a valid label must be an empty string or consist of")


def _has_rules(schema: Schema) -> bool:
    return "x-kubernetes-validations" in str(schema)


def _of(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    kind = schema.get("type")
    if schema.get(INT_OR_STRING):
        yield from _of_int_or_string(value, schema, path)
    elif kind is None:
        return
    elif not _is(value, kind):
        yield _of_another_type(value, kind, path)
    elif kind == "object":
        yield from _of_object(value, schema, path)
    elif kind == "array":
        yield from _of_count(value, schema, path, "Items")
        for index, item in enumerate(value):
            yield from _of(item, schema.get("items", {}), f"{path}[{index}]")
    else:
        yield from _of_scalar(value, schema, path)


def _of_object(value: Mapping[str, Any], schema: Schema, path: str) -> Iterator[Cause]:
    for name in schema.get("required") or ():
        if name not in value:
            yield Cause("FieldValueRequired", "Required value", _below(path, name))
    yield from _of_count(value, schema, path, "Properties")
    for name, item in value.items():
        inner = field_schema(schema, name)
        if inner is not None and not (not path and name == "metadata"):
            yield from _of(item, inner, _below(path, name))


def _of_count(value: Any, schema: Schema, path: str, noun: str) -> Iterator[Cause]:
    most, least = schema.get(f"max{noun}"), schema.get(f"min{noun}")
    if most is not None and len(value) > most:
        yield Cause("FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items", path)
    if least is not None and len(value) < least:
        yield _invalid(path, str(len(value)), f"{path} in body should have at least {least} {noun.lower()}")


def _of_scalar(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    values: Sequence[Any] | None = schema.get("enum")
    if values is not None and value not in values:
        named = ", ".join(f'"{each}"' for each in values)
        yield Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {named}', path)
    if isinstance(value, str):
        yield from _of_text(value, schema, path)
    elif not isinstance(value, bool):
        yield from _of_number(value, schema, path)
    for rule in schema.get("x-kubernetes-validations") or ():
        if not _RULES[rule["rule"]](value):
            yield _invalid(path, f'"{value}"', rule["message"])


def _of_text(value: str, schema: Schema, path: str) -> Iterator[Cause]:
    pattern = schema.get("pattern")
    if pattern is not None and not _pattern(pattern).search(value):
        yield _invalid(path, f'"{value}"', f"{path} in body should match '{pattern}'")
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {most} bytes", path)
    if least is not None and len(value) < least:
        yield _invalid(path, f'"{value}"', f"{path} in body should be at least {least} chars long")


def _of_number(value: float, schema: Schema, path: str) -> Iterator[Cause]:
    most, least, form = schema.get("maximum"), schema.get("minimum"), str(schema.get("format"))
    if most is not None and value > most:
        yield _invalid(path, str(value), f"{path} in body should be less than or equal to {most}")
    if least is not None and value < least:
        yield _invalid(path, str(value), f"{path} in body should be greater than or equal to {least}")
    limit = _INTEGERS.get(form)
    if limit is not None and not -limit <= value < limit:
        yield _invalid("<nil>", '""', f"Checked value must be of type integer with format {form} in {path}")


def _of_int_or_string(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if isinstance(value, str):
        yield from _of_text(value, schema, path)
    elif not isinstance(value, int) or isinstance(value, bool):
        yield _of_another_type(value, "integer,string", path)


def _of_another_type(value: Any, kind: str, path: str) -> Cause:
    type_name = _type_of(value)
    text = f'Invalid value: "{type_name}": {path} in body must be of type {kind}: "{type_name}"'
    return Cause("FieldValueTypeInvalid", text, path)


def _is(value: Any, kind: str) -> bool:
    type_name = _type_of(value)
    return type_name == kind or (kind == "number" and type_name in ("integer", "float64"))


def _type_of(value: Any) -> str:
    """The type of a value as the API server names it."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "float64"
    names = {bool: "boolean", int: "integer", str: "string", list: "array"}
    return names.get(type(value), "object")


def _invalid(path: str, value: str, text: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {text}", path)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
