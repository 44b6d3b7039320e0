"""Resources that a pod of a DaemonSet takes: as its newest pod, which admission has made larger than its template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..kubernetes import Kubernetes, Object
from .pod_templates import daemon_part
from .pods import KnownPod

DAEMON_SETS = "/apis/apps/v1/daemonsets"
LIMIT_RANGES = "/api/v1/limitranges"
GENERATION = "pod-template-generation"
"""The label that the controller gives to pods: of which generation of the DaemonSet's template they are."""
OF_SET = "deprecated.daemonset.template.generation"
"""The annotation of a DaemonSet with the same number."""
SIZE_FIELDS = ("containers", "initContainers", "overhead", "resources", "resourceClaims", "hostNetwork")
"""The members of a scheduling part that say what a pod takes; the others say where it may be."""
FIRST_SECONDS, MOST_SECONDS = 300.0, 3600.0
"""How long a pod that is gone says what the next one takes: at first, and at most. A pod that admission made larger may
have come with a node that nothing else used, and nothing but another node would say it again; admission may also make
less of the next. Each time that the same size comes again after it was forgotten, it is remembered twice as long."""
_PAGE, _SETS_PAGE = 250, 100
Defaults = Mapping[str, str]
"""Quantities by resource."""


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """Pods that a DaemonSet makes. ``name`` has its namespace before a slash."""

    name: str
    namespace: str
    labels: tuple[tuple[str, str], ...]
    part: Mapping[str, Any]
    generation: str = ""
    """Which generation of its template is the one of now; empty where it does not say it."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The specification of the template, whole."""
    created_at: str = ""
    gone_pod: KnownPod | None = None
    """A pod of its template of now that is gone or ends and is newer than those that stay; None where there is none."""

    def has_made(self, pod: KnownPod) -> bool:
        """Whether its template of now has made the pod. One that is older than the DaemonSet is of an earlier one of
        that name."""
        number = dict(pod.labels).get(GENERATION, self.generation)
        return self.generation in ("", number) and pod.created_at >= self.created_at


def daemon_sets(kube: Kubernetes) -> list[DaemonSet]:
    """All DaemonSets. Raises ``Refused``, ``Unreachable``."""
    return kube.collect(DAEMON_SETS, {}, _daemon_set, _SETS_PAGE)


def _daemon_set(item: Object) -> DaemonSet | None:
    meta, template = item["metadata"], (item.get("spec") or {}).get("template") or {}
    if "deletionTimestamp" in meta:
        return None
    labels = (template.get("metadata") or {}).get("labels") or {}
    name, spec = f"{meta['namespace']}/{meta['name']}", template.get("spec") or {}
    generation = str((meta.get("annotations") or {}).get(OF_SET) or "")
    created_at = str(meta.get("creationTimestamp") or "")
    part = daemon_part(spec)
    return DaemonSet(name, meta["namespace"], tuple(sorted(labels.items())), part, generation, spec, created_at)


def current_pods(pods: Iterable[KnownPod], daemons: Iterable[DaemonSet]) -> dict[str, KnownPod]:
    """The newest pod of each DaemonSet that its template of now has made, by the set's namespace and name."""
    by_name = {daemon.name: daemon for daemon in daemons}
    gone_pods = (daemon.gone_pod for daemon in by_name.values())
    newest: dict[str, KnownPod] = {}
    for pod in (*pods, *(pod for pod in gone_pods if pod is not None)):
        daemon = by_name.get(pod.daemon_set)
        if daemon is None or pod.ending or not daemon.has_made(pod):
            continue
        newest_pod = newest.get(pod.daemon_set)
        if newest_pod is None or (pod.created_at, pod.part) > (newest_pod.created_at, newest_pod.part):
            newest[pod.daemon_set] = pod
    return newest


