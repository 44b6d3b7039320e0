"""Picture of pods, as a cluster's agent reports them. Passes over pools wake when more of them wait, and when what is
there for those that wait has changed.

The state of pods is compressed JSON in parts. One record, the report, names the parts that belong together: it is
replaced with them in one transaction, and who reads parts of another report reads again.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from stockyard.domain.pools.workload_records import (
    MOST_GROUPS,
    MOST_NODES,
    UnusedRoom,
    WorkloadPart,
    WorkloadReport,
    part_id,
)
from stockyard.domain.records import Cluster, Outbox
from stockyard.domain.values import ids
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.pointers import pointer
from stockyard.errors import BodyTooLarge, Conflict, IllegalTransition, InvalidInput, StoreUnavailable, Throttled
from stockyard.operations.engine.watch import watch
from stockyard.operations.machines.observe import AHEAD_SECONDS
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Put, Remove, Replace, Write

DETAIL_TYPE = "PendingPods"
"""The detail type of the event that wakes the passes over pools."""
SENDER = "machines"
"""The function that takes reports, and sends the event."""
UNREADY_TYPE = "UnreadyNodes"
"""The detail type of the event that has somebody look at the machines of nodes."""
MOST_BYTES = 5 * 1024 * 1024
"""Of a state before it is compressed: what one post may have."""
PART_BYTES = 340_000
MOST_PARTS = 9
"""A transaction takes 4 MB."""
SHORTEST_SECONDS = 0.5
"""Between two reports of a cluster: agents wait a second at least."""
TRIES = 4
SETTLING_SECONDS = 30
"""How long after a report of pods the nodes are looked at that may go now."""
MAPS = ("groups", "pending", "running", "daemon_sets", "nominated")
"""The members of a state whose entries are changed one by one. States of an older release lack the last one."""
FACTS = ("nodes", "budgets")
"""Such members too, but None where the agent does not tell of them."""
ROOM = (
    "created_at", "uid", "ready", "unschedulable", "labels", "taints", "allocatable", "volume_limits", "volumes",
)  # fmt: skip
"""The members of a node's facts that decide which pods it takes."""
DISRUPTED = "karpenter.sh/disrupted"
"""The key of the taint that the agent gives to a node that it drains."""
PodState = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Received:
    """The answer to a report. ``woken``: it wakes the passes over pools; ``wake`` is the item of the outbox that does,
    which the caller sends."""

    sequence: int
    resync: bool
    interval_seconds: int
    woken: bool = False
    wake: Outbox | None = None


def receive(services: Services, cluster: Cluster, report: Mapping[str, Any]) -> Received:
    """Keep a report of the cluster's pods. Wake the passes over its pools when more pods or none wait, when the nodes
    for waiting pods are others, and when a node has gone by itself. The first report wakes them.

    A report that is older than the last one, or that changes another than the last one, changes nothing and is
    answered with ``resync``. Raises ``Throttled`` when reports come too fast, ``InvalidInput`` for a report that does
    not hold together, ``BodyTooLarge`` for one that cannot be kept, ``IllegalTransition`` when the cluster's status
    has changed meanwhile.
    """
    for _ in range(TRIES):
        last = services.store.get(WorkloadReport, cluster.id)
        if last is not None and services.seconds_since(last.received_at) < SHORTEST_SECONDS:
            raise Throttled("Reports of this cluster's pods come too fast.", retry_after=1)
        if last is not None and (report["sequence"] <= last.sequence or report["base"] not in (None, last.sequence)):
            return Received(last.sequence, True, services.settings.agent_busy_seconds)
        if last is None and report["base"] is not None:
            return Received(0, True, services.settings.agent_busy_seconds)
        try:
            return _keep(services, cluster, report, last)
        except Conflict as conflict:
            # The first write is the report's own: somebody else reported meanwhile.
            if conflict.index != 0:
                raise IllegalTransition("The cluster is on its way out, or has just become ready.") from conflict
    raise StoreUnavailable("Reports of this cluster's pods come too fast")


def pod_state_of(services: Services, cluster_id: str) -> tuple[WorkloadReport, PodState] | None:
    """The last report of the cluster's pods with all that it said; None when there is none.

    Raises ``StoreUnavailable`` when reports replace each other faster than they can be read.
    """
    for _ in range(TRIES):
        report, first = services.store.get_together(
            (WorkloadReport, cluster_id), (WorkloadPart, part_id(cluster_id, 0))
        )
        if report is None:
            return None
        pod_state = _read(services, report, first)
        if pod_state is not None:
            return report, pod_state
    raise StoreUnavailable("Reports of this cluster's pods come too fast")


def forgetting(cluster_id: str) -> list[Write]:
    """The removal of what was reported of a cluster's pods, and learned from that."""
    parts = (Remove(WorkloadPart, part_id(cluster_id, number)) for number in range(MOST_PARTS))
    return [Remove(WorkloadReport, cluster_id), Remove(UnusedRoom, cluster_id), *parts]


