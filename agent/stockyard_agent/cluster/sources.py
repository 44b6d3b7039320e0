"""Sources of a report beside pods and nodes, read when one is made: volumes, DaemonSets and namespaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from ..kubernetes import Kubernetes, Refused
from .csi import Handle
from .daemon_sets import DaemonSet, NewestPods, current_pods, daemon_sets, defaults, limited
from .namespaces import Labels, has_selector, labels_of_namespaces
from .pod_templates import daemon_part
from .pods import KnownPod
from .volumes import Volumes

T = TypeVar("T")
READ_SECONDS = 10.0
"""For how long what was read is good. A claim that is not known is looked for at once."""
AGAIN_SECONDS = 3600.0
"""How often volumes are read again that are known already."""
_FORBIDDEN = 403


class Permits:
    """Reads objects that an upgraded agent may not read under an older agent's roles, and reports the missing right
    once."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._denied: set[str] = set()

    def read(self, subject: str, read: Callable[[], T]) -> T | None:
        """Return the answer of ``read``; None where it is forbidden. Raises ``Refused``, ``Unreachable``."""
        try:
            value = read()
        except Refused as refused:
            if refused.status != _FORBIDDEN:
                raise
            if subject not in self._denied:
                self._log(f"{subject} are not told: {refused}")
            self._denied.add(subject)
            return None
        self._denied.discard(subject)
        return value


class Sources:
    """Not for threads. ``daemons`` are the DaemonSets, ``namespaces`` the labels of namespaces where a rule of a pod
    selects by them; None where nothing is known of them."""

    def __init__(self, kube: Kubernetes, monotonic: Callable[[], float], permits: Permits) -> None:
        self._kube, self._monotonic, self._permits = kube, monotonic, permits
        self._volumes = Volumes()
        self._daemons_at = self._volumes_at = self._namespaces_at = -AGAIN_SECONDS
        self._waited: Set[tuple[str, str]] = frozenset()
        """The pods that waited when it was last read, by namespace and name."""
        self._newest_pods = NewestPods()
        self.daemons: Sequence[DaemonSet] = ()
        self.namespaces: Labels | None = None

    def refresh(self, pods: Sequence[KnownPod]) -> None:
        """Read what is too old, as far as these pods need it. Raises ``Refused``, ``Unreachable``."""
        now = self._monotonic()
        # A DaemonSet that came with pods takes its part of the node that is made for them.
        waiting = {(pod.namespace, pod.name) for pod in pods if pod.waits}
        if now - self._daemons_at >= READ_SECONDS or not waiting <= self._waited:
            self.daemons, self._daemons_at = self._daemon_sets(pods), now
        self.daemons = self._newest_pods.with_gone_pods(self.daemons, pods, now)
        self._waited = waiting
        if self._needs_volumes(pods, now - self._volumes_at):
            self._volumes, self._volumes_at = Volumes.read(self._kube), now
        if any(map(has_selector, {pod.part for pod in pods})):
            if now - self._namespaces_at >= READ_SECONDS:
                self.namespaces = self._permits.read("Selected namespaces", self._labels_of_namespaces)
                self._namespaces_at = now
        else:
            self.namespaces = None

    def places(self, namespace: str, claims: Sequence[str]) -> Sequence[object] | None:
        """See ``Volumes.places``."""
        return self._volumes.places(namespace, claims) if claims else ()

    def attached(self, pod: KnownPod) -> set[Handle]:
        """The volumes that the pod attaches to its node."""
        return self._volumes.handles_of(pod.namespace, pod.claims) | {*pod.inline}

    def nominated(self, pods: Sequence[KnownPod]) -> list[KnownPod]:
        """The pods, where a pod with a chosen node and volumes in creation is nominated to that node, as kube-scheduler
        1.35 does."""
        return [
            replace(pod, nominated=node)
            if pod.unbound
            and not pod.nominated
            and pod.claims
            and (node := self._volumes.selected_node(pod.namespace, pod.claims))
            else pod
            for pod in pods
        ]

    def _labels_of_namespaces(self) -> Labels:
        return labels_of_namespaces(self._kube)

    def _needs_volumes(self, pods: Sequence[KnownPod], age: float) -> bool:
        """Whether volumes have to be read: of pods without a node as they are now, of others once."""
        waiting = {f"{pod.namespace}/{name}" for pod in pods if pod.unbound for name in pod.claims}
        if waiting and (age >= READ_SECONDS or not waiting <= self._volumes.claims.keys()):
            return True
        if age < READ_SECONDS:
            return False
        placed = (f"{pod.namespace}/{name}" for pod in pods if pod.node for name in pod.claims)
        return any(age >= AGAIN_SECONDS or not self._volumes.knows(claim) for claim in placed)

    def _daemon_sets(self, pods: Sequence[KnownPod]) -> Sequence[DaemonSet]:
        """All DaemonSets, those that have no pod yet as LimitRanges will complete it."""
        daemons = daemon_sets(self._kube)
        current = current_pods(pods, daemons)
        if all(daemon.name in current for daemon in daemons):
            return daemons
        ranges = self._permits.read("Defaults of LimitRanges", lambda: defaults(self._kube)) or {}
        return [
            replace(daemon, part=daemon_part(limited(daemon.spec, ranges[daemon.namespace])))
            if daemon.namespace in ranges
            else daemon
            for daemon in daemons
        ]
