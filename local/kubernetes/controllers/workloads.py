"""Controllers of workloads in a simulated cluster: the pods of ReplicaSets, StatefulSets, DaemonSets and
Jobs, and the status of each. Deployments have a module of their own.

Pods run in name only. A workload whose program is run as a process (:mod:`local.kubernetes.containers`) has no pods
beside it, and neither has one whose template names no containers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from local.kubernetes import pods as kube_pods
from local.kubernetes.controllers.deployments import roll, template_of
from local.kubernetes.placing.selectors import in_terms, untolerated
from local.kubernetes.pods import ready
from local.kubernetes.scheduler import takes_pods
from local.kubernetes.store import Key, KubeStore, Object, copied, stamp

_DAEMONS = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("unschedulable", "NoSchedule"),
        ("disk-pressure", "NoSchedule"), ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"),
    )
]  # fmt: skip
"""Taints that pods of a DaemonSet tolerate beside those of the template."""
_FINISHED = ("Succeeded", "Failed")
RUN_SECONDS = 1
"""Time that the program of a Job's pod runs."""


def settle(store: KubeStore, down: Collection[str]) -> None:
    """Make and remove pods, and write the status of each workload. Nodes in ``down`` take no pods."""
    workloads = [
        (key, document)
        for key, document in list(store.objects.items())
        if key.group in ("apps", "batch") and "deletionTimestamp" not in document["metadata"]
    ]
    if not workloads:
        return
    owned = _Owned(store)
    for key, document in workloads:
        if key.resource == "deployments":
            roll(store, key, document, down)
    for key, document in workloads:
        _CONTROLLERS.get(key.resource, _leave)(store, key, store.objects.get(key, document), owned, down)


class _Owned:
    """The pods by the uid of the workload that they belong to."""

    def __init__(self, store: KubeStore) -> None:
        self._store, self._by_uid = store, dict[str, list[Key]]()
        for key, pod in store.objects.items():
            if key.resource == "pods":
                for owner in pod["metadata"].get("ownerReferences") or ():
                    self._by_uid.setdefault(owner.get("uid", ""), []).append(key)

    def of(self, owner: Object) -> list[tuple[Key, Object]]:
        """The pods of a workload that are there, and are not to end."""
        keys = self._by_uid.get(owner["metadata"]["uid"], ())
        pods = [(key, self._store.objects[key]) for key in keys if key in self._store.objects]
        return [(key, pod) for key, pod in pods if "deletionTimestamp" not in pod["metadata"]]


def _leave(*_: Any) -> None:
    """A kind that no controller looks at."""


def _replica_set(store: KubeStore, key: Key, document: Object, owned: _Owned, _: Collection[str]) -> None:
    template = template_of(document)
    if template is None:
        return
    count = int(document["spec"].get("replicas", 1))
    pods = [(name, pod) for name, pod in owned.of(document) if (pod.get("status") or {}).get("phase") not in _FINISHED]
    surplus = sorted(pods, key=lambda entry: (ready(entry[1]), entry[1]["metadata"]["creationTimestamp"], entry[0]))
    for name, _pod in surplus[: max(0, len(pods) - count)]:
        kube_pods.delete(store, name, {})
    for _number in range(count - len(pods)):
        _make(store, key, document, template, f"{key.name}-{store.suffix()}")
    current_pods = [pod for _, pod in pods]
    _write(
        store, key, {**_counts(current_pods, count), "observedGeneration": document["metadata"].get("generation", 1)}
    )


def _stateful_set(store: KubeStore, key: Key, document: Object, owned: _Owned, _: Collection[str]) -> None:
    """Make and remove numbered pods, one after the other unless the set is parallel."""
    template = template_of(document)
    if template is None:
        return
    count = int(document["spec"].get("replicas", 1))
    pods = {name.name: pod for name, pod in owned.of(document)}
    at_once = document["spec"].get("podManagementPolicy") == "Parallel"
    for number in range(count):
        name = f"{key.name}-{number}"
        if name not in pods and Key("", "pods", key.namespace, name) not in store.objects:
            _make_claims(store, key, document, name)
            _make(store, key, document, _with_claims(document, template, name), name)
        if not at_once and not (name in pods and ready(pods[name])):
            break
    for name in sorted(pods, key=lambda name: -int(name.rpartition("-")[2])):
        if int(name.rpartition("-")[2]) >= count:
            kube_pods.delete(store, Key("", "pods", key.namespace, name), {})
            if not at_once:
                break
    generation = document["metadata"].get("generation", 1)
    _write(store, key, {**_counts(list(pods.values()), count), "observedGeneration": generation})


def _make_claims(store: KubeStore, key: Key, document: Object, pod: str) -> None:
    for template in document["spec"].get("volumeClaimTemplates") or ():
        claim = Key("", "persistentvolumeclaims", key.namespace, f"{template['metadata']['name']}-{pod}")
        if claim not in store.objects:
            about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            store.create(claim, {**about, "metadata": {}, "spec": template["spec"], "status": {"phase": "Pending"}})


