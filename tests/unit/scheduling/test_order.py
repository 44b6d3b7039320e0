"""Fair order of claims."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from stockyard.scheduling.order import by_priority_and_age


@dataclass(frozen=True)
class Claim:
    id: str
    priority: int
    created_at: str


def test_claims_are_ordered_by_priority_then_age_then_id():
    expected = [
        Claim("ncl_9", 10, "2026-01-02T00:00:00.000Z"),
        Claim("ncl_1", 0, "2026-01-01T00:00:00.000Z"),
        Claim("ncl_2", 0, "2026-01-01T00:00:00.000Z"),
        Claim("ncl_0", 0, "2026-01-01T00:00:00.001Z"),
        Claim("ncl_3", -1, "2025-01-01T00:00:00.000Z"),
    ]
    assert all(by_priority_and_age(order) == expected for order in permutations(expected))
