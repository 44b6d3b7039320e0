"""Sets of manifests: which things were applied together under one name, so that a later apply of the same set knows
what it may remove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

Names = dict[str, Any]
"""Names of fields as a tree: each name with the names below it, or with None where it is a value."""


@dataclass(frozen=True, slots=True)
class SetMember(VersionedRecord):
    """One thing that a set of manifests has applied. ``id`` is ``member_id``, so that a thing belongs to one set.

    No value of a manifest is kept, only the names of its fields.
    """

    set_name: str
    kind: str
    """As plans call it: ``pool``, ``node-provider``."""
    subject: str
    """The id of the thing."""
    name: str
    cluster: str | None
    """Of a pool the name of its cluster; None of anything else."""
    made_at: str
    """When the thing was made. A pool that is made again under its name has the same id and another time."""
    applied_at: str
    labels: dict[str, str] = field(default_factory=dict)
    """By which a part of the set is selected."""
    fields: Names = field(default_factory=dict)
    """Names of the fields that its manifest said when it was applied last."""


def member_id(kind: str, subject: str) -> str:
    """The key of the membership of a thing."""
    return f"{kind}/{subject}"


def names_of(value: Any) -> Names | None:
    """Names of the fields of a value as a tree; None of what is no object. An empty object names nothing."""
    return {str(key): names_of(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def said_names(values: Mapping[str, Any]) -> Names:
    """Names of the fields that say something: a false, an empty and no value are what a manifest leaves out."""
    return {name: names_of(value) for name, value in values.items() if value}


def merged(said_fields: Mapping[str, Any], current: Mapping[str, Any], former: Names) -> dict[str, Any]:
    """Fields after the manifest, the thing and the names of the manifest before.

    What it says counts. What it has said and says no more goes. What it has never said stays as somebody else has made
    it; of a map that holds for each of its keys.
    """
    result: dict[str, Any] = {}
    for name, value in said_fields.items():
        there = current.get(name)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            own = former.get(name) or {}
            result[name] = {**{key: inner for key, inner in there.items() if key not in own}, **value}
        else:
            result[name] = value if value or name in former else there
    return result
