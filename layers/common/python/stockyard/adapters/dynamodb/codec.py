"""Records to DynamoDB items and back, by the records' own type hints.

* A field that is None is not stored; an attribute that is missing takes the field's default (None where the type
  allows it), an unknown one is ignored, so that neighbouring releases read each other's records.
* A field that holds a JSON document (``dict[str, Any]`` or a tuple of such) is stored as its text: boto3 takes 7 ms to
  read a claim with 2,000 values as nested attributes, and well below one as text. Nothing asks the table about them.
* Floats keep their exact value: the shortest decimal text that reads back as the same float has at most 17 digits,
  DynamoDB keeps 38. Below an untyped (JSON) value a whole float such as 1.0 comes back as the equal integer.
* Tuples are lists in the table; below an untyped value they come back as lists.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from stockyard import errors
from stockyard.adapters.dynamodb import keys
from stockyard.domain.earlier_records import upgraded
from stockyard.domain.platform import home
from stockyard.domain.records import SCHEMA, Cluster, Record

Attribute = dict[str, Any]
Item = dict[str, Attribute]
R = TypeVar("R", bound=Record)

MAX_ITEM_BYTES = 350_000
"""Ours, below DynamoDB's 400 KB, so that indexes and later fields have room."""

_MAX_DIGITS = 38
_MAX_DEPTH = 30
"""DynamoDB allows 32 levels; the item itself and the field are two."""

_UNTOLD: Attribute = {"N": str(SCHEMA)}
"""The schema of an item that tells none: nothing of ours has written it."""
EARLIER: dict[Any, dict[str, Any]] = {Cluster: {"driver": "ec2"}}
"""What a missing attribute means in records of a release that did not have the field yet."""

KINDS: dict[str, type[Record]] = {kind.__name__: kind for kind in typing.get_args(Record)}


class _Unstorable(Exception):
    """A value has no form in the table; the text says why."""


def to_item(tenant: str, record: Record) -> Item:
    """The whole item of a record, keys and index attributes included.

    Raises ``InvalidInput``, naming the record, when it is over 350 KB or holds a value the table cannot keep.
    """
    kind = type(record)
    tenant = home(tenant, kind, record.id)
    item: Item = {
        "pk": {"S": keys.partition(tenant, kind, record.id)},
        "sk": {"S": keys.checked_id(kind, record.id)},
        "kind": {"S": kind.__name__},
        "tenant": {"S": tenant},
        "schema": {"N": str(SCHEMA)},
    }
    try:
        for name, stored_name, is_document in _stored_fields(typing.cast(Any, kind)):
            value = getattr(record, name)
            if value is not None:
                item[stored_name] = _as_text(value) if is_document else _encode(value, 1)
        for name, text in keys.index_keys(tenant, record).items():
            item[name] = {"S": text}
        expiry = keys.expiry(record)
        if expiry is not None:
            item[keys.TTL] = {"N": str(expiry)}
        size = sum(len(name) + _size(value) for name, value in item.items())
    except (_Unstorable, UnicodeEncodeError) as fault:
        raise errors.InvalidInput(f"{kind.__name__} {record.id} cannot be stored: {_reason(fault)}") from None
    if size > MAX_ITEM_BYTES:
        raise errors.InvalidInput(
            f"{kind.__name__} {record.id} has {size} bytes; a record may have at most {MAX_ITEM_BYTES}"
        )
    return item


def from_item(kind: type[R], item: Mapping[str, Attribute]) -> R:
    """The record of an item. Raises ``StoreError`` when the item cannot be one of that kind."""
    try:
        record = typing.cast(R, _record_plan(typing.cast(Any, kind))(item))
        return upgraded(record, int(item.get("schema", _UNTOLD)["N"]))
    except (KeyError, ValueError, TypeError, AttributeError) as fault:
        name = item.get("sk", {}).get("S", "?")
        raise errors.StoreError(f"{kind.__name__} {name} cannot be read: {fault!r}") from fault


def read(item: Mapping[str, Attribute]) -> tuple[str, Record]:
    """(tenant, record) of an item of any kind, such as an image of the table's stream.

    Raises ``StoreError`` for a kind this release does not know.
    """
    name = item.get("kind", {}).get("S", "")
    if name not in KINDS:
        raise errors.StoreError(f"There is no record kind {name!r}")
    return item["tenant"]["S"], from_item(KINDS[name], item)


