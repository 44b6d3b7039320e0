"""Last report of a cluster's agent about its pods, as the packer reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from typing import Any

from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.disruption.vanished import is_doubtful, is_missed, noted
from stockyard.operations.machines.attention import vouched_until
from stockyard.operations.machines.pending_pods import pod_state_of
from stockyard.operations.services import Services
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Pod, term

_NAMED = 3
"""How many kinds of pods that cannot be read are named."""


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """Equal pods that wait for a node. ``names`` are the namespaces and names of a few: ``default/web-1``; ``message``
    is why the cluster's scheduler has found no node for one of them, in its words, empty where nothing is told."""

    pod: Pod
    count: int
    id: str
    names: tuple[str, ...]
    message: str = ""

    @property
    def scheduler_text(self) -> str:
        """Words of the scheduler, as a sentence to go on with after another one; empty for nothing."""
        return f" The cluster's scheduler says: {self.message.rstrip('.')}." if self.message else ""


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of a cluster at one moment.

    ``running`` are the pods of each node by its name, those of DaemonSets among them; ``daemons_running`` the
    DaemonSets that have a pod on it already. ``daemons`` are the pods that each DaemonSet makes. DaemonSets go by
    namespace and name: ``kube-system/kube-proxy``.

    What cannot be read is left out: ``unreadable`` says why, by the group's id. ``omitted`` are pods that wait and that
    the agent did not list.

    ``reschedulable`` are the pods of each node that need another one when it goes: not those of DaemonSets, no
    mirrors of static pods, and none that ends. ``nodes`` are the facts of each node by its name, ``budgets`` how many
    evictions each PodDisruptionBudget allows, by namespace and name. Both are None where the agent does not tell of
    them, as an older one: then nobody knows what may be disrupted.
    """

    pending: tuple[PendingGroup, ...]
    running: Mapping[str, Sequence[tuple[Pod, int]]]
    daemons: Mapping[str, Pod]
    daemons_running: Mapping[str, frozenset[str]]
    observed_at: str
    sequence: int
    omitted: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)
    reschedulable: Mapping[str, Sequence[tuple[Pod, int]]] = field(default_factory=dict)
    nodes: Mapping[str, NodeFacts] | None = None
    budgets: Mapping[str, int] | None = None
    obscure: Mapping[str, str] = field(default_factory=dict)
    """By node: why a pod on it cannot be read. Nobody knows what of the node is free, nor where the pod could go."""
    nominated: Mapping[str, Sequence[tuple[Pod, int]]] = field(default_factory=dict)
    """By node: pods that the scheduler has assigned or nominated to it and not bound yet. They keep their room."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why pods that wait cannot be read, by the name of one of each group."""
    vouched_until: str | None = None
    """Until when the agent has said that all this is still so; None where it does not say that."""

    @property
    def true_at(self) -> str:
        """The last moment at which the cluster is known to have been so."""
        return self.vouched_until or self.observed_at

    @property
    def unread_text(self) -> str | None:
        """Words for the waiting pods that cannot be read, and why; None where all can."""
        entries = sorted(self.unread.items())
        texts = [
            f"{name}: no node is made for it, as it cannot be read: {_printed(why)[:300].rstrip('.')}"
            for name, why in entries
        ]
        more = f" (and {len(texts) - _NAMED} more kinds of pods)" if len(texts) > _NAMED else ""
        return f"{'; '.join(texts[:_NAMED])}{more}." if texts else None

    def facts_of(self, claim: NodeClaim) -> NodeFacts | None:
        """Reported facts of the claim's node; None where nothing is."""
        nodes = self.nodes or {}
        facts = nodes.get(claim.node_name or claim.name)
        return facts if facts is not None or not claim.host_name else nodes.get(claim.host_name)

    def misses(self, claim: NodeClaim, now: datetime) -> bool:
        """Whether the claim's node is not told of, and it is too early to say that it is gone."""
        return self.nodes is not None and is_missed(claim, self.facts_of(claim), self.true_at, now)

    def doubts(self, claim: NodeClaim, now: datetime) -> bool:
        """Whether the claim's node has been there for a while, and is not told of."""
        return self.nodes is not None and is_doubtful(claim, self.facts_of(claim), now)

    def noted(self, claim: NodeClaim, now: datetime) -> tuple[NodeClaim, Transition | None] | None:
        """Note what is new of the claim's Node object; see ``vanished.noted``."""
        if self.nodes is None:
            return None
        has_pods = bool(self.running.get(claim.node_name or claim.name))
        return noted(claim, self.facts_of(claim), self.true_at, times.to_text(now), has_pods=has_pods)


