"""Changes that replace nodes: why they do, and whether somebody has to approve of it first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from stockyard.domain.records import Cluster, Operation
from stockyard.errors import IllegalTransition
from stockyard.lifecycle.change import Change, Transition
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.operation import with_phase

SETTING, REQUIRED, AUTOMATIC = "repave_approval", "required", "automatic"
NONE: Final = "None"
PENDING: Final = "Pending"
APPROVED: Final = "Approved"
REVERTED: Final = "Reverted"
VERSION_CHANGED, CONTROL_PLANE_CHANGED, POOL_CHANGED = "KubernetesVersionChanged", "ControlPlaneChanged", "PoolChanged"
REQUESTED, CERTIFICATES = "RepaveRequested", "CertificatesRenewed"
PHASE = "approval"
REPAVE, RENEWAL = "/repave", "/certificates"
"""Pointers of changes that are no fields of a patch: every node is replaced, or every member of the control plane."""

OF_MEMBERS = frozenset({VERSION_CHANGED, CONTROL_PLANE_CHANGED, REQUESTED, CERTIFICATES})
"""Codes of reasons for which members of the control plane are replaced."""

Reason = dict[str, str]
"""``code`` and ``message``; with ``pool`` what only the nodes of that pool are replaced for."""

_CONTROL_PLANE = ("control_plane_instance_type", "control_plane_instance_types", "image")
"""Settings that a member of the control plane is made with."""


def reasons(cluster: Cluster, target: Cluster, replaced_pools: Iterable[str]) -> list[Reason]:
    """Reasons why nodes are replaced when the cluster becomes the target; none when all stay. ``replaced_pools`` are
    those whose nodes differ from what they would then be made as."""
    causes = []
    if target.kubernetes_version != cluster.kubernetes_version:
        text = (
            f"Kubernetes goes from {cluster.kubernetes_version} to {target.kubernetes_version}: every node is replaced."
        )
        causes.append(_reason(VERSION_CHANGED, text))
    changed = [name for name in _CONTROL_PLANE if target.settings.get(name) != cluster.settings.get(name)]
    if changed:
        text = f"{' and '.join(changed)} changes: members of the control plane are replaced."
        causes.append(_reason(CONTROL_PLANE_CHANGED, text))
    causes += [
        {**_reason(POOL_CHANGED, f"The nodes of pool {name} are replaced."), "pool": name} for name in replaced_pools
    ]
    if target.nodes_since != cluster.nodes_since:
        causes.append(_reason(REQUESTED, "Every node is replaced, as somebody has asked for."))
    elif target.members_since != cluster.members_since:
        causes.append(_reason(CERTIFICATES, "Members of the control plane are replaced to renew their certificates."))
    return causes


def _reason(code: str, message: str) -> Reason:
    return {"code": code, "message": message}


def approval_of(cluster: Cluster, why: Sequence[Reason]) -> dict[str, Any]:
    """Notes on the approval of an operation that replaces nodes; empty for one that replaces none.

    ``cluster`` is as it was before: who no longer wants to be asked has to say so first.
    """
    if not why:
        return {}
    required = cluster.settings.get(SETTING) == REQUIRED
    return {"state": PENDING if required else APPROVED, "reasons": list(why), "before": before_of(cluster)}


def before_of(cluster: Cluster) -> dict[str, Any]:
    """Values that come back when the change is not approved."""
    return {name: getattr(cluster, name) for name in RESTORED}


RESTORED = ("settings", "kubernetes_version", "nodes_version", "nodes_since", "members_since")


def state_of(operation: Operation | None) -> str:
    """State of the approval of an operation."""
    return str(operation.repave.get("state", NONE)) if operation is not None else NONE


def approve(cluster: Cluster, operation: Operation, actor: str, now: str) -> Change[Cluster] | None:
    """The operation may go on; None when it was told so before. ``IllegalTransition`` where nothing waits."""
    state = state_of(operation)
    if state == APPROVED:
        return None
    if state != PENDING or operation.status != "running":
        raise IllegalTransition("Nothing waits for approval.")
    text = f"Approved by {actor}."
    changed = replace(operation, repave={**operation.repave, "state": APPROVED}, updated_at=now)
    changed = replace(changed, version=operation.version + 1)
    return Change(
        MOVES.touch(cluster, now), changed, (Transition("Operation", "running", "running", "Approved", text),)
    )


def revert(cluster: Cluster, operation: Operation, actor: str, now: str) -> Change[Cluster] | None:
    """The cluster as it was before the operation, which ends; None when it was reverted before.

    ``IllegalTransition`` where nothing waits for approval: what has been approved is being done.
    """
    state = state_of(operation)
    if state == REVERTED:
        return None
    if state != PENDING or operation.status != "running":
        raise IllegalTransition("Nothing waits for approval.")
    before: Mapping[str, Any] = operation.repave["before"]
    text = f"Not approved by {actor}. Nothing was replaced, and the settings are as they were."
    changed = MOVES.touch(cluster, now, phase=None, **{name: before[name] for name in RESTORED if name in before})
    over = with_phase(operation, PHASE, now, state="skipped", ended_at=now, message=text)
    over = replace(over, status="reverted", repave={**operation.repave, "state": REVERTED})
    transitions = (
        MOVES.transition(cluster.status, cluster.status, "Reverted", text),
        Transition("Operation", "running", "reverted", "Reverted", text),
    )
    return Change(changed, over, transitions)