def encode(value: Any) -> Attribute:
    """One value as an attribute, for conditions. Raises ``InvalidInput`` when the table cannot keep it."""
    try:
        return _encode(value, 1)
    except _Unstorable as fault:
        raise errors.InvalidInput(f"A value cannot be stored: {fault}") from None


def default(kind: keys.Kind, field: str) -> Any:
    """Value that a missing attribute means. ``dataclasses.MISSING`` when the field must be there.

    Raises ``ValueError`` when the kind has no such field.
    """
    if field in EARLIER.get(kind, {}):
        return EARLIER[kind][field]
    for declared in dataclasses.fields(kind):
        if declared.name == field:
            return declared.default_factory() if callable(declared.default_factory) else declared.default
    raise ValueError(f"{kind.__name__} has no field {field!r}")


# --- values to attributes ---------------------------------------------------------------------------------------------


def _encode(value: Any, depth: int) -> Attribute:  # noqa: PLR0911 - one line per type
    if isinstance(value, str):
        return {"S": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int | float):
        return {"N": _number(value)}
    if isinstance(value, bytes):
        return {"B": value}
    if depth > _MAX_DEPTH:
        raise _Unstorable(f"it is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, list | tuple):
        return {"L": [_encode(inner, depth + 1) for inner in value]}
    if isinstance(value, dict | Mapping):  # the second is slow to tell, and most are the first
        return {"M": {_map_key(key): _encode(inner, depth + 1) for key, inner in value.items()}}
    if dataclasses.is_dataclass(value):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {"M": {name: _encode(inner, depth + 1) for name, inner in pairs if inner is not None}}
    raise _Unstorable(f"{type(value).__name__} is no type of the table")


@cache
def _stored_fields(kind: Any) -> Sequence[tuple[str, str, bool]]:
    """(field, attribute, whether it holds a JSON document) of a record's fields."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    return [(name, keys.attribute(name), hints[name] in _DOCUMENTS) for name in names]


_DOCUMENTS = (dict[str, Any], tuple[dict[str, Any], ...])


def _as_text(value: Any) -> Attribute:
    return {"S": json.dumps(_json(value, 1), ensure_ascii=False, separators=(",", ":"))}


def _json(value: Any, depth: int) -> Any:
    """A JSON value as the table would give it back, with the same refusals as :func:`_encode`."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _read_number(_number(value))
    if depth > _MAX_DEPTH:
        raise _Unstorable(f"it is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {_map_key(key): _json(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner, depth + 1) for inner in value]
    return _plain(_encode(value, depth))


def _map_key(key: Any) -> str:
    if not isinstance(key, str):
        raise _Unstorable("a map has a key that is not text")
    return key


def _number(value: int | float) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Unstorable("a number is not finite")
        if not value.is_integer() or abs(value) >= 10.0**_MAX_DIGITS:
            if not 1e-130 <= abs(value) < 1e126:
                raise _Unstorable("a number is out of range")
            return repr(value)
    if abs(value) >= 10**_MAX_DIGITS:
        raise _Unstorable(f"a number has more than {_MAX_DIGITS} digits")
    return str(int(value))


def _size(attribute: Attribute) -> int:
    """Bytes of an attribute by DynamoDB's rules, rounded up for numbers."""
    ((tag, value),) = attribute.items()
    if tag == "S":
        return _length(value)
    if tag in ("N", "B"):
        return len(value) + 1
    if tag == "M":
        return 3 + sum(1 + _length(name) + _size(inner) for name, inner in value.items())
    if tag == "L":
        return 3 + sum(1 + _size(inner) for inner in value)
    return 1


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _reason(fault: Exception) -> str:
    return "it holds text that is not Unicode" if isinstance(fault, UnicodeEncodeError) else str(fault)


# --- attributes to values ---------------------------------------------------------------------------------------------

_Decoder = Callable[[Any], Any]


@cache
def _plan(kind: Any) -> Callable[[Mapping[str, Attribute]], Any]:
    """A function that builds ``kind`` from its attributes. Made once per class: reading type hints is slow."""
    return _builder(kind, str)


@cache
def _record_plan(kind: Any) -> Callable[[Mapping[str, Attribute]], Any]:
    """As ``_plan``, for an item: the layout's own attributes are no fields."""
    return _builder(kind, keys.attribute)


def _builder(kind: Any, attribute_of: Callable[[str], str]) -> Callable[[Mapping[str, Attribute]], Any]:
    """A builder that goes through the attributes that are there: a record has more fields than an item of it has."""
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    steps = {attribute_of(field.name): (field.name, *_reader(hints[field.name])) for field in fields}
    needed = [field for field in fields if not _has_default(field)]
    absent = {field.name: None for field in needed if type(None) in typing.get_args(hints[field.name])}
    absent |= EARLIER.get(kind, {})
    required = frozenset(field.name for field in needed) - absent.keys()

    def build(attributes: Mapping[str, Attribute]) -> Any:
        values: dict[str, Any] = dict(absent)
        for stored_name, attribute in attributes.items():
            step = steps.get(stored_name)
            if step is not None:
                name, tag, decode = step
                values[name] = attribute[tag] if decode is None else decode(attribute)
        if not required <= values.keys():
            raise KeyError(min(required - values.keys()))
        return kind(**values)

    return build


def _reader(hint: Any) -> tuple[str, _Decoder | None]:
    """Tag and decoder of a field's attribute; no decoder where the record has what stands below the tag."""
    is_text = hint is str or typing.get_origin(hint) is typing.Literal
    return ("S", None) if is_text else ("BOOL", None) if hint is bool else ("", _decoder(hint))


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _decoder(hint: Any) -> _Decoder:  # noqa: PLR0911 - one branch per type
    """Decoder of a value of this type from its attribute. Raises ``TypeError`` for a type no record may use."""
    if hint in _DOCUMENTS:
        return _document
    generic, inner = typing.get_origin(hint), typing.get_args(hint)
    if generic in (types.UnionType, typing.Union):
        choices = [choice for choice in inner if choice is not type(None)]
        return _or_none(_decoder(choices[0])) if len(choices) == 1 else _plain
    if generic is tuple:
        each = _decoder(inner[0])
        return lambda attribute: tuple(each(element) for element in attribute["L"])
    if generic is list:
        each = _decoder(inner[0])
        return lambda attribute: [each(element) for element in attribute["L"]]
    if generic is dict:
        each = _decoder(inner[1])
        return lambda attribute: {key: each(value) for key, value in attribute["M"].items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return lambda attribute: _plan(hint)(attribute["M"])
    if hint is Any:
        return _plain
    if hint in _SCALARS or generic is typing.Literal:
        return _SCALARS[hint if generic is None else str]
    raise TypeError(f"records cannot hold {hint!r}")


def _document(attribute: Attribute) -> Any:
    """A JSON document from its text, or from the attributes in which earlier releases stored it. A list is a tuple."""
    document = json.loads(attribute["S"]) if "S" in attribute else _plain(attribute)
    return tuple(document) if isinstance(document, list) else document


def _or_none(decode: _Decoder) -> _Decoder:
    """As ``decode``, and None for a null: what is a record's field now was a JSON value in the release before."""
    return lambda attribute: None if "NULL" in attribute else decode(attribute)


_SCALARS: dict[Any, _Decoder] = {
    str: lambda attribute: attribute["S"],
    int: lambda attribute: int(attribute["N"]),
    float: lambda attribute: float(attribute["N"]),
    bool: lambda attribute: attribute["BOOL"],
    bytes: lambda attribute: bytes(attribute["B"]),
}


def _plain(attribute: Attribute) -> Any:
    """A JSON value of any type."""
    ((tag, value),) = attribute.items()
    if tag == "M":
        return {key: _plain(inner) for key, inner in value.items()}
    if tag == "L":
        return [_plain(inner) for inner in value]
    if tag == "N":
        return _read_number(value)
    return None if tag == "NULL" else value


def _read_number(text: str) -> int | float:
    whole = text.removeprefix("-")
    # More digits than DynamoDB keeps can only be a float that it wrote out.
    return int(text) if whole.isdigit() and len(whole) <= _MAX_DIGITS else float(text)
