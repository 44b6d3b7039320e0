"""Documents of node providers: the published defaults, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.nodes.node_providers import NodeProviderCreate, NodeProviderPatch, merged
from stockyard.domain.nodes.records import NodeProvider
from stockyard.errors import InvalidInput

RESOURCES = {"cpu": "2", "memory": "4Gi"}
TYPE = {"name": "a", "resources": RESOURCES}
CLUSTER = {"clusterRef": {"cluster": "c", "namespace": "n"}}
BLOCKS: dict[str, dict[str, Any]] = {
    "terraform": {"nodeTemplate": {"inline": "x"}, "nodeTypes": [TYPE]},
    "kubeVirt": {**CLUSTER, "nodeTypes": [{"name": "a"}]},
    "bcm": {"secretRef": {"name": "s"}, "endpoint": "https://b:8081", "nodeTypes": [{"name": "a", "nodes": ["n"]}]},
    "metal3": {**CLUSTER, "nodeTypes": [{**TYPE, "bareMetalHosts": {"selector": {"matchLabels": {"a": "b"}}}}]},
    "clusterAPI": {**CLUSTER, "nodeTypes": [TYPE]},
    "ec2": {"cloudAccount": 1},
    "simulated": {"nodeTypes": [{**TYPE, "usdPerHour": 0.1}]},
}


GIT = {"repository": "r"}
PROPERTIES = tuple(f"properties/{name}" for name in ("a", "b", "c d", "f"))


def single_type(**changes: Any) -> dict[str, Any]:
    """A block of one node type."""
    return {"nodeTypes": [{**TYPE, **changes}]}


def at(*names: str) -> set[str]:
    """The places of that type."""
    return {f"/spec/nodeTypes/0/{name}" for name in names}


def block(kind: str, **changes: Any) -> dict[str, Any]:
    spec = {**BLOCKS[kind], **changes}
    document = {"name": "p", "kind": kind, "spec": {key: value for key, value in spec.items() if value is not None}}
    return read(NodeProviderCreate, document).block()


def faults(kind: str, **changes: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        block(kind, **changes)
    return {problem.pointer: problem.detail for problem in refused.value.errors}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_is_kept_as_it_came_with_the_published_defaults(kind):
    added = {
        "terraform": {"nodeTemplate": {"inline": "x", "timeout": "60m"}},
        "kubeVirt": {"namespaceStrategy": "Provider"},
        "ec2": {"region": "us-east-1", "capacityTypes": ["on-demand"], "instanceTypes": ["*"]},
        "simulated": {"launchSeconds": 0, "joinSeconds": 0},
    }
    assert block(kind) == {**BLOCKS[kind], **added.get(kind, {})}


def test_a_repository_is_fetched_every_five_minutes_by_default():
    git = {"repository": "https://example.com/r.git", "subPath": "a"}
    assert block("terraform", nodeTemplate={"git": git})["nodeTemplate"] == {
        "git": {**git, "fetchInterval": "5m"},
        "timeout": "60m",
    }


def test_raw_templates_are_not_touched():
    template = {"spec": {"networks": [{"pod": {}, "name": None}], "n": 1.5}}
    assert block("kubeVirt", virtualMachineTemplate=template)["virtualMachineTemplate"] == template


@pytest.mark.parametrize(
    ("kind", "changes", "pointers"),
    [
        ("terraform", {"nodeTemplate": {"inline": "x", "git": {"repository": "r"}}}, {"/spec/nodeTemplate"}),
        ("terraform", {"nodeTemplate": {}}, {"/spec/nodeTemplate"}),
        ("terraform", {"nodeTemplate": None}, {"/spec/nodeTemplate"}),
        ("terraform", {"nodeTemplate": {"git": {**GIT, "tag": "a", "branch": "b"}}}, {"/spec/nodeTemplate/git"}),
        ("terraform", {"nodeTemplate": {"inline": "x", "timeout": "1 hour"}}, {"/spec/nodeTemplate/timeout"}),
        ("terraform", {"nodeEnvironmentTemplate": {}}, {"/spec/nodeEnvironmentTemplate"}),
        (
            "terraform",
            {"nodeEnvironmentTemplate": {"inline": "x", "infrastructure": {"inline": "y"}}},
            {"/spec/nodeEnvironmentTemplate"},
        ),
        ("terraform", {"nodeTypes": [{"name": "a"}]}, {f"/spec/nodeTypes/0/resources/{name}" for name in RESOURCES}),
        ("metal3", {"nodeTypes": [{"name": "a", "resources": {"cpu": 1}}]}, {"/spec/nodeTypes/0/resources/memory"}),
        (
            "kubeVirt",
            {"nodeTypes": [{"name": "a", "virtualMachineTemplate": {}, "mergeVirtualMachineTemplate": {}}]},
            {"/spec/nodeTypes/0"},
        ),
        ("kubeVirt", {"clusterRef": None}, {"/spec/clusterRef"}),
        ("kubeVirt", {"clusterRef": {"cluster": "c"}}, {"/spec/clusterRef/namespace"}),
        ("kubeVirt", {"namespaceStrategy": "Other"}, {"/spec/namespaceStrategy"}),
        ("bcm", {"secretRef": None}, {"/spec/secretRef"}),
        ("bcm", {"endpoint": "b:8081"}, {"/spec/endpoint"}),
        (
            "clusterAPI",
            {"nodeTypes": [{**TYPE, "infrastructureMachineTemplate": {}, "mergeInfrastructureMachineTemplate": {}}]},
            {"/spec/nodeTypes/0"},
        ),
        ("ec2", {"cloudAccount": None}, {"/spec/cloudAccount"}),
        ("ec2", {"cloudAccount": 0, "region": "moon"}, {"/spec/cloudAccount", "/spec/region"}),
        ("ec2", {"image": "x"}, {"/spec/image"}),
        ("ec2", {"capacityTypes": ["spot", "spot"]}, {"/spec/capacityTypes/1"}),
        ("ec2", {"instanceTypes": []}, {"/spec/instanceTypes"}),
        ("ec2", {"instanceTypes": ["m6i.*", "M6i"]}, {"/spec/instanceTypes/1"}),
        ("ec2", {"nodeTypes": [{"name": "m6i.large", "resources": RESOURCES}]}, {"/spec/nodeTypes/0/resources"}),
        ("ec2", {"nodeTypes": [{"name": "large"}]}, {"/spec/nodeTypes/0/name"}),
        ("simulated", {"nodeTypes": [{**TYPE, "zone": "a", "zones": ["b"]}]}, {"/spec/nodeTypes/0"}),
        ("simulated", {"nodeTypes": [{**TYPE, "usdPerHour": -1}]}, {"/spec/nodeTypes/0/usdPerHour"}),
        ("simulated", {"joinSeconds": "sometimes"}, {"/spec/joinSeconds"}),
        ("simulated", {"colour": "red"}, {"/spec/colour"}),
        ("simulated", {"nodeTypes": [TYPE, TYPE]}, {"/spec/nodeTypes/1/name"}),
        ("simulated", {"nodeTypes": [{**TYPE, "name": "A"}]}, {"/spec/nodeTypes/0/name"}),
        ("simulated", single_type(maxCapacity=-1, cost=1.5), at("maxCapacity", "cost")),
        ("simulated", single_type(resources={**RESOURCES, "a b": 1}), at("resources/a b")),
        ("simulated", single_type(resources={"cpu": "-1", "memory": "4Gb"}), at("resources/cpu", "resources/memory")),
        ("simulated", single_type(properties={"a": "x y", "b": "x,-", "c d": "e", "f": "*,g"}), at(*PROPERTIES)),
    ],
)  # fmt: skip
def test_what_is_refused(kind, changes, pointers):
    problems = faults(kind, **changes)
    assert {
        problem_pointer
        for problem_pointer in problems
        if any(problem_pointer.startswith(pointer) for pointer in pointers)
    } == set(problems), problems
    assert all(any(problem_pointer.startswith(pointer) for problem_pointer in problems) for pointer in pointers), (
        problems
    )


def test_faults_never_repeat_a_value():
    problems = faults("simulated", nodeTypes=[{**TYPE, "cost": "canary", "colour": "canary"}])
    assert "canary" not in str(problems)


@pytest.mark.parametrize(
    ("properties", "ok"),
    [
        ({"a": "b", "c": "d,e", "f": "*", "g": ""}, True),
        ({"kubevirt.vcluster.com/image-url": "docker://quay.io/x:22.04", "vcluster.com/vpc-cidr": "10.0.0.0/16"}, True),
        ({"kubevirt.vcluster.com/network-nameservers": "8.8.8.8,8.8.4.4"}, True),
        ({"a": "docker://quay.io/x:22.04"}, False),
        ({"a": "x" * 64}, False),
        ({"": "b"}, False),
        ({"vcluster.com/x": "a\x00"}, False),
    ],
)
def test_values_of_properties_are_labels_unless_they_are_settings(properties, ok):
    document = {"name": "p", "kind": "simulated", "spec": {}, "properties": properties}
    if ok:
        assert read(NodeProviderCreate, document).properties == properties
        return
    with pytest.raises(InvalidInput) as refused:
        read(NodeProviderCreate, document)
    assert all(problem.pointer.startswith("/properties") for problem in refused.value.errors)


@pytest.mark.parametrize(
    "changes",
    [{"kind": "nico"}, {"name": "a.b"}, {"name": "A"}, {"name": "x" * 64}, {"price_per_cost_unit": 0}, {"spec": None}],
)
def test_what_a_provider_cannot_be(changes):
    with pytest.raises(InvalidInput) as refused:
        read(NodeProviderCreate, {"name": "p", "kind": "simulated", "spec": {}, **changes})
    assert [problem.pointer for problem in refused.value.errors] == [f"/{name}" for name in changes]


STORED = NodeProvider(
    "npr_1", "p", "simulated", {"simulated": block("simulated")}, "t", "t",
    display_name="P", properties={"a": "b"}, labels={"l": "m"}, price_per_cost_unit=0.5,
)  # fmt: skip


def test_a_patch_gives_whole_fields():
    patch = {"display_name": "", "properties": {"a": None, "c": "d"}, "labels": None, "price_per_cost_unit": None}
    assert read(NodeProviderPatch, patch).changes(STORED) == {
        "display_name": "",
        "properties": {"c": "d"},
        "labels": {},
        "price_per_cost_unit": None,
    }
    changes = read(NodeProviderPatch, {"spec": {"launchSeconds": 5, "nodeTypes": None}}).changes(STORED)
    assert changes == {"spec": {"simulated": {"launchSeconds": 5, "joinSeconds": 0}}}
    assert read(NodeProviderPatch, {}).changes(STORED) == {}


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"properties": {"a": "x y"}}, "/properties/a"),
        ({"spec": {"colour": 1}}, "/spec/colour"),
        ({"spec": None}, "/spec"),
        ({"display_name": None}, "/display_name"),
        ({"name": "q"}, "/name"),
        ({"kind": "ec2"}, "/kind"),
        ({"labels": {"a b": "c"}}, "/labels/a b"),
    ],
)
def test_patches_that_are_refused(patch, pointer):
    with pytest.raises(InvalidInput) as refused:
        read(NodeProviderPatch, patch).changes(STORED)
    assert [problem.pointer for problem in refused.value.errors] == [pointer]


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({"a": 1}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}),
        ({"a": 1}, None, {}),
    ],
)
def test_merge_patches(current, patch, expected):
    assert merged(current, patch) == expected
