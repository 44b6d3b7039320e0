"""Quotas, limits of pools and the machines of a provider bound what comes in the place of nodes."""

from __future__ import annotations

from collections import Counter

import pytest

from stockyard.domain.records import Quota
from stockyard.ports import Create
from tests.unit.operations.fleet.disruption.conftest import POOL, ROOM, Pods, pod
from tests.unit.operations.fleet.disruption.test_run import LARGE, NOW, SMALL, drift, reasons

ANY_TYPE = [{"key": "vcluster.com/node-type", "operator": "Exists"}]


def test_a_full_quota_of_claims_lets_nodes_go_that_need_no_replacement(pods: Pods) -> None:
    pods.yard.dynamic_pool(POOL, disruption=NOW, requirements=ANY_TYPE)
    pods.waiting = [pod("7500m", app=f"app-{number}") for number in range(3)]
    pods.run(4)
    services = pods.yard.nodes.services
    services.store.commit(Create(Quota("nodeclaims", 3, services.now())))
    first, second, third = sorted(pods.on)
    pods.on = {first: [pod("900m", app="x")], second: [pod("600m", app="y")], third: [pod("7500m", app="z")]}
    pods.run(8)
    assert len(pods.types()) == 2
    assert "DisruptionAbandoned" not in reasons(pods)


@pytest.mark.parametrize(("limits", "most"), [({"nodes": "5"}, 5), ({"cpu": "10"}, 5), ({"usd_hour": "0.5"}, 5)])
def test_a_static_pool_rolls_within_its_limits(pods: Pods, limits: dict[str, str], most: int) -> None:
    only_small = [{"key": "vcluster.com/node-type", "values": [SMALL]}]
    budgets = [{"nodes": "3"}]
    pods.yard.pool("fixed", quantity=4, limits=limits, disruption={"budgets": budgets}, requirements=only_small)
    pods.run(4)
    old = {claim.id for claim in pods.claims()}
    drift(pods, pods.claims())
    pods.last_picture, most_seen = "", 0
    for _ in range(60):
        pods.run(1)
        most_seen = max(most_seen, len(pods.claims()))
    assert most_seen == most
    assert not old & {claim.id for claim in pods.claims()}


def test_a_static_pool_that_is_at_its_limit_is_not_rolled(pods: Pods) -> None:
    pods.yard.pool("fixed", quantity=4, limits={"nodes": "4"})
    pods.run(4)
    old = {claim.id for claim in pods.claims()}
    drift(pods, pods.claims())
    pods.last_picture = ""
    pods.run(30)
    assert {claim.id for claim in pods.claims()} == old
    assert reasons(pods) == []


def test_a_static_pool_is_rolled_by_as_many_nodes_as_its_provider_has_left(pods: Pods) -> None:
    """Six nodes on eight machines, of which the budget lets three go: two come, so that two leave at a time."""
    ROOM["metal.few"] = (2000, 4)
    resources = {"cpu": "2", "memory": "4Gi"}
    pods.yard.nodes.provider("metal", {"name": "few", "resources": resources, "usdPerHour": 0.05, "maxCapacity": 8})
    only_metal = [{"key": "vcluster.com/node-type", "values": ["metal.few"]}]
    pods.yard.pool("fixed", quantity=6, disruption={"budgets": [{"nodes": "50%"}]}, requirements=only_metal)
    pods.run(4)
    old = {claim.id for claim in pods.claims()}
    drift(pods, pods.claims())
    pods.last_picture, pods.fewest = "", 10
    pods.run(180)
    assert not old & {claim.id for claim in pods.claims()}
    assert (len(pods.claims()), pods.fewest) == (6, 6)
    assert Counter(reasons(pods))["DisruptionAbandoned"] == 0


@pytest.mark.parametrize("pool", ["fixed", POOL])
def test_a_window_that_opens_is_used(pods: Pods, pool: str) -> None:
    """The window is open for 27 minutes a day, and nothing else happens in the cluster."""
    rules = {"budgets": [{"nodes": "0", "schedule": "35 15 * * *", "duration": "1413m"}]}
    if pool == "fixed":
        pods.yard.pool(pool, quantity=1, disruption=rules)
    else:
        pods.yard.dynamic_pool(
            pool, disruption=rules, floor=1, requirements=[{"key": "vcluster.com/node-type", "values": [LARGE]}]
        )
    pods.run(4)
    old = {claim.id for claim in pods.claims()}
    drift(pods, pods.claims())
    pods.last_picture = ""
    pods.run(25 * 60)
    assert not old & {claim.id for claim in pods.claims()}
