"""Costs now and this month: what stands, and what is gone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stockyard.adapters.dynamodb import keys
from stockyard.domain.cost_records import ALL_BUT_NODES, Usage
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.operations.clusters.removal.delete import delete_cluster, plan_deletion
from stockyard.operations.costs.parts import price_items
from stockyard.operations.costs.report import report
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.listing import every
from tests.unit.operations.clusters.members_world import members_world

TYPE = {"name": "s", "resources": {"cpu": "4", "memory": "8Gi"}, "usdPerHour": 0.5}
HOUR = 3600


@pytest.fixture
def nodes(world, installation):
    world.clock.moment = datetime(2026, 1, 10, tzinfo=UTC)
    own = installation.nodes
    own.provider("sim", TYPE)
    return own


@pytest.fixture
def cluster(world, nodes):
    created = world.create()
    assert world.drive(created, "provision_cluster") == "ready"
    return world.cluster(created)


def claimed(nodes, cluster, name):
    """A claim of the cluster whose node is there."""
    claim = nodes.claim(name, cluster_ref=cluster.id)
    nodes.schedule()
    nodes.relay()
    claim = nodes.now(claim)
    assert claim.phase == "Available"
    return claim


def of_nodes(document):
    return [line for line in document["lines"] if line["kind"] == "nodes"]


def test_a_tenant_without_anything_pays_nothing(world):
    document = report(world.services)
    assert (document["hour"], document["spent"], document["complete"], document["lines"]) == (0, 0, True, [])


def test_a_cluster_costs_what_its_deletion_would_save(world, nodes, cluster):
    claimed(nodes, cluster, "one")
    document = report(nodes.services)
    plan = plan_deletion(nodes.services, cluster.id)["price"]
    assert document["hour"] == pytest.approx(plan["hour"])
    assert {line["cluster"] for line in document["lines"]} == {"demo"}
    [line] = of_nodes(document)
    assert (line["type"], line["quantity"], line["hour"], line["month_rate"]) == ("sim.s", 1, 0.5, 365.0)


def test_the_month_counts_what_stands_and_what_is_gone(world, nodes, cluster):
    first, second = claimed(nodes, cluster, "one"), claimed(nodes, cluster, "two")
    world.clock.advance(10 * HOUR)
    nodes.delete(first)
    nodes.relay()
    assert [claim.id for claim in every(nodes.services.store, NodeClaim)] == [second.id]
    world.clock.advance(10 * HOUR)
    [line] = of_nodes(report(nodes.services))
    assert (line["quantity"], line["hour"]) == (1, 0.5)
    assert line["spent"] == pytest.approx(0.5 * 30, rel=0.01)


def test_a_month_ago_is_not_this_month(world, nodes, cluster):
    claimed(nodes, cluster, "one")
    ended_claim = claimed(nodes, cluster, "gone")
    nodes.delete(ended_claim)
    nodes.relay()
    world.clock.moment = datetime(2026, 2, 2, tzinfo=UTC)
    document = report(nodes.services)
    assert (document["month"], document["since"]) == ("2026-02", "2026-02-01T00:00:00.000Z")
    [line] = of_nodes(document)
    assert line["spent"] == pytest.approx(0.5 * 24)


def test_a_cluster_that_is_gone_is_in_its_month_by_name(world, nodes, cluster):
    before = report(world.services)
    world.clock.advance(5 * HOUR)
    assert world.drive(delete_cluster(world.services, cluster.id, "ann"), "delete_cluster") == "gone"
    [usage] = every(world.services.store, Usage)
    assert (usage.cluster, usage.type, usage.usd_hour) == ("demo", ALL_BUT_NODES, pytest.approx(before["hour"]))
    world.clock.advance(5 * HOUR)
    document = report(world.services)
    [line] = document["lines"]
    assert (line["cluster"], line["quantity"], line["hour"]) == ("demo", 0, 0.0)
    assert document["hour"] == 0.0
    assert line["spent"] == pytest.approx(before["hour"] * 5, rel=0.1)


def test_a_report_of_one_cluster_has_nothing_of_others(world, nodes, cluster):
    claimed(nodes, cluster, "one")
    other = world.create("other")
    assert world.drive(other, "provision_cluster") == "ready"
    ended_claim = claimed(nodes, world.cluster(other), "gone")
    nodes.delete(ended_claim)
    nodes.relay()
    whole, part = report(nodes.services), report(nodes.services, world.cluster(other))
    assert {line["cluster"] for line in whole["lines"]} == {"demo", "other"}
    assert {line["cluster"] for line in part["lines"]} == {"other"}
    assert [line["quantity"] for line in of_nodes(part)] == [0]


def test_a_claim_that_got_no_machine_has_cost_nothing(world, nodes, cluster):
    claim = nodes.claim("late", cluster_ref=cluster.id)
    nodes.schedule()
    nodes.delete(nodes.now(claim))
    nodes.relay()
    assert list(every(nodes.services.store, Usage)) == []


def test_a_cluster_of_which_nothing_stands_costs_nothing(world):
    world.create()
    assert report(world.services)["lines"] == []


def record(world, cluster, phase, kind, key="main", *, is_made=True):
    """A line of the cluster's ledger, as its driver writes it."""
    operation = world.cluster(cluster).operation_id
    owner = Owner.of_cluster(world.cluster(cluster), operation, world.cluster(cluster).attempt)
    ledger = StoreLedger(world.services, owner, phase)
    line = ledger.intend(kind, key)
    if is_made:
        ledger.made(line, f"{kind}-{key}")
    return ledger