def _read(services: Services, report: WorkloadReport, first: WorkloadPart | None = None) -> PodState | None:
    """None when a part is another report's. ``first`` is the first part, where it has been read."""
    data = b""
    for number in range(report.parts):
        part = (first if number == 0 else None) or services.store.get(WorkloadPart, part_id(report.id, number))
        if part is None or part.content != report.content:
            return None
        data += part.data
    pod_state: PodState = json.loads(gzip.decompress(data))
    return pod_state


def _keep(services: Services, cluster: Cluster, report: Mapping[str, Any], last: WorkloadReport | None) -> Received:
    earlier = _read(services, last) if last is not None else None
    if last is not None and earlier is None and report["base"] is not None:
        return Received(last.sequence, True, services.settings.agent_busy_seconds)
    pod_state = _remembering(_merged(earlier if report["base"] is not None else None, report), earlier)
    _check(pod_state)
    now = services.now()
    # An agent numbers by its clock. One that was ahead must not make those that come after it look old.
    latest = int(services.clock.now().timestamp() * 1000) + AHEAD_SECONDS * 1000
    floor = last.sequence + 1 if last is not None else 0
    sequence = max(min(report["sequence"], latest), floor)
    pieces: Sequence[bytes] = () if last is not None and pod_state == earlier else _pieces(pod_state)
    content, parts = (last.content, last.parts) if last is not None and not pieces else (sequence, len(pieces))
    version = 1 if last is None else last.version + 1
    none_left = bool(earlier and earlier["pending"]) and not pod_state["pending"]
    # When the last pod has found a node, what the cluster says of its pods is out of date.
    wait_anew = (
        _more_wait(earlier, pod_state) or _wait_otherwise(earlier, pod_state) or _lack_their_example(earlier, pod_state)
    )
    gone_names = _gone_nodes(earlier, pod_state)
    # Before the first report nobody knew whether headroom has its nodes.
    woken = none_left or wait_anew or last is None or bool(gone_names or _unseen_nodes(earlier, pod_state))
    woken_at = now if wait_anew else last.woken_at if last is not None else ""
    current = WorkloadReport(
        cluster.id, sequence, report["observed_at"], now, content, parts, woken_at, version=version
    )
    writes: list[Write] = [Create(current) if last is None else Replace(current)]
    writes += [Put(WorkloadPart(part_id(cluster.id, n), sequence, piece)) for n, piece in enumerate(pieces)]
    # A report must not come back when the cluster is gone.
    writes.append(Check(Cluster, cluster.id, {"status": cluster.status}))
    wake = _wake(services, current, pod_state) if woken else None
    if wake is not None:
        writes.append(Create(wake))
    if lost_nodes := gone_names | _unready_nodes(earlier, pod_state):
        writes.append(Create(_message(services, current, UNREADY_TYPE, nodes=len(lost_nodes))))
    services.store.commit(*writes)
    if pieces and not pod_state["pending"]:
        # Pods have left or moved: nodes may be needed no more.
        watch(services, cluster.id, SETTLING_SECONDS)
    if gone_names:
        watch(services, cluster.id)
    rules = services.settings
    interval = rules.agent_quiet_seconds if pod_state["pending"] else rules.agent_idle_seconds
    return Received(sequence, False, interval, woken, wake)


def _merged(base: PodState | None, report: Mapping[str, Any]) -> dict[str, Any]:
    pod_state: dict[str, Any] = {name: _changed((base or {}).get(name) or {}, report.get(name) or {}) for name in MAPS}
    for name in FACTS:
        changes = report[name]
        pod_state[name] = None if changes is None else _changed((base.get(name) if base else None) or {}, changes)
    return {**pod_state, "omitted": report["omitted"]}


