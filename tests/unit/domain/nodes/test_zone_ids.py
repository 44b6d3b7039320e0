"""Zones by their ids: which label says them, and which zones a requirement on ids allows."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.nodes.zone_ids import by_name, is_zone_id, of_all
from stockyard.domain.values.requirements import ZONE, Requirements

KEY = "topology.lab.example/zone-id"
IDS = {"za": "id-1", "zb": "id-2", "zc": "id-3"}


def entry(operator: str = "In", *values: str, **more: Any) -> dict[str, Any]:
    return {"key": KEY, "operator": operator, "values": list(values), **more}


def test_a_label_of_a_vendor_says_the_id_of_a_zone() -> None:
    assert [is_zone_id(key) for key in (KEY, ZONE, "zone-id", "example.com/zone-id", "topology.a/b/zone-id")] == [
        True,
        *[False] * 4,
    ]


@pytest.mark.parametrize(
    ("entries", "allowed"),
    [
        ([entry("In", "id-1", "id-9")], {"za"}),
        ([entry("NotIn", "id-1")], {"zb", "zc"}),
        ([entry("Exists")], {"za", "zb", "zc"}),
        ([entry("In", "id-9")], set()),
        ([entry("DoesNotExist")], set()),
        ([entry("In", "id-1", "id-2"), {"key": ZONE, "operator": "NotIn", "values": ["za"]}], {"zb"}),
        ([entry("In", "id-1"), {"key": ZONE, "operator": "In", "values": ["zb"]}], set()),
    ],
)
def test_ids_become_zones(entries: list[dict[str, Any]], allowed: set[str]) -> None:
    named = by_name(Requirements.of(entries), IDS)
    assert list(named) == [ZONE]
    assert {zone for zone in IDS if named[ZONE].has(zone)} == allowed
    assert not named[ZONE].absence_fits or not allowed


def test_least_values_stay_and_what_is_not_known_rules_nothing_out() -> None:
    requirements = Requirements.of([entry("Exists", minValues=2), {"key": "a", "operator": "Exists"}])
    assert by_name(requirements, IDS)[ZONE].min_values == 2
    assert list(by_name(requirements, {})) == ["a"]
    plain = Requirements.of([{"key": "a", "operator": "Exists"}])
    assert by_name(plain, IDS) is plain


def test_the_zones_of_all_providers_count() -> None:
    assert of_all([{"za": "id-1"}, {}, {"zb": "id-2"}]) == {"za": "id-1", "zb": "id-2"}
