"""Facts of nodes that the agent reports: what they have for pods, and who holds whom since when, which says which may
go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..kubernetes import Kubernetes, Object
from .csi import Handle
from .nodes import NODES, node_of
from .nodes import PAGE as NODES_PAGE
from .pod_rules import protected_for, selects
from .pods import KnownPod

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
MOST_NODES = MOST_BUDGETS = 5_000
"""Of more nodes, or of more budgets that have a pod on a node, nothing is told: half of it would mislead."""
MOST_NAMES = 3
_PAGE = 250
_ALWAYS = "AlwaysAllow"


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget. ``allowed`` is how many of its pods may be evicted now; with ``spares_ready`` it holds
    only pods that are ready."""

    namespace: str
    name: str
    selector: Any
    allowed: int
    spares_ready: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """Nodes by name and budgets, as they were listed. ``limits`` is how many volumes of each driver a node takes."""

    nodes: Mapping[str, Mapping[str, Any]]
    budgets: Sequence[Budget]
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def listed(kube: Kubernetes) -> Listed:
    """List nodes and budgets. Raises ``Refused``, ``Unreachable``."""
    return Listed(dict(kube.collect(NODES, {}, node_of, NODES_PAGE)), listed_budgets(kube))


def listed_budgets(kube: Kubernetes) -> list[Budget]:
    """All PodDisruptionBudgets. Raises ``Refused``, ``Unreachable``."""
    return kube.collect(BUDGETS, {}, _budget, _PAGE)


def _budget(item: Object) -> Budget:
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    # What its controller has not counted yet allows nothing: the API server refuses, too.
    counted = status.get("observedGeneration", 0) >= meta.get("generation", 0)
    allowed = int(status.get("disruptionsAllowed") or 0) if counted else 0
    always = spec.get("unhealthyPodEvictionPolicy") == _ALWAYS
    return Budget(meta["namespace"], meta["name"], spec.get("selector"), max(0, allowed), always)


def facts_of(
    pods: Iterable[KnownPod],
    events: Mapping[str, str],
    listing: Listed,
    volumes: Callable[[KnownPod], Iterable[Handle]] = lambda _: (),
) -> tuple[dict[str, Any], dict[str, int]] | None:
    """The facts of each node by its name, and how many evictions each budget allows, by namespace and name.

    ``events`` says when a pod last came to a node or left it, ``volumes`` what a pod has attached. None when there are
    too many nodes or budgets to tell.
    """
    on_nodes: defaultdict[str, list[KnownPod]] = defaultdict(list)
    for pod in pods:
        if pod.node in listing.nodes:
            on_nodes[pod.node].append(pod)
    guards = _Guards(listing.budgets)
    nodes = {
        name: {
            **node,
            "pod_event_at": events.get(name) or None,
            **_keeping(on_nodes.get(name, ()), guards),
            **_attached(on_nodes.get(name, ()), volumes, listing.limits.get(name)),
        }
        for name, node in listing.nodes.items()
    }
    named = {f"{budget.namespace}/{budget.name}": budget.allowed for budget in listing.budgets}
    allowed = {name: named[name] for node in nodes.values() for name in node.get("budgets", ())}
    return None if len(nodes) > MOST_NODES or len(allowed) > MOST_BUDGETS else (nodes, allowed)


def _attached(
    pods: Iterable[KnownPod], volumes: Callable[[KnownPod], Iterable[Handle]], limits: Mapping[str, int] | None
) -> dict[str, Any]:
    """Count the volumes of each driver that the node takes, and the different ones that its pods have."""
    counts = Counter(driver for driver, _ in {handle for pod in pods for handle in volumes(pod)})
    facts = {"volume_limits": dict(sorted((limits or {}).items())), "volumes": dict(sorted(counts.items()))}
    return {name: numbers for name, numbers in facts.items() if numbers}


class _Guards:
    """Finds the budgets of a pod; pods of equal labels are looked at once."""

    def __init__(self, budgets: Sequence[Budget]) -> None:
        self._budgets: defaultdict[str, list[Budget]] = defaultdict(list)
        for budget in budgets:
            self._budgets[budget.namespace].append(budget)
        self._known: dict[Any, Sequence[Budget]] = {}

    def of(self, pod: KnownPod) -> Sequence[Budget]:
        """Budgets that have to allow the pod's eviction."""
        here = self._budgets.get(pod.namespace)
        if not here:
            return ()
        key = (pod.namespace, pod.labels)
        if key not in self._known:
            labels = dict(pod.labels)
            self._known[key] = [budget for budget in here if selects(budget.selector, labels)]
        return [budget for budget in self._known[key] if pod.healthy or not budget.spares_ready]


def _keeping(pods: Sequence[KnownPod], guards: _Guards) -> dict[str, Any]:
    """Facts of a node's pods that may hold it: those with the annotation, and those under budgets."""
    facts: dict[str, Any] = {}
    # Of Karpenter's rule: pods of DaemonSets and static ones protect their node as well, those that end do not.
    annotated = sorted((pod for pod in pods if pod.protection and not pod.ending), key=_lasting, reverse=True)
    if annotated:
        names = [
            {"name": f"{pod.namespace}/{pod.name}", "value": pod.protection[:64], "started_at": pod.started_at or None}
            for pod in annotated[:MOST_NAMES]
        ]
        facts["protected"] = {"count": len(annotated), "pods": names}
    counts: Counter[str] = Counter()
    doubly = 0
    for pod in pods:
        if pod.leaves and not pod.ending:
            guarding = guards.of(pod)
            counts.update(f"{budget.namespace}/{budget.name}" for budget in guarding)
            doubly += len(guarding) > 1
    if counts:
        facts["budgets"] = dict(sorted(counts.items()))
    return {**facts, **({"doubly_guarded": doubly} if doubly else {})}


def _lasting(pod: KnownPod) -> tuple[float, str, str]:
    """Time for which the annotation protects the pod: until when, or without end. What protects nothing comes first."""
    seconds = protected_for(pod.protection)
    if seconds and pod.started_at and seconds != float("inf"):
        end = datetime.fromisoformat(pod.started_at) + timedelta(seconds=seconds)
        return end.timestamp(), pod.namespace, pod.name
    return float("inf") if seconds else 0.0, pod.namespace, pod.name
