"""The fields of Kubernetes' objects, as ``types.json`` has them (see :mod:`local.kubernetes.real.extract_types`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Kind = str | list[Any]
"""``string``, ``bool``, ``int``, ``double``, ``bytes``, ``quantity``, ``intstr``, ``time``, ``duration``, ``raw``, the
name of a type, or a pair: ``list``, ``map`` or ``wrapped`` (a list that is a message of its own), and the kind of its
items."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a type. ``inline``: its own fields are those of the type around it. ``merge_key`` is by what a
    strategic merge patch knows the items of a list again: empty for plain values, None where it replaces the list."""

    name: str
    kind: Kind
    inline: bool
    pointer: bool
    always: bool
    merge_key: str | None


@cache
def types() -> Mapping[str, Mapping[int, Field]]:
    """Type -> number on the wire -> field."""
    tables = json.loads(Path(__file__).with_name("types.json").read_text(encoding="utf-8"))
    return {name: {int(number): _field(*entry) for number, entry in fields.items()} for name, fields in tables.items()}


@cache
def named(type_name: str) -> Mapping[str, Field]:
    """JSON name -> field of a type, with those of its inline fields; none for a type that is not known."""
    fields: dict[str, Field] = {}
    for field in types().get(type_name, {}).values():
        if field.inline:
            fields |= named(str(field.kind))
        else:
            fields[field.name] = field
    return fields


def type_of(api_version: str, kind: str) -> str:
    """The name of the type of a kind; empty for one whose fields are not known."""
    group, _, version = api_version.rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}/{version}.{kind}"
    if kind == "DeleteOptions":
        name = "meta/v1.DeleteOptions"
    return name if name in types() else ""


def _field(name: str, kind: Kind, flags: str, merge_key: str | None = None) -> Field:
    words = flags.split()
    return Field(name, kind, "inline" in words, "pointer" in words, "always" in words, merge_key)
