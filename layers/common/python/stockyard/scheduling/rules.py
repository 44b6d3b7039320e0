"""The rules of a match, one function each. A rule returns a mask of rows, and a request matches the AND of all masks.

The rule ``Provider`` has no mask: a claim with a provider is matched in that provider's own table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, ZONE, Requirement
from stockyard.scheduling.table import NAME_KEYS, Table

Refusal = tuple[str, str, str]
"""Node type, capacity type and zone that a provider refused; the zone ``*`` stands for all zones."""
_WILDCARD = ".*"


def in_reach(table: Table, providers: Iterable[str]) -> int:
    """OutOfReach: rows of all providers except these."""
    rows = table.every
    for provider in providers:
        rows &= ~table.providers.get(provider, 0)
    return rows


def with_image(table: Table, images: Mapping[str, frozenset[str]]) -> int:
    """Image: rows of node types for whose architecture their provider has an image. ``images`` has architectures by
    provider, where they are known; of a type that tells no architecture nothing is known either."""
    rows = table.every
    for node_type in {row.node_type.name: row.node_type for row in table.rows}.values():
        if lacks_image(node_type, images):
            rows &= ~table.node_types.get(node_type.name, 0)
    return rows


def lacks_image(node_type: NodeType, images: Mapping[str, frozenset[str]]) -> bool:
    """Whether the provider of the type is known to have no image for its architecture."""
    served, own = images.get(node_type.provider, frozenset()), node_type.properties.get(ARCH, ())
    return bool(served and own) and ANY not in own and served.isdisjoint(own)


def allowed(table: Table, entries: Iterable[str]) -> int:
    """NotAllowed: rows of the node types that ``entries`` name, directly or by ``provider.*``."""
    rows = 0
    for entry in entries:
        rows |= table.node_types.get(entry, 0)
        if entry.endswith(_WILDCARD):
            rows |= table.providers.get(entry.removesuffix(_WILDCARD), 0)
    return rows


def available(table: Table) -> int:
    """Unavailable: rows of the node types whose phase is Available."""
    return table.available


def requirement(table: Table, key: str, requirement: Requirement) -> int:
    """Requirement: rows whose node type can satisfy ``requirement``. Also the part of Offering about capacity types."""
    if key in NAME_KEYS:
        return named(table, key, requirement)
    column = table.columns.get(key)
    if column is None:
        return table.every if requirement.absence_fits else 0
    return column.allowing(requirement)


def named(table: Table, key: str, requirement: Requirement) -> int:
    """Requirement, for keys whose values are names of node types in any spelling. A node type has exactly one name."""
    rows = 0
    if not requirement.bounded:  # no name is a number
        spellings = table.spellings[key]
        for value in requirement.values:
            rows |= spellings.get(value, 0)
        if requirement.complement:
            rows = table.every & ~rows
    return rows


def by_default(table: Table, key: str, value: str) -> int:
    """NotAskedFor: rows that have the default ``value`` of a label that is not asked for, or tell none of it."""
    column = table.columns.get(key)
    if column is None:
        return table.every
    return column.allowing(Requirement(complement=False, values=frozenset({value}))) | column.absent


def extended(table: Table, names: frozenset[str]) -> int:
    """ExtendedResource: rows of node types whose extended resources are all in ``names``."""
    rows = table.every
    for name, having in table.extended.items():
        if name not in names:
            rows &= ~having
    return rows


def large_enough(table: Table) -> int:
    """Small: rows of all node types but those whose machines have too little memory to be chosen unasked."""
    return table.every & ~table.small


def served(table: Table) -> int:
    """Unserved: rows of all node types but those of which no node can be made yet."""
    return table.every & ~table.unserved


def sound(table: Table) -> int:
    """Resource: rows of node types whose overhead does not exceed their capacity; nothing fits the others."""
    return table.sound


def resource(table: Table, name: str, amount: int) -> int:
    """Resource: rows with at least ``amount`` allocatable, in thousandths of the unit; 0 without the resource."""
    if amount <= 0:
        return table.every
    amounts = table.amounts.get(name)
    return 0 if amounts is None else amounts.at_least(amount)


def with_free_nodes(table: Table, free: Mapping[str, int]) -> int:
    """Full: rows of node types that are not limited, or that have a free node."""
    rows = table.every
    for name, mask in table.limited.items():
        if free.get(name, 0) <= 0:
            rows &= ~mask
    return rows


def not_refused(table: Table, refused: Iterable[Refusal]) -> dict[str, int]:
    """RefusedRecently: for each zone the rows that offer it and were not refused there."""
    by_zone = dict(table.zones)
    for name, capacity_type, zone in refused:
        rows = table.node_types.get(name, 0) & table.columns[CAPACITY_TYPE].by_value.get(capacity_type, 0)
        for zone_name in (zone,) if zone != ANY else tuple(by_zone):
            if zone_name in by_zone:
                by_zone[zone_name] &= ~rows
    return by_zone


def named_zones(requirement: Requirement | None) -> frozenset[str]:
    """The zones that the requirement names; none where it names those that it does not want."""
    return requirement.values if requirement is not None and not requirement.complement else frozenset()


def refused_everywhere(table: Table, refused: Iterable[Refusal], requirement: Requirement | None) -> int:
    """RefusedRecently: the rows that can be in any zone, and were refused in each one that ``requirement`` names."""
    rows = table.zones.get(ANY, 0) if named_zones(requirement) else 0
    for zone in named_zones(requirement):
        in_zone = 0
        for name, capacity_type, refused_zone in refused:
            if refused_zone == zone:
                capacity = table.columns[CAPACITY_TYPE].by_value.get(capacity_type, 0)
                in_zone |= table.node_types.get(name, 0) & capacity
        rows &= in_zone
    return rows


def zones_of(zones: Iterable[str], requirement: Requirement | None) -> frozenset[str]:
    """The zones that ``requirement`` allows. A row with the zone ``*`` can be in every zone."""
    return frozenset(
        zone
        for zone in zones
        if requirement is None or requirement.has(zone) or (zone == ANY and not requirement.empty)
    )


def offered(zones: Mapping[str, int], requested_zones: frozenset[str]) -> int:
    """Offering: rows that have one of the requested zones. ``zones`` is the result of ``not_refused``."""
    rows = 0
    for zone in requested_zones:
        rows |= zones.get(zone, 0)
    return rows


def satisfies_min_values(table: Table, zones: Mapping[str, int], key: str, requirement: Requirement, rows: int) -> bool:
    """MinValues: whether ``rows`` have at least ``min_values`` values of ``key`` that the requirement allows.

    For keys that name node types each node type counts once. A node type with any value (``*``) adds none.
    """
    least = requirement.min_values or 0
    if key in NAME_KEYS:
        return _count_types(table, rows, least) >= least
    column = table.columns.get(key)
    masks = zones if key == ZONE else {} if column is None else column.by_value
    having = sum(1 for value, mask in masks.items() if mask & rows and requirement.has(value) and value != ANY)
    return having >= least


def _count_types(table: Table, rows: int, enough: int) -> int:
    """The number of node types among ``rows``, counted up to ``enough``."""
    count = 0
    while rows and count < enough:
        name = table.rows[(rows & -rows).bit_length() - 1].node_type.name
        rows &= ~table.node_types[name]
        count += 1
    return count
