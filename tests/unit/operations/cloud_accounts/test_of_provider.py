"""The account of a provider is what its kind reads: by number, by name, or a cluster of the tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.provider_kinds import AccountReference, ProviderKind, host_cluster
from stockyard.domain.records import CloudAccount, Cluster, NodeClaim, NodeProvider, Placement
from stockyard.errors import FieldProblem, InUse
from stockyard.operations.cloud_accounts.accounts import change_account, delete_account
from stockyard.operations.cloud_accounts.of_provider import account_number, account_of, host_of, reference_of
from stockyard.operations.clusters.removal.delete import delete_cluster, plan_deletion
from stockyard.operations.node_claims.lost_machines import scope_of
from stockyard.operations.node_providers.providers import check_provider, create_provider, draft
from stockyard.ports import Put, Remove
from stockyard.providers import registry
from tests.unit.operations.conftest import World

KIND = "yardHosts"


class _Kinds(Mapping[str, ProviderKind]):
    """The registry's kinds and a throwaway one that is built."""

    def __init__(self) -> None:
        kind = ProviderKind(KIND, "unused:Unused", built=True, account=host_cluster, cloud="cudo", cloud_title="Cudo")
        self._kinds = {**registry.NodeKinds(), KIND: kind}

    def __getitem__(self, name: str) -> ProviderKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


@pytest.fixture(autouse=True)
def throwaway_kind() -> Iterator[None]:
    provider_kinds.use(_Kinds())
    yield
    registry.introduce()


def provider(world: World, name: str, kind: str = KIND, **block: Any) -> NodeProvider:
    block = block or {"clusterRef": {"cluster": name, "namespace": "machines"}}
    return draft(world.services, ProviderDocument("yard", kind, {**block, "nodeTypes": []}))


def account(world: World, number: str, name: str, cloud: str = "cudo") -> CloudAccount:
    record = CloudAccount(
        number, cloud, name, "", {"data_center_id": "us-dallas-1", "project_id": "p"}, "ext", "verified", "", "t", "t"
    )
    world.services.store.commit(Put(record))
    return record


def host(world: World, name: str = "hosts") -> Cluster:
    return world.create(name)


def faults(world: World, name: str) -> list[FieldProblem]:
    return check_provider(world.services, provider(world, name))


def test_kinds_read_the_reference_from_fields_of_their_own() -> None:
    cluster_ref, secret_ref = {"clusterRef": {"cluster": "c", "namespace": "n"}}, {"secretRef": {"name": "s"}}
    by_cluster = AccountReference("c", ("clusterRef", "cluster"), takes_cluster=True)
    expected = [
        *((kind, {"cloudAccount": 7}, AccountReference("7", ("cloudAccount",))) for kind in ("ec2", "cudo", "eks")),
        *((kind, cluster_ref, by_cluster) for kind in ("kubeVirt", "metal3")),
        ("bcm", secret_ref, AccountReference("s", ("secretRef", "name"))),
        ("simulated", {}, None),
    ]
    for kind, block, reference in expected:
        assert reference_of(NodeProvider("npr_1", "p", kind, {kind: block}, "t", "t")) == reference, kind


def test_a_reference_is_a_number_or_a_name_of_an_account_of_the_kinds_cloud(world: World) -> None:
    account(world, "8", "site", "aws")
    site = account(world, "9", "site")
    for name in ("9", "site"):
        hosted = provider(world, name)
        assert account_of(world.services, hosted) == site
        assert (account_number(world.services, hosted), host_of(world.services, hosted)) == ("9", None)
        assert (scope_of(world.services, hosted), faults(world, name)) == ("account/9", [])
    assert account_number(world.services, provider(world, "gone")) is None
    assert scope_of(world.services, provider(world, "gone")) != "account/9"
    text = "there is no cloud account 8 of Cudo, and no cluster 8"
    assert faults(world, "8") == [FieldProblem("/spec/clusterRef/cluster", text)]


def test_of_several_accounts_of_one_name_the_oldest_keeps_its_providers(world: World) -> None:
    account(world, "10", "site")
    account(world, "9", "site")
    assert account_number(world.services, provider(world, "site")) == "9"
    assert [problem.detail for problem in faults(world, "site")] == [
        "2 cloud accounts of Cudo are called site: give the number, 9 and 10"
    ]


