"""Documents of other people: lists, namespaces, node classes, kinds of other groups, old versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockyard.domain.pools.records import Pool
from stockyard.errors import InvalidInput
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests, document_warnings, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.manifests.documents import MOST_DOCUMENTS, sorted_out
from tests.unit.operations.conftest import World
from tests.unit.operations.manifests.documents import KA, OWN, lab, manifest
from tests.unit.operations.nodes import Nodes

NODE_CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
FROM_A_SERVER: dict[str, Any] = {
    "uid": "6c0a",
    "resourceVersion": "77",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "managedFields": [{"manager": "kubectl"}],
    "finalizers": ["karpenter.sh/termination"],
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"kind": "NodePool"}\n'},
}


def node_pool(name: str = "general", version: str = KA, **metadata: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS_REF}}}
    return manifest(version, "NodePool", name, spec, **metadata)


def node_class(version: str = "karpenter.k8s.aws/v1", kind: str = "EC2NodeClass") -> dict[str, Any]:
    return manifest(version, kind, "default", {"amiFamily": "AL2023", "role": "nodes"})


def items(*documents: Any, version: str = "v1", kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"resourceVersion": ""}, "items": list(documents)}


@pytest.fixture
def nodes(world: World) -> Nodes:
    world.create("demo")
    return Nodes.of(world.registry, world.services, world.clock)


def desired(nodes: Nodes, *documents: Mapping[str, Any]) -> Any:
    return read_desired(nodes.services, documents, "user:ann", admin=True)


def faults(nodes: Nodes, *documents: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        desired(nodes, *documents)
    return {error.pointer: error.detail for error in refused.value.errors}


def warnings(*documents: Mapping[str, Any]) -> dict[tuple[str | int, ...], str]:
    return dict(sorted_out(documents).warnings)


def test_lists_are_taken_apart() -> None:
    bare = {name: value for name, value in node_pool("c").items() if name not in ("apiVersion", "kind")}
    sent = [items(node_pool("a"), items(lab())), node_pool("b"), items(bare, version=KA, kind="NodePoolList"), items()]
    sorted_documents = sorted_out(sent)
    assert sorted_documents.paths == ((0, "items", 0), (0, "items", 1, "items", 0), (1,), (2, "items", 0))
    assert sorted_documents.documents == (node_pool("a"), lab(), node_pool("b"), node_pool("c"))
    assert not sorted_documents.warnings


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        (items() | {"items": 7}, "/0/items"),
        ({"apiVersion": "v1", "kind": "List"}, "/0/items"),
        (items(node_pool(), 7), "/0/items/1"),
        (items(*[node_pool()] * (MOST_DOCUMENTS + 1)), "/0"),
    ],
)
def test_a_list_that_is_none_is_refused(nodes: Nodes, sent: Any, pointer: str) -> None:
    assert list(faults(nodes, sent)) == [pointer]


def test_what_a_server_printed_is_applied(nodes: Nodes) -> None:
    printed = {**node_pool(**FROM_A_SERVER), "status": {"resources": {"cpu": "0"}, "conditions": []}}
    sent = [items(printed, node_pool("second"))]
    results = apply_manifests(nodes.services, desired(nodes, *sent), "user:ann", "req-1")
    assert [(result["index"], result["name"], result["action"]) for result in results] == [
        (0, "general", "created"),
        (0, "second", "created"),
    ]
    assert [result["warnings"][0]["pointer"] for result in results] == [
        f"/0/items/{number}/spec/template/spec/nodeClassRef" for number in (0, 1)
    ]
    changed = node_pool("second")
    changed["spec"]["weight"] = 7
    (change,) = plan_manifests(nodes.services, desired(nodes, items(printed, changed)))["changes"]
    assert (change["pointer"], change["after"]) == ("/0/items/1/weight", 7)
    wrong = node_pool("third")
    wrong["spec"]["colour"] = "red"
    with pytest.raises(InvalidInput) as refused:
        desired(nodes, items(printed, wrong))
    assert refused.value.detail == "NodePool third: /spec/colour: unknown field"
    assert [(fault.pointer, fault.index) for fault in refused.value.errors] == [("/0/items/1/spec/colour", 0)]


def test_kinds_of_the_cluster_have_no_namespace(nodes: Nodes) -> None:
    claim = manifest(KA, "NodeClaim", "one", {"requirements": []}, namespace="karpenter")
    manifests = desired(nodes, node_pool(namespace="karpenter"), claim, node_pool("other", namespace=""))
    assert {remark["pointer"] for remark in document_warnings(manifests)} >= {
        "/0/metadata/namespace",
        "/1/metadata/namespace",
    }
    assert manifests[1].document.labels == {}
    apply_manifests(nodes.services, manifests, "user:ann", "req-1")
    assert {pool.name for pool in every(nodes.services.store, Pool)} == {"general", "other"}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("karpenter.k8s.aws/v1", "EC2NodeClass"),
        ("eks.amazonaws.com/v1", "NodeClass"),
        ("karpenter.azure.com/v1beta1", "AKSNodeClass"),
        ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
    ],
)
def test_a_node_class_beside_pools_is_left_out(nodes: Nodes, version: str, kind: str) -> None:
    (path, text), *_ = warnings(node_pool(), node_class(version, kind)).items()
    assert path == (1, "kind")
    assert text == f"The {kind} is left out: a node provider says how nodes are made. Not used of it: amiFamily, role."
    assert faults(nodes, node_class(version, kind)) == {
        "/0/kind": "a node class is not read: a node provider says how nodes are made"
    }


@pytest.mark.parametrize(
    ("version", "kind"), [("v1", "Namespace"), ("apps/v1", "Deployment"), ("karpenter.sh/v1alpha1", "NodeOverlay")]
)
def test_a_foreign_kind_is_left_out_beside_others(nodes: Nodes, version: str, kind: str) -> None:
    document = manifest(version, kind, "x", {})
    manifests = desired(nodes, document, node_pool())
    text = f"{kind} of {version} is no kind that is read here: the document is left out."
    assert {"pointer": "/0/kind", "detail": text} in plan_manifests(nodes.services, manifests)["warnings"]
    (result,) = apply_manifests(nodes.services, manifests, "user:ann", "req-1")
    assert result["index"] == 1
    assert list(faults(nodes, document, document)) == ["/0/kind", "/1/kind"]


@pytest.mark.parametrize(
    ("version", "kind", "pointer", "text"),
    [
        (
            "karpenter.sh/v1beta1",
            "NodePool",
            "/1/apiVersion",
            "this version is not read; write it as NodePool of karpenter.sh/v1",
        ),
        (
            "karpenter.sh/v1alpha5",
            "Provisioner",
            "/1/apiVersion",
            "this version is not read; write it as NodePool of karpenter.sh/v1",
        ),
        (
            "karpenter.sh/v1alpha5",
            "Machine",
            "/1/apiVersion",
            "this version is not read; write it as NodeClaim of karpenter.sh/v1",
        ),
        ("stockyard/v2", "Pool", "/1/apiVersion", "this version is not read; write it as Pool of stockyard/v1"),
        ("karpenter.sh/v1", "NodePol", "/1/kind", "did you mean NodePool of karpenter.sh/v1?"),
        ("karpentr.sh/v1", "NodePool", "/1/kind", "did you mean NodePool of karpenter.sh/v1?"),
        (OWN, "NodePool", "/1/kind", "did you mean NodePool of karpenter.sh/v1?"),
    ],
)
def test_what_was_meant_for_us_is_refused_by_its_name(
    nodes: Nodes, version: str, kind: str, pointer: str, text: str
) -> None:
    refused = faults(nodes, node_pool(), manifest(version, kind, "x", {}))
    assert list(refused) == [pointer]
    assert refused[pointer].endswith(text)
