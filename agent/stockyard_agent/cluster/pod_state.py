"""The state of a cluster's pods that is posted: groups of equal pods, how many wait, and how many run where."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .csi import Handle
from .daemon_sets import DaemonSet, current_pods, sized
from .namespaces import Labels, resolved
from .pod_templates import GANG, group_id, selected_keys
from .pods import KnownPod

MOST_GROUPS = 5_000
MOST_NAMES = 5
MAPS = ("groups", "pending", "running", "nominated", "daemon_sets")
FACTS = ("nodes", "budgets")
"""Maps that are None where nothing can be told of them."""
_RESOURCES = ("containers", "initContainers", "overhead", "resources", "hostNetwork")
"""What is kept of pods that have a node when there are too many different ones: the room that they take."""
SINCE_0200 = {
    "": ("nominated",),
    "groups": ("attachments",),
    "pending": ("message",),
    "nodes": ("uid", "labels", "taints", "allocatable", "volume_limits", "volumes"),
}
"""Members that Stockyard of before decision 200 refuses, of a report and of the entries of its maps."""
Places = Callable[[str, Sequence[str]], Sequence[Any] | None]
"""Where the claims of a pod can be, by namespace and names; None when no node would help."""


@dataclass
class PodState:
    """``pending`` are counts, names and what the scheduler says, by group; ``running`` and ``nominated`` are counts by
    node and group. ``daemon_sets`` are groups.

    ``nodes`` and ``budgets`` are what ``node_facts.facts_of`` says; None for what cannot be told.
    """

    groups: dict[str, Any] = field(default_factory=dict)
    pending: dict[str, Any] = field(default_factory=dict)
    running: dict[str, Any] = field(default_factory=dict)
    nominated: dict[str, Any] = field(default_factory=dict)
    daemon_sets: dict[str, Any] = field(default_factory=dict)
    omitted: int = 0
    nodes: dict[str, Any] | None = None
    budgets: dict[str, Any] | None = None

    def whole(self) -> dict[str, Any]:
        """All of it, as a post has it."""
        return {**{name: getattr(self, name) for name in (*MAPS, *FACTS)}, "omitted": self.omitted}

    def has_news_for_waiting(self, before: PodState) -> bool:
        """Whether pods wait, and more of them or beside others than before, or beside other nodes: Stockyard looks then
        whether they need a node."""
        rooms = (before.running, before.nominated, before.daemon_sets, before.nodes)
        counts = {group: entry["count"] for group, entry in before.pending.items()}
        more = any(entry["count"] > counts.get(group, 0) for group, entry in self.pending.items())
        return more or (bool(self.pending) and rooms != (self.running, self.nominated, self.daemon_sets, self.nodes))

    def changes(self, before: PodState) -> dict[str, Any]:
        """Changes since an earlier state; null takes an entry away."""
        maps = {name: _changes(getattr(before, name), getattr(self, name)) for name in MAPS}
        facts = {name: _changed_facts(getattr(before, name), getattr(self, name)) for name in FACTS}
        return {**maps, **facts, "omitted": self.omitted}


def without_news(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report as an older Stockyard takes it; see ``SINCE_0200``."""
    plain = {name: value for name, value in report.items() if name not in SINCE_0200[""]}
    for member in SINCE_0200.keys() & plain.keys():
        if plain[member] is not None:
            plain[member] = {name: _less(entry, SINCE_0200[member]) for name, entry in plain[member].items()}
    return plain


def _less(entry: Mapping[str, Any] | None, names: Sequence[str]) -> Mapping[str, Any] | None:
    return entry and {name: value for name, value in entry.items() if name not in names}