def test_a_cluster_of_the_tenant_is_a_legal_host(world: World) -> None:
    cluster = host(world)
    for name in (cluster.name, cluster.id):
        hosted = provider(world, name)
        assert host_of(world.services, hosted) == cluster
        assert (account_of(world.services, hosted), faults(world, name)) == (None, [])
    ec2 = provider(world, "", "ec2", cloudAccount=cluster.name)
    assert host_of(world.services, ec2) is None
    account(world, "9", cluster.name)
    assert [problem.detail for problem in faults(world, cluster.name)] == [
        f"a cloud account and a cluster are called {cluster.name}: give 9 or {cluster.id}"
    ]


def test_what_a_provider_refers_to_is_neither_removed_nor_renamed(world: World) -> None:
    site, cluster = account(world, "9", "site"), host(world)
    by_name = create_provider(world.services, document("by-name", "site"), "user:ann")
    with pytest.raises(InUse, match="Cloud account 9 is used by node provider by-name"):
        delete_account(world.services, "9", "user:ann")
    with pytest.raises(InUse, match="keeps its name: node providers by-name refer to it by that"):
        change_account(world.services, "9", site.version, {"name": "other"}, "user:ann", "req")
    moved = replace(by_name, spec={KIND: {"clusterRef": {"cluster": "9"}}})
    world.services.store.commit(Put(moved))
    change_account(world.services, "9", site.version, {"name": "other"}, "user:ann", "req")
    create_provider(world.services, document("hosted", cluster.name), "user:ann")
    for refused in (plan_deletion, partial(delete_cluster, actor="user:ann")):
        with pytest.raises(InUse, match=f"Cluster {cluster.name} makes the machines of node providers hosted"):
            refused(world.services, cluster.id)


def test_an_account_with_nodes_does_not_become_somebody_else(world: World) -> None:
    site = account(world, "9", "site")
    by_name = create_provider(world.services, document("by-name", "site"), "user:ann")
    placement = Placement(by_name.id, "small", "on-demand", ("*",), 1.0, "t")
    world.services.store.commit(Put(NodeClaim("ncl_1", "first", "t", "t", placement=placement)))
    moved = {"attributes": {**site.attributes, "project_id": "another"}}
    with pytest.raises(InUse, match="Cloud account 9 is used by the nodes first"):
        change_account(world.services, "9", site.version, moved, "user:ann", "req")
    world.services.store.commit(Remove(NodeClaim, "ncl_1"))
    assert change_account(world.services, "9", site.version, moved, "user:ann", "req").verification == "unverified"


def document(name: str, cluster: str) -> ProviderDocument:
    return ProviderDocument(name, KIND, {"clusterRef": {"cluster": cluster, "namespace": "machines"}, "nodeTypes": []})


def test_the_only_account_stays_while_a_provider_works_in_it_without_its_name(world: World) -> None:
    account(world, "1", "prod", "aws")
    store = world.services.store
    block = {"nodeTypes": [], "nodeTemplate": {"inline": ""}}
    store.commit(Put(NodeProvider("npr_1", "tofu", "terraform", {"terraform": block}, "t", "t")))
    with pytest.raises(InUse, match="Cloud account 1 is used by node provider tofu"):
        delete_account(world.services, "1", "user:ann")
    account(world, "2", "other", "aws")
    placement = Placement("npr_1", "tofu.small", "on-demand", ("*",), 1.0, "t")
    store.commit(Put(NodeClaim("ncl_1", "first", "t", "t", placement=placement)))
    for number in ("1", "2"):
        with pytest.raises(InUse, match=f"Cloud account {number} is used by node provider tofu"):
            delete_account(world.services, number, "user:ann")
    store.commit(Remove(NodeClaim, "ncl_1"))
    assert delete_account(world.services, "2", "user:ann").status == "succeeded"
    named = {"terraform": {**block, "runner": {"cloudAccount": 2}}}
    store.commit(Put(NodeProvider("npr_1", "tofu", "terraform", named, "t", "t")))
    assert delete_account(world.services, "1", "user:ann").status == "succeeded"
