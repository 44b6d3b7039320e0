"""The ways to make a planned node that its claim names: fewer than the plan leaves open, and still enough of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.values.requirements import CAPACITY_TYPE, ZONE, Requirement
from stockyard.scheduling.packing.plan import Claim
from stockyard.scheduling.packing.rows import Row
from stockyard.scheduling.table import NAME_KEYS

MOST_TYPES = 60
"""Node types that a claim names, as Karpenter has it, unless its pool's ``minValues`` needs more of them."""
Alternatives = tuple[Sequence[str], Sequence[str], Sequence[str]]


def possible_alternatives(claim: Claim, ceiling: float = float("inf")) -> Alternatives:
    """Node types in order of price, zones and capacity types: every way that they allow together is one of the plan's,
    and the one that the plan has priced is among them. No zones: any will do. None costs more than ``ceiling``.

    They have as many values as the pool's ``minValues`` asks for, where the plan has: for that there may be more types
    than ``MOST_TYPES``, and dearer ones than the ceiling. A claim without them would never be bound.
    """
    least = {key: entry for key, entry in claim.pool.template.items() if entry.min_values}
    rows = claim.rows
    alternatives = _alternatives(claim.row, [row for row in rows if row.price <= ceiling or row == claim.row], least)
    if ceiling == float("inf") or not least or _enough(alternatives, rows, least):
        return alternatives
    return _alternatives(claim.row, rows, least)


def keeps_least_values(claim: Claim, ceiling: float) -> bool:
    """Whether the ways that cost no more than ``ceiling`` have as many values as the pool's ``minValues`` asks for."""
    least = {key: entry for key, entry in claim.pool.template.items() if entry.min_values}
    if not least:
        return True
    rows = [row for row in claim.rows if row.price <= ceiling or row == claim.row]
    return _enough(_alternatives(claim.row, rows, least), rows, least)


def _alternatives(priced: Row, rows: Sequence[Row], least: Mapping[str, Requirement]) -> Alternatives:
    offered = {(row.node_type.name, row.capacity_type, row.zone) for row in rows}
    own = [row for row in rows if row.node_type.name == priced.node_type.name]
    capacity_types = _together(
        priced.capacity_type,
        [row.capacity_type for row in own if row.zone == priced.zone],
        Counter(row.capacity_type for row in rows if row.zone == priced.zone),
        _number(least, CAPACITY_TYPE),
    )
    zones = _together(
        priced.zone,
        [row.zone for row in own if all((row.node_type.name, each, row.zone) in offered for each in capacity_types)],
        Counter(row.zone for row in rows if row.capacity_type == priced.capacity_type),
        _number(least, ZONE),
    )
    alike = {
        row.node_type.name: row.node_type
        for row in rows
        if (row.capacity_type, row.zone) == (priced.capacity_type, priced.zone)
        and all((row.node_type.name, capacity, zone) in offered for capacity in capacity_types for zone in zones)
    }
    types = _cut(list(alike.values()), least)
    if priced.zone == ANY:
        return types, [], capacity_types
    known_zones = sorted({zone for _, capacity_type, zone in offered if capacity_type in capacity_types} - {ANY})
    common = [
        zone
        for zone in known_zones
        if all((name, capacity, zone) in offered for name in types for capacity in capacity_types)
    ]
    return types, common, capacity_types


def _number(least: Mapping[str, Requirement], key: str) -> int:
    entry = least.get(key)
    return entry.min_values or 1 if entry is not None else 1


def _together(first: str, other_values: Iterable[str], offers: Mapping[str, int], number: int) -> list[str]:
    """So many of the values, the first one and those that most ways have."""
    ranked = sorted(dict.fromkeys(other_values), key=lambda value: (-offers[value], value))
    return [first, *(value for value in ranked if value != first)][:number]


def _cut(types: Sequence[NodeType], least: Mapping[str, Requirement]) -> list[str]:
    """The names of the first types, and of those behind that bring values which are still needed."""
    kept_types = list(types[:MOST_TYPES])
    for key, entry in least.items():
        if key in (ZONE, CAPACITY_TYPE, *NAME_KEYS):
            continue
        values = {value for node_type in kept_types for value in _values(node_type, key, entry)}
        for node_type in types[MOST_TYPES:]:
            if len(values) >= (entry.min_values or 0):
                break
            new_values = set(_values(node_type, key, entry)) - values
            if new_values:
                kept_types.append(node_type)
                values |= new_values
    return list(dict.fromkeys(node_type.name for node_type in kept_types))


def _values(node_type: NodeType, key: str, entry: Requirement) -> Collection[str]:
    return [value for value in node_type.properties.get(key, ()) if value != ANY and entry.has(value)]


def _enough(alternatives: Alternatives, rows: Sequence[Row], least: Mapping[str, Requirement]) -> bool:
    """Whether the ways have the values that ``minValues`` asks for."""
    types, zones, capacity_types = alternatives
    by_name = {row.node_type.name: row.node_type for row in rows}
    for key, entry in least.items():
        if key == CAPACITY_TYPE:
            count = len(capacity_types)
        elif key == ZONE:
            count = len(zones)
        elif key in NAME_KEYS:
            count = len(types)
        else:
            count = len({value for name in types for value in _values(by_name[name], key, entry)})
        if count < (entry.min_values or 0):
            return False
    return True
