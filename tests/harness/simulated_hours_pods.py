"""Pods of a played cluster, and what makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent.stockyard_agent.kubernetes import Object

NAMESPACE = "default"
DAEMON_CPU, DAEMON_MIB = 100, 64
"""What the one DaemonSet takes on each node."""
TOLERATES_ALL = [{"operator": "Exists"}]


def stamp(moment: datetime) -> str:
    """The moment as Kubernetes writes it, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class App:
    """A deployment. ``cpu`` in thousandths of a core, ``mib`` of memory; ``selector`` are labels of its nodes.

    ``least``: pods that its PodDisruptionBudget keeps healthy; None: it has none. ``protection`` is the annotation
    ``karpenter.sh/do-not-disrupt`` of its pods. ``alone``: no two of its pods are on one node. ``grace`` and ``begin``
    are the seconds in which a pod ends, and becomes ready.
    """

    name: str
    cpu: int
    mib: int
    selector: Mapping[str, str] = field(default_factory=dict)
    least: int | None = None
    protection: str = ""
    alone: bool = False
    grace: int = 5
    begin: int = 20
    cost: int = 0
    replicas: int = 0


def is_ending(pod: Object) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_healthy(pod: Object) -> bool:
    """Whether the pod is ready and stays."""
    return not is_ending(pod) and any(part["type"] == "Ready" for part in pod["status"]["conditions"])


DAEMON_SET: Object = {
    "metadata": {"namespace": NAMESPACE, "name": "proxy"},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "proxy"}},
            "spec": {
                "containers": [{"resources": {"requests": {"cpu": f"{DAEMON_CPU}m", "memory": f"{DAEMON_MIB}Mi"}}}],
                "tolerations": TOLERATES_ALL,
            },
        }
    },
}
