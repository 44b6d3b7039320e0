"""The nodes of the cluster as the agent knows them: what each has for pods, and whether it takes any."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from ..kubernetes import Kubernetes, Object, Refused
from .following import Following
from .pod_rules import DO_NOT_DISRUPT

NODES = "/api/v1/nodes"
PAGE = 100
BLIND_SECONDS, BLIND_MANY_SECONDS, FEW_NODES = 15.0, 60.0, 100
"""How often nodes are listed that may not be watched, the second where there are more than ``FEW_NODES``."""
PATIENCE_SECONDS = 0.3
"""How long a look at the nodes waits for a change: meanwhile nobody follows the pods."""
STALE_SECONDS = 60.0
"""After a silence that long nodes are listed anew: all their heartbeats since might be more than one answer holds."""
DOMAINS = (
    "stockyard.dev/", "topology.", "node.kubernetes.io/", "kubernetes.io/", "beta.kubernetes.io/", "karpenter.",
    "failure-domain.beta.kubernetes.io/", "node-role.kubernetes.io/", "vcluster.com/",
)  # fmt: skip
"""How labels begin that are told of every node."""
INTERRUPTION, ANNOUNCED = "stockyard.dev/interruption", "announced"
"""The label, and its value, by which a machine says on its own Node that its cloud takes it back."""
Facts = dict[str, Any]
_FORBIDDEN = 403


class Nodes:
    """Not for threads. ``news`` counts changes of what is told of nodes, ``unready_events`` nodes that were ready and
    are so no more, or are gone, ``interruptions`` those whose end was announced. A heartbeat of a kubelet changes
    nothing that is told."""

    def __init__(self, kube: Kubernetes, monotonic: Callable[[], float], log: Callable[[str], None]) -> None:
        self._following = Following(kube, NODES, {}, _named, PAGE, self._count)
        self._monotonic, self._log = monotonic, log
        self._blind_until: float | None = None
        self._heard_at = 0.0
        self.news = self.unready_events = self.interruptions = 0

    @property
    def complete(self) -> bool:
        """Whether the nodes are known."""
        return self._following.complete

    @property
    def facts(self) -> dict[str, Facts]:
        """Facts to report of each node, by its name."""
        return dict(self._following)

    def follow(self) -> None:
        """Hear what has changed. Raises ``Refused``, ``Unreachable``.

        An agent that was upgraded under the roles of an older one may not watch nodes; it lists them from time to time.
        """
        if self._blind_until is None:
            try:
                if self._monotonic() - self._heard_at > STALE_SECONDS:
                    self._following.list()
                else:
                    self._following.follow(PATIENCE_SECONDS)
                self._heard_at = self._monotonic()
            except Refused as refused:
                if refused.status != _FORBIDDEN or not self.complete:
                    raise
                self._log(f"Nodes are listed instead of watched: {refused}")
                self._blind_until = 0.0
        if self._blind_until is not None and self._monotonic() >= self._blind_until:
            self._following.list()
            seconds = BLIND_SECONDS if len(self.facts) <= FEW_NODES else BLIND_MANY_SECONDS
            self._blind_until = self._monotonic() + seconds

    def _count(self, before: tuple[str, Facts] | None, after: tuple[str, Facts] | None) -> None:
        if before == after:
            return
        self.news += 1
        was_ready, is_ready = (node is not None and node[1]["ready"] == "True" for node in (before, after))
        self.unready_events += was_ready and not is_ready
        had_end, has_end = (
            node is not None and node[1]["labels"].get(INTERRUPTION) == ANNOUNCED for node in (before, after)
        )
        self.interruptions += has_end and not had_end


def node_of(node: Object) -> tuple[str, Facts]:
    """Name and facts of a node: those that do not depend on its pods."""
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = status.get("conditions") or ()
    ready: Object = next((condition for condition in conditions if condition.get("type") == "Ready"), {})
    taints = [{"key": t["key"], "value": t.get("value") or "", "effect": t["effect"]} for t in spec.get("taints") or ()]
    return meta["name"], {
        "ready": ready.get("status", "Unknown"),
        "ready_since": ready.get("lastTransitionTime"),
        "created_at": meta["creationTimestamp"],
        "unschedulable": bool(spec.get("unschedulable")),
        "do_not_disrupt": (meta.get("annotations") or {}).get(DO_NOT_DISRUPT) == "true",
        "uid": meta["uid"],
        "labels": dict(meta.get("labels") or {}),
        "taints": sorted(taints, key=lambda taint: (taint["key"], taint["effect"])),
        "allocatable": dict(status.get("allocatable") or {}),
    }


def shortened(facts: Mapping[str, Facts], keys: Container[str]) -> dict[str, Facts]:
    """The nodes with those labels alone that begin as ``DOMAINS`` say or have one of these keys."""
    return {name: {**node, "labels": _needed_labels(node["labels"], keys)} for name, node in facts.items()}


def _needed_labels(labels: Mapping[str, str], keys: Container[str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name.startswith(DOMAINS) or name in keys}


def _named(node: Object) -> tuple[str, tuple[str, Facts]]:
    name, facts = node_of(node)
    return name, (name, facts)
