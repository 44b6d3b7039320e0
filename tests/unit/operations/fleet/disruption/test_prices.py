"""Prices that move: what runs is weighed by its price of now, and a price that goes up and down moves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, Offering
from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.values.requirements import CAPACITY_TYPE
from stockyard.operations.fleet.disruption.price_now import price_of
from stockyard.operations.fleet.templates import Supply, supply, templates
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod

NOW = {"consolidate_after": "0s", "budgets": []}
SMALL = "sim.small"


class Market:
    """The prices of a type, whatever its document says: on demand, and as spot by the id of the zone."""

    def __init__(self, pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on_demand, self.spot = 0.1, dict[str, SpotPrice]()
        source: Any = pods.yard.nodes.services.node_sources["simulated"]
        original = source.node_types

        def node_types(provider: Any, account: Any) -> list[Any]:
            return [self._priced(node_type) for node_type in original(provider, account) if node_type.name == SMALL]

        monkeypatch.setattr(source, "node_types", node_types)

    def _priced(self, node_type: Any) -> Any:
        ways = [Offering(ON_DEMAND, ("a", "b"), self.on_demand)]
        if self.spot:
            ways.append(Offering(SPOT, ("a", "b"), max(price.now for price in self.spot.values()), self.spot))
        return replace(node_type, offerings=tuple(ways))


@pytest.fixture
def market(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> Market:
    market = Market(pods, monkeypatch)
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=[{"key": CAPACITY_TYPE, "operator": "Exists"}])
    pods.waiting = [pod("1500m")]
    pods.run(4)
    assert kinds(pods) == [ON_DEMAND]
    return market


def kinds(pods: Pods) -> list[str]:
    return [claim.placement.capacity_type for claim in pods.claims() if claim.placement is not None]


def hours(pods: Pods, count: int) -> None:
    """So long that prices are asked for again."""
    for _ in range(count):
        pods.yard.nodes.clock.advance(3600)
        pods.run(3)
    pods.run(3)


def test_spot_that_was_dear_of_late_replaces_nothing_and_does_when_it_stays_cheap(pods: Pods, market: Market) -> None:
    market.spot = {"z": SpotPrice(0.04, 0.04, 0.11)}
    hours(pods, 2)
    assert kinds(pods) == [ON_DEMAND]
    assert pods.record().decided_at == ""
    market.spot = {"z": SpotPrice(0.04, 0.04, 0.05)}
    hours(pods, 2)
    assert kinds(pods) == [SPOT]
    assert not pods.waiting


def test_a_short_rise_of_what_runs_moves_nothing_and_a_lasting_one_does(pods: Pods, market: Market) -> None:
    market.spot = {"z": SpotPrice(0.04, 0.04, 0.05)}
    hours(pods, 2)
    assert kinds(pods) == [SPOT]
    decided_at = pods.record().decided_at
    market.spot = {"z": SpotPrice(0.3, 0.04, 0.3)}
    hours(pods, 2)
    assert (kinds(pods), pods.record().decided_at) == ([SPOT], decided_at)
    market.spot = {"z": SpotPrice(0.3, 0.2, 0.3)}
    hours(pods, 2)
    assert kinds(pods) == [ON_DEMAND]
    assert (pods.record().price_before, pods.record().price_after) == (0.2, 0.1)


def stocked(pods: Pods, ids: dict[str, str]) -> Supply:
    stock = supply(pods.yard.nodes.services, pods.yard.current())
    return replace(stock, zone_ids={"sim": ids})


def offered(pods: Pods, stock: Supply, *, dearest: bool = False) -> dict[tuple[str, tuple[str, ...]], float | None]:
    (template,) = templates(stock, [pods.yard.now(POOL)], dearest=dearest)
    (node_type,) = template.node_types
    return {(way.capacity_type, way.zones): way.usd_hour for way in node_type.offerings}


def test_each_zone_of_the_cluster_has_its_own_price(pods: Pods, market: Market) -> None:
    market.spot = {"id-a": SpotPrice(0.04, 0.03, 0.05), "id-b": SpotPrice(0.06, 0.06, 0.07)}
    pods.yard.nodes.clock.advance(3600)
    on_demand = {(ON_DEMAND, ("a", "b")): 0.1}
    stock = stocked(pods, {"a": "id-a", "b": "id-b"})
    assert offered(pods, stock) == {**on_demand, (SPOT, ("a",)): 0.04, (SPOT, ("b",)): 0.06}
    assert offered(pods, stock, dearest=True) == {**on_demand, (SPOT, ("a",)): 0.05, (SPOT, ("b",)): 0.07}
    # A zone without a price does not have the type; where zones are not known, the dearest one counts.
    assert offered(pods, stocked(pods, {"a": "id-a", "b": "id-c"})) == {**on_demand, (SPOT, ("a",)): 0.04}
    assert offered(pods, stocked(pods, {})) == {**on_demand, (SPOT, ("a", "b")): 0.06}


def test_a_node_costs_what_its_zone_costs_now(pods: Pods, market: Market) -> None:
    market.spot = {"id-a": SpotPrice(0.04, 0.03, 0.05), "id-b": SpotPrice(0.06, 0.06, 0.07)}
    market.on_demand = 0.2
    pods.yard.nodes.clock.advance(3600)
    (claim,) = pods.claims()
    stock = stocked(pods, {"a": "id-a", "b": "id-b"})
    assert claim.placement is not None
    assert (claim.placement.usd_hour, price_of(stock, claim)) == (0.1, 0.2)

    def costs(**fields: Any) -> float | None:
        assert claim.placement is not None
        return price_of(stock, replace(claim, placement=replace(claim.placement, **fields)))

    assert costs(capacity_type=SPOT, zones=("b",)) == 0.06
    assert costs(capacity_type=SPOT, zones=("a", "b")) == 0.03
    assert costs(capacity_type=SPOT, zones=("c",)) == 0.1  # it is not offered there any more
    assert costs(type="sim.gone") == 0.1
    assert price_of(stock, replace(claim, placement=None)) is None
