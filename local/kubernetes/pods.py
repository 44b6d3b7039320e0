"""Deletion of pods in a simulated Kubernetes API: grace periods, and eviction under disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from local.kubernetes.store import Key, KubeStore, Object, StatusError, copied, stamp

_FINISHED = ("Succeeded", "Failed")
_DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
STUBBORN = "stockyard.dev/ignores-sigterm"
"""Annotation of a simulated pod whose program ends only when it is killed."""


def defaulted(spec: Mapping[str, Any]) -> Object:
    """The specification of a pod with what the API server writes where it says nothing."""
    return {**_DEFAULTS, **spec}


def delete(store: KubeStore, key: Key, options: Mapping[str, Any]) -> Object | None:
    """Delete a pod. It is marked until its kubelet ends it (``reap``). With grace 0, or when finished, it goes at once.

    A second deletion can only shorten the grace. Raises ``StatusError`` 404, 409.
    """
    pod = store.get(key)
    own = pod["spec"].get("terminationGracePeriodSeconds", 30)
    grace = own if options.get("gracePeriodSeconds") is None else int(options["gracePeriodSeconds"])
    if grace == 0 or pod["status"].get("phase") in _FINISHED or not pod["spec"].get("nodeName"):
        return store.remove(key, options)
    uid = (options.get("preconditions") or {}).get("uid")
    if uid not in (None, pod["metadata"]["uid"]):
        return store.remove(key, options)  # which refuses
    end = stamp(store.now() + timedelta(seconds=grace))
    meta, before = pod["metadata"], copied(pod)
    store.revision += 1
    meta["resourceVersion"] = str(store.revision)
    meta["deletionTimestamp"] = min(meta.get("deletionTimestamp", end), end)
    meta["deletionGracePeriodSeconds"] = grace
    store.note(key, before)
    return pod


def evict(store: KubeStore, key: Key, eviction: Mapping[str, Any]) -> Object:
    """The eviction subresource. Raises ``StatusError`` 404, 409, 429 (a budget), 500 (two budgets)."""
    namespace = Key("", "namespaces", "", key.namespace)
    if namespace not in store.objects and not any(other.namespace == key.namespace for other in store.objects):
        raise StatusError(404, f"{namespace} not found", key=namespace)
    pod = store.get(key)
    if eviction.get("kind") != "Eviction" or (eviction.get("metadata") or {}).get("name") != key.name:
        raise StatusError(400, "name in URL does not match name in Eviction object")
    waived = pod["status"].get("phase") in (*_FINISHED, "Pending") or "deletionTimestamp" in pod["metadata"]
    if not waived:
        _check_budgets(store, key.namespace, pod)
    delete(store, key, eviction.get("deleteOptions") or {})
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def reap(store: KubeStore, *, all_marked: bool = False, nodes_down: frozenset[str] = frozenset()) -> int:
    """Remove the marked pods whose grace period is over, as kubelets do. Returns their number.

    ``all_marked`` removes every marked pod: most programs end when they are told to. Those with the annotation
    ``STUBBORN`` do not, and have their whole grace. Pods on nodes in ``nodes_down`` stay, because their kubelets do
    nothing.
    """
    now = stamp(store.now())
    ended_keys = [
        key
        for key, pod in store.objects.items()
        if key.resource == "pods"
        and (end := pod["metadata"].get("deletionTimestamp"))
        and ((all_marked and STUBBORN not in (pod["metadata"].get("annotations") or {})) or end <= now)
        and pod["spec"].get("nodeName") not in nodes_down
        and not pod["metadata"].get("finalizers")
    ]
    for key in ended_keys:
        store.remove(key, {})
    return len(ended_keys)


def ready(pod: Mapping[str, Any]) -> bool:
    """Whether a disruption budget counts the pod as healthy."""
    conditions = pod["status"].get("conditions") or ()
    return (
        pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
        and any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    )


def _check_budgets(store: KubeStore, namespace: str, pod: Object) -> None:
    budgets = [
        candidate
        for key, candidate in store.objects.items()
        if key.resource == "poddisruptionbudgets" and key.namespace == namespace and _selects(candidate, pod)
    ]
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, text, reason="")
    for budget in budgets:
        status = budget_status(store, budget)
        healthy, minimum = status["currentHealthy"], status["desiredHealthy"]
        policy = budget["spec"].get("unhealthyPodEvictionPolicy")
        if not ready(pod) and (policy == "AlwaysAllow" or healthy >= minimum > 0):
            continue
        if not status["disruptionsAllowed"]:
            name = budget["metadata"]["name"]
            cause = f"The disruption budget {name} needs {minimum} healthy pods and has {healthy} currently"
            text = "Cannot evict pod as it would violate the pod's disruption budget."
            raise StatusError(429, text, causes=(("DisruptionBudget", cause),))


def with_status(store: KubeStore, key: Key, document: Object) -> Object:
    """The object with what its controller says of it; ``key`` names at least its resource."""
    if key.resource != "poddisruptionbudgets":
        return document
    return {**document, "status": budget_status(store, document)}


def budget_status(store: KubeStore, budget: Object) -> Object:
    """The status of a disruption budget, as its controller writes it."""
    meta = budget["metadata"]
    pods = [
        candidate
        for key, candidate in store.objects.items()
        if key.resource == "pods" and key.namespace == meta["namespace"] and _selects(budget, candidate)
    ]
    healthy, minimum = sum(map(ready, pods)), _minimum_available(budget, len(pods))
    return {
        "observedGeneration": meta.get("generation", 0),
        "expectedPods": len(pods),
        "currentHealthy": healthy,
        "desiredHealthy": minimum,
        "disruptionsAllowed": max(0, healthy - minimum),
    }


def _minimum_available(budget: Object, expected: int) -> int:
    spec = budget["spec"]
    if "minAvailable" in spec:
        return int(spec["minAvailable"])
    return max(0, expected - int(spec.get("maxUnavailable", 1)))


def _selects(budget: Object, pod: Mapping[str, Any]) -> bool:
    selector = budget["spec"].get("selector")
    labels = pod["metadata"].get("labels") or {}
    if selector is None:
        return False
    return all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())


def pod(
    name: str, node: str, *, owner: str = "ReplicaSet", priority: str = "", phase: str = "Running",
    labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None, grace: int = 30,
    created: datetime | None = None, everywhere: bool = False,
) -> Object:  # fmt: skip
    """A pod object. With an empty ``owner`` it belongs to no controller; ``everywhere``: it tolerates every taint."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "owner", "uid": "o", "controller": True}]
    meta: Object = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    meta.update({"ownerReferences": owners} if owner else {})
    meta.update({"creationTimestamp": stamp(created)} if created else {})
    spec: Object = {"nodeName": node, "terminationGracePeriodSeconds": grace}
    spec.update({"priorityClassName": priority} if priority else {})
    spec.update({"tolerations": [{"operator": "Exists"}]} if everywhere else {})
    conditions = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec,
        "status": {"phase": phase, "conditions": conditions},
    }  # fmt: skip


def waiting(
    name: str, *, cpu: str = "500m", owner: str = "ReplicaSet", labels: Mapping[str, str] | None = None, **spec: Any
) -> Object:
    """A pod that the scheduler has found no node for. ``spec`` are more members of its specification."""
    document = pod(name, "", owner=owner, labels=labels, phase="Pending")
    del document["spec"]["nodeName"]
    document["spec"] |= {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    message = "0/3 nodes are available: 3 Insufficient cpu."
    document["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    ]
    return document
