"""Scheduling part of a pod, which decides where it may go: the part of its manifest that Stockyard reads, the same for
equal pods."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..kubernetes import Object

GANG = "scheduling.x-k8s.io/pod-group"
"""The label that pods of one gang share."""
DAEMON_SET = "DaemonSet"
_AS_THEY_ARE = ("nodeSelector", "topologySpreadConstraints", "overhead", "hostNetwork", "priority")
_RESOURCES = ("requests", "limits")
_PORT = ("hostIP", "protocol")
_TOLERATION = ("key", "operator", "value", "effect")
TERMS = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
_NODE = "node.kubernetes.io/"
_OF_EVERY_DAEMON = tuple(
    {"key": _NODE + key, "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"),
    )
)  # fmt: skip
"""What the controller of DaemonSets adds to the tolerations of their pods."""
MOST_REFUSAL = 512
"""The longest text that is told of what the scheduler says, in characters."""
_REASONS = re.compile(r"\d+/\d+ nodes are available: *(.*)")
_PREEMPTION = re.compile(r"\.? *(?:no new claims to deallocate, *)?preemption: ")
_NEXT_REASON = re.compile(r", (?=\d+ )")
_COUNT = re.compile(r"\d+ ")


def scheduling_part(spec: Object, *, daemon: bool = False) -> dict[str, Any]:
    """The part of a pod's specification that scheduling reads.

    Of a DaemonSet's pod the node affinity is left out: it names the pod's own node.
    """
    part: dict[str, Any] = {name: spec[name] for name in _AS_THEY_ARE if spec.get(name)}
    affinity = {name: rules for name, rules in (spec.get("affinity") or {}).items() if rules}
    if daemon:
        affinity.pop("nodeAffinity", None)
    listed = {
        "affinity": affinity,
        "tolerations": [_only(toleration, _TOLERATION) for toleration in spec.get("tolerations") or ()],
        "initContainers": list(_containers(spec, "initContainers")),
        "containers": list(_containers(spec, "containers")),
        "resources": _resources(spec),
        "resourceClaims": [_only(claim, ("name",)) for claim in spec.get("resourceClaims") or ()],
    }
    return {**part, **{name: value for name, value in listed.items() if value}}


def daemon_part(spec: Object) -> dict[str, Any]:
    """The same of the template of a DaemonSet, with what its controller adds."""
    part = scheduling_part(spec)
    return {**part, "tolerations": [*part.get("tolerations", ()), *_OF_EVERY_DAEMON]}


def _containers(spec: Object, name: str) -> Iterator[dict[str, Any]]:
    for container in spec.get(name) or ():
        part: dict[str, Any] = {}
        if resources := _resources(container):
            part["resources"] = resources
        if ports := [_port(port) for port in container.get("ports") or () if _on_node(port, spec)]:
            part["ports"] = ports
        if part:
            yield {**part, **_only(container, ("restartPolicy",))}


def _resources(document: Object) -> dict[str, Any]:
    return _only(document.get("resources") or {}, _RESOURCES)


def _on_node(port: Object, spec: Object) -> bool:
    return bool(port.get("hostPort") or spec.get("hostNetwork"))


def _port(port: Object) -> dict[str, Any]:
    return {"hostPort": port.get("hostPort") or port["containerPort"], **_only(port, _PORT)}


def _only(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: document[name] for name in names if document.get(name)}


def selected_keys(part: Mapping[str, Any]) -> frozenset[str]:
    """The keys of the labels that a specification's rules select other pods by."""
    affinity = part.get("affinity") or {}
    rules = list(part.get("topologySpreadConstraints") or ())
    for kind in ("podAffinity", "podAntiAffinity"):
        for name in TERMS:
            terms = (affinity.get(kind) or {}).get(name) or ()
            rules += [term.get("podAffinityTerm", term) for term in terms]
    keys: set[str] = set()
    for rule in rules:
        selector = rule.get("labelSelector") or {}
        keys.update(selector.get("matchLabels") or ())
        keys.update(expression["key"] for expression in selector.get("matchExpressions") or ())
        keys.update(rule.get("matchLabelKeys") or ())
        keys.update(rule.get("mismatchLabelKeys") or ())
    return frozenset(keys)


