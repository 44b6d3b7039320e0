"""Empty a node, one step a round: cordon, then evict; after the deadline, delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .kubernetes import Object, Refused, path_of
from .nodes import patch, read
from .work import DONE, NAME, RUNNING, Result, Work

_MIRROR = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")
_CRITICAL = ("system-cluster-critical", "system-node-critical")
_BUDGET = "DisruptionBudget"
_PAGE = 250


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has to leave. ``turn``: 0 an ordinary one, 1 a critical one of the system, 2 the agent itself.

    ``leaves_by`` is the end of the grace of one that is being deleted.
    """

    namespace: str
    name: str
    uid: str
    turn: int
    leaves_by: datetime | None

    def path(self, *more: str) -> str:
        """Of the pod, or of its subresource."""
        return path_of("namespaces", self.namespace, "pods", self.name, *more)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def drain(work: Work) -> Result:
    """One step. Done when no pod is left that has to leave, and when the node is gone or another machine's."""
    name, grace, uid = work.text("node", NAME), work.seconds("grace_seconds"), work.optional("uid")
    counts = Counter({key: int(work.so_far.get(key, 0)) for key in ("evicted", "deleted")})
    try:
        node = read(work, name)
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(DONE, f"There is no node {name}.", _data(counts, 0))
    if uid and node["metadata"]["uid"] != uid:
        return Result(DONE, f"The node {name} is another machine's.", _data(counts, 0))
    if not (node.get("spec") or {}).get("unschedulable"):
        patch(work, name, {"spec": {"unschedulable": True}})
    pods = work.kube.collect(
        "/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"}, lambda pod: _leaving(pod, work.own_pod), _PAGE
    )
    if not pods:
        told = f"{counts['evicted']} evicted, {counts['deleted']} deleted by this agent"
        return Result(DONE, f"No pod is left on {name} ({told}).", _data(counts, 0))
    pods.sort(key=lambda pod: (pod.turn, pod.namespace, pod.name))
    held = _delete(work, pods, grace, counts) if _overdue(work) else _evict(work, pods, grace, counts)
    return Result(RUNNING, _message(name, pods, held), _data(counts, len(pods)))


def _overdue(work: Work) -> bool:
    return work.command.deadline is not None and work.now >= work.command.deadline


def _evict(work: Work, pods: list[Pod], grace: int | None, counts: Counter[str]) -> list[str]:
    """Ask the API to evict those whose turn it is; what holds the others back."""
    turn = min(pod.turn for pod in pods)
    held: list[str] = []
    for pod in pods:
        if pod.turn != turn or pod.leaves_by is not None:
            continue
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _options(pod, grace),
        }
        try:
            work.kube.call("POST", pod.path("eviction"), eviction)
            counts["evicted"] += 1
        except Refused as refused:
            if refused.status in (404, 409):
                continue  # gone, or another pod of that name by now
            if not _holds(refused):
                raise
            held.append(f"{pod}: {refused.causes.get(_BUDGET) or refused.message or refused.status}")
            if refused.status == 429 and _BUDGET not in refused.causes:
                break  # the API itself has too much to do
    return held


def _holds(refused: Refused) -> bool:
    """Whether an eviction may succeed later: a budget, two of them (500), a namespace that goes away."""
    if refused.status == 403:
        return "cannot create resource" not in refused.message
    return refused.passing


def _delete(work: Work, pods: list[Pod], grace: int | None, counts: Counter[str]) -> list[str]:
    """Delete all at once, past any budget; a pod whose grace is over and is still there, without grace.

    Its kubelet does not answer, and the machine is given up.
    """
    held: list[str] = []
    for pod in pods:
        if pod.leaves_by is not None and work.now < pod.leaves_by:
            continue
        try:
            work.kube.call("DELETE", pod.path(), _options(pod, grace if pod.leaves_by is None else 0))
            counts["deleted"] += 1
        except Refused as refused:
            if refused.status in (404, 409):
                continue
            if not refused.passing:
                raise
            held.append(f"{pod}: {refused.message or refused.status}")
    return held


def _options(pod: Pod, grace: int | None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": pod.uid},
        **({} if grace is None else {"gracePeriodSeconds": grace}),
    }


def _leaving(pod: Object, own_pod: tuple[str, str]) -> Pod | None:
    """The pod, when it has to leave: not a DaemonSet's, not a mirror of a static pod, not one that has finished."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    owners = meta.get("ownerReferences") or ()
    if any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners):
        return None
    if _MIRROR in (meta.get("annotations") or {}) or (pod.get("status") or {}).get("phase") in _FINISHED:
        return None
    turn = 1 if spec.get("priorityClassName") in _CRITICAL else 0
    if (meta["namespace"], meta["name"]) == own_pod:
        turn = 2
    end = meta.get("deletionTimestamp")
    return Pod(meta["namespace"], meta["name"], meta["uid"], turn, datetime.fromisoformat(end) if end else None)


def _message(node: str, pods: list[Pod], held: list[str]) -> str:
    going = sum(pod.leaves_by is not None for pod in pods)
    later = sum(pod.turn > pods[0].turn for pod in pods)
    text = f"{len(pods)} pods on {node}: {going} are ending, {len(held)} held back, {later} come later."
    return text + (f" {held[0]}" if held else "")


def _data(counts: Mapping[str, int], left: int) -> dict[str, int]:
    return {"evicted": counts["evicted"], "deleted": counts["deleted"], "left": left}
