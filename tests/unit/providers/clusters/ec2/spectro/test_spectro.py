"""Clusters in the form of Spectro Cloud's create body: what becomes of each field, and what is refused by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.records import Cluster
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.ec2.configuration import DEFAULT_TYPES
from stockyard.providers.clusters.ec2.spectro import spectro

EXAMPLES = Path(__file__).parents[7] / "shared/examples/spectrocloud"
HEAD = {"apiVersion": "spectrocloud.com/v1", "kind": "SpectroAwsCluster"}


def pool(name: str, size: int = 1, *, machines: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    """A pool of the body."""
    return {
        "cloudConfig": {"instanceType": "m5.large", **(machines or {})},
        "poolConfig": {"name": name, "size": size, **config},
    }


def body(*pools: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A document with these pools."""
    return {
        **HEAD,
        "metadata": {"name": "lab", "labels": labels or {}},
        "spec": {
            "cloudAccountUid": "1",
            "cloudConfig": {"region": "eu-west-1", "sshKeyName": "ops"},
            "machinepoolconfig": list(pools),
            **spec,
        },
    }


def settings(*pools: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return spectro.read_cluster(body(*pools, **spec), (0,)).settings


def faults(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        spectro.read_cluster(document, (0,))
    return {fault.pointer: fault.detail for fault in refused.value.errors}


CONTROL = pool(
    "cp", 3, isControlPlane=True, useControlPlaneAsWorker=True, machines={"azs": ["eu-west-1c", "eu-west-1a"]}
)


def test_the_control_plane_is_a_group_and_workers_are_others() -> None:
    read = settings(CONTROL, pool("work", 2, minSize=1, maxSize=4, machines={"azs": ["eu-west-1a", "eu-west-1b"]}))
    control, work = read["autoscaler_node_groups"]
    assert (control["role"], control["min_size"], control["max_size"]) == ("control", 3, 3)
    assert (work["role"], work["min_size"], work["max_size"]) == ("worker", 1, 4)
    assert read["control_plane_workloads"] is True
    assert read["zones"] == ["eu-west-1c", "eu-west-1a", "eu-west-1b"]
    assert work["zones"] == ["eu-west-1a", "eu-west-1b"]


def test_a_body_without_pools_has_a_control_plane_and_a_worker() -> None:
    control, worker = settings()["autoscaler_node_groups"]
    assert [group["role"] for group in (control, worker)] == ["control", "worker"]
    assert all((group["min_size"], group["max_size"]) == (1, 1) for group in (control, worker))
    assert worker["instance_types"] == list(DEFAULT_TYPES)


@pytest.mark.parametrize(("text", "bid"), [("0.035", {"usd_hour": 0.035}), ("150%", {"percent": 150})])
def test_a_spot_price_is_money_or_percent(text: str, bid: dict[str, float]) -> None:
    machines = {"capacityType": "spot", "spotMarketOptions": {"maxPrice": text}, "rootDeviceSize": 60}
    (group,) = settings(pool("spot", machines=machines))["autoscaler_node_groups"]
    assert (group["max_price"], group["capacity_type"], group["root_disk_gib"]) == (bid, "spot", 60)


@pytest.mark.parametrize("text", ["0", "free", "-1", "0%", 3])
def test_a_spot_price_that_is_none_is_refused(text: Any) -> None:
    machines = {"capacityType": "spot", "spotMarketOptions": {"maxPrice": text}}
    assert list(faults(body(pool("spot", machines=machines)))) == [
        "/0/spec/machinepoolconfig/0/cloudConfig/spotMarketOptions/maxPrice"
    ]


def test_a_bid_on_demand_is_refused() -> None:
    machines = {"spotMarketOptions": {"maxPrice": "0.1"}}
    assert list(faults(body(pool("work", machines=machines)))) == [
        "/0/spec/machinepoolconfig/0/cloudConfig/spotMarketOptions"
    ]


def test_static_placement_names_subnets_of_each_zone() -> None:
    first = {"az": "eu-west-1a", "id": "subnet-08c7ad2affe1f1250,subnet-04dbeac9aba098d0e"}
    second = {"az": "eu-west-1c", "id": "subnet-039c3beb3da69172f"}
    cloud = {"region": "eu-west-1", "sshKeyName": "ops", "vpcId": "vpc-0a38a86f3bf3c6cf5"}
    read = settings(pool("cp", isControlPlane=True, machines={"subnets": [first, second]}), cloudConfig=cloud)
    assert read["vpc_id"] == "vpc-0a38a86f3bf3c6cf5"
    assert read["zones"] == ["eu-west-1a", "eu-west-1c"]
    assert read["subnets"] == [
        {"zone": "eu-west-1a", "public": "subnet-08c7ad2affe1f1250", "private": "subnet-04dbeac9aba098d0e"},
        {"zone": "eu-west-1c", "private": "subnet-039c3beb3da69172f"},
    ]


def test_what_a_document_says_is_what_a_request_may_say() -> None:
    named = {"azs": ["eu-west-1c", "eu-west-1a"], "rootDeviceSize": 62}
    control = pool("cp", 3, isControlPlane=True, updateStrategy={"type": "RollingUpdateScaleOut"}, machines=named)
    read = spectro.read_cluster(body(control, pool("work", machines={"azs": ["eu-west-1a"]})), (0,))
    normal = settings_for("aws", "k8s", "ec2", read.name, read.settings)
    assert normal["control_plane_size"] == 3
    assert normal["autoscaler_node_groups"][0]["zones"] == ["eu-west-1c", "eu-west-1a"]


def test_a_control_plane_grows_and_changes_its_type_by_its_document() -> None:
    first = spectro.read_cluster(body(pool("cp", isControlPlane=True)), (0,))
    before = settings_for("aws", "k8s", "ec2", first.name, first.settings)
    grown = spectro.read_cluster(body(pool("cp", 3, isControlPlane=True, machines={"instanceType": "m5.xlarge"})), (0,))
    after = settings_for("aws", "k8s", "ec2", first.name, spectro.wanted_settings(grown, before))
    assert (before["control_plane_size"], after["control_plane_size"]) == (1, 3)
    assert after["control_plane_instance_types"] == ["m5.xlarge"]
    again = settings_for("aws", "k8s", "ec2", first.name, spectro.wanted_settings(grown, after))
    assert again == after


def test_a_description_is_shown_as_palette_has_it_and_ranges_as_the_record_has_them() -> None:
    sent = body()
    sent["metadata"]["annotations"] = {"description": "old", "stockyard.dev/ssh-cidrs": "192.0.2.0/24", "note": "x"}
    document = spectro.read_cluster(sent, (0,))
    assert document.document["annotations"] == {"stockyard.dev/description": "old", "note": "x"}
    record = Cluster(
        id="clu_1",
        name="lab",
        description="new",
        cluster_type="k8s",
        provider="aws",
        cloud_account_id=1,
        client_id="lab-1",
        settings={**document.settings, "ssh_cidrs": []},
        status="ready",
        created_at="",
        updated_at="",
        document=dict(document.document),
    )
    assert spectro.cluster_manifest(record)["metadata"]["annotations"] == {"description": "new", "note": "x"}


def test_labels_are_tags_and_a_bare_one_has_no_value() -> None:
    document = spectro.read_cluster(body(labels={"owner": "bob", "dev": "spectro__tag"}), (0,))
    assert document.tags == {"owner": "bob", "dev": ""}


@pytest.mark.parametrize(
    ("strategy", "own_strategy"),
    [
        ({}, {"type": "add_first"}),
        ({"type": "RollingUpdateScaleIn"}, {"type": "remove_first"}),
        (
            {"type": "OverrideScaling", "maxSurge": 2, "maxUnavailable": "10%"},
            {"type": "custom", "max_surge": 2, "max_unavailable": "10%"},
        ),
    ],
)
def test_update_strategies(strategy: dict[str, Any], own_strategy: dict[str, Any]) -> None:
    (group,) = settings(pool("work", updateStrategy=strategy))["autoscaler_node_groups"]
    assert group["update_strategy"] == own_strategy


def test_a_strategy_of_ones_own_needs_both_counts_and_one_that_is_not_0() -> None:
    at = "/0/spec/machinepoolconfig/0/poolConfig/updateStrategy"
    assert list(faults(body(pool("w", updateStrategy={"type": "OverrideScaling", "maxSurge": 1})))) == [
        f"{at}/maxUnavailable"
    ]
    none = {"type": "OverrideScaling", "maxSurge": 0, "maxUnavailable": "0%"}
    assert list(faults(body(pool("w", updateStrategy=none)))) == [f"{at}/maxUnavailable"]


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (body(policies={"scanPolicy": {}, "backupPolicy": {"schedule": "@daily"}}), "/0/spec/policies"),
        (body(clusterTemplate={"uid": "x"}), "/0/spec/clusterTemplate"),
        (body(clusterType="PureAttach"), "/0/spec/clusterType"),
        (body(clusterConfig={"location": {"countryCode": "DE"}}), "/0/spec/clusterConfig/location"),
        (
            body(pool("w", machines={"hostResourceGroupArn": "arn:x"})),
            "/0/spec/machinepoolconfig/0/cloudConfig/hostResourceGroupArn",
        ),
        (
            body(pool("w", machines={"capacityType": "host-resource-group"})),
            "/0/spec/machinepoolconfig/0/cloudConfig/capacityType",
        ),
        (body(pool("w", nodeRepaveInterval=60)), "/0/spec/machinepoolconfig/0/poolConfig/nodeRepaveInterval"),
        (body(pool("w", skipK8sUpgrade="enabled")), "/0/spec/machinepoolconfig/0/poolConfig/skipK8sUpgrade"),
        (body(pool("cp", 2, isControlPlane=True)), "/0/spec/machinepoolconfig/0/poolConfig/size"),
        (body(pool("cp", isControlPlane=True, maxSize=3)), "/0/spec/machinepoolconfig/0/poolConfig/maxSize"),
        (body(pool("w"), pool("w")), "/0/spec/machinepoolconfig/1/poolConfig/name"),
        (body(CONTROL, pool("cp2", isControlPlane=True)), "/0/spec/machinepoolconfig/1/poolConfig/isControlPlane"),
        (body(pool("w", colour="red")), "/0/spec/machinepoolconfig/0/poolConfig/colour"),
    ],
)
def test_what_is_not_supported_is_refused_at_its_field(document: dict[str, Any], pointer: str) -> None:
    assert list(faults(document)) == [pointer]


