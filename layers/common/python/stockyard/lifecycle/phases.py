"""The phases of operations, in order, as the workflow documents run them. Those of claims are in ``node_phases``."""

from __future__ import annotations

from stockyard.lifecycle.node_phases import (
    CREATE_NODE,
    CREATE_NODE_PHASES,
    DELETE_NODE,
    DELETE_NODE_PHASES,
    POWER_NODE,
    POWER_NODE_PHASES,
)

CREATE_CLUSTER = "create_cluster"
DELETE_CLUSTER = "delete_cluster"

CREATE_PHASES: tuple[str, ...] = (
    "account",
    "network",
    "security",
    "identity",
    "endpoint",
    "control_plane",
    "report",
    "deploy",
    "complete",
)
DELETE_PHASES: tuple[str, ...] = (
    "settle",
    "leftovers",
    "control_plane",
    "endpoint",
    "identity",
    "security",
    "network",
    "client",
    "forget",
)
PHASES: dict[str, tuple[str, ...]] = {
    CREATE_CLUSTER: CREATE_PHASES,
    DELETE_CLUSTER: DELETE_PHASES,
    CREATE_NODE: CREATE_NODE_PHASES,
    DELETE_NODE: DELETE_NODE_PHASES,
    POWER_NODE: POWER_NODE_PHASES,
}

CLOUD_PHASES: frozenset[str] = frozenset(
    {"account", "network", "security", "identity", "endpoint", "control_plane", "leftovers"}
)
"""Phases whose work is the provider's."""

LIMIT_SECONDS: dict[str, int] = {
    "account": 600,
    "network": 1800,
    "security": 600,
    "identity": 600,
    "endpoint": 1200,
    "control_plane": 1800,
    "report": 2400,
    "deploy": 1800,
    "complete": 600,
    "settle": 3600,
    "leftovers": 3600,
    "client": 600,
    "forget": 600,
}
"""How long a phase may take from its first start in an attempt before it counts as failed."""

_UNDONE_WITH: dict[str, tuple[str, ...]] = {"report": ("control_plane",), "deploy": (), "complete": ()}
_RESUMED_AT: dict[str, str] = {"report": "control_plane"}


def undone_with(phase: str) -> tuple[str, ...]:
    """Provider phases whose resources a failure of ``phase`` undoes.

    What earlier phases made stays, so that ``resume`` can go on; a machine that never reported is replaced.
    """
    return _UNDONE_WITH.get(phase, (phase,))


def resumed_at(phase: str) -> str:
    """The phase from which a failed creation goes on."""
    return _RESUMED_AT.get(phase, phase)


CONDITION_OF: dict[str, str] = {
    "account": "AccountReachable",
    "network": "NetworkReady",
    "security": "SecurityReady",
    "identity": "IdentityReady",
    "endpoint": "EndpointReady",
    "control_plane": "ControlPlaneRunning",
    "report": "ControlPlaneReported",
    "deploy": "Deployed",
}
"""The condition that a creation phase decides."""

READY = "Ready"
DELETED = "Deleted"
