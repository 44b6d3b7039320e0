"""Manifests that cannot be applied are refused, with the fault of each document, and none of them is stored."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from stockyard.domain.nodes.manifests import CLUSTER, PROVIDER
from stockyard.domain.nodes.records import NodeClaimSpec
from stockyard.errors import Forbidden, IllegalTransition, InUse, InvalidInput, QuotaExceeded
from stockyard.operations.engine.find import find_claim
from stockyard.operations.manifests import desired
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.quotas.limits import set_quota
from tests.unit.operations.manifests.documents import (
    KA,
    OWN,
    SMALL,
    VC,
    actions,
    apply,
    claim,
    count,
    faults,
    foreign,
    lab,
    manifest,
)
from tests.unit.operations.nodes import Nodes


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"vClusterRef": "w"}, "/0/spec/vClusterRef"),
        ({"providerRef": "q"}, "/0/spec/providerRef"),
        ({"typeRef": "p.a"}, "/0/spec/typeRef"),
        ({"controlPlane": True}, "/0/spec/controlPlane"),
        ({"desiredCapacity": {"cpu": "1"}}, "/0/spec/desiredCapacity"),
        ({"requirements": [{"key": "a", "operator": "Exists"}]}, "/0/spec/requirements"),
        ({"taints": [{"key": "a", "effect": "NoExecute"}]}, "/0/spec/taints"),
        ({"kubeletArgs": {"v": "1"}}, "/0/spec/kubeletArgs"),
        ({"properties": {"a": "b"}}, "/0/spec/properties"),
    ],
)
def test_apply_refuses_changes_of_fixed_claim_fields(nodes: Nodes, spec: dict[str, Any], pointer: str) -> None:
    apply(nodes, foreign())
    assert faults(nodes, foreign(**spec)) == {pointer: "cannot be changed after creation"}


def test_apply_refuses_other_form_or_cluster_of_claim(nodes: Nodes) -> None:
    apply(nodes, foreign())
    assert set(faults(nodes, claim())) == {"/0/apiVersion"}
    spec = {
        "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
        "nodeClassRef": {"group": "g", "kind": "K", "name": "n"},
    }
    apply(nodes, manifest(KA, "NodeClaim", "k", spec, labels={CLUSTER: "demo", PROVIDER: "p"}))
    other = manifest(KA, "NodeClaim", "k", spec, labels={CLUSTER: "other", PROVIDER: "p"})
    assert set(faults(nodes, other)) == {"/0/metadata/labels"}
    assert set(faults(nodes, manifest(KA, "NodeClaim", "k", {**spec, "expireAfter": "1h"}))) == {
        "/0/spec/expireAfter",
        "/0/metadata/labels",
    }


def test_apply_refuses_other_kind_of_provider(nodes: Nodes) -> None:
    apply(nodes, lab())
    terraform = manifest(VC, "NodeProvider", "lab", {"terraform": {"nodeTemplate": {"inline": "x"}}})
    assert set(faults(nodes, terraform)) == {"/0/spec/terraform"}


def test_references_must_exist_for_own_claims_and_may_be_missing_for_foreign_ones(nodes: Nodes) -> None:
    apply(nodes, lab())
    by_pointer = faults(
        nodes,
        claim("a", cluster="nowhere"),
        claim("b", provider="nobody"),
        claim("c", type="lab.huge"),
        claim("d", provider="new", type="huge"),
        claim("e", provider="new", cluster="nowhere"),
        lab() | {"metadata": {"name": "new"}},
    )
    assert set(by_pointer) == {"/0/spec/cluster", "/1/spec/provider", "/2/spec/type", "/3/spec/type", "/4/spec/cluster"}
    assert count(nodes) == (1, 0)
    assert actions(apply(nodes, foreign())) == [("one", "created")]
    waiting = find_claim(nodes.services, "one")
    assert (waiting.phase, waiting.cluster_id) == ("Pending", "")


def test_one_faulty_manifest_stores_none(nodes: Nodes) -> None:
    ec2 = manifest(OWN, "NodeProvider", "aws", {"ec2": {"cloudAccount": 9}})
    assert set(faults(nodes, lab(), ec2, claim())) == {"/1/spec/ec2/cloudAccount"}
    assert count(nodes) == (0, 0)


def test_apply_of_provider_requires_admin(nodes: Nodes) -> None:
    with pytest.raises(Forbidden, match="stockyard-admin"):
        apply(nodes, lab(), claim(), admin=False)
    assert count(nodes) == (0, 0)
    assert actions(apply(nodes, claim(), admin=False)) == [("one", "created")]


def test_quota_counts_all_manifests_together(nodes: Nodes) -> None:
    set_quota(nodes.services, "nodeclaims", 1, 0)
    with pytest.raises(QuotaExceeded, match="project nodeclaims limit of 1"):
        apply(nodes, claim("a"), claim("b"))
    set_quota(nodes.services, "node_providers", 0, 0)
    with pytest.raises(QuotaExceeded, match="node_providers"):
        apply(nodes, lab())
    assert count(nodes) == (0, 0)
    assert actions(apply(nodes, claim("a"))) == [("a", "created")]


def test_apply_refuses_removal_of_used_type_and_change_of_deleted_claim(nodes: Nodes) -> None:
    apply(nodes, lab(), foreign(providerRef="lab", vClusterRef=None))
    nodes.schedule()
    placed = find_claim(nodes.services, "one")
    assert placed.type_ref == "lab.small"
    with pytest.raises(InUse, match="one"):
        apply(nodes, lab({**SMALL, "name": "other"}))
    nodes.delete(placed)
    with pytest.raises(IllegalTransition, match="being deleted"):
        apply(nodes, foreign(providerRef="lab", vClusterRef=None))


def test_apply_refuses_record_changed_since_read(nodes: Nodes) -> None:
    apply(nodes, lab())
    desired = read_desired(nodes.services, [lab(displayName="mine")], "user:ann", admin=True)
    apply(nodes, lab(displayName="theirs"))
    with pytest.raises(IllegalTransition, match="Apply the manifests again"):
        apply_manifests(nodes.services, desired, "user:ann", "req-2")
    assert find_provider(nodes.services, "lab").display_name == "theirs"


def test_every_field_of_a_claim_is_compared_when_it_is_applied_again() -> None:
    # only vCluster's form says control_plane; it stands in the rest of its document. No form says max_price.
    compared_apart = {"requirements", "form", "document", "control_plane", "max_price"}
    compared = {*desired._CHANGEABLE, *desired._FIXED["stockyard"], *desired._FIXED_EVERYWHERE, *compared_apart}
    assert {field.name for field in fields(NodeClaimSpec)} - compared == set()


def test_a_node_cannot_become_a_control_plane(nodes: Nodes) -> None:
    apply(nodes, foreign(controlPlane=False))
    assert faults(nodes, foreign(controlPlane=True)) == {"/0/spec/controlPlane": "cannot be changed after creation"}


def test_create_only_refuses_all_that_is_there(nodes: Nodes) -> None:
    apply(nodes, lab(), claim(type="lab.small"))
    before = count(nodes)
    documents = [lab(), manifest(OWN, "NodeProvider", "new", {"simulated": {}}), claim(type="lab.small")]
    with pytest.raises(InUse) as refused:
        read_desired(nodes.services, documents, "user:ann", admin=True, create_only=True)
    assert refused.value.detail == "There is a node provider called lab. There is a node claim called one."
    documents_told = [(fault.pointer, fault.index, fault.kind, fault.name) for fault in refused.value.errors]
    assert documents_told == [
        ("/0/metadata/name", 0, "NodeProvider", "lab"),
        ("/2/metadata/name", 2, "NodeClaim", "one"),
    ]
    assert count(nodes) == before
    fresh = read_desired(nodes.services, documents[1:2], "user:ann", admin=True, create_only=True)
    assert actions(apply_manifests(nodes.services, fresh, "user:ann", "req-1")) == [("new", "created")]


def test_each_fault_names_its_document(nodes: Nodes) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_desired(nodes.services, [lab(), claim(colour="red")], "user:ann", admin=True)
    (fault,) = refused.value.errors
    assert (fault.index, fault.kind, fault.name) == (1, "NodeClaim", "one")
    assert refused.value.detail == "NodeClaim one: /spec/colour: unknown field"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"name": "a", "cloud_account_id": 1, "cluster_type": "k8s"}, "cluster create"),
        ({"name": "a", "kind": "simulated", "spec": {}}, "provider create"),
        ({"name": "a", "kind": "static", "quantity": 1}, "pool create"),
        ({"cluster": "demo", "resources": {}}, "claim create"),
    ],
)
def test_the_body_of_another_request_is_sent_where_it_belongs(
    nodes: Nodes, document: dict[str, Any], words: str
) -> None:
    (detail,) = faults(nodes, document).values()
    assert f"stockyard {words} -f" in detail


def test_a_kind_that_was_misspelt_is_told(nodes: Nodes) -> None:
    (detail,) = faults(nodes, manifest(OWN, "NodeProvidr", "a", {})).values()
    assert detail.endswith("did you mean NodeProvider of stockyard/v1?")
