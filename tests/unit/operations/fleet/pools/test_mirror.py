"""The pools and claims for the agent's mirror, and the times when the agent hears of changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.clusters.change import ClusterChange
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import MirrorView
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.models.pools.pools import PoolCreate
from stockyard.domain.records import Fact
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.fleet.pools import pools
from stockyard.operations.machines import mirror
from stockyard.operations.machines.mirror import MIRROR, OFF, page_of, version_of
from stockyard.operations.machines.observe import observe
from tests.unit.operations.fleet.pools.conftest import USER, Yard


def version(yard: Yard) -> str | None:
    """The version that the agent's next post is answered with."""
    services = yard.nodes.services
    observation = {
        "sequence": int(services.clock.now().timestamp() * 1000), "observed_at": services.now(), "agent_version": "1",
        "kubernetes_version": "v1", "nodes": [], "ca_hash": "sha256:" + "0" * 64, "results": [],
    }  # fmt: skip
    return observe(services, yard.nodes.registry.in_hand, b"key", yard.current(), observation).mirror


def objects(yard: Yard) -> dict[str, dict[str, Any]]:
    """The mirror by kind and name, as the route answers with it."""
    page = page_of(yard.nodes.services, yard.current())
    MirrorView(objects=page.objects, after=page.after)
    return {f"{each['kind']} {each['name']}": each for each in page.objects}


def test_pools_are_node_pools_and_claims_are_node_claims(yard: Yard) -> None:
    yard.pool(quantity=1, provider="sim", labels={"team": "a"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    yard.dynamic_pool("burst", limits={"cpu": "8"}, weight=7)
    yard.settle()
    (claim,) = yard.claims()
    documents = objects(yard)
    assert list(documents) == ["NodePool burst", "NodePool workers", f"NodeClaim {claim.name}"]
    workers, burst = documents["NodePool workers"], documents["NodePool burst"]
    assert workers["spec"]["replicas"] == 1
    assert workers["spec"]["template"]["metadata"]["labels"] == {
        "team": "a", "vcluster.loft.sh/provider-platform": "sim",
    }  # fmt: skip
    assert workers["spec"]["template"]["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert (burst["spec"]["limits"], burst["spec"]["weight"]) == ({"cpu": "8"}, 7)
    assert workers["status"]["nodes"] == 1
    assert {condition["type"]: condition["status"] for condition in workers["status"]["conditions"]} == {
        "Ready": "True"
    }
    mirrored = documents[f"NodeClaim {claim.name}"]
    assert mirrored["pool"] == mirrored["labels"]["karpenter.sh/nodepool"] == "workers"
    assert mirrored["labels"]["stockyard.dev/claim"] == claim.id
    assert mirrored["labels"]["node.kubernetes.io/instance-type"] == "small"
    assert mirrored["status"]["nodeName"] == claim.node_name
    conditions = {condition["type"]: condition for condition in mirrored["status"]["conditions"]}
    assert {name: condition["status"] for name, condition in conditions.items()} == dict.fromkeys(
        ("Launched", "Registered", "Initialized", "Ready"), "True"
    )
    # What a server with Karpenter's own definition demands of each.
    for condition in conditions.values():
        assert condition["reason"]
        assert condition["lastTransitionTime"]


def test_no_karpenter_in_the_cluster_takes_a_mirror_for_its_own(yard: Yard) -> None:
    """Karpenter works on all NodePools of its own node classes, whoever made them."""
    document = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}
    new_pool = replace(read(PoolCreate, {"name": "own", "quantity": 1}).new_pool(), form="karpenter", document=document)
    pools.create_pool(yard.nodes.services, yard.cluster, new_pool, USER)
    yard.settle()
    for documents in objects(yard).values():
        spec = documents["spec"]["template"]["spec"] if documents["kind"] == "NodePool" else documents["spec"]
        assert spec["nodeClassRef"] == {"group": "stockyard.dev", "kind": "NodeProvider", "name": "any"}


def test_version_changes_whenever_the_mirror_does(yard: Yard) -> None:
    assert version(yard) is None
    pool = yard.pool(quantity=1)
    documents, latest = objects(yard), version(yard)
    changes = 0

    def changed() -> None:
        larger = read(PoolCreate, {"name": pool.name, "quantity": 2}).new_pool()
        pools.change_pool(yard.nodes.services, yard.cluster, yard.now(), yard.now().version, larger, USER, "r")

    def removed() -> None:
        pools.delete_pool(yard.nodes.services, yard.cluster, pool.name, USER)

    life = (yard.look, yard.nodes.schedule, yard.nodes.relay, yard.look)
    for step in (*life, changed, *life, removed, *life):
        step()
        if step in (changed, removed):  # their events wake a pass
            yard.look()
        current = objects(yard)
        if current != documents:
            changes += 1
            assert version(yard) != latest
        documents, latest = current, version(yard)
    assert changes >= 5
    assert documents == {}


def test_version_stays_while_nothing_happens_and_costs_no_write(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.settle()
    fact = yard.nodes.services.store.get(Fact, f"{yard.cluster.id}/{MIRROR}")
    before = version(yard)
    for _ in range(3):
        yard.nodes.clock.advance(600)
        yard.look()
        assert version(yard) == before
    assert yard.nodes.services.store.get(Fact, f"{yard.cluster.id}/{MIRROR}") == fact


def test_slow_pass_that_writes_an_old_digest_again_is_news(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.settle()
    services, before = yard.nodes.services, version(yard)
    fact = services.store.get(Fact, f"{yard.cluster.id}/{MIRROR}")
    assert fact is not None
    assert version_of(yard.current(), replace(fact, time="2030-01-01T00:00:00.000Z"), ()) != before


def test_cluster_whose_mirror_is_off_shows_nothing(yard: Yard) -> None:
    yard.pool(quantity=1)
    yard.settle()
    current = yard.current()
    settings = read(ClusterPatch, {"settings": {"mirror": False}}).settings_after(current)
    change_cluster(
        yard.nodes.services, current.id, current.version,
        ClusterChange(settings=settings), actor=USER, request_id="r",
    )  # fmt: skip
    assert version(yard) == OFF
    assert objects(yard) == {}


def test_large_mirror_comes_in_parts(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "PAGE_CLAIMS", 2)
    yard.pool(quantity=5)
    yard.settle()
    names, after, parts = [], "", 0
    while parts == 0 or after:
        page = page_of(yard.nodes.services, yard.current(), after)
        names += [each["name"] for each in page.objects]
        after, parts = page.after, parts + 1
    assert parts == 3
    assert names[0] == "workers"
    assert sorted(names[1:]) == sorted(claim.name for claim in yard.claims())


def test_mirror_of_a_cluster_that_is_gone_is_not_noted(yard: Yard) -> None:
    yard.pool(quantity=1)
    before = yard.current()
    yard.put(status="deleting")
    mirror.note(yard.nodes.services, before, [], [], 0)
    assert yard.nodes.services.store.get(Fact, f"{yard.cluster.id}/{MIRROR}") is None