def _with_claims(document: Object, template: Object, pod: str) -> Object:
    names = [each["metadata"]["name"] for each in document["spec"].get("volumeClaimTemplates") or ()]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in names]
    spec = template["spec"]
    return {**template, "spec": {**spec, "volumes": [*volumes, *(spec.get("volumes") or ())]}} if names else template


def _daemon_set(store: KubeStore, key: Key, document: Object, owned: _Owned, down: Collection[str]) -> None:
    """A pod on each node that its template's rules take."""
    template = template_of(document)
    nodes = {other.name: node for other, node in store.objects.items() if other.resource == "nodes"}
    if template is None:
        count = sum(takes_pods(node) for name, node in nodes.items() if name not in down)
        _write(store, key, _of_daemons(count, count, document))
        return
    names = {name for name, node in nodes.items() if name not in down and _runs_on(template["spec"], node)}
    pods = {str(pod["spec"].get("nodeName")): (name, pod) for name, pod in owned.of(document)}
    for node, (name, _pod) in pods.items():
        if node not in names:
            kube_pods.delete(store, name, {})
    for node in sorted(names - pods.keys()):
        tolerations = [*(template["spec"].get("tolerations") or ()), *_DAEMONS]
        of_node = {**template, "spec": {**template["spec"], "nodeName": node, "tolerations": tolerations}}
        _make(store, key, document, of_node, f"{key.name}-{store.suffix()}")
    _write(store, key, _of_daemons(len(names), len(names & pods.keys()), document))


def _runs_on(spec: Mapping[str, Any], node: Object) -> bool:
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    if affinity and not in_terms(affinity.get("nodeSelectorTerms") or (), name, labels):
        return False
    tolerations = [*(spec.get("tolerations") or ()), *_DAEMONS]
    return untolerated(tolerations, (node.get("spec") or {}).get("taints") or ()) is None


def _of_daemons(count: int, present: int, document: Object) -> Object:
    return {
        "desiredNumberScheduled": count,
        "currentNumberScheduled": present,
        "updatedNumberScheduled": present,
        "numberReady": present,
        "numberAvailable": present,
        "observedGeneration": document["metadata"].get("generation", 1),
    }


def _job(store: KubeStore, key: Key, document: Object, owned: _Owned, _: Collection[str]) -> None:
    """Make the pods of a Job, which have succeeded after a moment: programs are not run."""
    template = template_of(document)
    if template is None or document["spec"].get("suspend"):
        return
    for name, pod in owned.of(document):
        since = (pod.get("status") or {}).get("startTime")
        if ready(pod) and since and since <= stamp(store.now() - timedelta(seconds=RUN_SECONDS)):
            conditions = [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]
            store.replace(name, {**pod, "status": {**pod["status"], "phase": "Succeeded", "conditions": conditions}})
    pods = [pod for _, pod in owned.of(document)]
    successes = sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in pods)
    active = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _FINISHED]
    count = min(int(document["spec"].get("parallelism", 1)), int(document["spec"].get("completions", 1)) - successes)
    for _number in range(count - len(active)):
        _make(store, key, document, template, f"{key.name}-{store.suffix()}")
    status: Object = {"startTime": (document.get("status") or {}).get("startTime") or stamp(store.now())}
    status |= {"active": max(count, 0), "ready": sum(map(ready, active)), "succeeded": successes}
    if count <= 0:
        status["conditions"] = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
        status["completionTime"] = (document.get("status") or {}).get("completionTime") or stamp(store.now())
    _write(store, key, status)


def _make(store: KubeStore, key: Key, owner: Object, template: Object, name: str) -> None:
    about = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": key.name,
        "uid": owner["metadata"]["uid"],
    }
    meta = copied(template.get("metadata") or {})
    meta |= {"name": name, "namespace": key.namespace}
    meta["ownerReferences"] = [{**about, "controller": True, "blockOwnerDeletion": True}]
    spec = kube_pods.defaulted(copied(template["spec"]))
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
    pod["metadata"].pop("creationTimestamp", None)
    if spec.get("nodeName"):
        since = stamp(store.now())
        conditions = [
            {"type": each, "status": "True", "lastTransitionTime": since}
            for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        pod["status"] = {"phase": "Running", "conditions": conditions, "startTime": since}
    store.create(Key("", "pods", key.namespace, name), pod)


def _counts(pods: list[Object], count: int) -> Object:
    number, well = min(len(pods), count), sum(map(ready, pods))
    return {
        "replicas": number,
        "readyReplicas": min(well, count),
        "availableReplicas": min(well, count),
        "updatedReplicas": number,
        "currentReplicas": number,
    }


def _write(store: KubeStore, key: Key, status: Object) -> None:
    document = store.objects[key]
    if document.get("status") != status:
        store.replace(key, {**document, "status": status})


_CONTROLLERS = {
    "replicasets": _replica_set,
    "statefulsets": _stateful_set,
    "daemonsets": _daemon_set,
    "jobs": _job,
}
