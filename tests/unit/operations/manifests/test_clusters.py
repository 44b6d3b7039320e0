"""An EKSCluster that is applied: made, found unchanged, changed by an operation, refused at its own fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import ClusterNameInUse, Forbidden, IllegalTransition, InvalidInput, QuotaExceeded
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.fleet.pools.pools import pools_of
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.clusters import cluster_manifest, published_manifest
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.quotas.limits import set_quota, view, within_quota
from stockyard.ports import Create, Replace
from stockyard.providers.clouds.aws.resources.child_names import cluster_name
from tests.unit.operations.clusters.managed_world import ManagedWorld
from tests.unit.operations.installation import Installation

SYSTEM = {"name": "system", "role": "System", "instanceType": "m6i.xlarge", "nodeCount": 2}
GPU = {
    "name": "gpu",
    "role": "GPU",
    "instanceType": "g6.xlarge",
    "nodeCount": 0,
    "zones": ["us-east-1a"],
    "gpu": {"acceleratorType": "nvidia-l4"},
}
USER = "user:ann"


def manifest(*pools: dict[str, Any], name: str = "west", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "platform", **more.pop("metadata", {})}
    return {
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "EKSCluster",
        "metadata": metadata,
        "spec": {"region": "us-east-1", "nodePools": list(pools or (SYSTEM, GPU)), **more},
    }


def apply(eks: ManagedWorld, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    services = eks.world.services
    desired = read_desired(services, documents, USER, admin=False)
    return apply_manifests(services, desired, USER, "req-1", "org-1")


def plan(eks: ManagedWorld, *documents: dict[str, Any]) -> dict[str, Any]:
    services = eks.world.services
    return plan_manifests(services, read_desired(services, documents, USER, admin=False))


def faults(eks: ManagedWorld, *documents: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_desired(eks.world.services, documents, USER, admin=False)
    return {fault.pointer: fault.detail for fault in refused.value.errors}


def ready(eks: ManagedWorld, *documents: dict[str, Any]) -> Cluster:
    """The first of the clusters, ready."""
    eks.id = apply(eks, *documents)[0]["id"]
    assert eks.drive("provision_managed") == "ready"
    return eks.cluster


def account(eks: ManagedWorld, id: str, name: str, provider: str = "aws") -> None:
    store = eks.world.services.store
    first = store.get(CloudAccount, "1")
    assert first is not None
    store.commit(Create(replace(first, id=id, name=name, provider=provider, version=1)))


def test_a_cluster_is_made_with_its_groups_as_pools(eks: ManagedWorld) -> None:
    (result,) = apply(eks, manifest())
    assert (result["kind"], result["name"], result["action"]) == ("EKSCluster", "west", "created")
    cluster = find_cluster(eks.world.services, "west")
    assert (cluster.id, cluster.operation_id) == (result["id"], result["operation_id"])
    assert (cluster.driver, cluster.kubernetes_version, cluster.cloud_account_id) == ("eks", "1.36", 1)
    assert (cluster.description, cluster.created_by) == ("EKSCluster platform/west", USER)
    assert cluster.settings["namespace"] == "platform"
    assert {pool.name for pool in pools_of(eks.world.services, cluster.id)} == {"system", "gpu"}


def test_a_second_apply_finds_it_unchanged_in_every_state(eks: ManagedWorld) -> None:
    apply(eks, manifest())
    (again,) = apply(eks, manifest())
    assert (again["action"], again["operation_id"]) == ("unchanged", None)
    cluster = ready(eks, manifest())
    (again,) = apply(eks, manifest(metadata={"uid": "0-1", "resourceVersion": "7"}))
    assert again["action"] == "unchanged"
    assert eks.cluster == cluster
    (again,) = apply(eks, cluster_manifest(eks.world.services, cluster))
    assert again["action"] == "unchanged"


def test_a_changed_pool_becomes_an_operation(eks: ManagedWorld) -> None:
    before = ready(eks, manifest())
    larger = manifest(SYSTEM, {**GPU, "maxNodeCount": 20})
    changes = plan(eks, larger)["changes"]
    assert changes == [
        {
            "kind": "cluster",
            "name": before.name,
            "pointer": "/0/spec/nodePools/1/maxNodeCount",
            "field": "spec.nodePools[gpu].maxNodeCount",
            "before": 8,
            "after": 20,
        }
    ]
    (result,) = apply(eks, larger)
    assert result["action"] == "changed"
    assert result["operation_id"] == eks.cluster.operation_id != before.operation_id
    assert [group["max_size"] for group in eks.cluster.settings["node_groups"]] == [8, 20]
    assert eks.drive() == "changed"


def test_pools_are_added_and_removed(eks: ManagedWorld) -> None:
    ready(eks, manifest())
    apply(eks, manifest(SYSTEM, GPU, {**GPU, "name": "more"}))
    assert eks.drive() == "changed"
    assert set(eks.pools()) == {"system", "gpu", "more"}
    (result,) = apply(eks, manifest(SYSTEM, {**GPU, "name": "more"}))
    assert result["operation_id"] == eks.cluster.operation_id
    assert [pool["name"] for pool in cluster_manifest(eks.world.services, eks.cluster)["spec"]["nodePools"]] == [
        "system",
        "more",
    ]


def test_without_a_pool_called_system_the_built_in_one_stays(eks: ManagedWorld) -> None:
    cluster = ready(eks, manifest(GPU))
    assert [group["name"] for group in cluster.settings["node_groups"]] == ["gpu", "system"]
    assert [pool["name"] for pool in cluster_manifest(eks.world.services, cluster)["spec"]["nodePools"]] == ["gpu"]
    (again,) = apply(eks, manifest(GPU))
    assert again["action"] == "unchanged"
    (change,) = plan(eks, manifest({**GPU, "maxNodeCount": 9}))["changes"]
    assert change["pointer"] == "/0/spec/nodePools/0/maxNodeCount"


def test_a_version_changes_by_an_upgrade_and_one_that_is_not_said_stays(eks: ManagedWorld) -> None:
    ready(eks, manifest(kubernetesVersion="1.35"))
    assert faults(eks, manifest(kubernetesVersion="1.34")) == {
        "/0/spec/kubernetesVersion": "must not be older than 1.35, which the cluster has"
    }
    (again,) = apply(eks, manifest())
    assert again["action"] == "unchanged"
    assert eks.cluster.kubernetes_version == "1.35"
    (result,) = apply(eks, manifest(kubernetesVersion="1.36"))
    assert result["action"] == "changed"
    assert eks.operation.kind == "upgrade_cluster"


def test_labels_annotations_and_the_description_are_the_records_alone(eks: ManagedWorld) -> None:
    before = ready(eks, manifest())
    document = manifest(metadata={"labels": {"a": "b"}, "annotations": {"stockyard.dev/description": "For all."}})
    (result,) = apply(eks, document)
    assert (result["action"], result["operation_id"]) == ("changed", None)
    assert eks.cluster.description == "For all."
    assert cluster_manifest(eks.world.services, eks.cluster)["metadata"]["labels"] == {"a": "b"}
    assert eks.cluster.operation_id == before.operation_id


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"region": "us-west-2", "nodePools": [SYSTEM]}, "region"),
        ({"region": "us-west-2", "nodePools": [SYSTEM, GPU]}, "region"),
        ({"networking": {"vpcCidr": "10.8.0.0/16"}}, "networking/vpcCidr"),
        ({"networking": {"subnetCidrs": ["10.0.0.0/20", "10.0.16.0/20"]}}, "networking/subnetCidrs"),
    ],
)
def test_what_cannot_change_is_refused_at_its_field(eks: ManagedWorld, more: dict[str, Any], path: str) -> None:
    pools = more.get("nodePools", [SYSTEM, GPU])
    ready(eks, manifest())
    document = manifest(*pools)
    document["spec"].update(more)
    refused = faults(eks, document)
    assert refused["/0/spec/" + path] == "cannot be changed after creation"


def test_a_pool_cannot_get_another_role(eks: ManagedWorld) -> None:
    ready(eks, manifest())
    document = manifest({**GPU, "name": "system"}, GPU)
    assert faults(eks, document) == {"/0/spec/nodePools/0/role": "cannot change; give the group another name"}


def test_a_cluster_that_is_not_ready_is_not_changed(eks: ManagedWorld) -> None:
    apply(eks, manifest())
    with pytest.raises(IllegalTransition, match="preparing"):
        apply(eks, manifest(SYSTEM))


def test_a_cluster_on_its_way_out_is_left_alone(eks: ManagedWorld) -> None:
    cluster = ready(eks, manifest())
    delete_cluster(eks.world.services, cluster.id, USER)
    with pytest.raises(IllegalTransition, match="being deleted"):
        apply(eks, manifest())


# --- names and accounts -----------------------------------------------------------------------------------------------


def test_a_name_of_another_cluster_is_refused(eks: ManagedWorld) -> None:
    create_cluster(eks.world.services, eks.world.new_cluster("west"), USER)
    text = "There is a cluster called west, which the driver memory has made."
    assert faults(eks, manifest()) == {"/0/metadata/name": text}


def test_a_cluster_of_a_request_is_no_manifests_cluster_of_a_namespace(eks: ManagedWorld) -> None:
    settings = {"region_name": "us-east-1"}
    create_cluster(eks.world.services, NewCluster("west", "d", 1, "k8s", settings, driver="eks"), USER)
    assert "without a namespace" in faults(eks, manifest())["/0/metadata/name"]
    without = manifest()
    del without["metadata"]["namespace"]
    with pytest.raises(IllegalTransition, match="preparing"):
        apply(eks, without)


def test_a_creation_that_was_given_up_does_not_count_as_the_cluster(eks: ManagedWorld) -> None:
    apply(eks, manifest())
    store = eks.world.services.store
    cluster = find_cluster(eks.world.services, "west")
    store.commit(Replace(replace(cluster, status="accepting", version=cluster.version + 1)))
    with pytest.raises(ClusterNameInUse):
        apply(eks, manifest())


LABEL = "/0/metadata/labels/stockyard.dev~1cloud-account"


def test_the_only_account_needs_no_label_and_of_several_one_is_named(eks: ManagedWorld) -> None:
    account(eks, "2", "other cloud", "cudo")
    assert plan(eks, manifest())["creates"][0] == {"kind": "cluster", "name": "west"}
    account(eks, "3", "second")
    assert faults(eks, manifest()) == {LABEL: "is needed, as a number: 2 cloud accounts are on AWS"}
    for name in ("3", "second"):
        named = manifest(metadata={"labels": {"stockyard.dev/cloud-account": name}}, name=f"of-{name}")
        apply(eks, named)
        assert find_cluster(eks.world.services, f"of-{name}").cloud_account_id == 3
    nobody = manifest(metadata={"labels": {"stockyard.dev/cloud-account": "2"}})
    assert faults(eks, nobody) == {LABEL: "There is no cloud account 2 on AWS."}
    account(eks, "4", "second")
    twice = manifest(metadata={"labels": {"stockyard.dev/cloud-account": "second"}})
    assert faults(eks, twice) == {LABEL: "is needed, as a number: 2 cloud accounts have this name"}


def test_an_account_that_could_not_be_verified_is_not_meant_by_who_names_none(eks: ManagedWorld) -> None:
    account(eks, "3", "second")
    store = eks.world.services.store
    second = store.get(CloudAccount, "3")
    assert second is not None
    store.commit(Replace(replace(second, verification="failed", version=2)))
    apply(eks, manifest())
    assert find_cluster(eks.world.services, "west").cloud_account_id == 1


def test_credentials_of_another_name_are_a_cloud_account(eks: ManagedWorld) -> None:
    account(eks, "3", "gpu-account")
    apply(eks, manifest(credentials={"name": "gpu-account"}))
    assert find_cluster(eks.world.services, "west").cloud_account_id == 3
    assert faults(eks, manifest(name="east", credentials={"name": "nobody"})) == {
        "/0/spec/credentials/name": "There is no cloud account nobody on AWS."
    }
    assert list(faults(eks, manifest(name="east", credentials={"name": "default"}))) == [LABEL]


def test_another_account_later_is_refused(eks: ManagedWorld) -> None:
    apply(eks, manifest())
    account(eks, "3", "second")
    (again,) = apply(eks, manifest())
    assert again["action"] == "unchanged"
    moved = manifest(metadata={"labels": {"stockyard.dev/cloud-account": "second"}})
    assert faults(eks, moved) == {LABEL: "cannot be changed after creation"}


def test_an_account_whose_verification_failed_is_refused_at_the_label(eks: ManagedWorld) -> None:
    store = eks.world.services.store
    first = store.get(CloudAccount, "1")
    assert first is not None
    store.commit(Replace(replace(first, verification="failed", verification_message="No.", version=first.version + 1)))
    assert "No." in faults(eks, manifest())[LABEL]


# --- checks and plans -------------------------------------------------------------------------------------------------


def test_checks_of_the_settings_and_the_catalogue_are_told_at_the_manifests_fields(eks: ManagedWorld) -> None:
    outside = manifest(networking={"subnetCidrs": ["10.0.0.0/20", "10.1.0.0/20"]})
    assert faults(eks, outside) == {"/0/spec/networking/subnetCidrs/1": "must lie in the VPC, which is 10.0.0.0/16"}
    assert "1.36, 1.35" in faults(eks, manifest(kubernetesVersion="1.20"))["/0/spec/kubernetesVersion"]
    elsewhere = manifest({**GPU, "zones": ["eu-west-1a"]})
    assert faults(eks, elsewhere) == {"/0/spec/nodePools/0/zones/0": "must be a zone of region us-east-1"}


def test_nothing_is_made_when_one_document_is_refused(eks: ManagedWorld) -> None:
    assert list(faults(eks, manifest(), manifest(name="east", kubernetesVersion="1.20"))) == [
        "/1/spec/kubernetesVersion"
    ]
    assert not eks.world.services.store.list(Cluster).items


def test_the_plan_names_what_it_makes_and_what_it_costs(eks: ManagedWorld) -> None:
    answer = plan(eks, manifest({**SYSTEM, "minNodeCount": 2}))
    assert {"kind": "cluster", "name": "west"} in answer["creates"]
    assert {"kind": "pool", "name": "system"} in answer["creates"]
    assert answer["price"]["hour"] == pytest.approx(0.6 + 2 * 0.2)
    assert not eks.world.services.store.list(Cluster).items


def test_a_version_near_its_end_is_warned_of_in_plan_and_answer(eks: ManagedWorld) -> None:
    document = manifest(kubernetesVersion="1.33")
    pointers = [remark["pointer"] for remark in plan(eks, document)["warnings"]]
    assert pointers == ["/0/spec/kubernetesVersion"]
    (result,) = apply(eks, document)
    assert "is in extended support" in result["warnings"][0]["detail"]


def test_clusters_are_counted_before_one_is_made(eks: ManagedWorld) -> None:
    set_quota(eks.world.services, "clusters", 1, 0)
    with pytest.raises(QuotaExceeded):
        read_desired(eks.world.services, [manifest(), manifest(name="east")], USER, admin=False)


def test_groups_are_counted(eks: ManagedWorld) -> None:
    set_quota(eks.world.services, "nodes_per_group", 1, 0)
    set_quota(eks.world.services, "nodes_per_eks_group", 7, 0)
    with pytest.raises(QuotaExceeded, match="nodes_per_eks_group") as refused:
        read_desired(eks.world.services, [manifest()], USER, admin=False)
    (fault,) = refused.value.errors
    assert fault.pointer == "/0/spec/nodePools/0/maxNodeCount"


def test_a_group_may_have_as_many_nodes_as_the_source_says(eks: ManagedWorld) -> None:
    services = eks.world.services
    apply(eks, manifest({**SYSTEM, "maxNodeCount": 1000}))
    assert view(services, "nodes_per_eks_group")["used"] == 1000
    assert view(services, "nodes_per_group")["used"] == 0
    cluster = find_cluster(services, "west")
    grown = replace(pools_of(services, cluster.id)[0], limits={"nodes": "5000"})
    own_pool = replace(grown, form="stockyard")
    assert [pool.limits["nodes"] for pool in within_quota(services, cluster, [grown, own_pool])] == ["1000", "100"]


def test_the_platform_has_no_clusters(installation: Installation) -> None:
    with pytest.raises(Forbidden, match="Clusters"):
        read_desired(installation.services(PLATFORM), [manifest()], USER, admin=True)


def test_a_driver_that_reads_no_other_products_manifests_shows_none(eks: ManagedWorld) -> None:
    cluster, _ = create_cluster(eks.world.services, eks.world.new_cluster("west"), USER)
    with pytest.raises(InvalidInput) as refused:
        published_manifest(replace(cluster, driver="cudo"))
    assert [fault.pointer for fault in refused.value.errors] == ["/form"]


def test_a_name_is_one_in_its_namespace(eks: ManagedWorld) -> None:
    """The cluster of a second namespace is called with it; each manifest finds its own again."""
    services = eks.world.services
    first, second = manifest(), manifest(metadata={"namespace": "team"})
    assert [apply(eks, each)[0]["name"] for each in (first, second)] == ["west", "team-west"]
    for document, name in ((first, "west"), (second, "team-west")):
        (result,) = apply(eks, document)
        assert (result["name"], result["action"]) == (name, "unchanged")
        cluster = find_cluster(services, name)
        printed = cluster_manifest(services, cluster)
        assert (printed["metadata"]["name"], printed["metadata"]["namespace"]) == (
            "west",
            document["metadata"]["namespace"],
        )
        assert plan(eks, printed)["changes"] == []
        assert apply(eks, printed)[0]["action"] == "unchanged"
    assert len({cluster_name(find_cluster(services, name)) for name in ("west", "team-west")}) == 2
    # Without a namespace it is `default`, and a third cluster.
    third = manifest()
    third["metadata"].pop("namespace")
    assert apply(eks, third)[0]["name"] == "default-west"
    taken_name = manifest(name="ops-west", metadata={"namespace": "x"})
    assert apply(eks, taken_name)[0]["name"] == "ops-west"
    assert "/0/metadata/name" in faults(eks, manifest(metadata={"namespace": "ops"}))
    long_name = "w" * 120
    apply(eks, manifest(name=long_name))
    assert "/0/metadata/name" in faults(eks, manifest(name=long_name, metadata={"namespace": "team-of-many"}))
