"""EKSCluster as Modelplane publishes it: every field with its bounds and default, and the way to settings and back."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from stockyard.domain.models.clusters.clusters import settings_for
from stockyard.domain.models.manifests.read_manifests import read_manifests
from stockyard.domain.records import Cluster
from stockyard.errors import InvalidInput
from stockyard.providers.clusters.eks import manifest as form

EXAMPLES = Path(__file__).resolve().parents[6] / "shared" / "examples" / "modelplane"
SPEC: dict[str, Any] = {
    "region": "us-west-2",
    "nodePools": [
        {
            "name": "gpu",
            "role": "GPU",
            "instanceType": "g6.xlarge",
            "zones": ["us-west-2a"],
            "gpu": {"acceleratorType": "nvidia-l4"},
        }
    ],
}
ABSENT = object()


def manifest(spec: Any = SPEC, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "EKSCluster",
        "metadata": {"name": "west", "namespace": "platform", **metadata},
        "spec": spec,
    }


def changed(field: str, value: Any) -> dict[str, Any]:
    """The manifest with another value at a place of ``spec``; below ``pool`` of its pool."""
    spec = deepcopy(SPEC)
    *parents, last = field.removeprefix("/").replace("pool", "nodePools/0").split("/")
    target: Any = spec
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target.setdefault(part, {})
    if value is ABSENT:
        del target[last]
    else:
        target[last] = value
    return manifest(spec)


def faults(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_manifests([document])
    return {fault.pointer: fault.detail for fault in refused.value.errors}


def cluster_of(document: dict[str, Any]) -> Cluster:
    """The record that the manifest becomes."""
    (read,) = read_manifests([document])
    assert read.__class__.__name__ == "ClusterDocument"
    settings = settings_for("aws", "k8s", "eks", read.name, form.wanted_settings(read, None))
    return Cluster(
        "clu_1", read.name, read.description, "k8s", "aws", 1, "west-0", "preparing", settings, "", "",
        kubernetes_version=read.kubernetes_version or "1.36", driver="eks", document=read.document,
    )  # fmt: skip


def manifest_of(document: dict[str, Any]) -> dict[str, Any]:
    return form.cluster_manifest(cluster_of(document))


def normal(document: dict[str, Any]) -> dict[str, Any]:
    """The document after the normalization that docs/eks.md describes."""
    normalized = deepcopy(document)
    for name in ("uid", "creationTimestamp", "generation", "resourceVersion"):
        normalized["metadata"].pop(name, None)
    normalized["metadata"].setdefault("namespace", "default")
    spec = normalized["spec"]
    spec.setdefault("kubernetesVersion", "1.36")
    for pool in spec["nodePools"]:
        for name, value in {
            "diskSizeGb": 100, "nodeCount": 1, "minNodeCount": 0, "maxNodeCount": 8, "fabric": "None",
        }.items():  # fmt: skip
            pool.setdefault(name, value)
    return {name: normalized[name] for name in ("apiVersion", "kind", "metadata", "spec")}


TABLE: list[tuple[str, Any, str, str]] = [
    ("/region", ABSENT, "/region", "this field is required"),
    ("/region", "", "/region", "an AWS region"),
    ("/region", "x" * 33, "/region", "must have at most 32 characters"),
    ("/kubernetesVersion", "", "/kubernetesVersion", "must have at least 1 character"),
    ("/kubernetesVersion", "1" * 17, "/kubernetesVersion", "must have at most 16 characters"),
    ("/kubernetesVersion", 1.36, "/kubernetesVersion", "must be a string"),
    ("/credentials", {"type": "Secret"}, "/credentials/type", "'ProviderConfig' or 'ClusterProviderConfig'"),
    ("/credentials", {"name": ""}, "/credentials/name", "must have at least 1 character"),
    ("/credentials", {"name": "x" * 254}, "/credentials/name", "must have at most 253 characters"),
    ("/networking/vpcCidr", "10.0.0.0/16/000000000", "/networking/vpcCidr", "must have at most 18 characters"),
    ("/networking/vpcCidr", "ten", "/networking/vpcCidr", "must be an IPv4 range"),
    ("/networking/subnetCidrs", ["10.0.0.0/20"], "/networking/subnetCidrs", "must have at least 2 entries"),
    (
        "/networking/subnetCidrs",
        [f"10.0.{n}.0/24" for n in range(7)],
        "/networking/subnetCidrs",
        "must have at most 6 entries",
    ),
    (
        "/networking/subnetCidrs",
        ["10.0.0.0/20", "10.0.16.0/20/00000000"],
        "/networking/subnetCidrs/1",
        "must have at most 18 characters",
    ),
    ("/nodePools", ABSENT, "/nodePools", "this field is required"),
    ("/nodePools", [], "/nodePools", "must have at least 1 entry"),
    (
        "/nodePools",
        [{"name": f"p{n}", "role": "System", "instanceType": "m6i.large"} for n in range(9)],
        "/nodePools",
        "must have at most 8 entries",
    ),
    (
        "/nodePools",
        [{"name": "p", "role": "System", "instanceType": "m6i.large"}] * 2,
        "/nodePools/1/name",
        "another pool has this name",
    ),
    ("/pool/name", ABSENT, "/nodePools/0/name", "this field is required"),
    ("/pool/name", "", "/nodePools/0/name", "must have at least 1 character"),
    ("/pool/name", "x" * 41, "/nodePools/0/name", "must have at most 40 characters"),
    ("/pool/role", ABSENT, "/nodePools/0/role", "this field is required"),
    ("/pool/role", "gpu", "/nodePools/0/role", "'System' or 'GPU'"),
    ("/pool/instanceType", ABSENT, "/nodePools/0/instanceType", "this field is required"),
    ("/pool/instanceType", "", "/nodePools/0/instanceType", "an EC2 instance type"),
    ("/pool/instanceType", "x" * 64, "/nodePools/0/instanceType", "must have at most 63 characters"),
    ("/pool/diskSizeGb", 9, "/nodePools/0/diskSizeGb", "at least 10"),
    ("/pool/diskSizeGb", 65_537, "/nodePools/0/diskSizeGb", "at most 65536"),
    ("/pool/diskSizeGb", "100", "/nodePools/0/diskSizeGb", "must be a whole number"),
    ("/pool/nodeCount", -1, "/nodePools/0/nodeCount", "at least 0"),
    ("/pool/nodeCount", 1001, "/nodePools/0/nodeCount", "at most 1000"),
    ("/pool/minNodeCount", 1001, "/nodePools/0/minNodeCount", "at most 1000"),
    ("/pool/maxNodeCount", 1001, "/nodePools/0/maxNodeCount", "at most 1000"),
    ("/pool/minNodeCount", 2, "/nodePools/0/minNodeCount", "must not be greater than nodeCount"),
    ("/pool/nodeCount", 9, "/nodePools/0/maxNodeCount", "must not be less than nodeCount"),
    ("/pool/zones", ABSENT, "/nodePools/0/zones", "zones is required when role is GPU."),
    ("/pool/zones", [], "/nodePools/0/zones", "must have at least 1 entry"),
    ("/pool/zones", [f"us-west-2{c}" for c in "abcdefghi"], "/nodePools/0/zones", "must have at most 8 entries"),
    ("/pool/zones", ["x" * 64], "/nodePools/0/zones/0", "must have at most 63 characters"),
    ("/pool/gpu", ABSENT, "/nodePools/0/gpu", "gpu is required when role is GPU."),
    ("/pool/gpu", {}, "/nodePools/0/gpu/acceleratorType", "this field is required"),
    ("/pool/gpu/acceleratorType", "", "/nodePools/0/gpu/acceleratorType", "must have at least 1 character"),
    ("/pool/gpu/acceleratorType", "x" * 64, "/nodePools/0/gpu/acceleratorType", "must have at most 63 characters"),
    ("/pool/fabric", "Efa", "/nodePools/0/fabric", "'None' or 'EFA'"),
    ("/pool/capacityBlock", {}, "/nodePools/0/capacityBlock/capacityReservationId", "this field is required"),
    *(
        (
            "/pool/capacityBlock/capacityReservationId",
            text,
            "/nodePools/0/capacityBlock/capacityReservationId",
            words,
        )
        for text, words in (
            ("cr-", "must have at least 4 characters"),
            ("cr-" + "0" * 62, "must have at most 64 characters"),
            ("cr-xyz", "the id of a capacity reservation"),
            ("CR-0a", "the id of a capacity reservation"),
        )
    ),
    ("/endpointAccess", "Private", "/endpointAccess", "unknown field"),
    ("/pool/labels", {}, "/nodePools/0/labels", "unknown field"),
]


@pytest.mark.parametrize(("field", "value", "pointer", "words"), TABLE)
def test_every_rule_of_the_published_table(field: str, value: Any, pointer: str, words: str) -> None:
    refused = faults(changed(field, value))
    assert list(refused) == ["/0/spec" + pointer]
    assert words in refused["/0/spec" + pointer]


GOOD: list[tuple[str, Any]] = [
    ("/kubernetesVersion", "1" * 16),
    ("/credentials", {}),
    ("/networking", {}),
    ("/pool/name", "x" * 40),
    ("/pool/diskSizeGb", 10),
    ("/pool/diskSizeGb", 65_536),
    ("/pool/maxNodeCount", 1000),
    ("/pool/nodeCount", 0),
    ("/pool/zones", [f"us-west-2{c}" for c in "abcdefgh"]),
    ("/pool/gpu/acceleratorType", "x" * 63),
    ("/pool/fabric", "EFA"),
    ("/pool/capacityBlock", {"capacityReservationId": "cr-" + "0" * 61}),
    ("/pool/capacityBlock", {"capacityReservationId": "cr-0"}),
]


@pytest.mark.parametrize(("field", "value"), GOOD)
def test_the_bounds_themselves_are_good(field: str, value: Any) -> None:
    assert len(read_manifests([changed(field, value)])) == 1


def test_the_two_rules_about_gpus_have_the_published_words() -> None:
    pool = {"name": "g", "role": "GPU", "instanceType": "g6.xlarge"}
    assert faults(manifest({**SPEC, "nodePools": [pool]})) == {
        "/0/spec/nodePools/0/gpu": "gpu is required when role is GPU.",
        "/0/spec/nodePools/0/zones": "zones is required when role is GPU.",
    }


@pytest.mark.parametrize(("name", "good"), [("a" * 128, True), ("a" * 129, False), ("West", False), ("a.b", False)])
def test_names_are_lower_case_and_fit_a_cluster(name: str, good: bool) -> None:
    if good:
        assert manifest_of(manifest(name=name))["metadata"]["name"] == name
    else:
        assert list(faults(manifest(name=name))) == ["/0/metadata/name"]


def test_defaults_of_the_table_are_filled_in() -> None:
    settings = cluster_of(manifest()).settings
    assert settings["vpc_cidr"] == "10.0.0.0/16"
    assert settings["subnet_cidrs"] == ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"]
    assert (settings["namespace"], settings["support"]) == ("platform", "extended")
    gpu, system = settings["node_groups"]
    assert (system["name"], system["builtin"]) == ("system", True)
    assert {name: gpu[name] for name in ("disk_gib", "count", "min_size", "max_size", "fabric")} == {
        "disk_gib": 100, "count": 1, "min_size": 0, "max_size": 8, "fabric": "none",
    }  # fmt: skip


def test_a_manifest_is_shown_as_it_came_with_its_defaults() -> None:
    document = manifest(
        {
            **SPEC,
            "credentials": {"type": "ProviderConfig", "name": "main"},
            "networking": {"vpcCidr": "10.8.0.0/16", "subnetCidrs": ["10.8.0.0/20", "10.8.16.0/20"]},
            "nodePools": [
                {"name": "system", "role": "System", "instanceType": "m6i.large", "diskSizeGb": 50},
                {
                    **SPEC["nodePools"][0],
                    "fabric": "EFA",
                    "capacityBlock": {"capacityReservationId": "cr-0a"},
                    "nodeCount": 3,
                    "minNodeCount": 2,
                },
            ],
        },
        labels={"team": "a", "stockyard.dev/cloud-account": "1"},
        annotations={"stockyard.dev/description": "Ours."},
        uid="0-1",
    )
    answer = manifest_of(document)
    assert {name: value for name, value in answer.items() if name != "status"} == normal(document)
    assert cluster_of(document).description == "Ours."
    assert manifest_of({**answer, "status": {"anything": 1}}) == answer


def test_status_names_the_secret_and_the_class_of_shared_volumes_at_once() -> None:
    assert manifest_of(manifest(name="test-cluster"))["status"] == {
        "secrets": [{"type": "Kubeconfig", "name": "test-cluster-kubeconfig-55b57", "key": "kubeconfig"}],
        "cache": {"storageClassName": "modelplane-rwx-efs"},
    }


def test_without_a_namespace_it_is_the_default_one() -> None:
    document = manifest()
    del document["metadata"]["namespace"]
    cluster = cluster_of(document)
    assert cluster.settings["namespace"] == "default"
    assert cluster.description == "EKSCluster default/west"
    assert form.cluster_manifest(cluster)["metadata"] == {"name": "west", "namespace": "default"}


def test_networking_is_shown_where_it_was_given_or_is_not_the_usual() -> None:
    assert "networking" not in manifest_of(manifest())["spec"]
    usual = {"vpcCidr": "10.0.0.0/16", "subnetCidrs": ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"]}
    assert manifest_of(changed("/networking", {}))["spec"]["networking"] == usual
    own_range = manifest_of(changed("/networking/vpcCidr", "10.9.0.0/16"))["spec"]["networking"]
    assert own_range["subnetCidrs"] == ["10.9.0.0/20", "10.9.16.0/20", "10.9.32.0/20"]


def test_what_a_manifest_cannot_say_stays_as_it_is() -> None:
    current = cluster_of(manifest()).settings
    gpu, _ = current["node_groups"]
    gpu = {**gpu, "labels": {"a": "b"}, "taints": [{"key": "c", "value": "", "effect": "NoExecute"}]}
    current = {**current, "support": "standard", "public_access_cidrs": ["203.0.113.0/24"], "node_groups": [gpu]}
    (document,) = read_manifests([changed("/pool/maxNodeCount", 4)])
    settings = form.wanted_settings(document, current)
    assert settings == {**current, "node_groups": [{**gpu, "max_size": 4}]}


@pytest.mark.parametrize(
    ("request_pointer", "manifest_path"),
    [
        ("/settings/node_groups/2/instance_type", "/spec/nodePools/2/instanceType"),
        ("/settings/node_groups/0/capacity_reservation_id", "/spec/nodePools/0/capacityBlock/capacityReservationId"),
        ("/settings/node_groups/0/zones/1", "/spec/nodePools/0/zones/1"),
        ("/settings/node_groups/1", "/spec/nodePools/1"),
        ("/settings/node_groups", "/spec/nodePools"),
        ("/settings/subnet_cidrs/1", "/spec/networking/subnetCidrs/1"),
        ("/settings/region_name", "/spec/region"),
        ("/kubernetes_version", "/spec/kubernetesVersion"),
        ("/name", "/metadata/name"),
        ("/cloud_account_id", "/metadata/labels/stockyard.dev~1cloud-account"),
        ("/settings/shared_storage", "/spec"),
        ("/keep_failed", "/spec"),
        ("", "/spec"),
    ],
)
def test_pointers_of_a_request_lead_into_the_manifest(request_pointer: str, manifest_path: str) -> None:
    assert form.path_of(request_pointer) == manifest_path


def published() -> list[Any]:
    if not EXAMPLES.is_dir():
        return [pytest.param({}, {}, marks=pytest.mark.skip(reason="the published examples are not here"))]
    documents = [(yaml.safe_load(path.read_text()), None) for path in sorted(EXAMPLES.glob("*.yaml"))]
    for path in sorted((EXAMPLES / "composed").glob("*.json")):
        case = json.loads(path.read_text())
        documents.append((case["input"], case["input_defaulted"]))
    return documents


@pytest.mark.parametrize(("document", "defaulted"), published())
def test_published_examples_are_shown_as_their_definition_would_default_them(document: Any, defaulted: Any) -> None:
    answer = manifest_of(document)
    expected = normal(document)
    assert {name: answer[name] for name in expected} == expected
    if defaulted is not None:
        assert answer["spec"] == defaulted["spec"]


def test_a_description_is_as_long_as_any_clusters() -> None:
    longest = manifest(annotations={"stockyard.dev/description": "x" * 1024})
    assert len(cluster_of(longest).description) == 1024
    refused = faults(manifest(annotations={"stockyard.dev/description": "x" * 1025}))
    assert refused == {"/0/metadata/annotations/stockyard.dev~1description": "must have at most 1024 characters"}