def _changed(entries: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The entries after changes, of which None takes one away."""
    merged = {**entries, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def _remembering(pod_state: dict[str, Any], earlier: PodState | None) -> dict[str, Any]:
    """The state in which no pod event of a node is earlier than was told: an agent that was started anew knows of
    pods that are there, not of those that have left."""
    before = (earlier or {}).get("nodes") or {}
    for name, facts in (pod_state["nodes"] or {}).items():
        earlier_facts = before.get(name)
        if earlier_facts is not None and earlier_facts["created_at"] == facts["created_at"]:
            latest = max(earlier_facts["pod_event_at"] or "", facts["pod_event_at"] or "")
            facts["pod_event_at"] = latest or None
    return pod_state


def _check(pod_state: PodState) -> None:
    groups = pod_state["groups"]
    if len(groups) > MOST_GROUPS:
        raise InvalidInput.at("/groups", f"must have at most {MOST_GROUPS} entries")
    for group in pod_state["pending"]:
        if group not in groups:
            raise InvalidInput.at(pointer("pending", group), "must be one of the groups")
    for name in ("running", "nominated"):
        for node, counts in pod_state[name].items():
            if not groups.keys() >= counts.keys():
                raise InvalidInput.at(pointer(name, node), "must have the groups' names")
    for name, group in pod_state["daemon_sets"].items():
        if group not in groups:
            raise InvalidInput.at(pointer("daemon_sets", name), "must be one of the groups")
    if len(pod_state["nodes"] or ()) > MOST_NODES:
        raise InvalidInput.at("/nodes", f"must have at most {MOST_NODES} entries")
    budgets = pod_state["budgets"] or {}
    for node, facts in (pod_state["nodes"] or {}).items():
        if not budgets.keys() >= facts["budgets"].keys():
            raise InvalidInput.at(pointer("nodes", node, "budgets"), "must have the names of the budgets")


def _pieces(pod_state: PodState) -> Sequence[bytes]:
    text = json.dumps(pod_state, separators=(",", ":"), sort_keys=True).encode()
    data = gzip.compress(text, 6, mtime=0)
    if len(text) > MOST_BYTES or len(data) > MOST_PARTS * PART_BYTES:
        raise BodyTooLarge("What the reports say together is too large to be kept.")
    return [data[begin : begin + PART_BYTES] for begin in range(0, len(data), PART_BYTES)]


def _more_wait(earlier: PodState | None, pod_state: PodState) -> bool:
    before = earlier["pending"] if earlier else {}
    return any(
        group not in before or pods["count"] > before[group]["count"] for group, pods in pod_state["pending"].items()
    )


def _wait_otherwise(earlier: PodState | None, pod_state: PodState) -> bool:
    """Whether pods wait that waited before, beside other pods, DaemonSets or nodes than then.

    A pod that was nominated and is bound now takes the same room as before.
    """
    if not earlier or not pod_state["pending"]:
        return False
    return any(of(earlier) != of(pod_state) for of in (_pods_by_node, _daemon_sets, _rooms))


def _lack_their_example(earlier: PodState | None, pod_state: PodState) -> bool:
    """Whether the pod is gone whose name stands for a group of pods that wait: nobody finds what is said of those that
    wait in its place."""
    before = earlier["pending"] if earlier else {}
    return any(
        group in before and not set(before[group]["names"][:1]) <= set(pods["names"])
        for group, pods in pod_state["pending"].items()
    )


def _pods_by_node(pod_state: PodState) -> dict[str, Counter[str]]:
    """Number of pods of each group that take room on each node."""
    by_node: dict[str, Counter[str]] = {}
    for name in ("running", "nominated"):
        for node, counts in (pod_state.get(name) or {}).items():
            by_node.setdefault(node, Counter()).update(counts)
    return {node: counts for node, counts in by_node.items() if counts}


def _daemon_sets(pod_state: PodState) -> Any:
    return pod_state["daemon_sets"]


def _rooms(pod_state: PodState) -> dict[str, list[Any]]:
    """Values of each node that decide which pods it takes."""
    nodes = pod_state.get("nodes") or {}
    return {name: [facts.get(member) for member in ROOM] for name, facts in nodes.items()}


def _gone_nodes(earlier: PodState | None, pod_state: PodState) -> set[str]:
    """The nodes that were there by the report before and are so no more, but those that the agent has drained."""
    now = pod_state.get("nodes")
    if now is None:
        return set()
    before = (earlier or {}).get("nodes") or {}
    return {name for name, facts in before.items() if name not in now and not _is_drained(facts)}


def _unseen_nodes(earlier: PodState | None, pod_state: PodState) -> Set[str]:
    """The nodes to which pods are bound by now and that no report has told of: they come just now, or came and went."""
    if pod_state.get("nodes") is None:
        return frozenset()
    bound = {name for name, pods in pod_state["running"].items() if pods}
    before = earlier or {}
    known_names = {*pod_state["nodes"], *(before.get("nodes") or ()), *(before.get("running") or ())}
    return bound - known_names


def _is_drained(facts: Mapping[str, Any]) -> bool:
    """Whether the agent was told to empty the node; one of an older release does not say the taint."""
    taints = facts.get("taints")
    return bool(facts["unschedulable"]) if taints is None else any(taint["key"] == DISRUPTED for taint in taints)


def _unready_nodes(earlier: PodState | None, pod_state: PodState) -> set[str]:
    """The nodes that were ready by the report before and are there, but not ready."""
    before, now = (earlier or {}).get("nodes") or {}, pod_state.get("nodes") or {}
    return {
        name
        for name, facts in before.items()
        if facts["ready"] == "True" and name in now and now[name]["ready"] != "True"
    }


def _wake(services: Services, report: WorkloadReport, pod_state: PodState) -> Outbox:
    """The event is for the passes alone: people are shown what comes of it. Pods wait for it, so whoever takes the
    report sends it at once."""
    pods = sum(waiting["count"] for waiting in pod_state["pending"].values())
    return replace(_message(services, report, DETAIL_TYPE, pods=pods, groups=len(pod_state["pending"])), sender=SENDER)


def _message(services: Services, report: WorkloadReport, detail_type: str, **more: Any) -> Outbox:
    detail = {
        "id": services.new_id(ids.EVENT),
        "version": report.version,
        "tenant": services.tenant,
        "subject": report.id,
        "sequence": report.sequence,
        "time": report.received_at,
        **more,
    }
    payload = {"detail_type": detail_type, "detail": detail}
    return Outbox(services.new_id(ids.OUTBOX), "event", payload, report.received_at)
