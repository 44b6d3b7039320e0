"""The rules of a match, one function each: which rows of a table a wish leaves. A claim gets the AND of all.

The rule ``Provider`` has no mask: a claim with a provider is matched in that provider's own table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stockyard.domain.node_types import ANY
from stockyard.domain.requirements import CAPACITY_TYPE, ZONE, Requirement
from stockyard.scheduling.table import NAME_KEYS, Table

Refusal = tuple[str, str, str]
"""Kind, capacity type and zone that a provider refused; the zone ``*`` is all zones."""
_WILDCARD = ".*"


def in_reach(table: Table, providers: Iterable[str]) -> int:
    """OutOfReach: rows of all providers but these."""
    found = table.every
    for provider in providers:
        found &= ~table.providers.get(provider, 0)
    return found


def allowed(table: Table, entries: Iterable[str]) -> int:
    """NotAllowed: rows of the kinds that are named, or whose provider is, as ``provider.*``."""
    found = 0
    for entry in entries:
        found |= table.kinds.get(entry, 0)
        if entry.endswith(_WILDCARD):
            found |= table.providers.get(entry.removesuffix(_WILDCARD), 0)
    return found


def available(table: Table) -> int:
    """Unavailable: rows of the kinds whose phase is Available."""
    return table.available


def requirement(table: Table, key: str, asked: Requirement) -> int:
    """Requirement: rows whose kind can satisfy ``asked``. Also the capacity type's part of Offering."""
    if key in NAME_KEYS:
        return named(table, key, asked)
    column = table.columns.get(key)
    if column is None:
        return table.every if asked.absence_fits else 0
    return column.allowing(asked)


def named(table: Table, key: str, asked: Requirement) -> int:
    """Requirement, for the keys whose values are names of kinds, in any spelling. Every kind has one name."""
    found = 0
    if not asked.bounded:  # no name is a number
        known = table.spellings[key]
        for value in asked.values:
            found |= known.get(value, 0)
        if asked.complement:
            found = table.every & ~found
    return found


def extended(table: Table, asked: frozenset[str]) -> int:
    """ExtendedResource: rows of the kinds that have no extended resource but those asked for."""
    found = table.every
    for name, having in table.extended.items():
        if name not in asked:
            found &= ~having
    return found


def sound(table: Table) -> int:
    """Resource, of a kind whose overhead exceeds what it has: nothing ever fits it."""
    return table.sound


def resource(table: Table, name: str, asked: int) -> int:
    """Resource: rows with ``asked`` thousandths of the unit allocatable; one without the resource has 0."""
    if asked <= 0:
        return table.every
    amounts = table.amounts.get(name)
    return 0 if amounts is None else amounts.at_least(asked)


def with_room(table: Table, free: Mapping[str, int]) -> int:
    """Full: rows of the kinds that are not limited, or of which one is left."""
    found = table.every
    for name, mask in table.limited.items():
        if free.get(name, 0) <= 0:
            found &= ~mask
    return found


def unrefused(table: Table, refused: Iterable[Refusal]) -> dict[str, int]:
    """RefusedRecently: for each zone the rows that offer it and were not refused there."""
    found = dict(table.zones)
    for name, capacity_type, zone in refused:
        rows = table.kinds.get(name, 0) & table.columns[CAPACITY_TYPE].by_value.get(capacity_type, 0)
        for one in (zone,) if zone != ANY else tuple(found):
            if one in found:
                found[one] &= ~rows
    return found


def zones_of(zones: Iterable[str], asked: Requirement | None) -> frozenset[str]:
    """The zones that ``asked`` allows; a row of any zone can be in each."""
    return frozenset(zone for zone in zones if asked is None or asked.has(zone) or (zone == ANY and not asked.empty))


def offered(zones: Mapping[str, int], asked: frozenset[str]) -> int:
    """Offering: rows that have one of the zones asked for; ``zones`` are what ``unrefused`` left."""
    found = 0
    for zone in asked:
        found |= zones.get(zone, 0)
    return found


def various(table: Table, zones: Mapping[str, int], key: str, asked: Requirement, left: int) -> bool:
    """MinValues: whether the rows ``left`` have at least ``min_values`` values of ``key`` that ``asked`` allows.

    Each kind counts once for the keys that name kinds. A kind of any value adds none.
    """
    least = asked.min_values or 0
    if key in NAME_KEYS:
        return _kinds(table, left, least) >= least
    column = table.columns.get(key)
    masks = zones if key == ZONE else {} if column is None else column.by_value
    having = sum(1 for value, mask in masks.items() if mask & left and asked.has(value) and value != ANY)
    return having >= least


def _kinds(table: Table, left: int, enough: int) -> int:
    """How many kinds have a row ``left``, counted up to ``enough``."""
    count = 0
    while left and count < enough:
        name = table.rows[(left & -left).bit_length() - 1].kind.name
        left &= ~table.kinds[name]
        count += 1
    return count
