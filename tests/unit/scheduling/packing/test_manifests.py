"""Pods of Kubernetes as the packer reads them."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.fields import MOST_ENTRIES
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Pod, Preference, Taint, Toleration, term

GIB = 2**30 * 1000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


TOLERATIONS: list[tuple[dict[str, Any], str]] = [
    ({"operator": "Maybe"}, "operator"),
    ({"operator": True}, "operator"),
    ({"value": "v"}, "operator"),
    ({"key": 7, "operator": "Exists"}, "key"),
    ({"key": "k", "value": True}, "value"),
    ({"key": "k", "value": 0}, "value"),
    ({"key": "k", "operator": "Exists", "value": "v"}, "value"),
    ({"key": "k", "operator": "Gt", "value": "much"}, "value"),
    ({"key": "k", "effect": "Never"}, "effect"),
    ({"key": "k", "effect": False}, "effect"),
    ({"key": "k", "tolerationSeconds": "5"}, "tolerationSeconds"),
    ({"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5}, "effect"),
]
"""What the API server refuses of a toleration, with the field."""
TERM = f"/spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms/0"
NODE_TERMS: list[tuple[dict[str, Any], str]] = [
    ({"matchExpressions": [{}]}, "/matchExpressions/0/key"),
    ({"matchExpressions": [{"key": "k"}]}, "/matchExpressions/0/operator"),
    ({"matchExpressions": [{"key": "k", "operator": "Gte", "values": ["1"]}]}, "/matchExpressions/0/operator"),
    ({"matchExpressions": [{"key": "k", "operator": "In", "values": [True]}]}, "/matchExpressions/0/values/0"),
    ({"matchExpressions": [{"key": "k", "operator": "In"}]}, "/matchExpressions/0"),
    ({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}, "/matchFields/0/operator"),
]
"""What it refuses of a node selector's term."""


def container(cpu: str = "", memory: str = "", **fields: Any) -> dict[str, Any]:
    amounts = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return {"name": "c", "resources": {"requests": amounts}, **fields}


def test_a_plain_pod() -> None:
    manifest = {
        "metadata": {"name": "p", "labels": {"b": "2", "a": "1"}},
        "spec": {"containers": [container("250m", "1Gi")]},
    }
    assert read_pod(manifest) == Pod(
        "default", (("a", "1"), ("b", "2")), (("cpu", 250), ("memory", GIB), ("pods", 1000))
    )


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
    spec: dict[str, Any] = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}}
    assert read_pod({"spec": spec}).terms == ()


def test_ports_of_the_node_and_gangs() -> None:
    every = "0.0.0.0"  # noqa: S104 - it is read, nothing is bound to it
    ports = [{"containerPort": 80, "hostPort": 8080, "hostIP": every}, {"containerPort": 53, "protocol": "UDP"}]
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    pod = read_pod({"metadata": {"labels": labels}, "spec": {"containers": [{"ports": ports}]}})
    assert (pod.ports, pod.gang) == ((HostPort(8080),), "default/g")
    starting = [{"ports": [{"hostPort": 1}]}, {"ports": [{"hostPort": 2}], "restartPolicy": "Always"}]
    pod = read_pod({"spec": {"containers": [{"ports": ports}], "initContainers": starting}})
    assert pod.ports == (HostPort(8080), HostPort(2))  # a sidecar's port, and none of what ends
    pod = read_pod({"spec": {"hostNetwork": True, "containers": [{"ports": ports}]}})
    assert (pod.ports, pod.gang) == ((HostPort(8080), HostPort(53, "UDP")), "")


MANY = range(MOST_ENTRIES + 1)
PORTS = [{"hostPort": 1000 + number} for number in MANY]
TOO_MANY: dict[str, dict[str, Any]] = {
    "/spec/containers/1/ports/0": {"containers": [{"ports": PORTS[1:]}, {"ports": PORTS[:1]}]},
    "/spec/containers/0/ports": {"containers": [{"ports": PORTS}]},
    "/spec/containers": {"containers": [{} for _ in MANY]},
    "/spec/tolerations": {"tolerations": [{"operator": "Exists"} for _ in MANY]},
    "/spec/nodeSelector": {"nodeSelector": {f"k{number}": "v" for number in MANY}},
    f"/spec/affinity/nodeAffinity/{PREFERRED}": {
        "affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}} for _ in MANY]}}
    },
    f"/spec/affinity/podAntiAffinity/{PREFERRED}": {"affinity": {"podAntiAffinity": {PREFERRED: [{} for _ in MANY]}}},
}
"""What would make the work of one pod unbounded, by the field that is named."""


@pytest.mark.parametrize(
    ("manifest", "pointer"),
    [
        ({"spec": []}, "/spec"),
        ({"metadata": {"labels": {"a": 1}}}, "/metadata/labels/a"),
        ({"metadata": {"namespace": 7}}, "/metadata/namespace"),
        ({"spec": {"nodeSelector": {"gpu": True}}}, "/spec/nodeSelector/gpu"),
        ({"spec": {"containers": {}}}, "/spec/containers"),
        ({"spec": {"containers": ["c"]}}, "/spec/containers/0"),
        ({"spec": {"containers": [container("much")]}}, "/spec/containers/0/resources/requests/cpu"),
        ({"spec": {"containers": [container("-1")]}}, "/spec/containers/0/resources/requests/cpu"),
        ({"spec": {"hostNetwork": "yes"}}, "/spec/hostNetwork"),
        ({"spec": {"containers": [{"ports": [{"hostPort": "80"}]}]}}, "/spec/containers/0/ports/0/hostPort"),
        ({"spec": {"containers": [{"ports": [{"hostPort": 65536}]}]}}, "/spec/containers/0/ports/0/hostPort"),
        ({"spec": {"containers": [{"ports": [{"protocol": "tcp"}]}]}}, "/spec/containers/0/ports/0/protocol"),
        ({"spec": {"initContainers": [{"restartPolicy": True}]}}, "/spec/initContainers/0/restartPolicy"),
        ({"spec": {"resourceClaims": [{}]}}, "/spec/resourceClaims/0/name"),
        *(
            ({"spec": {"tolerations": [toleration]}}, f"/spec/tolerations/0/{field}")
            for toleration, field in TOLERATIONS
        ),
        ({"spec": {"priority": "high"}}, "/spec/priority"),
        *(({"spec": spec}, field) for field, spec in TOO_MANY.items()),
        *(
            (
                {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term_document]}}}}},
                f"{TERM}{field}",
            )
            for term_document, field in NODE_TERMS
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


def test_claims_to_devices_are_known_by_their_names() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}, {"name": "nic", "resourceClaimName": "two"}]
    assert read_pod({"spec": {"resourceClaims": claims}}).devices == ("gpu", "nic")