@dataclass(frozen=True, slots=True)
class _Sight:
    """The newest pod of a DaemonSet, and when it was there last. ``made_by`` differs when the template does."""

    pod: KnownPod
    made_by: tuple[object, ...]
    seen_at: float
    seconds: Mapping[str, float]
    """How long pods of the set are remembered, by their scheduling part: ``FIRST_SECONDS`` where it is not there."""

    def is_over(self, now: float) -> bool:
        """Whether the pod is gone for too long to say anything."""
        return now - self.seen_at >= self.seconds.get(self.pod.part, FIRST_SECONDS)

    def seconds_after(self, now: float) -> Mapping[str, float]:
        """Seconds for which pods are remembered from now on: twice as long as before, for one that was just
        forgotten."""
        if not self.is_over(now):
            return self.seconds
        doubled = 2 * self.seconds.get(self.pod.part, FIRST_SECONDS)
        return {**self.seconds, self.pod.part: min(doubled, MOST_SECONDS)}


class NewestPods:
    """Remembers the newest pod of each DaemonSet for a while after it is gone. Not for threads."""

    def __init__(self) -> None:
        self._sights: dict[str, _Sight] = {}

    def with_gone_pods(self, daemons: Iterable[DaemonSet], pods: Iterable[KnownPod], now: float) -> list[DaemonSet]:
        """The DaemonSets with their ``gone_pod``; ``pods`` are those that are there, ``now`` is in seconds."""
        plain = [replace(daemon, gone_pod=None) for daemon in daemons]
        current, sights = current_pods(pods, plain), {}
        gone_pods: dict[str, KnownPod] = {}
        for daemon in plain:
            made_by = (daemon.created_at, daemon.generation, daemon.spec)
            sight, pod = self._sights.get(daemon.name), current.get(daemon.name)
            if sight is not None and sight.made_by != made_by:
                sight = None
            lasting = sight if sight is not None and not sight.is_over(now) else None
            if pod is not None and (lasting is None or pod.created_at >= lasting.pod.created_at):
                sight = _Sight(pod, made_by, now, sight.seconds_after(now) if sight is not None else {})
            elif lasting is not None:
                gone_pods[daemon.name] = lasting.pod
            if sight is not None:
                sights[daemon.name] = sight
        self._sights = sights
        return [replace(daemon, gone_pod=gone_pods.get(daemon.name)) for daemon in plain]


def sized(template: Mapping[str, Any], running: Mapping[str, Any]) -> dict[str, Any]:
    """The template's part with what a running pod takes."""
    unsized = {name: value for name, value in template.items() if name not in SIZE_FIELDS}
    return {**unsized, **{name: running[name] for name in SIZE_FIELDS if name in running}}


def defaults(kube: Kubernetes) -> Mapping[str, Defaults]:
    """Requests of containers that say nothing themselves, by namespace: LimitRanges. Raises ``Refused``,
    ``Unreachable``."""
    by_namespace: dict[str, dict[str, str]] = {}
    for namespace, quantities in sorted(kube.collect(LIMIT_RANGES, {}, _defaults, _PAGE), key=lambda item: item[0]):
        by_namespace[namespace] = {**quantities, **by_namespace.get(namespace, {})}
    return by_namespace


def _defaults(item: Object) -> tuple[str, dict[str, str]]:
    quantities: dict[str, str] = {}
    for limit in (item.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            quantities |= {**(limit.get("default") or {}), **(limit.get("defaultRequest") or {})}
    return item["metadata"]["namespace"], quantities


def limited(spec: Mapping[str, Any], quantities: Defaults) -> dict[str, Any]:
    """The specification of a template as the API server will complete it. Where the pod itself has requests, its
    containers get none."""
    if not quantities or spec.get("resources"):
        return dict(spec)
    return {**spec, **{name: _limited(spec[name], quantities) for name in SIZE_FIELDS[:2] if spec.get(name)}}


def _limited(containers: Sequence[Mapping[str, Any]], quantities: Defaults) -> list[dict[str, Any]]:
    completed = []
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        # What is only limited is requested as well.
        missing = {name: text for name, text in quantities.items() if name not in (limits.keys() | requests.keys())}
        completed.append({**container, "resources": {**resources, "requests": {**requests, **missing}}})
    return completed
