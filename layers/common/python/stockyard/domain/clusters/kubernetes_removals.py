"""The interfaces that minors of Kubernetes stop serving: what an upgrade to one may break.

From the project's guide (https://kubernetes.io/docs/reference/using-api/deprecation-guide/), which lists what was
served by default. Who adds a minor to ``kubernetes_versions`` looks there again, and moves the date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.notes import Note

LOOKED_AT = "2026-11-29"


@dataclass(frozen=True, slots=True)
class Removal:
    """Kinds that a version of their group serves no longer, each with the version that serves the kind now."""

    group_version: str
    kinds: tuple[str, ...]
    instead: str


_FLOW = ("FlowSchema", "PriorityLevelConfiguration")
REMOVED: Mapping[str, Sequence[Removal]] = {
    "1.25": (
        Removal("batch/v1beta1", ("CronJob",), "batch/v1"),
        Removal("discovery.k8s.io/v1beta1", ("EndpointSlice",), "discovery.k8s.io/v1"),
        Removal("events.k8s.io/v1beta1", ("Event",), "events.k8s.io/v1"),
        Removal("autoscaling/v2beta1", ("HorizontalPodAutoscaler",), "autoscaling/v2"),
        Removal("policy/v1beta1", ("PodDisruptionBudget",), "policy/v1"),
        Removal("policy/v1beta1", ("PodSecurityPolicy",), "Pod Security admission"),
        Removal("node.k8s.io/v1beta1", ("RuntimeClass",), "node.k8s.io/v1"),
    ),
    "1.26": (
        Removal("flowcontrol.apiserver.k8s.io/v1beta1", _FLOW, "flowcontrol.apiserver.k8s.io/v1"),
        Removal("autoscaling/v2beta2", ("HorizontalPodAutoscaler",), "autoscaling/v2"),
    ),
    "1.27": (Removal("storage.k8s.io/v1beta1", ("CSIStorageCapacity",), "storage.k8s.io/v1"),),
    "1.29": (Removal("flowcontrol.apiserver.k8s.io/v1beta2", _FLOW, "flowcontrol.apiserver.k8s.io/v1"),),
    "1.32": (Removal("flowcontrol.apiserver.k8s.io/v1beta3", _FLOW, "flowcontrol.apiserver.k8s.io/v1"),),
}
"""By minor. A minor that is not here removes none."""


def removals(minor: str) -> list[str]:
    """Warnings about an upgrade to that minor. Whether somebody still uses an interface, its API server knows."""
    if minor not in REMOVED:
        return [Note(f"Kubernetes {minor} removes no interface that is served by default (as of {LOOKED_AT}).")]
    return [
        f"Kubernetes {minor} no longer serves {' and '.join(each.kinds)} as {each.group_version}; use {each.instead}."
        for each in REMOVED[minor]
    ]
