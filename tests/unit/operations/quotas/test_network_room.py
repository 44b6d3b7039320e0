"""The network of a cluster takes so many nodes: groups, pools and claims beyond that are refused or told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.pools.records import ClusterClaim
from stockyard.domain.records import Cluster
from stockyard.errors import QuotaExceeded
from stockyard.operations.fleet.pools.claims import batch_size
from stockyard.operations.quotas import network_room
from stockyard.ports import Create
from stockyard.providers.clusters.cudo.provider import CudoClusterDriver
from stockyard.providers.clusters.ec2.provider import Ec2ClusterDriver
from tests.unit.operations.fleet.pools.conftest import Yard, yard

__all__ = ["yard"]


def bounded(yard: Yard, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    driver = yard.nodes.services.cluster_drivers[yard.cluster.driver]
    monkeypatch.setattr(driver, "most_nodes", lambda *_: most, raising=False)


def test_clusters_of_kubeadm_take_as_many_nodes_as_they_have_ranges_for_pods(yard: Yard) -> None:
    for driver in (Ec2ClusterDriver, CudoClusterDriver):
        assert driver.most_nodes(None, yard.cluster) == 512
    assert network_room.remaining_nodes(yard.nodes.services, yard.cluster) > 10**5, "another driver knows no limit"
    assert network_room.room_findings(yard.nodes.services, yard.cluster) == ()


def test_a_pool_makes_no_more_nodes_than_the_network_takes_and_says_so(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(yard, monkeypatch, 3)
    pool = yard.pool("workers", quantity=2)
    yard.settle()
    assert len(yard.claims()) == 2
    with pytest.raises(QuotaExceeded, match="takes 3 nodes"):
        batch_size(yard.nodes.services, yard.cluster, pool, 1)
    with pytest.raises(QuotaExceeded, match="takes 3 nodes"):
        yard.nodes.claim("more", cluster_ref=yard.cluster.id)
    with pytest.raises(QuotaExceeded, match="have to have 3"):
        yard.pool("others", quantity=1)
    bounded(yard, monkeypatch, 2)
    yard.nodes.delete(yard.claims()[0])
    yard.nodes.relay()
    yard.settle()
    assert len(yard.claims()) == 1
    assert "takes 2 nodes" in yard.condition(yard.now())[2]


def test_pods_get_no_more_nodes_than_the_network_takes(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(yard, monkeypatch, 3)
    services, claims = yard.nodes.services, network_room.remaining_nodes
    assert claims(services, yard.cluster) == 2
    services.store.commit(Create(ClusterClaim(f"{yard.cluster.id}/p/x", "ncl_x", services.now())))
    assert claims(services, yard.cluster) == 1
    network_room.check_network_room(services, yard.cluster, 1)
    with pytest.raises(QuotaExceeded):
        network_room.check_network_room(services, yard.cluster, 2)


def test_groups_beyond_the_network_are_refused_and_those_that_may_grow_so_far_told(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(yard, monkeypatch, 512)

    def pointers(*sizes: tuple[int, int]) -> list[tuple[str, bool]]:
        groups: list[dict[str, Any]] = [
            {"name": f"g{least}", "min_size": least, "max_size": most} for least, most in sizes
        ]
        cluster: Cluster = replace(yard.cluster, settings={"autoscaler_node_groups": groups})
        findings = network_room.room_findings(yard.nodes.services, cluster)
        return [
            (finding.pointer.removeprefix("/settings/autoscaler_node_groups/"), finding.warning) for finding in findings
        ]

    assert pointers((1, 1), (0, 511)) == []
    assert pointers((1, 1), (0, 400), (0, 400), (0, 9)) == [("2/max_size", True)]
    assert pointers((1, 1), (512, 512)) == [("1/min_size", False), ("1/max_size", True)]
