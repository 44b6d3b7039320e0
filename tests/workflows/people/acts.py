"""Acts of people and kubelets on nodes in crash matrices, as the cluster's agent tells of them then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LONG, SHORT = 20, 3
"""Minutes for which an act lasts."""
CORDON, TAINT, DRAIN, DELETED, NOT_READY = "cordon", "taint", "drain", "deleted", "not ready"
SHRINKS, READY_AGAIN, DAEMON_GROWS = "shrinks", "ready again", "daemon set grows"
DAEMON = "kube-system/proxy"
"""The DaemonSet that grows."""
TAINTS = (("person", "", "NoSchedule"),)
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Act:
    """``facts`` are what is told of the node while the act lasts, given the time at which it began.

    ``moves``: pods of the node wait for another one, whatever the product decides. ``minutes``: after so many a person
    takes the act back, or the kubelet is there again.
    """

    facts: Callable[[str], Facts]
    moves: bool = False
    minutes: int = LONG


def _cordoned(_: str) -> Facts:
    return {"unschedulable": True}


def _silent(now: str) -> Facts:
    return {"ready": "False", "ready_since": now}


def _no_facts(_: str) -> Facts:
    return {}


ACTS: Mapping[str, Act] = {
    CORDON: Act(_cordoned),
    TAINT: Act(lambda _: {"taints": TAINTS}),
    DRAIN: Act(_cordoned, moves=True),
    DELETED: Act(_no_facts, moves=True),
    NOT_READY: Act(_silent, moves=True),
    SHRINKS: Act(lambda _: {"allocatable": {"cpu": "1", "memory": "3Gi", "pods": "110"}}),
    READY_AGAIN: Act(_silent, minutes=SHORT),
    DAEMON_GROWS: Act(_no_facts),
}
"""Acts by name. The node object of a deleted node is gone, its machine runs on. A node shrinks when its kubelet keeps
more for itself. A DaemonSet grows on all nodes."""
