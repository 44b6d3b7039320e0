"""The label by which nodes tell the id of their zone. Names of zones differ from account to account, ids do not.

Which id a zone has is known for the places where machines can stand. There a requirement on ids is one on zones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.requirements import ZONE, Requirement, Requirements

_KEY = pattern(r"topology\.[a-z0-9.-]+/zone-id")


def is_zone_id(key: str) -> bool:
    """Whether the label says the id of a node's zone: ``topology.<vendor>/zone-id``."""
    return key.endswith("/zone-id") and _KEY.fullmatch(key) is not None


def by_name(requirements: Requirements, ids: Mapping[str, str]) -> Requirements:
    """The requirements with zones by name in the place of ids; ``ids`` are those of the known zones, by name.

    While no zone is known ids rule nothing out. Where no known zone has one of the ids, no zone fits.
    """
    keys = [key for key in requirements if is_zone_id(key)]
    if not keys:
        return requirements
    named = Requirements({key: entry for key, entry in requirements.items() if key not in keys})
    for key in keys if ids else ():
        entry = requirements[key]
        names = frozenset(name for name, zone_id in ids.items() if entry.has(zone_id))
        # An id is no zone's name: what has none of these ids is in no zone.
        zones = Requirement(False, names or entry.values or frozenset({key}), min_values=entry.min_values)
        named[ZONE] = named[ZONE].intersection(zones) if ZONE in named else zones
    return named


def of_all(ids_by_provider: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The ids of the zones of several providers, by name: those that reach a cluster stand in the same account."""
    return {name: zone_id for ids in ids_by_provider for name, zone_id in ids.items()}
