"""The order of Kubernetes' minors, and how far apart parts of one cluster may be."""

from __future__ import annotations

MOST_NODE_SKEW = 3
"""How many minors a kubelet may be older than the API server, by the policy of Kubernetes since 1.28."""


def number(version: str) -> tuple[int, int]:
    """``1.35`` or ``v1.35.4`` as numbers that can be compared. Raises ``ValueError`` for what is no version."""
    major, minor = version.removeprefix("v").split(".")[:2]
    return int(major), int(minor)


def following(version: str) -> str:
    """The minor after that one."""
    major, minor = number(version)
    return f"{major}.{minor + 1}"


def upgrade_fault(before: str, after: str) -> str | None:
    """Reason why a control plane of the one minor cannot become one of the other; None where it can."""
    if number(after) < number(before):
        return f"must not be older than {before}, which the cluster has"
    if number(after) > number(following(before)):
        return f"must be {following(before)}: an upgrade goes one minor at a time"
    return None


def skew_fault(control_plane: str, node: str) -> str | None:
    """Reason why a node's kubelet cannot work with such a control plane; None where it can."""
    major, minor = number(control_plane)
    if number(node) > (major, minor):
        return f"has {node}, newer than the control plane"
    if number(node) < (major, minor - MOST_NODE_SKEW):
        return f"has {node}, more than {MOST_NODE_SKEW} minors older than {control_plane}"
    return None
