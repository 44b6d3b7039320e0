"""Reads objects that clients send as protobuf: kubectl writes some so, and sends no JSON where that is refused.

The envelope and the rules are those of Kubernetes: numbers of fields by its Go types, a field that is zero is not
there unless it is a pointer.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from local.kubernetes.schema.types import Field, Kind, type_of, types

PREFIX = b"k8s\x00"
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_SIGN = 1 << 63
Object = dict[str, Any]


class Unreadable(Exception):
    """The bytes are no object that is known. The text says why."""


def read(body: bytes) -> Object:
    """The object. Raises ``Unreadable``."""
    if not body.startswith(PREFIX):
        raise Unreadable("the body does not begin as protobuf of Kubernetes does")
    try:
        envelope = dict(_entries(body[len(PREFIX) :]))
        about = dict(_entries(envelope.get(1, b"")))
        api_version, kind = (about.get(number, b"").decode() for number in (1, 2))
        name = type_of(api_version, kind)
        if not name:
            raise Unreadable(f"the simulated API does not read {api_version} {kind} as protobuf; send JSON")
        return {"apiVersion": api_version, "kind": kind, **_message(envelope.get(2, b""), name)}
    except (ValueError, IndexError, AttributeError, TypeError, struct.error):
        raise Unreadable("the body is no protobuf") from None


def _entries(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: a number, or bytes."""
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        number, form = tag >> 3, tag & 7
        if form == _VARINT:
            value, offset = _varint(data, offset)
            yield number, value
            continue
        length = _WIDTHS.get(form)
        if length is None:
            if form != _LENGTH:
                raise ValueError(f"no field is written as {form}")
            length, offset = _varint(data, offset)
        if offset + length > len(data):
            raise ValueError("the data ends within a field")
        yield number, data[offset : offset + length]
        offset += length


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return value, offset


def _message(data: bytes, type_name: str) -> Object:
    fields, result = types()[type_name], dict[str, Any]()
    for number, value in _entries(data):
        field = fields.get(number)
        if field is not None:
            _add(result, field, value)
    return result


def _add(result: Object, field: Field, value: Any) -> None:
    kind = field.kind
    if field.inline:
        result |= _message(value, str(kind))
    elif kind[0] == "list":
        result.setdefault(field.name, []).append(_value(kind[1], value))
    elif kind[0] == "map":
        entry = dict(_entries(value))
        name = entry.get(1, b"").decode()
        result.setdefault(field.name, {})[name] = _value(kind[1], entry.get(2, b""))
    else:
        read_value = _value(kind, value)
        if read_value or field.pointer or (field.always and read_value is not None):
            result[field.name] = read_value


def _value(kind: Kind, value: Any) -> Any:
    if isinstance(kind, list):  # a list that has a name
        return [_value(kind[1][1], item) for number, item in _entries(value) if number == 1]
    if kind in types():
        return _message(value, kind)
    reader = _READERS[kind]
    return reader(value)


def _signed(value: int) -> int:
    return value - 2 * _SIGN if value >= _SIGN else value


def _quantity(value: bytes) -> str:
    return str(dict(_entries(value)).get(1, b"").decode()) or "0"


def _int_or_string(value: bytes) -> int | str:
    parts = dict(_entries(value))
    return str(parts.get(3, b"").decode()) if parts.get(1) else _signed(parts.get(2, 0))


def _time(value: bytes) -> str | None:
    """None for the zero time."""
    parts = dict(_entries(value))
    if not parts.get(1):
        return None
    return datetime.fromtimestamp(_signed(parts[1]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _raw(value: bytes) -> Any:
    return json.loads(dict(_entries(value)).get(1, b"null"))


_READERS: dict[str, Any] = {
    "string": bytes.decode,
    "bytes": lambda value: b64encode(value).decode(),
    "bool": bool,
    "int": _signed,
    "double": lambda value: struct.unpack("<d", value)[0],
    "quantity": _quantity,
    "intstr": _int_or_string,
    "time": _time,
    "duration": lambda value: f"{_signed(dict(_entries(value)).get(1, 0)) // 10**9}s",
    "raw": _raw,
}
