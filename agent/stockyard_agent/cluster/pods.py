"""The pods of the cluster as the agent knows them: a list once, then what a watch says has changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..kubernetes import Kubernetes, Object
from .csi import Handle, inline_volumes
from .following import Following
from .pod_rules import deletion_cost, has_to_leave, is_static, protection_of
from .pod_templates import (
    canonical,
    claims_of,
    daemon_set_of,
    needs_node,
    nominated_node,
    refusal_of,
    scheduling_part,
    waits,
)

PATH = "/api/v1/pods"
LIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have finished need no node and take no room; one that finishes is told as deleted."""
_PAGE = 500
_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class KnownPod:
    """``part`` is the text of its scheduling part. ``node`` is empty for a pod that has none.

    ``nominated`` is the node that the scheduler has given to a pod which is not bound yet, empty for none. Such a pod
    may still be marked as unschedulable, as it was before. ``unbound``: the scheduler is to find a node for it.
    ``claims`` are the names of its PersistentVolumeClaims, ``inline`` volumes that it names itself. ``static``: it
    mirrors a static pod. ``leaves``: a drain has to move it. ``ending``: it is being deleted. ``protection`` is what
    its annotation says of disruption. ``started_at`` is when it started, empty before, ``bound_at`` when it got its
    node. ``refusal`` is what the scheduler says of a pod that waits.
    """

    namespace: str
    name: str
    labels: tuple[tuple[str, str], ...]
    part: str
    node: str
    waits: bool
    claims: tuple[str, ...]
    daemon_set: str
    deletion_cost: int = 0
    static: bool = False
    leaves: bool = True
    ending: bool = False
    protection: str = ""
    nominated: str = ""
    unbound: bool = False
    inline: tuple[Handle, ...] = ()
    created_at: str = field(default="", compare=False)
    started_at: str = field(default="", compare=False)
    bound_at: str = field(default="", compare=False)
    healthy: bool = field(default=True, compare=False)
    refusal: str = field(default="", compare=False)


class Pods:
    """Not for threads. ``news`` counts changes of pods that wait, ``moves`` those of pods that have a node or
    are given one, ``refusals`` those of what the scheduler says of pods that go on waiting, but of numbers alone.

    ``events`` says when a pod was last bound to a node or began to leave it, or finished there, by the node's name:
    text in whole seconds. Pods of DaemonSets do not count.
    """

    def __init__(self, kube: Kubernetes, now: Callable[[], datetime]) -> None:
        self._now = now
        self._following = Following(kube, PATH, {"fieldSelector": LIVE}, self._entry, _PAGE, self._count)
        self.events: dict[str, str] = {}
        self._texts: dict[Any, Any] = {}
        self.news = 0
        self.moves = 0
        self.refusals = 0

    def __iter__(self) -> Iterator[KnownPod]:
        return iter(self._following)

    @property
    def complete(self) -> bool:
        """Whether the pods were listed, and are followed since."""
        return self._following.complete

    def follow(self, patience: float | None = None) -> None:
        """List the pods, or hear for a moment what changes; see ``Following.follow``."""
        if not self.complete:
            self._texts = {}  # without those of pods that are gone
        self._following.follow(patience)

    def _count(self, before: KnownPod | None, after: KnownPod | None) -> None:
        if before is not None and after is not None and before.refusal and after.refusal:
            self.refusals += _NUMBERS.sub("", before.refusal) != _NUMBERS.sub("", after.refusal)
        if before == after:
            return
        self._note(before, after)
        self.news += any(pod is not None and pod.waits for pod in (before, after))
        self.moves += any(pod is not None and (pod.node or pod.nominated) != "" for pod in (before, after))

    def _note(self, before: KnownPod | None, after: KnownPod | None) -> None:
        """Remember when a pod came to a node or left it."""
        pod = after or before
        if pod is None or not pod.node or pod.daemon_set:
            return
        moment = ""
        if after is None or (after.ending and before is not None and not before.ending):
            moment = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        elif before is None or not before.node:
            moment = after.bound_at
        self.events[pod.node] = max(self.events.get(pod.node, ""), moment)

    def _entry(self, pod: Object) -> tuple[str, KnownPod]:
        meta, spec = pod["metadata"], pod.get("spec") or {}
        daemon_set, pending = daemon_set_of(pod), waits(pod)
        part = canonical(scheduling_part(spec, daemon=bool(daemon_set)))
        labels = tuple(sorted((meta.get("labels") or {}).items()))
        claims, node = claims_of(pod), str(spec.get("nodeName") or "")
        namespace, share = meta["namespace"], self._texts.setdefault
        status, protection = pod.get("status") or {}, protection_of(pod)
        started_at = str(status.get("startTime") or "")
        refusal = refusal_of(pod) if pending else ""
        conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
        scheduled = conditions.get("PodScheduled", {}).get("lastTransitionTime")
        bound_at = str(scheduled or started_at or meta.get("creationTimestamp") or "") if node else ""
        # Tens of thousands of pods have the same few texts: each is held once.
        return meta["uid"], KnownPod(
            share(namespace, namespace), meta["name"], share(labels, labels), share(part, part), share(node, node),
            pending, claims, share(daemon_set, daemon_set), deletion_cost(pod), is_static(pod), has_to_leave(pod),
            "deletionTimestamp" in meta, share(protection, protection), nominated_node(pod), needs_node(pod),
            inline_volumes(pod), str(meta.get("creationTimestamp") or ""), started_at, bound_at,
            conditions.get("Ready", {}).get("status") == "True", share(refusal, refusal),
        )  # fmt: skip
