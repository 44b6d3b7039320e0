"""Pods and nodes as the scheduler sees them, read from their documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.kubernetes.placing.requests import Port, ports_of, requests_of
from local.kubernetes.placing.selectors import Labels, Object, selects
from stockyard.domain.values.quantities import milli

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "topology.ebs.csi.aws.com/zone": ZONE,
}
"""Labels that cloud controllers and drivers of volumes put on nodes beside those of now."""
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "value": "", "effect": "NoSchedule"}
HARD = "DoNotSchedule"


@dataclass(frozen=True, slots=True)
class Term:
    """A term of affinity to pods, or against them. ``namespaces`` None: all that ``of_namespaces`` selects."""

    key: str
    selector: Mapping[str, Any] | None
    namespaces: frozenset[str]
    of_namespaces: Mapping[str, Any] | None
    weight: int = 0

    def matches(self, pod: Pod, spaces: Mapping[str, Labels]) -> bool:
        """Whether the term speaks of the pod. ``spaces`` are labels of namespaces."""
        if not selects(self.selector, pod.labels):
            return False
        return pod.namespace in self.namespaces or (
            self.of_namespaces is not None and selects(self.of_namespaces, spaces.get(pod.namespace, {}))
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """A rule of how pods are spread over the values of a label."""

    key: str
    skew: int
    hard: bool
    selector: Mapping[str, Any] | None
    least: int
    honors_affinity: bool
    honors_taints: bool


@dataclass(slots=True, eq=False)
class Pod:
    """A pod. ``required`` are the terms of its node affinity, None where it has none."""

    document: Object
    namespace: str
    name: str
    labels: Labels
    requests: Mapping[str, int]
    ports: frozenset[Port]
    tolerations: Sequence[Object]
    selector: Labels
    required: Sequence[Object] | None
    preferred: Sequence[Object]
    affinity: tuple[Term, ...]
    apart: tuple[Term, ...]
    preferences: tuple[Term, ...]
    """Preferred terms; those against pods have a weight below 0."""
    spread: tuple[Spread, ...]
    claims: tuple[str, ...]
    priority: int
    preempts: bool

    @property
    def ending(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.document["metadata"]

    @property
    def nominated(self) -> str:
        """The node that it was given and is not bound to yet, empty for none."""
        return str((self.document.get("status") or {}).get("nominatedNodeName") or "")


@dataclass(slots=True, eq=False)
class Node:
    """A node with its pods. ``taints`` hold those that follow from its state. ``limits`` are volumes by driver."""

    name: str
    labels: Labels
    taints: Sequence[Object]
    allocatable: Mapping[str, int]
    limits: Mapping[str, int]
    pods: list[Pod] = field(default_factory=list)
    guards: list[Pod] = field(default_factory=list)
    """Its pods that will not have all others beside them."""
    used: Counter[str] = field(default_factory=Counter)

    def add(self, pod: Pod) -> None:
        """A pod comes."""
        self.pods.append(pod)
        self.used.update(pod.requests)
        if pod.apart:
            self.guards.append(pod)

    def take(self, pod: Pod) -> None:
        """A pod goes."""
        self.pods.remove(pod)
        self.used.subtract(pod.requests)
        if pod.apart:
            self.guards.remove(pod)

    def free(self, name: str) -> int:
        """Thousandths of a resource that no pod has."""
        return self.allocatable.get(name, 0) - self.used[name]


def pod_of(document: Object, classes: Mapping[str, int] | None = None) -> Pod:
    """Read a pod. ``classes`` are the values of classes of priority."""
    meta, spec = document["metadata"], document["spec"]
    labels, namespace = meta.get("labels") or {}, meta.get("namespace") or "default"
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    required = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution")
    together, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"

    def terms(entries: Iterable[Object], weight: int = 0) -> tuple[Term, ...]:
        return tuple(_term(entry, namespace, labels, weight) for entry in entries)

    def preferences(entries: Iterable[Object], sign: int) -> tuple[Term, ...]:
        return tuple(_term(entry["podAffinityTerm"], namespace, labels, sign * entry["weight"]) for entry in entries)

    priority = spec.get("priority")
    if priority is None:
        priority = (classes or {}).get(spec.get("priorityClassName") or "", 0)
    return Pod(
        document, namespace, meta["name"], labels, requests_of(document), ports_of(document),
        spec.get("tolerations") or (), spec.get("nodeSelector") or {},
        None if required is None else required.get("nodeSelectorTerms") or (), of_nodes.get(soft) or (),
        terms(together.get(hard) or ()), terms(apart.get(hard) or ()),
        (*preferences(together.get(soft) or (), 1), *preferences(apart.get(soft) or (), -1)),
        tuple(_spread(entry, labels) for entry in spec.get("topologySpreadConstraints") or ()),
        _claims(document), int(priority), spec.get("preemptionPolicy") != "Never",
    )  # fmt: skip


def _term(entry: Object, namespace: str, labels: Labels, weight: int) -> Term:
    named, of_namespaces = entry.get("namespaces") or (), entry.get("namespaceSelector")
    namespaces = frozenset(named) if named or of_namespaces is not None else frozenset((namespace,))
    selector = _with_keys(entry.get("labelSelector"), labels, entry.get("matchLabelKeys") or (), "In")
    selector = _with_keys(selector, labels, entry.get("mismatchLabelKeys") or (), "NotIn")
    return Term(entry["topologyKey"], selector, namespaces, of_namespaces, weight)


def _with_keys(selector: Object | None, labels: Labels, keys: Sequence[str], operator: str) -> Object | None:
    """The selector with the pod's own values of these labels, as the API server adds them."""
    own = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
    if selector is None or not own:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *own]}


def _spread(entry: Object, labels: Labels) -> Spread:
    selector = _with_keys(entry.get("labelSelector"), labels, entry.get("matchLabelKeys") or (), "In")
    return Spread(
        entry["topologyKey"], int(entry.get("maxSkew") or 1), entry.get("whenUnsatisfiable", HARD) == HARD, selector,
        int(entry.get("minDomains") or 1), entry.get("nodeAffinityPolicy", "Honor") == "Honor",
        entry.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )  # fmt: skip


def _claims(document: Object) -> tuple[str, ...]:
    names = []
    for volume in document["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            names.append(str(volume["persistentVolumeClaim"]["claimName"]))
        elif "ephemeral" in volume:
            names.append(f"{document['metadata']['name']}-{volume['name']}")
    return tuple(names)


def node_of(document: Object, limits: Mapping[str, int] | None = None) -> Node:
    """Read a node. ``limits`` are those of its CSINode."""
    meta, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    labels = dict(meta.get("labels") or {})
    for alias, label in ALIASES.items():
        if label in labels:
            labels.setdefault(alias, labels[label])
    taints = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints.append(UNSCHEDULABLE)
    state = next((part["status"] for part in status.get("conditions") or () if part["type"] == "Ready"), "Unknown")
    if state != "True":
        taints.append(NOT_READY if state == "False" else UNREACHABLE)
    allocatable = {name: milli(quantity) for name, quantity in (status.get("allocatable") or {}).items()}
    return Node(meta["name"], labels, taints, allocatable, limits or {})
