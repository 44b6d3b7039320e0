"""A node costs its machine and its disk, and a disk without a known price leaves the node's price unknown."""

from __future__ import annotations

from stockyard.domain.nodes.disks import price_with_disk, with_disk
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, Declaration, NodeType, Offering, node_type_of
from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.nodes.properties import ROOT_DISK

WAYS = (
    Offering(ON_DEMAND, ("a",), 0.5),
    Offering(SPOT, ("a", "b"), 0.25, {"z1": SpotPrice(0.125, 0.1, 0.3), "z2": SpotPrice(0.25, 0.1, 0.3)}),
)


def node_type(gib_usd_hour: float | None, disk_gib: int = 50) -> NodeType:
    resources: dict[str, str | float] = {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "50Gi"}
    return node_type_of(Declaration("p", "t", resources, offerings=WAYS, disk_gib=disk_gib, gib_usd_hour=gib_usd_hour))


def test_the_disk_is_in_the_price_of_a_node() -> None:
    usual = node_type(0.01)
    assert [usual.money(way) for way in WAYS] == [1.0, 0.75]
    assert usual.usd_hour == 0.125 + 0.5, "spot in the cheapest zone, with its disk"
    large = with_disk(usual, {ROOT_DISK: "100"})
    assert large.money(WAYS[0]) == 1.5
    assert price_with_disk(1.0, usual, {ROOT_DISK: "100"}) == 1.5
    assert price_with_disk(1.0, usual, {}) == 1.0


def test_a_disk_that_is_in_the_price_of_the_machine_costs_nothing_more() -> None:
    owned = node_type(None, disk_gib=0)
    assert owned.money(WAYS[0]) == 0.5
    assert price_with_disk(0.5, owned, {ROOT_DISK: "100"}) == 0.5


def test_a_disk_of_unknown_price_leaves_no_price() -> None:
    unknown = node_type(None)
    assert (unknown.usd_hour, unknown.money(WAYS[0]), unknown.disk_usd_hour) == (None, None, None)
    assert price_with_disk(0.5, unknown, {}) is None