def test_empty_values_ask_for_nothing() -> None:
    machines = {"subnets": [], "additionalSecurityGroups": [], "hostResourceGroupArn": "", "capacityType": ""}
    document = body(pool("w", nodeRepaveInterval=0, skipK8sUpgrade="disabled", additionalTags={}, machines=machines))
    document["spec"] |= {"policies": None, "clusterTemplate": {}}
    assert spectro.read_cluster(document, (0,)).settings["autoscaler_node_groups"][0]["name"] == "w"


def test_a_cluster_is_shown_as_the_document_that_it_came_as() -> None:
    machines = {"azs": ["eu-west-1a"], "capacityType": "spot", "spotMarketOptions": {"maxPrice": "0.1"}, "subnets": []}
    work = pool(
        "work",
        2,
        minSize=2,
        maxSize=4,
        taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}],
        additionalLabels={"team": "x"},
        updateStrategy={"type": "OverrideScaling", "maxSurge": "1", "maxUnavailable": "0"},
        machines=machines,
    )
    sent = body(CONTROL, work, labels={"owner": "bob", "dev": "spectro__tag"})
    document = spectro.read_cluster(sent, (0,))
    cluster = Cluster(
        id="cl_1",
        name=document.name,
        description=document.description,
        cluster_type="k8s",
        provider="aws",
        cloud_account_id=1,
        client_id="lab-1",
        settings=document.settings,
        status="ready",
        created_at="2026-11-25T00:00:00Z",
        updated_at="2026-11-25T00:00:00Z",
        tags=dict(document.tags or {}),
        document=document.document,
    )
    manifest = spectro.cluster_manifest(cluster)
    again = spectro.read_cluster(manifest, (0,))
    assert (again.settings, again.tags, again.name) == (document.settings, document.tags, document.name)
    assert manifest["metadata"]["labels"] == sent["metadata"]["labels"]


