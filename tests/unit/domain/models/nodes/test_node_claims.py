"""Node claims as callers send them."""

from __future__ import annotations

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.nodes.node_claims import NodeClaimCreate, NodeClaimPatch, PowerChange
from stockyard.domain.nodes.records import NodeClaim
from stockyard.errors import InvalidInput

CLAIM = NodeClaim("ncl_1", "one", "t", "t", labels={"a": "b"}, annotations={"c": "d"})


def test_requirements_are_entries_of_the_core():
    document = {
        "cluster": "demo",
        "requirements": [
            {"key": "a", "values": ["b", "c"], "min_values": 2},
            {"key": "d", "operator": "Exists"},
            {"key": "e", "operator": "Lte", "values": ["5"]},
        ],
        "taints": [{"key": "k", "value": "", "effect": "NoSchedule"}],
    }
    request = read(NodeClaimCreate, document)
    assert [requirement.entry() for requirement in request.requirements] == [
        {"key": "a", "operator": "In", "values": ["b", "c"], "minValues": 2},
        {"key": "d", "operator": "Exists"},
        {"key": "e", "operator": "Lte", "values": ["5"]},
    ]
    assert [taint.entry() for taint in request.taints] == [{"key": "k", "value": "", "effect": "NoSchedule"}]
    assert (request.power, request.priority, request.name) == ("On", 0, None)


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("cluster", None, "/cluster"),
        ("cluster", "a/b", "/cluster"),
        ("name", "A", "/name"),
        ("provider", "a.b", "/provider"),
        ("power", "Reboot", "/power"),
        ("priority", 101, "/priority"),
        ("priority", "1", "/priority"),
        ("resources", {"cpu": "x"}, "/resources/cpu"),
        ("resources", {"cpu": True}, "/resources/cpu"),
        ("properties", {"a": "b c"}, "/properties/a"),
        ("kubelet_args", {"A": "b"}, "/kubelet_args/A"),
        ("kubelet_args", {"manifest-url": "http"}, "/kubelet_args/manifest-url"),
        ("kubelet_args", {"anonymous-auth": "true"}, "/kubelet_args/anonymous-auth"),
        ("kubelet_args", {"authorization-mode": "AlwaysAllow"}, "/kubelet_args/authorization-mode"),
        ("kubelet_args", {"node-labels": "a=b"}, "/kubelet_args/node-labels"),
        ("kubelet_args", {"config": "x"}, "/kubelet_args/config"),
        ("kubelet_args", {"max-pods": "5 --anonymous-auth=true"}, "/kubelet_args/max-pods"),
        ("kubelet_args", {"max-pods": "5\n"}, "/kubelet_args/max-pods"),
        ("requirements", [{"key": "a", "operator": "In"}], "/requirements/0"),
        ("requirements", [{"key": "a", "operator": "Exists", "values": ["b"]}], "/requirements/0"),
        ("requirements", [{"key": "a", "operator": "Gt", "values": ["1", "2"]}], "/requirements/0"),
        ("requirements", [{"key": "a", "values": ["b c"]}], "/requirements/0/values/0"),
        ("requirements", [{"key": "a", "values": ["b"], "min_values": 51}], "/requirements/0/min_values"),
        ("requirements", [{"key": "a", "values": ["b"], "minValues": 1}], "/requirements/0/minValues"),
        ("requirements", [{"key": "a", "operator": "Exists"}] * 101, "/requirements"),
        (
            "requirements",
            [{"key": f"k{n}", "values": [f"v{m}" for m in range(667)]} for n in range(3)],
            "/requirements",
        ),
        ("annotations", {"a": "x" * 40_000}, "/annotations"),
        ("type_ref", "x", "/type_ref"),
    ],
)
def test_what_is_refused(field, value, pointer):
    with pytest.raises(InvalidInput) as refused:
        read(NodeClaimCreate, {"cluster": "demo", field: value})
    assert [problem.pointer for problem in refused.value.errors][:1] == [pointer]


def test_a_claim_may_set_what_a_node_holds_and_keeps_back():
    arguments = {"max-pods": "50", "eviction-hard": "memory.available<5%,nodefs.available<1Gi", "v": "2"}
    arguments |= {"system-reserved": "cpu=100m,memory=200Mi", "topology-manager-policy": "single-numa-node"}
    assert read(NodeClaimCreate, {"cluster": "demo", "kubelet_args": arguments}).kubelet_args == arguments


def test_requirements_may_have_two_thousand_values_together():
    requirements = [{"key": f"k{n}", "operator": "NotIn", "values": [f"v{m}" for m in range(1000)]} for n in range(2)]
    assert len(read(NodeClaimCreate, {"cluster": "demo", "requirements": requirements}).requirements) == 2


def test_a_patch_changes_what_does_not_make_another_node():
    patch = {"display_name": "D", "power": "Off", "labels": {"a": None, "e": "f"}, "annotations": None}
    assert read(NodeClaimPatch, patch).changes(CLAIM) == {
        "display_name": "D",
        "power": "Off",
        "labels": {"e": "f"},
        "annotations": {},
    }
    for wrong in (
        {"cluster": "x"},
        {"requirements": []},
        {"power": None},
        {"power": "Reboot"},
        {"labels": {"a b": ""}},
    ):
        with pytest.raises(InvalidInput) as refused:
            read(NodeClaimPatch, wrong).changes(CLAIM)
        assert refused.value.errors[0].pointer.startswith(f"/{next(iter(wrong))}")


def test_power():
    assert read(PowerChange, {"state": "Reboot"}).state == "Reboot"
    with pytest.raises(InvalidInput):
        read(PowerChange, {"state": "on"})