def _changed_facts(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if after is None else _changes(before or {}, after)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    changes = {name: value for name, value in after.items() if before.get(name) != value}
    return {**changes, **{name: None for name in before if name not in after}}


def pod_state_of(
    pods: Iterable[KnownPod],
    daemons: Iterable[DaemonSet],
    places: Places,
    nodes: Container[str] | None = None,
    attached: Callable[[KnownPod], Iterable[Handle]] = lambda _: (),
    namespaces: Labels | None = None,
) -> PodState:
    """The state of these pods. ``nodes`` has the names of the nodes that are there; None where they are not known.
    ``attached`` says what volumes a pod attaches to its node, ``namespaces`` what labels namespaces have.

    A pod that was given a node which is gone waits as others do. A DaemonSet's pod is as large as the newest of its
    pods that was made by its template of now, also where that one is gone: admission may have made it larger.
    Of labels only those are kept that some rule selects pods by, so that pods which differ in others alone are equal.
    Where more different pods are than ``MOST_GROUPS``, of those with a node only the room is told that they take; what
    waits in the smallest groups is left out and counted.
    """
    pods, daemons = list(pods), list(daemons)
    parts = {pod.part: json.loads(pod.part) for pod in pods}
    if namespaces is not None:
        parts = {text: resolved(part, namespaces) for text, part in parts.items()}
    current = current_pods(pods, daemons)
    daemons = [
        replace(daemon, part=sized(daemon.part, json.loads(current[daemon.name].part)))
        if daemon.name in current
        else daemon
        for daemon in daemons
    ]
    keys = frozenset({GANG}).union(*map(selected_keys, parts.values()))
    if nodes is not None:
        pods = [replace(pod, nominated="") if pod.nominated and pod.nominated not in nodes else pod for pod in pods]
    pod_state = _drawn(pods, daemons, places, _Groups(parts, keys, attached))
    if len(pod_state.groups) > MOST_GROUPS:
        pod_state = _drawn(pods, daemons, places, _Groups(parts, keys, attached, room_only=True))
    return pod_state if len(pod_state.groups) <= MOST_GROUPS else _bounded(pod_state)


@dataclass
class _Groups:
    """Finds the group of a pod, and keeps the templates."""

    parts: Mapping[str, Mapping[str, Any]]
    keys: frozenset[str]
    attached: Callable[[KnownPod], Iterable[Handle]]
    room_only: bool = False
    templates: dict[str, Any] = field(default_factory=dict)
    ids: dict[Any, str] = field(default_factory=dict)

    def of(self, pod: KnownPod, volumes: Sequence[Any] = ()) -> str:
        """The id of the pod's group."""
        plain = self.room_only and bool(pod.node or pod.nominated)
        labels = () if plain else tuple(item for item in pod.labels if item[0] in self.keys)
        cost = 0 if plain else pod.deletion_cost
        attachments = {} if plain else dict(sorted(Counter(driver for driver, _ in self.attached(pod)).items()))
        own = (pod.daemon_set, pod.static, cost, pod.ending, *attachments.items())
        key = (pod.namespace, labels, pod.part, json.dumps(volumes) if volumes else "", own)
        if key not in self.ids:
            part = self.parts[pod.part]
            spec = {name: part[name] for name in _RESOURCES if name in part} if plain else part
            namespace = "-" if plain else pod.namespace
            more = {"volumes": list(volumes), "daemon_set": pod.daemon_set, "static": pod.static}
            more |= {"deletion_cost": cost, "ending": pod.ending, "attachments": attachments}
            self.ids[key] = self.add(namespace, labels, spec, more)
        return self.ids[key]

    def add(
        self, namespace: str, labels: Iterable[tuple[str, str]], spec: Any, optional: Mapping[str, Any] | None = None
    ) -> str:
        """The id of the group of that template; of the ``optional`` members those that say something are in it."""
        template = {"namespace": namespace, "labels": dict(labels), "spec": spec}
        template |= {name: value for name, value in (optional or {}).items() if value}
        identity = group_id(template)
        self.templates[identity] = template
        return identity


def _drawn(pods: Iterable[KnownPod], daemons: Iterable[DaemonSet], places: Places, groups: _Groups) -> PodState:
    counts: Counter[str] = Counter()
    names: dict[str, list[str]] = {}
    refusals: dict[str, tuple[str, str]] = {}
    running: dict[str, Counter[str]] = {}
    nominated: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.node or pod.nominated:
            by_node = running if pod.node else nominated
            volumes = () if groups.room_only or pod.daemon_set else places(pod.namespace, pod.claims)
            by_node.setdefault(pod.node or pod.nominated, Counter())[groups.of(pod, volumes or ())] += 1
        elif pod.waits and (volumes := places(pod.namespace, pod.claims)) is not None:
            group = groups.of(pod, volumes)
            counts[group] += 1
            names.setdefault(group, []).append(f"{pod.namespace}/{pod.name}")
            if pod.refusal:
                # That of the first by name: the same one each time.
                refusals[group] = min((pod.name, pod.refusal), refusals.get(group, (pod.name, pod.refusal)))
    of_daemons = {
        daemon.name: groups.add(
            daemon.namespace, (item for item in daemon.labels if item[0] in groups.keys), daemon.part
        )
        for daemon in daemons
    }
    pending = {
        group: {
            "count": count,
            "names": sorted(names[group])[:MOST_NAMES],
            **({"message": refusals[group][1]} if group in refusals else {}),
        }
        for group, count in sorted(counts.items())
    }
    return PodState(groups.templates, pending, _plain(running), _plain(nominated), of_daemons)


def _plain(counts: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {node: dict(of_node) for node, of_node in counts.items()}


def _bounded(pod_state: PodState) -> PodState:
    """The state with the largest groups of pods that wait, as many as there is room for beside the other groups."""
    on_nodes = (*pod_state.running.values(), *pod_state.nominated.values())
    needed = {group for counts in on_nodes for group in counts} | {*pod_state.daemon_sets.values()}
    ranked = sorted(
        pod_state.pending, key=lambda group: (group not in needed, -pod_state.pending[group]["count"], group)
    )
    listed = ranked[: max(0, MOST_GROUPS - len(needed - pod_state.pending.keys()))]
    pending = {group: pod_state.pending[group] for group in sorted(listed)}
    omitted = sum(waiting["count"] for group, waiting in pod_state.pending.items() if group not in pending)
    groups = {group: template for group, template in pod_state.groups.items() if group in needed or group in pending}
    return PodState(groups, pending, pod_state.running, pod_state.nominated, pod_state.daemon_sets, omitted)