def counted(world, cluster):
    """The quantity of each line of the report."""
    return {line["type"]: line["quantity"] for line in report(world.services, world.cluster(cluster))["lines"]}


def test_of_a_creation_only_what_was_made_is_counted(world):
    cluster = world.create()
    record(world, cluster, "network", "vpc")
    assert counted(world, cluster) == {}, "a VPC costs nothing"
    record(world, cluster, "network", "nat_gateway", is_made=False)
    assert counted(world, cluster) == {}, "it may be there, or not"
    record(world, cluster, "network", "nat_gateway")
    network = record(world, cluster, "network", "address", "nat")
    assert counted(world, cluster) == {"NAT gateway": 1, "public IPv4 address": 1}
    world.clock.advance(HOUR)
    document = report(world.services)
    assert document["hour"] == pytest.approx(0.045 + 0.005)
    assert document["spent"] == pytest.approx(document["hour"], rel=0.01)
    record(world, cluster, "endpoint", "load_balancer")
    assert counted(world, cluster)["network load balancer"] == 1
    assert not any("control plane" in name for name in counted(world, cluster))
    record(world, cluster, "control_plane", "instance")
    assert any(name.startswith("control plane instance") for name in counted(world, cluster))
    network.gone(network.find("address", "nat"))
    assert counted(world, cluster)["public IPv4 address"] == 2, "those of the load balancer, one in each zone"


def test_all_that_a_ready_cluster_was_made_of_is_counted_without_its_ledger(world, nodes, cluster):
    items = {item.name: item.quantity for item in price_items(world.services, cluster)}
    assert counted(world, cluster) == items


def test_an_unknown_price_is_said(world, nodes, cluster):
    nodes.provider("free", {"name": "odd", "resources": {"cpu": "4", "memory": "8Gi"}, "cost": 1})
    claim = nodes.claim("odd", cluster_ref=cluster.id, provider_ref="free")
    nodes.schedule()
    nodes.relay()
    assert nodes.now(claim).phase == "Available"
    document = report(nodes.services)
    [line] = of_nodes(document)
    assert (line["hour"], line["spent"], document["complete"]) == (None, None, False)
    nodes.delete(claim)
    nodes.relay()
    document = report(nodes.services)
    [line] = of_nodes(document)
    assert (line["quantity"], line["hour"], line["spent"], document["complete"]) == (0, 0, None, False)
    assert (document["hour"], document["spent"]) == (document["known_hour"], None), "what stands has its prices"


def test_what_is_gone_is_forgotten_after_a_year():
    usage = Usage("2026-01/x", "", "", "", "sim.s", "spot", 1.0, *["2026-01-01T00:00:00.000Z"] * 2)
    assert keys.expiry(usage) == times.epoch(datetime(2027, 2, 5, tzinfo=UTC))


def test_members_of_a_control_plane_are_paid_for_once():
    """Members are claims, and items of their cluster."""
    members = members_world(3)
    assert members.drive() == "changed"
    services = members.world.services
    assert len(members.members()) == 3
    document = report(services)
    assert [line["pool"] for line in of_nodes(document)] == ["web"]
    assert plan_deletion(services, members.id)["price"]["hour"] == pytest.approx(document["hour"])
    [machines] = [line for line in document["lines"] if line["type"].startswith("control plane instance")]
    assert machines["quantity"] == 3
