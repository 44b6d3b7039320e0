"""Fair order of claims, and the order of offerings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.scheduling.order import by_priority_and_age, cheapest_first, ranked_offerings


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


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.floats(0, 100),
            st.none() | st.floats(0, 9),
            st.sampled_from(["on-demand", "spot"]),
        ),
        max_size=8,
    )
)
def test_own_types_come_before_rented_ones_by_cost_and_money_orders_the_others(drawn):
    types = [
        NodeType(f"p.{n}", "p", {}, {}, {}, cost, (Offering(way, ("a",), usd),), owned=owned)
        for n, (owned, cost, usd, way) in enumerate(drawn)
    ]
    rows = cheapest_first(ranked_offerings(types), None)
    own = [row for row in rows if row.node_type.owned]
    assert rows[: len(own)] == own
    assert [row.node_type.cost for row in own] == sorted(row.node_type.cost for row in own)
    assert all(row.usd_hour is not None for row in own)
    rented = rows[len(own) :]
    assert rented == cheapest_first(ranked_offerings([each for each in types if not each.owned]), None)
    # Packings order alike: the heaviest own machine is lighter than what anybody rents out.
    weights = [each.weight(each.offerings[0]) for each in types if each.owned]
    assert all(weight < 1e-5 for weight in weights)
