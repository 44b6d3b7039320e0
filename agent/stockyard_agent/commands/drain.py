"""Drain a node, one step per round: taint and cordon it, then evict its pods in order; those that would not have their
grace before the deadline otherwise are deleted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..cluster.pod_rules import (
    CRITICAL,
    DISRUPTED,
    DO_NOT_DISRUPT,
    FINISHED,
    STUCK,
    has_to_leave,
    is_protected,
    protection_of,
)
from ..cluster.pod_templates import daemon_set_of
from ..kubernetes import Object, Refused, path_of
from .commands import DONE, NAME, RUNNING, CommandContext, Result
from .nodes import keep_out, read

_BUDGET = "DisruptionBudget"
_BUDGET_NAME = re.compile(r"disruption budget (\S+) ")
_PAGE = 250
_NAMES = 5
_AGENT = 3
LAST_GRACE = 30
"""Seconds that a pod has at least to end, unless it needs less or the command names them; the agent may hear late."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has to leave the node.

    ``rank`` orders evictions as Karpenter does: 0 for an ordinary pod, 1 for one of a DaemonSet, 2 for a critical one
    of the system, 3 for the agent's own, 4 for a critical one of a DaemonSet.
    ``grace`` is the pod's own grace period in seconds. ``leaves_by`` is the end of the grace period when the pod is
    already being deleted, else None. ``finalizers`` keep a pod whose kubelet has ended it. ``protected``: it is not to
    be disrupted now.
    """

    namespace: str
    name: str
    uid: str
    rank: int
    grace: int
    leaves_by: datetime | None
    finalizers: tuple[str, ...]
    protected: bool

    def path(self, *more: str) -> str:
        """The URL path of the pod, or of its subresource ``more``."""
        return path_of("namespaces", self.namespace, "pods", self.name, *more)

    def is_stuck(self, now: datetime) -> bool:
        """Whether it should be gone for so long that nobody waits for it any more."""
        return self.leaves_by is not None and now >= self.leaves_by + STUCK

    def is_due(self, context: CommandContext, grace: int | None) -> bool:
        """Whether it has to be deleted now to have its grace, or this one, before the deadline."""
        deadline, seconds = context.command.deadline, self.grace if grace is None else grace
        return deadline is not None and context.now >= deadline - timedelta(seconds=seconds)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class _Step:
    """Outcome of a step: how many it evicted and deleted since the agent's start, and what holds which pod."""

    counts: Counter[str]
    blocked: list[str]
    holders: list[str]
    calls: int = 0

    def data(self, remaining: int) -> dict[str, Any]:
        """Data of the step that are posted."""
        counts = {"evicted": self.counts["evicted"], "deleted": self.counts["deleted"], "left": remaining}
        return {**counts, "held": sorted(self.holders)[:_NAMES]}


def close(context: CommandContext) -> bool:
    """Taint and cordon the node; False, and nothing is changed, when it is another machine's by now. Raises
    ``Refused`` (404: there is no such node), ``Unreachable``, ``InvalidCommand``."""
    name, uid = context.text("node", NAME), context.optional("uid")
    node = read(context, name)
    if uid and node["metadata"]["uid"] != uid:
        return False
    keep_out(context, node, DISRUPTED)
    return True


def drain(context: CommandContext) -> Result:
    """One step of a drain. It is done when no pod has to leave, or when the node is gone or is another machine's."""
    name, grace = context.text("node", NAME), context.seconds("grace_seconds")
    step = _Step(Counter({key: int(context.progress.get(key, 0)) for key in ("evicted", "deleted")}), [], [])
    try:
        if not close(context):
            return Result(DONE, f"The node {name} is another machine's.", step.data(0))
    except Refused as refused:
        if refused.status != 404:
            raise
        return Result(DONE, f"There is no node {name}.", step.data(0))
    pods = context.kube.collect(
        "/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"}, lambda pod: _leaving(pod, context), _PAGE
    )
    pods.sort(key=lambda pod: (pod.rank, pod.namespace, pod.name))
    waiting = [pod for pod in pods if not pod.is_stuck(context.now)]
    _delete(context, [pod for pod in pods if pod.is_due(context, grace)], grace, step)
    if not waiting:
        evicted, deleted = step.counts["evicted"], step.counts["deleted"]
        stuck = f" {len(pods)} that do not end are left behind." if pods else ""
        totals = f"{evicted} evicted, {deleted} deleted by this agent"
        return Result(DONE, f"No pod is left on {name} ({totals}).{stuck}", step.data(0))
    _evict(context, [pod for pod in waiting if not pod.is_due(context, grace)], waiting[0].rank, grace, step)
    return Result(RUNNING, _message(name, waiting, step), step.data(len(waiting)))