@pytest.mark.parametrize(
    ("pointer", "in_document"),
    [
        ("/name", "/metadata/name"),
        ("/settings/vpc_id", "/spec/cloudConfig/vpcId"),
        (
            "/settings/autoscaler_node_groups/1/max_price/percent",
            "/spec/machinepoolconfig/1/cloudConfig/spotMarketOptions/maxPrice/percent",
        ),
        ("/settings/autoscaler_node_groups/1/max_size", "/spec/machinepoolconfig/1/poolConfig/maxSize"),
        ("/settings/zones/0", "/spec/machinepoolconfig"),
        ("/kubernetes_version", "/spec"),
        ("/profiles/0/name", "/spec/profiles/0/uid"),
        ("/profiles/1/pack_values/server", "/spec/profiles/1/packValues/server"),
        ("/packs/base~1net/tag", "/spec/profiles/packs/base~1net/tag"),
    ],
)
def test_faults_are_told_at_the_fields_of_the_document(pointer: str, in_document: str) -> None:
    assert spectro.path_of(pointer) == in_document


@pytest.mark.parametrize("name", ["e2e-aws", "e2e-aws-spot", "static-placement"])
def test_published_bodies_are_read(name: str) -> None:
    path = EXAMPLES / f"{name}.json"
    if not path.exists():
        pytest.skip("the published examples are not beside this project")
    values = {
        "<region>": "eu-west-1",
        "<key>": "ops",
        "<az>": "eu-west-1a",
        "<subnet>": "subnet-0123456789abcdef0",
        "<cluster-name>": "lab",
        "<cloud-account-uid>": "1",
        "<profile-uid>": "base",
    }
    text = path.read_text(encoding="utf-8")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    document = {**HEAD, **json.loads(text)}
    if "policies" in document["spec"]:
        assert list(faults(document)) == ["/0/spec/policies"]
        del document["spec"]["policies"]
    pools = document["spec"]["machinepoolconfig"]
    read = spectro.read_cluster(document, (0,)).settings
    assert [group["name"] for group in read["autoscaler_node_groups"]] == [p["poolConfig"]["name"] for p in pools]
