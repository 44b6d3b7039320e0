"""Manifests of every form: read, shown again, and refused with pointers below the number of their document."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.manifests.manifest_list import Manifests
from stockyard.domain.models.manifests.read_manifests import read_manifests
from stockyard.domain.nodes.manifests import (
    CLUSTER,
    NAMESPACE,
    PROVIDER,
    ProviderDocument,
    claim_manifest,
    provider_manifest,
)
from stockyard.domain.nodes.records import NewClaim, NodeClaim, NodeProvider
from stockyard.domain.pools.manifests import PoolsDocument, pool_manifest
from stockyard.errors import InvalidInput

VC, KA, OWN = "management.loft.sh/v1", "karpenter.sh/v1", "stockyard/v1"
TYPES = [{"name": "a", "resources": {"cpu": "2", "memory": "4Gi"}}]


def manifest(version: str, kind: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "one", **metadata}, "spec": spec}


def provider_of(document: ProviderDocument) -> NodeProvider:
    values = {field.name: getattr(document, field.name) for field in fields(document) if field.name != "block"}
    return NodeProvider(id="npr_1", created_at="t", updated_at="t", spec={document.kind: document.block}, **values)


def claim_of(request: NewClaim) -> NodeClaim:
    names = {"name": request.name, "type_ref": request.type_ref}
    return NodeClaim(id="ncl_1", created_at="t", updated_at="t", **names, **request.spec())


def normal_form(document_given: dict[str, Any]) -> dict[str, Any]:
    (document,) = read_manifests([document_given])
    if isinstance(document, ProviderDocument):
        return provider_manifest(provider_of(document))
    if isinstance(document, PoolsDocument):
        return pool_manifest(document.pools[0], document.cluster_ref)
    manifest = claim_manifest(claim_of(document))
    manifest.pop("status", None)  # what is, not what was sent
    return manifest


ROUND = {
    "a provider of ours": manifest(
        OWN,
        "NodeProvider",
        {
            "displayName": "Simulated",
            "properties": {"team": "a"},
            "pricePerCostUnit": 0.001,
            "simulated": {"launchSeconds": 1.5, "joinSeconds": "never", "nodeTypes": TYPES},
        },
        labels={"a": "b"},
        annotations={"c": "d e"},
    ),
    "a published provider": manifest(
        VC, "NodeProvider", {"metal3": {"clusterRef": {"cluster": "c", "namespace": "n"}}}
    ),
    "a published provider with a price": manifest(
        OWN, "NodeProvider", {"pricePerCostUnit": 2, "bcm": {"secretRef": {"name": "s"}, "endpoint": "https://b"}}
    ),
    "a claim of vCluster": manifest(
        VC,
        "NodeClaim",
        {
            "displayName": "One",
            "owner": {"user": "ann"},
            "access": [{"verbs": ["get"]}],
            "providerRef": "p",
            "typeRef": "p.a",
            "environmentRef": "e",
            "properties": {"region": "r"},
            "vClusterRef": "v",
            "controlPlane": True,
            "taints": [{"key": "k", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
            "kubeletArgs": {"max-pods": "50"},
            "profileRef": "f",
            "desiredCapacity": {"cpu": "120m", "nvidia.com/gpu": "1"},
            "requirements": [
                {"key": "a", "operator": "In", "values": ["b"], "minValues": 1},
                {"key": "c", "operator": "NotExists"},
            ],
            "power": {"state": "Off"},
        },
        namespace="p-default",
        labels={"a": "b"},
    ),
    "a claim of Karpenter": manifest(
        KA,
        "NodeClaim",
        {
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
            "resources": {"requests": {"cpu": "2"}},
            "taints": [{"key": "k", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "s", "effect": "NoSchedule"}],
            "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
            "terminationGracePeriod": "1h30m",
            "expireAfter": "Never",
        },
        labels={CLUSTER: "demo", PROVIDER: "p"},
    ),
    "a claim of ours": manifest(
        OWN,
        "NodeClaim",
        {
            "cluster": "demo",
            "provider": "p",
            "type": "a",
            "requirements": [{"key": "gen", "operator": "Gt", "values": ["5"]}],
            "resources": {"cpu": "2"},
            "properties": {"a": "b"},
            "taints": [{"key": "k", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "s", "effect": "NoSchedule"}],
            "kubeletArgs": {"v": "2"},
            "power": "Off",
            "priority": -5,
            "displayName": "One",
        },
    ),
    "a NodePool": manifest(
        KA,
        "NodePool",
        {
            "template": {
                "metadata": {"labels": {"team": "a", PROVIDER: "p"}, "annotations": {"c": "d e"}},
                "spec": {
                    "requirements": [{"key": "a", "operator": "In", "values": ["b", "c"], "minValues": 2}],
                    "taints": [{"key": "k", "effect": "NoSchedule"}],
                    "startupTaints": [{"key": "s", "effect": "NoSchedule"}],
                    "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
                    "terminationGracePeriod": "1h30m",
                    "expireAfter": "Never",
                },
            },
            "limits": {"cpu": "100", "nodes": "10"},
            "weight": 3,
            "disruption": {
                "consolidateAfter": "1m",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "20%", "reasons": ["Empty"], "schedule": "@daily", "duration": "10m"}],
            },
        },
        labels={CLUSTER: "demo"},
    ),
    "a pool of ours": manifest(
        OWN,
        "Pool",
        {
            "cluster": "demo",
            "kind": "dynamic",
            "provider": "p",
            "requirements": [{"key": "gen", "operator": "Exists", "minValues": 2}],
            "properties": {"a": "b"},
            "startupTaints": [{"key": "s", "effect": "NoSchedule"}],
            "labels": {"team": "a"},
            "kubeletArgs": {"v": "2"},
            "floor": 1,
            "headroom": {"cpu": "2"},
            "limits": {"usd_hour": "3"},
            "weight": 7,
            "expireAfter": "1h",
            "terminationGracePeriod": "5m",
            "disruption": {
                "consolidateAfter": "1m",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "20%", "reasons": ["Empty"], "schedule": "@daily", "duration": "10m"}],
            },
        },
    ),
}


@pytest.mark.parametrize("name", ROUND)
def test_what_is_read_is_shown_as_it_came(name):
    assert normal_form(ROUND[name]) == ROUND[name]


def test_what_is_normal():
    document = manifest(
        VC,
        "NodeClaim",
        {
            "desiredCapacity": {"cpu": 2, "memory": 1.5},
            "requirements": [{"key": "a", "values": ["b"]}],
            "taints": None,
            "power": {"state": "On"},
            "owner": {"user": None, "team": "t"},
        },
        uid="u",
        resourceVersion="7",
        creationTimestamp=None,
        managedFields=[{}],
        finalizers=["f"],
    )
    assert normal_form({**document, "status": {"phase": "Pending"}}) == manifest(
        VC,
        "NodeClaim",
        {
            "desiredCapacity": {"cpu": "2", "memory": "1.5"},
            "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
            "owner": {"team": "t"},
            "controlPlane": False,
        },
    )
    karpenter = manifest(KA, "NodeClaim", {"requirements": [], "nodeClassRef": {"group": "", "kind": "K", "name": "n"}})
    assert normal_form(karpenter)["spec"]["expireAfter"] == "720h"
    own = manifest(OWN, "NodeProvider", {"kubeVirt": {"clusterRef": {"cluster": "c", "namespace": "n"}}})
    assert (normal_form(own)["apiVersion"], normal_form(own)["spec"]["kubeVirt"]["namespaceStrategy"]) == (
        VC,
        "Provider",
    )


def test_nulls_are_not_there_but_in_what_is_handed_on():
    template = {"a": None, "b": [{"c": None}]}
    block = {"clusterRef": {"cluster": "c", "namespace": "n"}, "virtualMachineTemplate": template, "nodeTypes": None}
    assert normal_form(manifest(VC, "NodeProvider", {"kubeVirt": block, "properties": None}))["spec"] == {
        "kubeVirt": {
            "clusterRef": block["clusterRef"],
            "virtualMachineTemplate": template,
            "namespaceStrategy": "Provider",
        }
    }


@pytest.mark.parametrize("kind", ["NodeProvider", "NodeClaim"])
@pytest.mark.parametrize("version", [VC, OWN])
@pytest.mark.parametrize("spec", [True, 1, "x", [], [1]])
def test_a_specification_is_an_object(spec, version, kind):
    with pytest.raises(InvalidInput) as refused:
        read_manifests([{"apiVersion": version, "kind": kind, "metadata": {"name": "p"}, "spec": spec}])
    assert [problem.pointer for problem in refused.value.errors] == ["/0/spec"]


@pytest.mark.parametrize("field", ["namespace", "labels", "annotations"])
def test_a_pool_of_ours_has_a_name_alone(field):
    metadata = {field: "x" if field == "namespace" else {"a": "b"}}
    with pytest.raises(InvalidInput) as refused:
        read_manifests([manifest(OWN, "Pool", {"cluster": "demo"}, **metadata)])
    assert [problem.pointer for problem in refused.value.errors] == [f"/0/metadata/{field}"]


def test_a_pool_of_ours_is_named_by_its_metadata():
    with pytest.raises(InvalidInput) as refused:
        read_manifests([manifest(OWN, "Pool", {"cluster": "demo", "name": "two"})])
    assert [problem.pointer for problem in refused.value.errors] == ["/0/spec/name"]


def test_a_namespace_is_a_label():
    (document,) = read_manifests([manifest(VC, "NodeClaim", {}, namespace="p-x", labels={"a": "b"})])
    assert document.labels == {"a": "b", NAMESPACE: "p-x"}


def test_references_of_foreign_claims_may_come_later():
    kinds = {name: document for name, document_given in ROUND.items() for document in read_manifests([document_given])}
    strict = {name: document.strict for name, document in kinds.items() if isinstance(document, NewClaim)}
    assert strict == {"a claim of vCluster": False, "a claim of Karpenter": False, "a claim of ours": True}
    karpenter = kinds["a claim of Karpenter"]
    assert isinstance(karpenter, NewClaim)
    assert (karpenter.cluster_ref, karpenter.provider_ref) == ("demo", "p")


SIM: dict[str, Any] = {"simulated": {}}


def required(**requirement: Any) -> dict[str, Any]:
    return manifest(VC, "NodeClaim", {"requirements": [{"key": "a", **requirement}]})


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        ({}, {"/0/apiVersion"}),
        ({"apiVersion": VC}, {"/0/kind"}),
        ({"apiVersion": VC, "kind": 1}, {"/0/kind"}),
        ({"apiVersion": [], "kind": "NodeClaim"}, {"/0/apiVersion"}),
        (manifest(VC, "NodeType", {}), {"/0/kind"}),
        (manifest("v2", "NodeClaim", {}), {"/0/kind"}),
        (manifest(VC, "NodeProvider", {}), {"/0/spec"}),
        (manifest(OWN, "NodeProvider", {**SIM, "ec2": {"cloudAccount": 1}}), {"/0/spec"}),
        (manifest(VC, "NodeProvider", SIM), {"/0/spec/simulated"}),
        (manifest(VC, "NodeProvider", {"pricePerCostUnit": 1}), {"/0/spec/pricePerCostUnit"}),
        (manifest(OWN, "NodeProvider", {"nico": {}}), {"/0/spec/nico"}),
        (manifest(OWN, "NodeProvider", {"simulated": {"nodeTypes": [{}]}}), {"/0/spec/simulated/nodeTypes/0/name"}),
        (manifest(OWN, "NodeProvider", SIM, name="a.b"), {"/0/metadata/name"}),
        (
            manifest(OWN, "NodeProvider", SIM, namespace="a", labels={NAMESPACE: "b"}),
            {"/0/metadata/labels/stockyard.dev~1namespace"},
        ),
        (manifest(OWN, "NodeClaim", {}), {"/0/spec/cluster"}),
        (manifest(OWN, "NodeClaim", {"cluster": "c", "priority": 101}), {"/0/spec/priority"}),
        (manifest(VC, "NodeClaim", {"power": {"state": "Reboot"}}), {"/0/spec/power/state"}),
        (required(operator="Near"), {"/0/spec/requirements/0/operator"}),
        (required(), {"/0/spec/requirements/0"}),
        (required(operator="Gt", values=["x"]), {"/0/spec/requirements/0"}),
        (manifest(VC, "NodeClaim", {"taints": [{"key": "a", "effect": "Never"}]}), {"/0/spec/taints/0/effect"}),
        (manifest(VC, "NodeClaim", {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}), {"/0/spec/taints/1"}),
        (manifest(VC, "NodeClaim", {"desiredCapacity": {"cpu": "-1"}}), {"/0/spec/desiredCapacity/cpu"}),
        (manifest(VC, "NodeClaim", {"colour": "red"}), {"/0/spec/colour"}),
        (manifest(KA, "NodeClaim", {}), {"/0/spec/requirements"}),
        ({**manifest(VC, "NodeClaim", {}), "data": {}}, {"/0/data"}),
    ],
)  # fmt: skip
def test_what_is_refused(document, pointers):
    with pytest.raises(InvalidInput) as refused:
        read_manifests([document])
    assert {problem.pointer for problem in refused.value.errors} >= pointers
    assert all(any(problem.pointer.startswith(pointer) for pointer in pointers) for problem in refused.value.errors)


def test_an_unknown_kind_is_refused_with_those_that_are_known():
    with pytest.raises(InvalidInput, match="EKSCluster of infrastructure"):
        read_manifests([manifest("infrastructure.modelplane.ai/v1alpha1", "GKECluster", {})])


def test_a_cluster_may_come_once():
    pools = [{"name": "a", "role": "System", "instanceType": "m6i.large"}]
    cluster = manifest(
        "infrastructure.modelplane.ai/v1alpha1", "EKSCluster", {"region": "us-east-1", "nodePools": pools}
    )
    with pytest.raises(InvalidInput) as refused:
        read_manifests([cluster, cluster])
    (problem,) = refused.value.errors
    assert (problem.pointer, problem.detail) == ("/1/metadata/name", "another cluster of this name is given before")


def test_all_documents_are_looked_at_and_none_may_come_twice():
    good = manifest(VC, "NodeClaim", {})
    with pytest.raises(InvalidInput) as refused:
        read_manifests([good, {}, manifest(VC, "NodeClaim", {"colour": 1}), {"kind": "x"}])
    assert [problem.pointer for problem in refused.value.errors] == ["/1/apiVersion", "/2/spec/colour", "/3/apiVersion"]
    with pytest.raises(InvalidInput) as refused:
        read_manifests([good, manifest(KA, "NodeClaim", ROUND["a claim of Karpenter"]["spec"])])
    assert [problem.pointer for problem in refused.value.errors] == ["/1/metadata/name"]
    assert len(read_manifests([good, manifest(OWN, "NodeProvider", SIM)])) == 2


def test_a_body_is_one_manifest_or_a_list():
    assert read(Manifests, {"kind": "a"}).root == [{"kind": "a"}]
    assert read(Manifests, [{}, {}]).root == [{}, {}]
    for wrong, pointer in ((1, ""), ([1], "/0"), ([], ""), ([{}] * 101, "")):
        with pytest.raises(InvalidInput) as refused:
            read(Manifests, wrong)
        assert [problem.pointer for problem in refused.value.errors] == [pointer]
