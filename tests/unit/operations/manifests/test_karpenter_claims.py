"""Claims in Karpenter's form find their cluster, are placed, and are returned as they were sent."""

from __future__ import annotations

from typing import Any

from stockyard.domain.nodes.manifests import claim_manifest
from stockyard.operations.engine.find import find_claim
from stockyard.operations.manifests.apply import plan_manifests
from stockyard.operations.manifests.desired import read_desired
from tests.unit.operations.conftest import World
from tests.unit.operations.manifests.documents import KA, SMALL, actions, apply, faults, lab, manifest
from tests.unit.operations.nodes import Nodes


def test_a_karpenter_claim_names_its_cluster_only_where_there_are_several(nodes: Nodes, world: World) -> None:
    spec = {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    sent = manifest(KA, "NodeClaim", "k", {**spec, "terminationGracePeriod": "30s", "expireAfter": "1h"})
    (applied,) = apply(nodes, sent)
    assert [warning["pointer"] for warning in applied["warnings"]] == ["/0/spec/expireAfter", "/0"]
    assert applied["warnings"][1]["detail"] == "Cluster demo is preparing."
    claim = find_claim(nodes.services, "k")
    assert (claim.cluster_ref, claim.termination_grace_period) == ("demo", "30s")
    world.create("second")
    assert actions(apply(nodes, sent)) == [("k", "unchanged")]
    assert set(faults(nodes, manifest(KA, "NodeClaim", "l", spec))) == {"/0/metadata/labels/stockyard.dev~1cluster"}


def test_claim_of_karpenters_form_shows_karpenters_conditions(alone: Nodes) -> None:
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    sent = manifest(
        KA,
        "NodeClaim",
        "one",
        {
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
            "nodeClassRef": node_class,
        },
    )

    def status() -> dict[str, Any]:
        status_shown = claim_manifest(find_claim(alone.services, "one"))["status"]
        return {condition["type"]: condition["status"] for condition in status_shown.pop("conditions")} | status_shown

    apply(alone, lab(), sent)
    assert status() == {"Launched": "Unknown", "Registered": "Unknown", "Initialized": "Unknown"}
    alone.schedule()
    alone.relay()
    claim = find_claim(alone.services, "one")
    assert status() == {"Launched": "True", "Registered": "True", "Initialized": "True", "nodeName": claim.node_name}
    applied = apply(alone, claim_manifest(claim))
    assert actions(applied) == [("one", "unchanged")]


def test_karpenter_claim_is_placed_and_returned_unchanged(alone: Nodes) -> None:
    """Karpenter names each claim after its pool, and adds pool and node class to the requirements."""
    requirements = [
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["pool.a"]},
        {"key": "karpenter.k8s.aws/ec2nodeclass", "operator": "In", "values": ["default"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["small", *map(str, range(599))]},
    ]
    node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"requirements": requirements, "nodeClassRef": node_class}
    labels = {"karpenter.sh/nodepool": "pool.a"}
    sent = manifest(KA, "NodeClaim", "pool.a-x7b2k", spec, generateName="pool.a-", labels=labels)
    apply(alone, lab(), sent)
    alone.schedule()
    placed = find_claim(alone.services, "pool.a-x7b2k")
    assert placed.type_ref == "lab.small", placed.message
    assert claim_manifest(placed)["spec"]["requirements"] == requirements
    other_pool = {**spec, "requirements": [{"key": "example.com/pool", "operator": "In", "values": ["a"]}]}
    apply(alone, manifest(KA, "NodeClaim", "other", other_pool))
    alone.schedule()
    assert find_claim(alone.services, "other").placement is None


def test_a_claim_of_no_cluster_is_told_how_to_name_one(alone: Nodes) -> None:
    apply(alone, lab({**SMALL, "maxCapacity": 0}))
    spec = {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    sent = manifest(KA, "NodeClaim", "k", spec, labels={"stockyard.io/cluster": "demo"})
    plan = plan_manifests(alone.services, read_desired(alone.services, [sent], "user:ann", admin=True))
    text = "No cluster is named: set the label stockyard.dev/cluster or --cluster."
    assert plan["verdict"] == text
    assert [(group["rule"], group["types"]) for group in plan["groups"]] == [("Full", ["lab.small"])]
    (applied,) = apply(alone, sent)
    assert applied["warnings"] == plan["warnings"]
    assert [(warning["pointer"], warning["detail"]) for warning in applied["warnings"]] == [
        (
            "/0/metadata/labels/stockyard.io~1cluster",
            "Stockyard knows no such label; did you mean stockyard.dev/cluster?",
        ),
        ("/0", text),
    ]
    alone.schedule()
    assert find_claim(alone.services, "k").message.startswith(text)


def test_of_several_clusters_the_label_that_was_meant_is_named(nodes: Nodes, world: World) -> None:
    world.create("second")
    spec = {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    sent = manifest(KA, "NodeClaim", "k", spec, labels={"stockyard.io/cluster": "demo"})
    assert faults(nodes, sent) == {
        "/0/metadata/labels/stockyard.dev~1cluster": "no cluster is named: set this label or --cluster; the tenant has"
        " 2 clusters; stockyard.io/cluster means nothing; did you mean stockyard.dev/cluster?"
    }
