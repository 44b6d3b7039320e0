"""Other controllers of a simulated cluster: accounts of namespaces, dependents of deleted objects, addresses of
services, and events of pods that wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.kubernetes import pods as kube_pods
from local.kubernetes.store import Key, KubeStore, Object, stamp

LEASES = "kube-node-lease"
_CONTENT = "kubernetes"
"""The finalizer of a namespace that is to go and is not empty."""
_OWNERS = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Job"})


def keep(store: KubeStore) -> None:
    """One round of all of them."""
    _collect(store)
    _lose_nodes(store)
    _end_namespaces(store)
    for key in list(store.objects):
        if key.resource == "namespaces":
            _give_account(store, key.name)
        elif key.resource == "nodes":
            _give_lease(store, key)
        elif key.resource == "services":
            _give_address(store, key)
    _tell_of_waiting_pods(store)


def _collect(store: KubeStore) -> None:
    """Delete what belongs to objects that are gone."""
    owner_uids, store.ended_owners = store.ended_owners, set()
    if not owner_uids:
        return
    for key, document in list(store.objects.items()):
        owners = document["metadata"].get("ownerReferences") or ()
        if owners and all(owner.get("uid") in owner_uids for owner in owners) and key in store.objects:
            (kube_pods.delete if key.resource == "pods" else KubeStore.remove)(store, key, {})


def _lose_nodes(store: KubeStore) -> None:
    """Delete the pods of workloads whose node is gone."""
    nodes = {key.name for key in store.objects if key.resource == "nodes"}
    for key, pod in list(store.objects.items()):
        if key.resource != "pods" or pod["spec"].get("nodeName", "") in ("", *nodes):
            continue
        uids = {owner.get("uid") for owner in pod["metadata"].get("ownerReferences") or () if owner["kind"] in _OWNERS}
        if any(
            other["metadata"]["uid"] in uids for name, other in store.objects.items() if name.group in ("apps", "batch")
        ):
            store.remove(key, {})


def end_namespace(store: KubeStore, key: Key, options: Mapping[str, Any]) -> Object | None:
    """Delete a namespace and what is in it. While something is left in it, the namespace is marked, and returned.

    Raises ``StatusError`` 404, 409.
    """
    document = store.get(key)
    if any(other.namespace == key.name for other in store.objects):
        meta = document["metadata"]
        finalizers = list(dict.fromkeys([*(meta.get("finalizers") or ()), _CONTENT]))
        status = {**(document.get("status") or {}), "phase": "Terminating"}
        store.replace(key, {**document, "metadata": {**meta, "finalizers": finalizers}, "status": status})
    marked = store.remove(key, options)
    if marked is None:
        return None
    _empty(store, key)
    return store.objects.get(key)


def _end_namespaces(store: KubeStore) -> None:
    """Go on with the namespaces that are to go."""
    for key, document in list(store.objects.items()):
        if key.resource == "namespaces" and "deletionTimestamp" in document["metadata"]:
            _empty(store, key)


def _empty(store: KubeStore, space: Key) -> None:
    """Delete what is in a namespace, and then the namespace."""
    for key in [key for key in store.objects if key.namespace == space.name]:
        document = store.objects.get(key)
        if document is not None and "deletionTimestamp" not in document["metadata"]:
            (kube_pods.delete if key.resource == "pods" else KubeStore.remove)(store, key, {})
    document = store.objects[space]
    finalizers = document["metadata"].get("finalizers") or []
    if _CONTENT in finalizers and not any(key.namespace == space.name for key in store.objects):
        finalizers_left = [name for name in finalizers if name != _CONTENT]
        store.replace(space, {**document, "metadata": {**document["metadata"], "finalizers": finalizers_left}})
        if not finalizers_left:
            store.remove(space, {})


def _give_account(store: KubeStore, space: str) -> None:
    key = Key("", "serviceaccounts", space, "default")
    if (
        key not in store.objects
        and "deletionTimestamp" not in store.objects[Key("", "namespaces", "", space)]["metadata"]
    ):
        store.create(key, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}})


def _give_lease(store: KubeStore, node: Key) -> None:
    """Kubelets do not renew it here, where nobody asks how old it is."""
    key = Key("coordination.k8s.io", "leases", LEASES, node.name)
    if key not in store.objects and Key("", "namespaces", "", LEASES) in store.objects:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": store.objects[node]["metadata"]["uid"]}
        about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"ownerReferences": [owner]}}
        store.create(key, {**about, "spec": {"holderIdentity": node.name, "leaseDurationSeconds": 40}})


def _give_address(store: KubeStore, key: Key) -> None:
    service = store.objects[key]
    spec = addressed(service["spec"], int(service["metadata"]["resourceVersion"]))
    if spec != service["spec"]:
        store.replace(key, {**service, "spec": spec})


def addressed(spec: Mapping[str, Any], number: int) -> Object:
    """The specification of a service with its type and an address, which the number decides."""
    if spec.get("clusterIP") or spec.get("type") == "ExternalName":
        return dict(spec)
    index = number % 60_000
    return {"type": "ClusterIP", **spec, "clusterIP": f"10.96.{1 + index // 250}.{1 + index % 250}"}


def _tell_of_waiting_pods(store: KubeStore) -> None:
    """An event for each pod that the scheduler has found no node for, while it waits."""
    waiting: dict[Key, tuple[Object, str]] = {}
    for key, pod in store.objects.items():
        if key.resource == "pods" and not pod["spec"].get("nodeName"):
            for condition in (pod.get("status") or {}).get("conditions") or ():
                if condition.get("reason") == "Unschedulable":
                    name = f"{key.name}.{pod['metadata']['uid']}"
                    waiting[Key("", "events", key.namespace, name)] = pod, str(condition.get("message", ""))
    for key in [key for key, event in store.objects.items() if key.resource == "events" and _is_told(event)]:
        if key not in waiting:
            store.remove(key, {})
    for key, (pod, message) in waiting.items():
        _tell(store, key, pod, message)


def _is_told(event: Object) -> bool:
    return bool(event.get("reason") == "FailedScheduling")


def _tell(store: KubeStore, key: Key, pod: Object, message: str) -> None:
    meta, now = pod["metadata"], stamp(store.now())
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
    }
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {}, "involvedObject": about, "type": "Warning", "count": 1,
        "reason": "FailedScheduling", "message": message, "source": {"component": "default-scheduler"},
        "firstTimestamp": now, "lastTimestamp": now,
    }  # fmt: skip
    before = store.objects.get(key)
    if before is None:
        store.create(key, event)
    elif before["message"] != message:
        store.replace(key, {**before, "message": message, "lastTimestamp": now, "count": before["count"] + 1})
