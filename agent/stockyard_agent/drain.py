"""Drain a node, one step per round: cordon it, then evict its pods; after the deadline, delete them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .commands import DONE, NAME, RUNNING, CommandContext, Result
from .kubernetes import Object, Refused, path_of
from .nodes import patch, read

_MIRROR = "kubernetes.io/config.mirror"
_FINISHED = ("Succeeded", "Failed")
_CRITICAL = ("system-cluster-critical", "system-node-critical")
_BUDGET = "DisruptionBudget"
_PAGE = 250
LAST_GRACE = 30
"""Seconds that a pod has past the deadline of the drain, unless it needs less or the command names them."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has to leave the node.

    ``turn`` orders evictions: 0 for an ordinary pod, 1 for a system-critical one, 2 for the agent's own.
    ``grace`` is the pod's own grace period in seconds. ``leaves_by`` is the end of the grace period when the pod is
    already being deleted, else None. ``finalizers`` keep a pod whose kubelet has ended it.
    """

    namespace: str
    name: str
    uid: str
    turn: int
    grace: int
    leaves_by: datetime | None
    finalizers: tuple[str, ...]

    def path(self, *more: str) -> str:
        """The URL path of the pod, or of its subresource ``more``."""
        return path_of("namespaces", self.namespace, "pods", self.name, *more)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def drain(context: CommandContext) -> Result:
    """One step of a drain. It is done when no pod has to leave, or when the node is gone or is another machine's."""
    name, grace, uid = context.text("node", NAME), context.seconds("grace_seconds"), context.optional("uid")
    counts = Counter({key: int(context.progress.get(key, 0)) for key in ("evicted", "deleted")})
    try:
        node = read(context, name)
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(DONE, f"There is no node {name}.", _data(counts, 0))
    if uid and node["metadata"]["uid"] != uid:
        return Result(DONE, f"The node {name} is another machine's.", _data(counts, 0))
    if not (node.get("spec") or {}).get("unschedulable"):
        patch(context, name, {"spec": {"unschedulable": True}})
    pods = context.kube.collect(
        "/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"}, lambda pod: _leaving(pod, context.own_pod), _PAGE
    )
    if not pods:
        totals = f"{counts['evicted']} evicted, {counts['deleted']} deleted by this agent"
        return Result(DONE, f"No pod is left on {name} ({totals}).", _data(counts, 0))
    pods.sort(key=lambda pod: (pod.turn, pod.namespace, pod.name))
    blocked = _delete(context, pods, grace, counts) if _overdue(context) else _evict(context, pods, grace, counts)
    return Result(RUNNING, _message(name, pods, blocked), _data(counts, len(pods)))


def _overdue(context: CommandContext) -> bool:
    return context.command.deadline is not None and context.now >= context.command.deadline


def _evict(context: CommandContext, pods: list[Pod], grace: int | None, counts: Counter[str]) -> list[str]:
    """Ask the API to evict the pods whose turn it is. Returns why pods were not evicted."""
    turn = min(pod.turn for pod in pods)
    calls = 0
    blocked: list[str] = []
    for pod in pods:
        if pod.turn != turn or pod.leaves_by is not None:
            continue
        if calls and context.out_of_time():
            break  # the next round goes on; each step gets on by one pod, however little time a round has
        calls += 1
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _options(pod, grace),
        }
        try:
            context.kube.call("POST", pod.path("eviction"), eviction)
            counts["evicted"] += 1
        except Refused as refused:
            if refused.status in (404, 409):
                continue  # gone, or another pod of that name by now
            if not _holds(refused):
                raise
            blocked.append(f"{pod}: {refused.causes.get(_BUDGET) or refused.message or refused.status}")
            if refused.status == 429 and _BUDGET not in refused.causes:
                break  # the API itself has too much to do
    return blocked


def _holds(refused: Refused) -> bool:
    """Whether an eviction may succeed later: a budget forbids it, two budgets apply (500), a namespace terminates."""
    if refused.status == 403:
        return "cannot create resource" not in refused.message
    return refused.transient


def _delete(context: CommandContext, pods: list[Pod], grace: int | None, counts: Counter[str]) -> list[str]:
    """Delete all pods at once, ignoring budgets. Returns why pods were not deleted.

    The API lets a later deletion shorten the grace period, so a pod that was evicted with a long one gets
    ``LAST_GRACE``. A pod that outlives its grace period is deleted without one: its kubelet does not answer. A pod that
    its finalizers keep is left to whoever removes them.
    """
    calls = 0
    blocked: list[str] = []
    for pod in pods:
        seconds = min(pod.grace, LAST_GRACE) if grace is None else grace
        if pod.leaves_by is not None:
            if context.now < pod.leaves_by <= context.now + timedelta(seconds=seconds):
                continue
            if pod.leaves_by <= context.now:
                seconds = 0
            if pod.finalizers and not seconds:
                blocked.append(f"{pod}: kept by its finalizers {', '.join(pod.finalizers)}")
                continue
        if calls and context.out_of_time():
            break
        calls += 1
        try:
            context.kube.call("DELETE", pod.path(), _options(pod, seconds))
            counts["deleted"] += pod.leaves_by is None
        except Refused as refused:
            if refused.status in (404, 409):
                continue
            if not refused.transient:
                raise
            blocked.append(f"{pod}: {refused.message or refused.status}")
    return blocked


def _options(pod: Pod, grace: int | None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": pod.uid},
        **({} if grace is None else {"gracePeriodSeconds": grace}),
    }


def _leaving(pod: Object, own_pod: tuple[str, str]) -> Pod | None:
    """The pod if it has to leave. DaemonSet pods, mirror pods of static pods and finished pods may stay."""
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
    return Pod(
        meta["namespace"],
        meta["name"],
        meta["uid"],
        turn,
        int(spec.get("terminationGracePeriodSeconds", LAST_GRACE)),
        datetime.fromisoformat(end) if end else None,
        tuple(meta.get("finalizers") or ()),
    )


def _message(node: str, pods: list[Pod], blocked: list[str]) -> str:
    going = sum(pod.leaves_by is not None for pod in pods)
    later = sum(pod.turn > pods[0].turn for pod in pods)
    text = f"{len(pods)} pods on {node}: {going} are ending, {len(blocked)} held back, {later} come later."
    return text + (f" {blocked[0]}" if blocked else "")


def _data(counts: Mapping[str, int], remaining: int) -> dict[str, int]:
    return {"evicted": counts["evicted"], "deleted": counts["deleted"], "left": remaining}