def workload_of(services: Services, cluster_id: str) -> Workload | None:
    """The pods as the cluster's agent last reported them; None when it never has.

    Raises ``StoreUnavailable`` when reports replace each other faster than they can be read.
    """
    stored = pod_state_of(services, cluster_id)
    if stored is None:
        return None
    report, pod_state = stored
    pods, unreadable = _pods(pod_state["groups"])
    pending = tuple(
        PendingGroup(pods[group], waiting["count"], group, tuple(waiting["names"]), _printed(waiting.get("message")))
        for group, waiting in sorted(pod_state["pending"].items())
        if group in pods
    )
    # Some thousand nodes have the same few groups.
    of_node = partial(_of_node, pods)
    running = {node: of_node(counts) for node, counts in sorted(pod_state["running"].items())}
    daemon_sets = {group: template["daemon_set"] for group, template in pod_state["groups"].items()}
    # What ends is made anew by its controller, and waits or runs elsewhere by itself: it must not be counted twice.
    staying = {
        group for group, template in pod_state["groups"].items() if template.get("static") or template.get("ending")
    }
    movable = {group: pod for group, pod in pods.items() if not daemon_sets[group] and group not in staying}
    reschedulable = {node: _of_node(movable, counts) for node, counts in sorted(pod_state["running"].items())}
    present = {
        node: frozenset(daemon_sets[group] for group in counts if daemon_sets[group])
        for node, counts in pod_state["running"].items()
    }
    daemons = {name: pods[group] for name, group in sorted(pod_state["daemon_sets"].items()) if group in pods}
    facts = pod_state.get("nodes")
    vouched = vouched_until(services, report)
    return Workload(
        pending,
        running,
        daemons,
        present,
        report.observed_at,
        report.sequence,
        pod_state["omitted"],
        unreadable,
        reschedulable,
        None if facts is None else {name: NodeFacts.read(node) for name, node in sorted(facts.items())},
        pod_state.get("budgets"),
        {
            node: unreadable[group]
            for node, counts in sorted(pod_state["running"].items())
            for group in sorted(counts)
            if group in unreadable and not daemon_sets[group] and group not in staying
        },
        {node: of_node(counts) for node, counts in sorted((pod_state.get("nominated") or {}).items())},
        {
            next(iter(waiting["names"]), "a pod"): unreadable[group]
            for group, waiting in sorted(pod_state["pending"].items())
            if group in unreadable
        },
        times.to_text(vouched) if vouched is not None else None,
    )


def _printed(text: str | None) -> str:
    """The text in one line, without characters that are not printed: whoever may write pods may write it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text or "").split())


def _of_node(pods: Mapping[str, Pod], counts: Mapping[str, int]) -> tuple[tuple[Pod, int], ...]:
    return tuple((pods[group], count) for group, count in sorted(counts.items()) if group in pods)


def _pods(groups: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Pod], dict[str, str]]:
    """The pods that can be read, and why others cannot, by the group's id."""
    pods: dict[str, Pod] = {}
    unreadable: dict[str, str] = {}
    for group, template in groups.items():
        metadata = {"namespace": template["namespace"], "labels": template["labels"]}
        try:
            volumes = tuple(term(alternative) for alternative in template["volumes"])
            pod = read_pod({"metadata": metadata, "spec": template["spec"]}, volumes)
            cost, attachments = template.get("deletion_cost", 0), template.get("attachments") or {}
            if cost or attachments:
                pod = replace(pod, deletion_cost=cost, attachments=tuple(sorted(attachments.items())))
            pods[group] = pod
        except ValueError as error:
            unreadable[group] = str(error)
    return pods, unreadable
