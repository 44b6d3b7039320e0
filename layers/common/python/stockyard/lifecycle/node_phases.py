"""The phases of a claim's operations, in order, as the workflow documents run them."""

from __future__ import annotations

CREATE_NODE = "create_node"
DELETE_NODE = "delete_node"
POWER_NODE = "power_node"

SCHEDULE = "schedule"
"""The scheduler's, not a workflow's: an execution starts when it is done."""

CREATE_NODE_PHASES: tuple[str, ...] = (SCHEDULE, "environment", "launch", "register", "initialize")
DELETE_NODE_PHASES: tuple[str, ...] = ("settle", "drain", "terminate", "release")
POWER_NODE_PHASES: tuple[str, ...] = ("power",)

MACHINE_PHASE = "launch"
"""The phase whose ledger lines are the machine and what was made for it alone."""

ENVIRONMENT_PHASE = "environment"

LIMIT_SECONDS: dict[str, int] = {
    "environment": 1800,
    "launch": 300,
    "register": 900,
    "initialize": 900,
    "settle": 1800,
    "drain": 3600,
    "terminate": 3600,
    "release": 600,
    "power": 1200,
}
"""How long a phase may take in one attempt. ``launch`` and ``register`` are defaults of the stage's settings."""

SCHEDULED, PROVISIONED, JOINED = "Scheduled", "Provisioned", "Joined"
READINESS: tuple[str, ...] = (SCHEDULED, PROVISIONED, JOINED)
"""The conditions that make up the readiness of a claim."""
NOT_DRIFTED, DESTROYED = "NotDrifted", "Destroyed"

CONDITION_OF: dict[str, str] = {
    SCHEDULE: SCHEDULED,
    "environment": PROVISIONED,
    "launch": PROVISIONED,
    "register": JOINED,
    "initialize": JOINED,
}
"""The condition that a phase of a creation decides; ``environment`` and ``initialize`` only when they fail."""