def _evict(context: CommandContext, pods: Iterable[Pod], rank: int, grace: int | None, step: _Step) -> None:
    """Ask the API to evict the pods of this turn, without the pods that must not be disrupted."""
    for pod in pods:
        if pod.rank != rank or pod.leaves_by is not None:
            continue
        if pod.protected:
            step.blocked.append(f"{pod}: not to be disrupted")
            step.holders.append(f"{pod}: {DO_NOT_DISRUPT}")
            continue
        if step.calls and context.out_of_time():
            break  # the next round goes on; each step gets on by one pod, however little time a round has
        step.calls += 1
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _options(pod, grace),
        }
        try:
            context.kube.call("POST", pod.path("eviction"), eviction)
            step.counts["evicted"] += 1
        except Refused as refused:
            if refused.status in (404, 409):
                continue  # gone, or another pod of that name by now
            if not _holds(refused):
                raise
            text = refused.causes.get(_BUDGET) or refused.message or str(refused.status)
            step.blocked.append(f"{pod}: {text}")
            if refused.status == 429 and _BUDGET not in refused.causes:
                break  # the API itself has too much to do
            budget = _BUDGET_NAME.search(text)
            step.holders.append(f"{pod}: budget {pod.namespace}/{budget[1]}" if budget else f"{pod}: {text}")


def _holds(refused: Refused) -> bool:
    """Whether an eviction may succeed later: a budget forbids it, two budgets apply (500), a namespace terminates."""
    if refused.status == 403:
        return "cannot create resource" not in refused.message
    return refused.transient


def _delete(context: CommandContext, pods: Iterable[Pod], grace: int | None, step: _Step) -> None:
    """Delete pods past their budgets, each with its own grace period or the time until the deadline.

    The API lets a later deletion shorten the grace period, so a pod that was evicted with a long one gets what is left.
    Past the deadline a pod that outlives its grace period is deleted without one: its kubelet does not answer. A pod
    that its finalizers keep is left to whoever removes them.
    """
    deadline = context.command.deadline or context.now
    remaining = max(LAST_GRACE, math.ceil((deadline - context.now).total_seconds()))
    for pod in pods:
        seconds = min(pod.grace, remaining) if grace is None else grace
        if pod.leaves_by is not None:
            if context.now < pod.leaves_by <= context.now + timedelta(seconds=seconds):
                continue
            if pod.leaves_by <= context.now:
                if context.now < deadline:
                    continue
                seconds = 0
            if pod.finalizers and not seconds:
                step.blocked.append(f"{pod}: kept by its finalizers {', '.join(pod.finalizers)}")
                step.holders.append(f"{pod}: its finalizers {', '.join(pod.finalizers)}")
                continue
        if step.calls and context.out_of_time():
            break
        step.calls += 1
        try:
            context.kube.call("DELETE", pod.path(), _options(pod, seconds))
            step.counts["deleted"] += pod.leaves_by is None
        except Refused as refused:
            if refused.status in (404, 409):
                continue
            if not refused.transient:
                raise
            step.blocked.append(f"{pod}: {refused.message or refused.status}")


def _options(pod: Pod, grace: int | None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": pod.uid},
        **({} if grace is None else {"gracePeriodSeconds": grace}),
    }


def _leaving(pod: Object, context: CommandContext) -> Pod | None:
    """The pod if it has to leave. Finished pods may stay, and those of ``pod_rules.has_to_leave``."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    if not has_to_leave(pod) or status.get("phase") in FINISHED:
        return None
    critical, daemon = spec.get("priorityClassName") in CRITICAL, bool(daemon_set_of(pod))
    rank = _AGENT + 1 if critical and daemon else 2 * critical + daemon
    if (meta["namespace"], meta["name"]) == context.own_pod:
        rank = _AGENT
    end = meta.get("deletionTimestamp")
    return Pod(
        meta["namespace"],
        meta["name"],
        meta["uid"],
        rank,
        int(spec.get("terminationGracePeriodSeconds", LAST_GRACE)),
        datetime.fromisoformat(end) if end else None,
        tuple(meta.get("finalizers") or ()),
        is_protected(protection_of(pod), str(status.get("startTime") or ""), context.now),
    )


def _message(node: str, pods: list[Pod], step: _Step) -> str:
    going = sum(pod.leaves_by is not None for pod in pods)
    later = sum(pod.rank > pods[0].rank for pod in pods)
    text = f"{len(pods)} pods on {node}: {going} are ending, {len(step.blocked)} held back, {later} come later."
    return text + (f" {step.blocked[0]}" if step.blocked else "")
