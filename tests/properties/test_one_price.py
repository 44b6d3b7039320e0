"""Price of a node as one number: in the plan, on the claim, in its pool, in the costs and in the tree; and limits in
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
from stockyard.domain.nodes.prices import total
from stockyard.domain.nodes.records import Placement
from stockyard.domain.pools.records import CONTROL_PLANE, ClusterClaim, entry_id
from stockyard.domain.pools.views import nodes_of
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.operations.clusters.changes.prices import items_now
from stockyard.operations.clusters.creation.plan import plan as plan_of_cluster
from stockyard.operations.clusters.tree import cluster_tree
from stockyard.operations.costs.report import report
from stockyard.operations.fleet.explain import plan_claim
from stockyard.operations.fleet.pools.placements import plan_placements
from stockyard.operations.fleet.pools.plan import plan_pool
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.pricing import price
from stockyard.ports import Create
from stockyard.ports.node_work import NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.fleet.pools.conftest import WEB, Agent, Yard, make_yard, template

ZONES = {"a": "z1", "b": "z2", "c": "z3", "d": "z4"}
LIMIT = 0.75
HOUR, MONTH = 0.0001, 0.01


class ZonedNodes(SimulatedNodes):
    """Simulated machines whose spot costs something else in each of four zones, the dearest twice the cheapest, with a
    disk beside; the large ones have no price as spot."""

    has_topology = True

    chance: Random
    disk_gib = 50

    def begin(self, chance: Random) -> None:
        """Draw the prices."""
        self.factors = {
            zone_id: 1 + number / 3 for number, zone_id in enumerate(chance.sample(list(ZONES.values()), 4))
        }
        self.gib_usd_hour = chance.choice((0.0, 0.0001, 0.001))
        self.share = chance.uniform(0.2, 0.6)
        self.cheapest = ""
        self.refuses = lambda _provider, _type, zone: self.cheapest not in ("", zone)

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
        assert placed is not None
        # As EC2 does by price, spot comes in the cheapest zone that the claim may have.
        zones = [zone for zone in ZONES if not {zone, "*"}.isdisjoint(placed.options[0].zones)]
        is_spot = placed.capacity_type == SPOT
        self.cheapest = min(zones, key=lambda zone: self.factors[ZONES[zone]]) if is_spot else ""
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
    """Requirements of a claim or pool: how it is bought, of which type, and in which zone."""
    entries = [{"key": "karpenter.sh/capacity-type", "values": chance.choice(([SPOT], [ON_DEMAND], [SPOT, ON_DEMAND]))}]
    if chance.random() < 0.5:
        entries.append({"key": "vcluster.com/node-type", "values": [chance.choice(("sim.small", "sim.large"))]})
    if chance.random() < 0.4:
        entries.append({"key": "topology.kubernetes.io/zone", "values": [chance.choice(list(ZONES))]})
    return entries


def bid(chance: Random) -> dict[str, Any]:
    """The most that a node may cost as spot: mostly none, else one that some zones meet, all of them or none."""
    bids: list[dict[str, float]] = [{"percent": chance.uniform(10, 130)}, {"usd_hour": chance.uniform(0.02, 0.2)}]
    return {"max_price": chance.choice(bids)} if chance.random() < 0.4 else {}


def control_plane_of(chance: Random) -> dict[str, Any]:
    """Settings of what is billed beside the nodes: members and their disks, gateways, addresses, a bastion."""
    size = chance.choice((1, 3, 5))
    group = {"name": "control", "role": "control", "min_size": size, "max_size": size, "instance_types": ["t3.xlarge"]}
    settings: dict[str, Any] = {
        "control_plane_size": size,
        "autoscaler_node_groups": [{**group, "root_disk_gib": chance.choice((50, 120))}],
        "public_control_plane": chance.random() < 0.5,
        "zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
        "nat_gateways": chance.choice(("one", "per_zone")),
    }
    if chance.random() < 0.4:
        settings["bastion"] = {"enabled": True, "instance_type": "t3.micro"}
    return settings


def yard_of(chance: Random) -> Yard:
    yard = make_yard()
    yard.put(settings={**yard.current().settings, **control_plane_of(chance)})
    add_members(yard)
    source = ZonedNodes(yard.nodes.registry.store)
    source.begin(chance)
    yard.nodes.services = with_ports(yard.nodes.services, node_sources={"simulated": source})
    return yard


def add_members(yard: Yard) -> None:
    """The members of the control plane as claims: they have prices of their own, which are counted once."""
    services, now = yard.nodes.services, yard.nodes.services.now()
    placed = Placement("p", "ec2.t3.xlarge", ON_DEMAND, ("a",), 1.0, now, usd_hour=0.1664)
    for number in range(int(yard.current().settings["control_plane_size"])):
        claim = NodeClaim(
            id=f"ncl_member{number}",
            name=f"member-{number}",
            created_at=now,
            updated_at=now,
            cluster_ref=yard.cluster.id,
            cluster_id=yard.cluster.id,
            pool=CONTROL_PLANE,
            control_plane=True,
            phase="Available",
            placement=placed,
        )
        entry = ClusterClaim(entry_id(yard.cluster.id, CONTROL_PLANE, claim.id), claim.id, now)
        services.store.commit(Create(claim), Create(entry))


def check_sums(yard: Yard) -> None:
    """Plans, pools, claims, costs and tree have the same numbers."""
    services, cluster = yard.nodes.services, yard.current()
    claims = [claim for claim in claims_of(services, cluster.id) if not claim.control_plane]
    of_claims = [claim.placement.usd_hour for claim in claims if claim.placement is not None]
    costs, plan = report(services, cluster), plan_of_cluster(services, cluster, ())["price"]
    assert plan["hour"] == pytest.approx(beside_nodes(cluster.settings), abs=HOUR)
    now = price(items_now(services, cluster))
    assert (now["hour"], now["known_hour"], now["month"]) == (
        costs["hour"],
        costs["known_hour"],
        None if costs["hour"] is None else pytest.approx(costs["month_rate"], abs=MONTH),
    )
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


def beside_nodes(settings: Mapping[str, Any]) -> float:
    """Price of the control plane and the network an hour, added up anew from the rates."""
    members, gateways = int(settings["control_plane_size"]), 3 if settings["nat_gateways"] == "per_zone" else 1
    addresses, has_bastion = 3 + gateways + bool(settings["public_control_plane"]), bool(settings.get("bastion"))
    (group,) = settings["autoscaler_node_groups"]
    disks = members * group["root_disk_gib"] + 20 + (8 if has_bastion else 0)
    snapshots = 20 + group["root_disk_gib"] * (members - 1)
    machines = members + has_bastion
    return (
        0.1664 * machines
        + 0.0225
        + 0.045 * gateways
        + 0.005 * (addresses + has_bastion)
        + (0.08 * disks + 0.05 * snapshots) / 730
    )


def test_plan_claim_pool_costs_and_tree_say_one_price(seed: int, soaking: bool) -> None:
    counts = {"priced": 0, "unknown": 0, "refused": 0}
    for number in range(1000 if soaking else 8):
        chance = Random(seed * 10_000 + number)
        yard = yard_of(chance)
        services = yard.nodes.services
        disk = {"root_disk_gib": str(chance.choice((20, 100)))} if chance.random() < 0.4 else {}
        body = {"name": "one", "cluster": yard.cluster.id, "requirements": requirements(chance), "properties": disk}
        body |= bid(chance)
        claim_plan = plan_claim(services, read(NodeClaimCreate, body).new_claim())["price"]
        single = yard.nodes.claim(
            "one",
            cluster_ref=yard.cluster.id,
            requirements=tuple(body["requirements"]),
            properties=disk,
            max_price=body.get("max_price", {}),
        )
        pool = {"quantity": chance.randint(1, 3), "requirements": requirements(chance), "properties": disk}
        pool |= bid(chance)
        new_pool = read(PoolCreate, {"name": "workers", **pool}).new_pool()
        pool_plan = plan_pool(services, yard.current(), new_pool)["price"]
        yard.dynamic_pool("workers", **pool)
        yard.settle()
        for planned, claims in ((claim_plan, [yard.nodes.now(single)]), (pool_plan, yard.claims("workers"))):
            now = total(claim.placement.usd_hour for claim in claims if claim.placement is not None)
            if any(claim.placement is None for claim in claims):
                # Nobody meets the bid: nothing is made, and what it would cost nobody knows.
                assert (planned["hour"], planned["complete"], now) == (None, False, 0.0), (number, planned)
                counts["refused"] += 1
                continue
            expected = None if planned["hour"] is None else pytest.approx(planned["hour"], abs=HOUR)
            assert now == expected, (number, planned)
            assert planned["month"] is None or planned["month"] == pytest.approx(730 * planned["hour"], abs=MONTH)
            counts["unknown" if now is None else "priced"] += 1
        shown_price = nodes_of(yard.now("workers"), yard.claims("workers"))["usd_hour"]
        assert (now is None) == (shown_price is None)
        assert now is None or shown_price == pytest.approx(now, abs=HOUR)
        check_sums(yard)
    assert counts["priced"]
    # Few states need not have drawn a node without a price.
    assert (counts["unknown"] and counts["refused"]) or not soaking


def test_a_limit_in_money_holds_in_the_number_that_is_shown(seed: int, soaking: bool) -> None:
    most = 0.0
    for number in range(1000 if soaking else 6):
        chance = Random(seed * 20_000 + number)
        yard = yard_of(chance)
        agent = Agent(yard)
        limit = round(chance.uniform(0.1, LIMIT), 3)
        bids = bid(chance)
        yard.dynamic_pool("burst", requirements=requirements(chance), limits={"usd_hour": str(limit)}, **bids)
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
