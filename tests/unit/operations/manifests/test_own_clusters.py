"""A ``Cluster`` of ``stockyard/v1`` that is applied, with its pools: made, found unchanged, changed, refused at its own
fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import InvalidInput, QuotaExceeded
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import pools_of
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.clusters import cluster_manifest
from stockyard.operations.manifests.desired import read_desired
from stockyard.ports import Create
from tests.unit.operations.clusters.managed_world import ManagedWorld

USER = "user:ann"
SYSTEM = {"name": "system", "role": "system", "instanceType": "m6i.xlarge", "count": 2}
WEB = {"name": "web", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}


def manifest(*pools: dict[str, Any], settings: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    spec = {"driver": "eks", "settings": {"regionName": "us-east-1", "nodeGroups": [SYSTEM], **(settings or {})}}
    return {
        "apiVersion": "stockyard/v1",
        "kind": "Cluster",
        "metadata": {"name": "west"},
        "spec": {**spec, **({"pools": list(pools)} if pools else {}), **more},
    }


def of_group(fields: dict[str, Any]) -> dict[str, Any]:
    return manifest(settings={"nodeGroups": [{**SYSTEM, **fields}]})


def apply(eks: ManagedWorld, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    services = eks.world.services
    return apply_manifests(services, read_desired(services, documents, USER, admin=False), USER, "req-1", "org-1")


def plan(eks: ManagedWorld, *documents: dict[str, Any]) -> dict[str, Any]:
    services = eks.world.services
    return plan_manifests(services, read_desired(services, documents, USER, admin=False))


def faults(eks: ManagedWorld, *documents: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_desired(eks.world.services, documents, USER, admin=False)
    return {fault.pointer: fault.detail for fault in refused.value.errors}


def actions(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    return {result["name"]: result["action"] for result in results}


def pools(eks: ManagedWorld, cluster: Cluster) -> dict[str, str]:
    return {pool.name: pool.form for pool in pools_of(eks.world.services, cluster.id)}


def ready(eks: ManagedWorld, *documents: dict[str, Any]) -> Cluster:
    eks.id = apply(eks, *documents)[0]["id"]
    assert eks.drive("provision_managed") == "ready"
    return eks.cluster


def test_a_cluster_comes_with_its_pools(eks: ManagedWorld) -> None:
    creates = plan(eks, manifest(WEB))["creates"]
    assert {"kind": "cluster", "name": "west"} in creates
    assert {"kind": "pool", "name": "web"} in creates
    warnings = [warning["detail"] for warning in plan(eks, manifest(WEB))["warnings"]]
    assert not [text for text in warnings if "wait for it" in text or "There is no cluster" in text]
    results = apply(eks, manifest(WEB, description="for web", tags={"team": "a"}, keepFailed=30))
    assert [(result["kind"], result["index"]) for result in results] == [("Cluster", 0), ("Pool", 0)]
    cluster = find_cluster(eks.world.services, "west")
    record = (cluster.description, cluster.tags, cluster.keep_failed, cluster.document)
    assert record == ("for web", {"team": "a"}, 30, {})
    assert pools(eks, cluster) == {"system": "group", "web": "stockyard"}


def test_what_is_shown_is_applied_without_a_change(eks: ManagedWorld) -> None:
    cluster = ready(eks, manifest(WEB, description="for web", kubernetesVersion="1.35"))
    document = cluster_manifest(eks.world.services, cluster)
    assert document["spec"]["cloudAccount"] == "main"
    assert [pool["name"] for pool in document["spec"]["pools"]] == ["web"]
    assert plan(eks, document)["changes"] == []
    assert actions(apply(eks, document)) == {"west": "unchanged", "web": "unchanged"}
    assert eks.cluster == cluster


def test_what_a_manifest_does_not_say_stays(eks: ManagedWorld) -> None:
    more = {"publicAccessCidrs": ["203.0.113.0/24"], "addonVersions": {"vpc-cni": "v1.21.1-eksbuild.1"}}
    before = ready(eks, manifest(WEB, settings=more, description="for web", tags={"team": "a"}))
    assert actions(apply(eks, manifest())) == {"west": "unchanged"}
    assert eks.cluster == before
    (result,) = apply(eks, manifest(settings={"publicAccessCidrs": None, "addonVersions": {}}, tags={}))
    assert result["action"] == "changed"
    cluster = eks.cluster
    assert (cluster.description, cluster.tags) == ("for web", {})
    assert (cluster.settings["public_access_cidrs"], cluster.settings["addon_versions"]) == ([], {})


def test_a_changed_group_and_a_changed_pool_are_told_at_their_fields(eks: ManagedWorld) -> None:
    ready(eks, manifest(WEB))
    larger = manifest({**WEB, "limits": {"cpu": "80"}}, settings={"nodeGroups": [{**SYSTEM, "maxSize": 20}]})
    changes = {change["pointer"]: (change["before"], change["after"]) for change in plan(eks, larger)["changes"]}
    assert changes == {
        "/0/spec/settings/nodeGroups/0/maxSize": (8, 20),
        "/0/spec/pools/0/limits/cpu": (None, "80"),
    }
    assert actions(apply(eks, larger)) == {"west": "changed", "web": "changed"}


def test_what_changes_on_the_record_alone_is_told_too(eks: ManagedWorld) -> None:
    """A description, tags and an end need no operation; a diff that left them out would say that nothing changes."""
    soon, later = "2027-01-01T00:00:00.000Z", "2027-02-01T00:00:00Z"
    ready(eks, manifest(description="a", tags={"team": "a"}, expiresAt=soon))
    document = manifest(description="b", tags={"team": "b"}, expiresAt=later, settings={"mirror": False})
    changes = {change["pointer"]: (change["before"], change["after"]) for change in plan(eks, document)["changes"]}
    assert changes == {
        "/0/spec/description": ("a", "b"),
        "/0/spec/tags/team": ("a", "b"),
        "/0/spec/expiresAt": (soon, "2027-02-01T00:00:00.000Z"),
        "/0/spec/settings/mirror": (True, False),
    }
    assert actions(apply(eks, document)) == {"west": "changed"}
    assert actions(apply(eks, manifest())) == {"west": "unchanged"}
    assert eks.cluster.expires_at == "2027-02-01T00:00:00.000Z"
    assert actions(apply(eks, manifest(expiresAt=None))) == {"west": "changed"}
    assert eks.cluster.expires_at is None
    refused = faults(eks, manifest(expiresAt="2020-01-01T00:00:00Z"))
    assert list(refused) == ["/0/spec/expiresAt"]
    assert "must be later than now" in refused["/0/spec/expiresAt"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (manifest(settings={"region_name": "x"}), {"/0/spec/settings/region_name": "did you mean regionName?"}),
        (of_group({"maxsize": 2}), {"/0/spec/settings/nodeGroups/0/maxsize": "did you mean maxSize?"}),
        (of_group({"maxSize": 1}), {"/0/spec/settings/nodeGroups/0/maxSize": "count"}),
        (manifest(settings={"keyPair": "k"}), {"/0/spec/settings/keyPair": "is a field of clusters on AWS"}),
        (
            manifest({"name": "web", "limit": {}}, settings={"regionname": "x"}),
            {"/0/spec/pools/0/limit": "limits?", "/0/spec/settings/regionname": "regionName?"},
        ),
        (manifest({"name": "system"}), {"/0/spec/pools/0/name": "node group"}),
        (manifest(WEB, WEB), {"/0/spec/pools/1/name": "another pool"}),
        (manifest({**WEB, "cluster": "west"}), {"/0/spec/pools/0/cluster": "unknown field"}),
        (manifest({**WEB, "provider": "nobody"}), {"/0/spec/pools/0/provider": "nobody"}),
        (manifest(cloudAccount="nobody"), {"/0/spec/cloudAccount": "nobody"}),
        (manifest(driver="ecs"), {"/0/spec/driver": "must be"}),
        (manifest(secret="x" * 24), {"/0/spec/secret": "unknown field"}),
        ({**manifest(), "metadata": {"name": "west", "labels": {}}}, {"/0/metadata/labels": "unknown field"}),
    ],
)  # fmt: skip
def test_faults_are_told_at_the_fields_of_the_manifest(
    eks: ManagedWorld, document: dict[str, Any], expected: dict[str, str]
) -> None:
    faults_found = faults(eks, document)
    assert faults_found.keys() == expected.keys()
    assert all(text in faults_found[pointer] for pointer, text in expected.items()), faults_found


def test_what_cannot_change_is_refused_at_its_field(eks: ManagedWorld) -> None:
    ready(eks, manifest())
    faults_found = faults(eks, manifest(settings={"regionName": "us-west-2"}))
    assert faults_found == {"/0/spec/settings/regionName": "cannot be changed after creation"}
    assert faults(eks, manifest(keepFailed=5)) == {"/0/spec/keepFailed": "cannot be changed after creation"}
    other = {**manifest(), "spec": {"driver": "ec2"}}
    assert faults(eks, other) == {"/0/metadata/name": "There is a cluster called west, which the driver eks has made."}


def test_nothing_is_made_where_the_pools_are_too_many(eks: ManagedWorld) -> None:
    many = [{"name": f"web-{number}"} for number in range(60)]
    with pytest.raises(QuotaExceeded):
        apply(eks, manifest(*many))
    assert not list(eks.world.services.store.list(Cluster, after=None, limit=10).items)


def test_a_cluster_that_came_as_another_document_becomes_one_of_ours(eks: ManagedWorld) -> None:
    eks_cluster = {
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "EKSCluster",
        "metadata": {"name": "west"},
        "spec": {
            "region": "us-east-1",
            "nodePools": [{"name": "system", "role": "System", "instanceType": "m6i.xlarge", "nodeCount": 2}],
        },
    }
    cluster = ready(eks, eks_cluster)
    assert cluster_manifest(eks.world.services, cluster)["kind"] == "EKSCluster"
    assert actions(apply(eks, manifest(description="ours now"))) == {"west": "changed"}
    assert cluster_manifest(eks.world.services, eks.cluster)["kind"] == "Cluster"


def test_an_account_is_shown_by_its_name_or_by_its_number_where_others_are_called_so(eks: ManagedWorld) -> None:
    store = eks.world.services.store
    cluster, first = ready(eks, manifest()), store.get(CloudAccount, "1")
    assert first is not None
    assert cluster_manifest(eks.world.services, cluster)["spec"]["cloudAccount"] == first.name
    store.commit(Create(replace(first, id="2", version=1)))
    assert cluster_manifest(eks.world.services, cluster)["spec"]["cloudAccount"] == "1"


def test_pools_and_claims_come_with_their_cluster_in_documents_of_their_own(eks: ManagedWorld) -> None:
    pool = {"apiVersion": "stockyard/v1", "kind": "Pool", "metadata": {"name": "night"}, "spec": {"cluster": "west"}}
    claim = {**pool, "kind": "NodeClaim", "metadata": {"name": "one"}}
    documents = [claim, pool, manifest(WEB)]
    kinds = [(entry["kind"], entry["name"]) for entry in plan(eks, *documents)["creates"]]
    assert {("cluster", "west"), ("pool", "web"), ("pool", "night"), ("node-claim", "one")} <= set(kinds)
    assert faults(eks, {**pool, "metadata": {"name": "web"}}, manifest(WEB)) == {
        "/1/spec/pools/0/name": "another pool of this name and cluster is given before"
    }
    assert faults(eks, pool) == {"/0/spec/cluster": "There is no cluster west."}
    assert actions(apply(eks, *documents)) == dict.fromkeys(("one", "night", "west", "web"), "created")
    cluster = find_cluster(eks.world.services, "west")
    assert {"night", "web"} <= {pool.name for pool in pools_of(eks.world.services, cluster.id)}
    assert set(actions(apply(eks, *documents)).values()) == {"unchanged"}
