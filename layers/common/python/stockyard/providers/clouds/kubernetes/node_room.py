"""Room that a host's nodes still have: what may be allocated, less the requests of the pods that stand there.

The host's owner lets an account look by its feature ``capacity``: nodes and pods of the whole host are listed, and
nothing of them is kept but labels, taints and sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.domain.values.quantities import milli
from stockyard.errors import VendorError
from stockyard.providers.clouds.kubernetes.features import KUBEVIRT, VIRTUAL_MACHINE
from stockyard.providers.clouds.kubernetes.marks import (
    NODE_PROVIDER,
    NODE_TYPE,
    RESOURCE,
    TENANT,
    label_value,
    labels_of,
)
from stockyard.providers.kubernetes.client import KubernetesApi

MOST_NODES, MOST_PODS, MOST_PODS_OF_SITE = 500, 5_000, 1_000
"""Nodes and pods that are counted at most, the last through a site, where each page waits for its connector: of a
larger host only ``maxCapacity`` is known."""
SCHEDULABLE = "kubevirt.io/schedulable"
"""Label of the nodes that KubeVirt starts machines on."""
SCHEDULED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that take room of a node."""
_PAGE = 100
_KEEPS_OUT = frozenset({"NoSchedule", "NoExecute"})
_LEFT_OUT = ("ephemeral-storage", "attachable-volumes-")
"""Resources that machines do not ask for."""
_PIECE = 1000
"""Of a resource that is counted by pieces, in thousandths."""
_SIDECAR = "Always"
Amounts = Mapping[str, int]
"""Thousandths of units, by resource."""


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A node on which machines may be started: its labels, the taints that keep pods out, and what is free there."""

    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]]
    free: Amounts


@dataclass(frozen=True, slots=True)
class Rooms:
    """Room of a host's nodes. ``machines`` counts the tenant's own that stand on them, by ``machine_key``.

    ``blocker`` is the reason why nothing was counted; None where it was.
    """

    nodes: Sequence[NodeRoom] = field(default=())
    machines: Mapping[str, int] = field(default_factory=dict)
    blocker: str | None = None


def machine_key(namespace: str, provider_id: str, node_type: str) -> str:
    """The key of the machines of a node type, by the provider's id and the type's bare name."""
    return "/".join((namespace, label_value(provider_id), label_value(node_type)))


def counted(api: KubernetesApi, account: CloudAccount, tenant: str) -> Rooms:
    """The room of the account's host, now. One that may not be looked at, or is too large, has a blocker; raises
    ``VendorError`` leaves where it cannot be asked now."""
    most_pods = MOST_PODS if account.attributes.get("via") is None else MOST_PODS_OF_SITE
    try:
        nodes = api.list("v1", "Node", page=_PAGE, most=MOST_NODES + 1)
        pods = api.list("v1", "Pod", fields=SCHEDULED, page=_PAGE, most=most_pods + 1, part=_scheduled_pod)
        machines = _machines(api, account, tenant) if KUBEVIRT in account.attributes["features"] else {}
    except VendorError as error:
        if error.retryable:
            raise
        return Rooms(blocker=error.detail[:300])
    for things, most, word in ((nodes, MOST_NODES, "nodes"), (pods, most_pods, "pods")):
        if len(things) > most:
            return Rooms(blocker=f"The host has more than {most} {word}.")
    return Rooms(list(rooms(nodes, pods)), _scheduled_machines(pods, machines))


def _scheduled_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of a pod that are kept: its node, what it takes there, and the name of the machine that it may be of."""
    machine = (pod["metadata"]["namespace"], labels_of(pod).get(RESOURCE))
    return {"node": pod["spec"]["nodeName"], "amounts": requests_of(pod["spec"]), "place": machine}


def rooms(nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> Iterable[NodeRoom]:
    """The room of each node on which KubeVirt starts machines, beside these pods."""
    used: dict[str, Counter[str]] = {}
    for pod in pods:
        used.setdefault(str(pod["node"]), Counter()).update(pod["amounts"])
    for node in nodes:
        spec, labels = node.get("spec") or {}, labels_of(node)
        if labels.get(SCHEDULABLE) != "true" or spec.get("unschedulable"):
            continue
        used_there = used.get(str(node["metadata"]["name"]), Counter[str]())
        allocatable = amounts((node.get("status") or {}).get("allocatable"))
        free = {
            name: max(0, amount - used_there[name])
            for name, amount in allocatable.items()
            if amount and not name.startswith(_LEFT_OUT)
        }
        taints = [
            {key: str(each.get(key) or "") for key in ("key", "value", "effect")}
            for each in spec.get("taints") or ()
            if each.get("effect") in _KEEPS_OUT
        ]
        yield NodeRoom(dict(labels), taints, free)


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """Resources that a pod takes of its node, one of ``pods`` among them: those of its containers and sidecars, or of
    an init container where that is more, and its overhead. What the pod asks for as a whole stands in place of that."""
    running: Counter[str] = Counter()
    starting: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        own = _of_container(container)
        if container.get("restartPolicy") == _SIDECAR:
            running.update(own)
            starting |= running
        else:
            starting |= running + Counter(own)
    for container in spec.get("containers") or ():
        running.update(_of_container(container))
    total = dict(running | starting) | _of_container(spec)
    return Counter(total) + Counter(amounts(spec.get("overhead"))) + Counter({"pods": _PIECE})


def amounts(quantities: Any) -> dict[str, int]:
    """Quantities by resource; one that cannot be read is not there."""
    result: dict[str, int] = {}
    for name, quantity in (quantities if isinstance(quantities, Mapping) else {}).items():
        try:
            result[str(name)] = max(0, milli(quantity))
        except ValueError:
            continue
    return result


def _of_container(container: Mapping[str, Any]) -> dict[str, int]:
    """Requests; a limit stands for one that is missing."""
    resources = container.get("resources") or {}
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def _machines(api: KubernetesApi, account: CloudAccount, tenant: str) -> dict[tuple[str, str], str]:
    """The keys of the tenant's virtual machines, by namespace and the label of their claims."""
    keys: dict[tuple[str, str], str] = {}
    kind = VIRTUAL_MACHINE
    for namespace in account.attributes["namespaces"]:
        for machine in api.list(kind.api_version, kind.kind, str(namespace), f"{TENANT}={label_value(tenant)}"):
            labels = labels_of(machine)
            names = (labels.get(NODE_PROVIDER, ""), labels.get(NODE_TYPE, ""))
            keys[str(namespace), labels.get(RESOURCE, "")] = machine_key(str(namespace), *names)
    return keys


def _scheduled_machines(pods: Iterable[Mapping[str, Any]], machines: Mapping[tuple[str, str], str]) -> dict[str, int]:
    """Number of machines whose pods take room of a node already."""
    machines_of_pods = {pod["place"] for pod in pods}
    return dict(Counter(key for machine, key in machines.items() if machine in machines_of_pods))