def node_keys(template: Mapping[str, Any]) -> frozenset[str]:
    """The keys of the labels of nodes that a template's rules and volumes name."""
    spec = template["spec"]
    affinity = spec.get("affinity") or {}
    keys = {*(spec.get("nodeSelector") or ())}
    for rule in (affinity.get("nodeAffinity"), template.get("volumes")):
        keys.update(_values(rule, "key"))
    for rule in (affinity, spec.get("topologySpreadConstraints")):
        keys.update(_values(rule, "topologyKey"))
    return frozenset(keys)


def _values(document: Any, name: str) -> Iterator[str]:
    """The texts of all members of that name."""
    if isinstance(document, dict):
        if isinstance(document.get(name), str):
            yield document[name]
        document = list(document.values())
    for item in document if isinstance(document, list) else ():
        yield from _values(item, name)


def daemon_set_of(pod: Object) -> str:
    """Namespace and name of the DaemonSet that the pod is of; empty for any other pod."""
    meta = pod["metadata"]
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == DAEMON_SET:
            return f"{meta.get('namespace', '')}/{owner['name']}"
    return ""


def needs_node(pod: Object) -> bool:
    """Whether the scheduler is to find a node for the pod.

    Not so: a pod that is gated, that is deleted, or that a DaemonSet made.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if spec.get("nodeName") or status.get("phase") != "Pending":
        return False
    return not ("deletionTimestamp" in pod["metadata"] or spec.get("schedulingGates") or daemon_set_of(pod))


def waits(pod: Object) -> bool:
    """Whether the scheduler has found no node for the pod, and a new one might do."""
    return needs_node(pod) and bool(_refusals(pod))


def refusal_of(pod: Object) -> str:
    """Reason of the scheduler why a pod waits, such as ``Insufficient cpu; node(s) had untolerated taint {a: }``; empty
    for nothing.

    How many nodes there are, and for how many each reason holds, is left out: it changes all the time. So is what
    preemption adds. Characters that are not printed become spaces.
    """
    message = next((str(condition.get("message") or "") for condition in _refusals(pod)), "")
    text = " ".join("".join(char if char.isprintable() else " " for char in message).split())
    counted = _REASONS.fullmatch(text)
    if counted is not None:
        reasons = _NEXT_REASON.split(_PREEMPTION.split(counted[1], maxsplit=1)[0].rstrip("."))
        # Ordered by their counts they would change places.
        text = "; ".join(
            sorted({_COUNT.sub("", reason, count=1) if _COUNT.match(reason) else reason for reason in reasons})
        )
    return text[:MOST_REFUSAL].rstrip()


def _refusals(pod: Object) -> Sequence[Mapping[str, Any]]:
    """The conditions which say that the scheduler has found no node."""
    return [
        condition
        for condition in (pod.get("status") or {}).get("conditions") or ()
        if condition.get("type") == "PodScheduled"
        and condition.get("status") == "False"
        and condition.get("reason") == "Unschedulable"
    ]


def nominated_node(pod: Object) -> str:
    """The node that the scheduler has given to the pod without binding it yet; empty for none.

    It preempts others there, or waits until all that the pod needs is ready, such as a volume. kube-scheduler takes the
    nomination back when the pod fails to be scheduled.
    """
    return str((pod.get("status") or {}).get("nominatedNodeName") or "") if needs_node(pod) else ""


def claims_of(pod: Object) -> tuple[str, ...]:
    """The names of the PersistentVolumeClaims that the pod needs, in its own namespace."""
    names = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            names.append(str(claim["claimName"]))
        elif volume.get("ephemeral"):
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return tuple(names)


def canonical(document: Any) -> str:
    """The document as text, equal for equal ones."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def group_id(template: Mapping[str, Any]) -> str:
    """A name of equal pods: 16 hexadecimal digits of the template's hash."""
    return hashlib.sha256(canonical(template).encode()).hexdigest()[:16]
