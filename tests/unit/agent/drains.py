"""Drains of the node ``a``: the command, its result, and what became of the pods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from agent.stockyard_agent.observation import timestamp
from tests.unit.agent.rig import Rig

CRITICAL = "system-cluster-critical"
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}
MIRROR = {"kubernetes.io/config.mirror": "x"}


def order(rig: Rig, *, seconds: float | None = None, **more: Any) -> None:
    rig.add_node("a")
    deadline = None if seconds is None else timestamp(rig.clock.now + timedelta(seconds=seconds))
    rig.platform.order("d", "drain", node="a", **{"grace_seconds": None, "deadline": deadline, **more})


def result(rig: Rig) -> dict[str, Any]:
    return rig.platform.results_by_id.get("cmd_d") or rig.platform.results["d"]


def counts(rig: Rig) -> dict[str, int]:
    """Counts of the last result."""
    return {name: value for name, value in result(rig)["data"].items() if name != "held"}


def verbs(rig: Rig) -> list[tuple[str, str]]:
    """Objects that were evicted or deleted, in order, as far as it was allowed."""
    return [
        (call.action.resource, call.action.name)
        for call in rig.kube.calls
        if call.action.verb in ("create", "delete") and call.status in (200, 201)
    ]
