"""NodePools of Karpenter: what becomes of each field, and what is refused in Karpenter's words."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from stockyard.domain.models.pools.node_pools import read_node_pool
from stockyard.errors import InvalidInput

REQUIREMENTS = [
    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
    {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["c5", "m5"], "minValues": 2},
]


def node_pool(spec: dict[str, Any] | None = None, template: dict[str, Any] | None = None, **metadata: Any) -> Any:
    """A NodePool; ``template`` is what its claims have beside the requirements."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general", **metadata},
        "spec": {"template": {"spec": {"requirements": deepcopy(REQUIREMENTS), **(template or {})}}, **(spec or {})},
    }


def with_label(key: str, value: str = "v") -> dict[str, Any]:
    document = node_pool()
    document["spec"]["template"]["metadata"] = {"labels": {key: value}}
    return document


def faults(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_node_pool(document)
    return {fault.pointer: fault.detail for fault in refused.value.errors}


def test_defaults_are_those_of_karpenter() -> None:
    document = read_node_pool(node_pool())
    pool = document.pools[0]
    assert (pool.name, pool.kind, pool.form, pool.provider_ref) == ("general", "dynamic", "karpenter", "")
    assert list(pool.requirements) == REQUIREMENTS
    assert (pool.expire_after, pool.termination_grace_period, pool.weight, pool.limits) == ("720h", "", 0, {})
    assert pool.disruption == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    assert (document.cluster_ref, document.warnings, pool.document) == ("", [], {})


def test_every_field() -> None:
    document = node_pool(
        {
            "limits": {"cpu": 100, "memory": "1000Gi", "nodes": 10},
            "weight": 10,
            "disruption": {
                "consolidationPolicy": "Balanced",
                "consolidateAfter": "60s",
                "budgets": [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h", "reasons": ["Drifted"]}],
            },
        },
        {
            "taints": [{"key": "gpu", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "net", "value": "x", "effect": "NoExecute"}],
            "expireAfter": "Never",
            "terminationGracePeriod": "24h",
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        },
        labels={"stockyard.dev/cluster": "demo"},
        annotations={"kubernetes.io/description": "General purpose"},
        uid="1",
    )
    document["spec"]["template"]["metadata"] = {
        "labels": {"team": "a", "vcluster.loft.sh/provider-platform": "amazon"},
        "annotations": {"note": "any text"},
    }
    read = read_node_pool(document, at=(3,))
    pool = read.pools[0]
    assert read.cluster_ref == "demo"
    assert (pool.provider_ref, pool.labels, pool.annotations) == ("amazon", {"team": "a"}, {"note": "any text"})
    assert pool.taints == ({"key": "gpu", "effect": "NoSchedule"},)
    assert pool.startup_taints == ({"key": "net", "value": "x", "effect": "NoExecute"},)
    assert pool.limits == {"cpu": "100", "memory": "1000Gi", "nodes": "10"}
    assert (pool.weight, pool.expire_after, pool.termination_grace_period) == (10, "Never", "24h")
    assert pool.disruption["budgets"] == [
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * mon-fri", "duration": "8h"}
    ]
    assert pool.document == {
        "metadata": {
            "labels": {"stockyard.dev/cluster": "demo"},
            "annotations": {"kubernetes.io/description": "General purpose"},
        },
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    }
    assert [path for path, _ in read.warnings] == [(3, "spec", "template", "spec", "nodeClassRef")]


def test_replicas_make_a_static_pool() -> None:
    pool = read_node_pool(node_pool({"replicas": 3, "limits": {"nodes": "5"}})).pools[0]
    assert (pool.kind, pool.quantity, pool.limits) == ("static", 3, {"nodes": "5"})
    assert (pool.expire_after, pool.disruption) == ("", {})
    aged = read_node_pool(node_pool({"replicas": 0, "disruption": {}}, {"expireAfter": "48h"})).pools[0]
    assert (aged.kind, aged.quantity, aged.expire_after) == ("static", 0, "48h")
    assert aged.disruption["budgets"] == [{"nodes": "10%"}]


def test_a_list_without_budgets_limits_nothing() -> None:
    assert read_node_pool(node_pool({"disruption": {"budgets": []}})).pools[0].disruption["budgets"] == []


def requirement(**fields: Any) -> dict[str, Any]:
    document = node_pool()
    document["spec"]["template"]["spec"]["requirements"] = [{"key": "k", **fields}]
    return document


AT = "/spec/template/spec"
FIRST = f"{AT}/requirements/0"
TAINT = {"key": "t", "effect": "NoSchedule"}
ZONED: dict[str, Any] = {"nodes": "1", "schedule": "@daily", "duration": "1h", "timeZone": "Europe/Berlin"}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no template": (
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}, "spec": {}},
        "/spec/template",
        "this field is required",
    ),
    "In without values": (
        requirement(operator="In"),
        f"{FIRST}/values",
        "requirements with operator 'In' must have a value defined",
    ),
    "Exists with a value": (
        requirement(operator="Exists", values=["a"]),
        f"{FIRST}/values",
        "requirements with operator 'Exists' must have no value",
    ),
    "Gt with a text": (
        requirement(operator="Gt", values=["a"]),
        f"{FIRST}/values",
        "requirements operator 'Gt' must have a single positive integer value",
    ),
    "Lt with two": (
        requirement(operator="Lt", values=["1", "2"]),
        f"{FIRST}/values",
        "requirements operator 'Lt' must have a single positive integer value",
    ),
    "fewer values than minValues": (
        requirement(operator="In", values=["a"], minValues=2),
        f"{FIRST}/values",
        "requirements with 'minValues' must have at least that many values specified in the 'values' field",
    ),
    "too large minValues": (
        requirement(operator="Exists", minValues=51),
        f"{FIRST}/minValues",
        "must be at most 50",
    ),
    "the pool as a requirement": (
        requirement(key="karpenter.sh/nodepool", operator="Exists"),
        f"{FIRST}/key",
        'label "karpenter.sh/nodepool" is restricted',
    ),
    "a restricted domain": (
        requirement(key="node.k8s.io/x", operator="Exists"),
        f"{FIRST}/key",
        'label domain "k8s.io" is restricted',
    ),
    "a misspelt label of a provider's domain": (
        requirement(key="karpenter.k8s.aws/instance-categroy", operator="Exists"),
        f"{FIRST}/key",
        'label domain "karpenter.k8s.aws" is restricted, and no node has this label; did you mean'
        " karpenter.k8s.aws/instance-category?",
    ),
    "a label of the nodes in a provider's domain": (
        with_label("karpenter.k8s.aws/ec2nodeclass"),
        "/spec/template/metadata/labels/karpenter.k8s.aws~1ec2nodeclass",
        'label domain "karpenter.k8s.aws" is restricted, and no node has this label',
    ),
    "a domain below a provider's": (
        requirement(key="x.karpenter.k8s.aws/instance-cpu", operator="Exists"),
        f"{FIRST}/key",
        'label domain "karpenter.k8s.aws" is restricted, and no node has this label; did you mean'
        " karpenter.k8s.aws/instance-cpu?",
    ),
    "a label of Karpenter": (
        with_label("karpenter.sh/registered"),
        "/spec/template/metadata/labels/karpenter.sh~1registered",
        'label domain "karpenter.sh" is restricted',
    ),
    "the hostname": (
        with_label("kubernetes.io/hostname"),
        "/spec/template/metadata/labels/kubernetes.io~1hostname",
        'label "kubernetes.io/hostname" is restricted',
    ),
    "a provider that is no name": (
        with_label("vcluster.loft.sh/provider-platform", "A.b"),
        "/spec/template/metadata/labels/vcluster.loft.sh~1provider-platform",
        "must be 1 to 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit",
    ),
    "a taint twice": (
        node_pool(template={"taints": [TAINT], "startupTaints": [TAINT]}),
        f"{AT}/startupTaints/0",
        "duplicate taint Key/Effect pair t=NoSchedule",
    ),
    "weight of 101": (node_pool({"weight": 101}), "/spec/weight", "must be at most 100"),
    "weight of a static pool": (
        node_pool({"replicas": 1, "weight": 1}),
        "/spec/weight",
        "'weight' is not supported on static NodePools",
    ),
    "cpu of a static pool": (
        node_pool({"replicas": 1, "limits": {"cpu": 1, "nodes": 1}}),
        "/spec/limits",
        "only 'limits.nodes' is supported on static NodePools",
    ),
    "less than nothing": (
        node_pool({"replicas": -1}),
        "/spec/replicas",
        "must be at least 0",
    ),
    "a grace of Never": (
        node_pool(template={"terminationGracePeriod": "Never"}),
        f"{AT}/terminationGracePeriod",
        "must be a duration such as 30s, 5m or 1h30m",
    ),
    "another policy": (
        node_pool({"disruption": {"consolidationPolicy": "Always"}}),
        "/spec/disruption/consolidationPolicy",
        "must be 'WhenEmpty', 'WhenEmptyOrUnderutilized' or 'Balanced'",
    ),
    "a schedule alone": (
        node_pool({"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily"}]}}),
        "/spec/disruption/budgets/0",
        "'schedule' must be set with 'duration'",
    ),
    "a time zone in a field of ours": (
        node_pool({"disruption": {"budgets": [ZONED]}}),
        "/spec/disruption/budgets/0/timeZone",
        "a NodePool has CRON_TZ= before the schedule instead",
    ),
    "a reason of ours": (
        node_pool({"disruption": {"budgets": [{"nodes": "1", "reasons": ["Empty", "Expired"]}]}}),
        "/spec/disruption/budgets/0/reasons",
        "a NodePool knows no Expired; a Pool of ours does",
    ),
    "an unknown field": (node_pool({"x": 1}), "/spec/x", "unknown field"),
    "a limit below nothing": (node_pool({"limits": {"cpu": -1}}), "/spec/limits/cpu", "must not be negative"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_at_its_field(case: str) -> None:
    document, path, words = REFUSED[case]
    assert faults(document) == {path: words}


@pytest.mark.parametrize(
    "key",
    [
        *("topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type", "plain"),
        *("karpenter.k8s.aws/instance-hypervisor", "karpenter.k8s.aws/instance-local-nvme", "notkarpenter.k8s.aws/x"),
        *("node-restriction.kubernetes.io/team", "sub.node.kubernetes.io/a", "kops.k8s.io/group", "mykubernetes.io/a"),
    ],
)
def test_open_labels_are_not_restricted(key: str) -> None:
    assert read_node_pool(with_label(key)).pools[0].labels == {key: "v"}


def test_the_number_of_budgets_and_values_is_bounded() -> None:
    assert list(faults(node_pool({"disruption": {"budgets": [{"nodes": "1"}] * 51}}))) == ["/spec/disruption/budgets"]
    entries = [{"key": f"k{n}", "operator": "In", "values": [f"v{m}" for m in range(700)]} for n in range(3)]
    document = node_pool(template={"requirements": entries})
    assert faults(document) == {f"{AT}/requirements": "requirements have at most 2000 values together"}
    many = node_pool(template={"requirements": [{"key": f"k{n}", "operator": "Exists"} for n in range(101)]})
    assert list(faults(many)) == [f"{AT}/requirements"]
