"""Pods of Kubernetes as the packer reads them."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.scheduling.packing.manifests import read_pod, requests
from stockyard.scheduling.packing.model import (
    HostPort,
    Pod,
    PodTerm,
    Preference,
    Selector,
    Spread,
    Taint,
    Toleration,
    term,
)

GIB = 2**30 * 1000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def container(cpu: str = "", memory: str = "", **fields: Any) -> dict[str, Any]:
    amounts = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return {"name": "c", "resources": {"requests": amounts}, **fields}


def selector(**labels: str) -> Selector:
    return Selector(term({"key": key, "operator": "In", "values": [value]} for key, value in labels.items()))


def test_a_plain_pod() -> None:
    manifest = {
        "metadata": {"name": "p", "labels": {"b": "2", "a": "1"}},
        "spec": {"containers": [container("250m", "1Gi")]},
    }
    assert read_pod(manifest) == Pod(
        "default", (("a", "1"), ("b", "2")), (("cpu", 250), ("memory", GIB), ("pods", 1000))
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container("1"), container("500m")]}, {"cpu": 1500}),
        ({"containers": [container("1")], "initContainers": [container("3"), container("2")]}, {"cpu": 3000}),
        ({"containers": [container("1")], "initContainers": [container("1", restartPolicy="Always")]}, {"cpu": 2000}),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("1", restartPolicy="Always"), container("2"), container("9m")],
            },
            {"cpu": 3000},
        ),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2"), container("3", restartPolicy="Always")],
            },
            {"cpu": 4000},
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "100m", "memory": "1Gi"}}, {"cpu": 1100, "memory": GIB}),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, {"cpu": 2000}),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}]}, {"cpu": 1000}),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, {"cpu": 4000}),
        ({"containers": [container("0")]}, {}),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}, {"nvidia.com/gpu": 1000}),
        ({}, {}),
    ],
)
def test_what_a_pod_takes_of_a_node(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert requests(spec) == {**expected, "pods": 1000}


def test_what_a_pod_asks_of_nodes() -> None:
    required = {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        {},
    ]}  # fmt: skip
    preferred = [{"weight": 7, "preference": {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}}]
    spec = {
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {REQUIRED: required, PREFERRED: preferred}},
        "tolerations": [{"operator": "Exists"}, {"key": "k", "value": "v", "effect": "NoSchedule"}],
        "priority": 5,
    }
    pod = read_pod({"spec": spec})
    disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
    assert pod.terms == (
        term([disk, {"key": "zone", "operator": "NotIn", "values": ["a"]}]),
        term([disk, {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]),
    )
    assert pod.preferences == (Preference(7, term([{"key": "gpu", "operator": "DoesNotExist"}])),)
    assert pod.tolerations == (Toleration("", "Exists"), Toleration("k", "Equal", "v", "NoSchedule"))
    assert pod.priority == 5


def test_a_pod_whose_alternatives_are_all_empty_fits_nowhere() -> None:
    spec = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}}
    assert read_pod({"spec": spec}).terms == ()


def test_what_a_pod_asks_of_other_pods() -> None:
    app = {"labelSelector": {"matchLabels": {"app": "x"}}}
    spec = {
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 3, **app},
            {"topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash", "no"],
             "maxSkew": 1, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", **app},
            {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
        ],
        "affinity": {
            "podAffinity": {REQUIRED: [{"topologyKey": "zone", **app}]},
            "podAntiAffinity": {
                REQUIRED: [{"topologyKey": "host", "namespaces": ["n"], **app}],
                PREFERRED: [{"weight": 3, "podAffinityTerm": {"topologyKey": "z", "namespaceSelector": {}, **app}}],
            },
        },
    }  # fmt: skip
    pod = read_pod({"metadata": {"namespace": "own", "labels": {"hash": "h"}}, "spec": spec})
    assert pod.spreads == (
        Spread("zone", 2, selector(app="x"), hard=False, min_domains=3),
        Spread("host", 1, selector(app="x", hash="h"), honors_affinity=False, honors_taints=True),
        Spread("rack", 1, Selector()),
    )
    assert pod.affinity == (PodTerm("zone", selector(app="x"), frozenset({"own"})),)
    assert pod.anti_affinity == (
        PodTerm("host", selector(app="x"), frozenset({"n"})),
        PodTerm("z", selector(app="x"), None, 3),
    )


def test_ports_of_the_node_and_gangs() -> None:
    every = "0.0.0.0"  # noqa: S104 - it is read, nothing is bound to it
    ports = [{"containerPort": 80, "hostPort": 8080, "hostIP": every}, {"containerPort": 53, "protocol": "UDP"}]
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    pod = read_pod({"metadata": {"labels": labels}, "spec": {"containers": [{"ports": ports}]}})
    assert (pod.ports, pod.gang) == ((HostPort(8080),), "default/g")
    pod = read_pod({"spec": {"hostNetwork": True, "containers": [{"ports": ports}]}})
    assert (pod.ports, pod.gang) == ((HostPort(8080), HostPort(53, "UDP")), "")


@pytest.mark.parametrize(
    ("manifest", "pointer"),
    [
        ({"spec": []}, "/spec"),
        ({"metadata": {"labels": {"a": 1}}}, "/metadata/labels"),
        ({"spec": {"containers": {}}}, "/spec/containers"),
        ({"spec": {"containers": ["c"]}}, "/spec/containers/0"),
        ({"spec": {"containers": [container("much")]}}, "/spec/containers/0/resources/requests/cpu"),
        ({"spec": {"containers": [container("-1")]}}, "/spec/containers/0/resources/requests/cpu"),
        ({"spec": {"tolerations": [{"operator": "Maybe"}]}}, "/spec/tolerations/0/operator"),
        ({"spec": {"tolerations": [{"effect": "Never"}]}}, "/spec/tolerations/0/effect"),
        ({"spec": {"topologySpreadConstraints": [{"maxSkew": 0}]}}, "/spec/topologySpreadConstraints/0/maxSkew"),
        ({"spec": {"topologySpreadConstraints": [{}]}}, "/spec/topologySpreadConstraints/0/topologyKey"),
        ({"spec": {"priority": "high"}}, "/spec/priority"),
        (
            {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{}]}]}}}}},
            f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms/0",
        ),
        (
            {"spec": {"topologySpreadConstraints": [{"topologyKey": "z", "matchLabelKeys": 7}]}},
            "/spec/topologySpreadConstraints/0/matchLabelKeys",
        ),
        (
            {"spec": {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z", "namespaces": "n"}]}}}},
            f"/spec/affinity/podAffinity/{REQUIRED}/0/namespaces",
        ),
    ],
)
def test_what_cannot_be_read_names_the_field(manifest: dict[str, Any], pointer: str) -> None:
    with pytest.raises(ValueError, match=f"^{pointer}: "):
        read_pod(manifest)


@pytest.mark.parametrize(
    ("operator", "bound", "taint", "tolerates"),
    [
        ("Gt", "900", "950", True),
        ("Gt", "900", "900", False),
        ("Lt", "900", "-5", True),
        ("Lt", "900", "1000", False),
        ("Lt", "900", "few", False),
        ("Lt", "900", "0900", False),
    ],
)
def test_a_toleration_compares_whole_numbers(operator: str, bound: str, taint: str, *, tolerates: bool) -> None:
    toleration = {"key": "sla", "operator": operator, "value": bound}
    (read,) = read_pod({"metadata": {"namespace": "a"}, "spec": {"tolerations": [toleration]}}).tolerations
    assert read.tolerates(Taint("sla", taint)) is tolerates
    assert not read.tolerates(Taint("other", taint))


def test_a_toleration_that_compares_needs_a_number() -> None:
    toleration = {"key": "sla", "operator": "Gt", "value": "much"}
    with pytest.raises(ValueError, match="tolerations/0/value: Gt needs a whole number"):
        read_pod({"metadata": {"namespace": "a"}, "spec": {"tolerations": [toleration]}})
