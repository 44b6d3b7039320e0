"""The controller of Deployments in a simulated cluster: a ReplicaSet for each template, and how one follows another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Any

from local.kubernetes import processes
from local.kubernetes.scheduler import takes_pods
from local.kubernetes.store import Key, KubeStore, Object, copied

REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_of(workload: Object) -> Object | None:
    """The template of the pods that a controller makes; None where it makes none."""
    template: Object = (workload.get("spec") or {}).get("template") or {}
    spec = template.get("spec") or {}
    return template if spec.get("containers") and not processes.runs_here(spec) else None


def roll(store: KubeStore, key: Key, document: Object, down: Collection[str]) -> None:
    """Bring a Deployment's ReplicaSets closer to what it says, and write its status."""
    template, replicas = template_of(document), int((document.get("spec") or {}).get("replicas", 1))
    if template is None:
        nodes = [node for other, node in store.objects.items() if other.resource == "nodes" and other.name not in down]
        well = replicas if any(map(takes_pods, nodes)) else 0
        _write(store, key, replicas, {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": well})
        return
    sets = _sets(store, key, document)
    template_hash = _hash(template)
    current = next((name for name, each in sets.items() if each["metadata"]["labels"].get(HASH) == template_hash), None)
    paused = bool(document["spec"].get("paused"))
    if current is None and not paused:
        current = _make(store, key, document, template, template_hash)
        sets[current] = store.objects[current]
    if current is not None:
        _scale(store, document, sets, current, replicas)
        _number(store, key, sets, current)
    _write(store, key, replicas, _counted(store, sets, current))


def _sets(store: KubeStore, key: Key, document: Object) -> dict[Key, Object]:
    uid = document["metadata"]["uid"]
    return {
        name: each
        for name, each in store.objects.items()
        if name.resource == "replicasets"
        and name.namespace == key.namespace
        and any(owner.get("uid") == uid for owner in each["metadata"].get("ownerReferences") or ())
    }


def _hash(template: Object) -> str:
    number = int.from_bytes(hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()[:8], "big")
    return "".join(_LETTERS[number // len(_LETTERS) ** digit % len(_LETTERS)] for digit in range(10))


def _make(store: KubeStore, key: Key, document: Object, template: Object, template_hash: str) -> Key:
    name, meta = Key("apps", "replicasets", key.namespace, f"{key.name}-{template_hash}"), document["metadata"]
    marked = copied(template)
    marked["metadata"] = {**(marked.get("metadata") or {})}
    marked["metadata"]["labels"] = {**(marked["metadata"].get("labels") or {}), HASH: template_hash}
    selector = copied(document["spec"].get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: template_hash}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": key.name, "uid": meta["uid"], "controller": True}
    about: Object = {"namespace": key.namespace, "labels": marked["metadata"]["labels"], "ownerReferences": [owner]}
    spec = {"replicas": 0, "selector": selector, "template": marked}
    store.create(name, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": about, "spec": spec})
    return name


def _scale(store: KubeStore, document: Object, sets: dict[Key, Object], current: Key, replicas: int) -> None:
    """The newest set has all pods that are asked for; older ones keep as many as are not ready yet in its place."""
    older = {name: each for name, each in sets.items() if name != current and each["spec"].get("replicas")}
    recreates = (document["spec"].get("strategy") or {}).get("type") == "Recreate"
    older_pods = sum(int((each.get("status") or {}).get("replicas") or 0) for each in older.values())
    _size(store, current, 0 if recreates and older_pods else replicas)
    ready = int((sets[current].get("status") or {}).get("readyReplicas") or 0)
    keep = 0 if recreates else max(0, replicas - ready)
    for name, each in older.items():
        size = min(int(each["spec"]["replicas"]), keep)
        _size(store, name, size)
        keep -= size


def _size(store: KubeStore, name: Key, replicas: int) -> None:
    document = store.objects[name]
    if document["spec"].get("replicas") != replicas:
        store.replace(name, {**document, "spec": {**document["spec"], "replicas": replicas}})


def _number(store: KubeStore, key: Key, sets: dict[Key, Object], current: Key) -> None:
    """Write which revision the newest set is, on it and on the Deployment."""

    def number(document: Object) -> int:
        return int((document["metadata"].get("annotations") or {}).get(REVISION, 0))

    newest = max(number(each) for each in sets.values())
    own_number = number(sets[current])
    revision = str(own_number if own_number and own_number == newest else newest + 1)
    for name in (key, current):
        document = store.objects[name]
        notes = document["metadata"].get("annotations") or {}
        if notes.get(REVISION) != revision:
            meta = {**document["metadata"], "annotations": {**notes, REVISION: revision}}
            store.replace(name, {**document, "metadata": meta})


def _counted(store: KubeStore, sets: dict[Key, Object], current: Key | None) -> dict[str, int]:
    def count(name: str) -> int:
        return sum(int((store.objects[each].get("status") or {}).get(name) or 0) for each in sets)

    newest = (store.objects[current].get("status") or {}) if current else {}
    updated = int(newest.get("replicas") or 0)
    return {"replicas": count("replicas"), "updatedReplicas": updated, "readyReplicas": count("readyReplicas")}


def _write(store: KubeStore, key: Key, replicas: int, counts: dict[str, int]) -> None:
    document = store.objects[key]
    available = counts["readyReplicas"]
    whole = available >= replicas
    conditions: list[dict[str, Any]] = [
        {"type": "Available", "status": str(whole), "reason": f"MinimumReplicas{'A' if whole else 'Una'}vailable"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" if whole else "ReplicaSetUpdated"},
    ]
    generation = document["metadata"].get("generation", 1)
    status = {**counts, "availableReplicas": available, "observedGeneration": generation, "conditions": conditions}
    if whole is False:
        status["unavailableReplicas"] = replicas - available
    if document.get("status") != status:
        store.replace(key, {**document, "status": status})
