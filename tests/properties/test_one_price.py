"""What a node costs is one number: in the plan, on the claim, in its pool, in the costs and in the tree; and limits in
money hold in the number that is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.nodes.node_claims import NodeClaimCreate
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, NodeType, Offering
from stockyard.domain.nodes.offers import SpotPrice
from stockyard.domain.pools.views import nodes_of
from stockyard.domain.records import Cluster, NodeEnvironment, NodeProvider
from stockyard.operations.clusters.costs import report
from stockyard.operations.clusters.creation.plan import price_items
from stockyard.operations.clusters.tree import cluster_tree
from stockyard.operations.fleet.explain import plan_claim
from stockyard.operations.fleet.pools.placements import plan_placements
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.pricing import price
from stockyard.ports.nodes import NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.fleet.pools.conftest import WEB, Agent, Yard, make_yard, template

ZONES = {"a": "z1", "b": "z2", "c": "z3", "d": "z4"}
LIMIT = 0.75
HOUR, MONTH = 0.0001, 0.01


class ZonedNodes(SimulatedNodes):
    """Simulated machines whose spot costs something else in each of four zones, the dearest twice the cheapest, with a
    disk beside; the large ones have no price as spot."""

    chance: Random
    disk_gib = 50

    def begin(self, chance: Random) -> None:
        """Draw the prices."""
        self.factors = {
            zone_id: 1 + number / 3 for number, zone_id in enumerate(chance.sample(list(ZONES.values()), 4))
        }
        self.gib_usd_hour = chance.choice((0.0, 0.0001, 0.001))
        self.share = chance.uniform(0.2, 0.6)
        self.refuses = lambda _provider, _type, zone: self.spot_only and self.factors[ZONES[zone]] != 1
        self.spot_only = False

    def node_types(self, provider: NodeProvider, account: Any) -> Sequence[NodeType]:
        return [self._priced(node_type) for node_type in super().node_types(provider, account)]

    def _priced(self, node_type: NodeType) -> NodeType:
        usd = node_type.offerings[0].usd_hour
        assert usd is not None
        spot = {zone_id: round(usd * self.share * factor, 6) for zone_id, factor in self.factors.items()}
        prices = {} if node_type.bare == "large" else {key: SpotPrice(now, now, now) for key, now in spot.items()}
        dearest = max((each.now for each in prices.values()), default=None)
        ways = (Offering(ON_DEMAND, tuple(ZONES), usd), Offering(SPOT, tuple(ZONES), dearest, prices, usd))
        return replace(node_type, offerings=ways, disk_gib=self.disk_gib, gib_usd_hour=self.gib_usd_hour)

    def launch(self, work: NodeWork) -> Any:
        placed = work.claim.placement
        # As EC2 does by price, spot comes in the cheapest zone that the claim may have.
        zones = placed.options[0].zones if placed is not None else ()
        self.spot_only = placed is not None and placed.capacity_type == SPOT and len(zones) == len(ZONES)
        return super().launch(work)

    zone_id_label = "topology.lab/zone-id"

    def zone_ids(self, provider: NodeProvider, environment: NodeEnvironment | None) -> Mapping[str, str]:
        return ZONES

    def zones(self, provider: NodeProvider, environment: NodeEnvironment | None) -> frozenset[str]:
        return frozenset(ZONES)

    def location(self, provider: NodeProvider) -> tuple[str, str]:
        return "", ""

    def out_of_reach(self, provider: NodeProvider, cluster: Cluster | None) -> None:
        return

    def out_of_zone(self, provider: NodeProvider, environment: NodeEnvironment | None, requirement: Any) -> None:
        return


def requirements(chance: Random) -> list[dict[str, Any]]:
    """What a claim or pool asks for: how it is bought, of which type, and in which zone."""
    entries = [{"key": "karpenter.sh/capacity-type", "values": chance.choice(([SPOT], [ON_DEMAND], [SPOT, ON_DEMAND]))}]
    if chance.random() < 0.5:
        entries.append({"key": "vcluster.com/node-type", "values": [chance.choice(("sim.small", "sim.large"))]})
    if chance.random() < 0.4:
        entries.append({"key": "topology.kubernetes.io/zone", "values": [chance.choice(list(ZONES))]})
    return entries


def yard_of(chance: Random) -> Yard:
    yard = make_yard()
    source = ZonedNodes(yard.nodes.registry.store)
    source.begin(chance)
    yard.nodes.services = with_ports(yard.nodes.services, node_sources={"simulated": source})
    return yard


def check_sums(yard: Yard) -> None:
    """Pools, claims, costs and tree have the same numbers."""
    services, cluster = yard.nodes.services, yard.current()
    claims = claims_of(services, cluster.id)
    of_claims = [claim.placement.usd_hour for claim in claims if claim.placement is not None]
    costs, plan = report(services, cluster), price(price_items(services, cluster))
    of_nodes = [line["hour"] for line in costs["lines"] if line["kind"] == "nodes"]
    tree = cluster_tree(services, cluster)
    parts = [child["usd_hour"] for child in tree["children"] if child.get("usd_hour") is not None]
    complete = None not in of_claims and plan["complete"]
    assert costs["complete"] is complete
    assert tree["usd_hour"] == costs["hour"]
    if None in of_claims:
        assert None in of_nodes
    else:
        assert sum(of_nodes) == pytest.approx(sum(of_claims), abs=HOUR)
    if complete:
        assert costs["hour"] == pytest.approx(plan["hour"] + sum(of_claims), abs=HOUR)
        assert costs["month_rate"] == pytest.approx(costs["hour"] * 730, abs=MONTH)
        assert sum(parts) == pytest.approx(costs["hour"], abs=HOUR)
    else:
        assert (costs["hour"], costs["month_rate"], costs["spent"]) == (None, None, None), "no sum of unknowns"


def test_plan_claim_pool_costs_and_tree_say_one_price(seed: int, soaking: bool) -> None:
    counts = {"priced": 0, "unknown": 0}
    for number in range(1000 if soaking else 8):
        chance = Random(seed * 10_000 + number)
        yard = yard_of(chance)
        services = yard.nodes.services
        disk = {"root_disk_gib": str(chance.choice((20, 100)))} if chance.random() < 0.4 else {}
        body = {"name": "one", "cluster": yard.cluster.id, "requirements": requirements(chance), "properties": disk}
        claim_plan = plan_claim(services, read(NodeClaimCreate, body).new_claim())["price"]
        single = yard.nodes.claim(
            "one", cluster_ref=yard.cluster.id, requirements=tuple(body["requirements"]), properties=disk
        )
        pool = {"quantity": chance.randint(1, 3), "requirements": requirements(chance), "properties": disk}
        new_pool = read(PoolCreate, {"name": "workers", **pool}).new_pool()
        pool_plan = plan_pool(services, yard.current(), new_pool)["price"]
        yard.dynamic_pool("workers", **pool)
        yard.settle()
        placed = yard.nodes.now(single).placement
        assert placed is not None
        shown_price = nodes_of(yard.now("workers"), yard.claims("workers"))["usd_hour"]
        for planned, now in ((claim_plan, placed.usd_hour), (pool_plan, shown_price)):
            expected = None if planned["hour"] is None else pytest.approx(planned["hour"], abs=HOUR)
            assert now == expected, (number, planned)
            counts["unknown" if now is None else "priced"] += 1
        check_sums(yard)
    assert counts["priced"]
    # Few states need not have drawn a node without a price.
    assert counts["unknown"] or not soaking


def test_a_limit_in_money_holds_in_the_number_that_is_shown(seed: int, soaking: bool) -> None:
    most = 0.0
    for number in range(1000 if soaking else 6):
        chance = Random(seed * 20_000 + number)
        yard = yard_of(chance)
        agent = Agent(yard)
        limit = round(chance.uniform(0.1, LIMIT), 3)
        yard.dynamic_pool("burst", requirements=requirements(chance), limits={"usd_hour": str(limit)})
        for _ in range(2):
            agent.post(groups={WEB: template("1500m")}, pending={WEB: {"count": chance.randint(1, 9), "names": []}})
            deployment = {
                "kind": "Deployment",
                "metadata": {"name": "web"},
                "spec": {"replicas": 3, "template": {"metadata": {}, "spec": template("1500m")["spec"]}},
            }
            planned = plan_placements(yard.nodes.services, yard.current(), [deployment])
            usd = planned["usd_hour"]
            shown_price = nodes_of(yard.now("burst"), yard.claims("burst"))["usd_hour"]
            assert usd is None or shown_price is None or usd + shown_price <= limit + HOUR
            yard.settle()
            shown_price = nodes_of(yard.now("burst"), yard.claims("burst"))["usd_hour"]
            assert shown_price is not None, "below a limit in money nothing is made whose price is not known"
            assert shown_price <= limit + 1e-9, (number, shown_price, limit)
            most = max(most, shown_price)
        check_sums(yard)
    assert most > 0
