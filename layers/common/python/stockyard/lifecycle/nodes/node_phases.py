"""Names of what is done to a claim: kinds of operations, phases that others refer to, and conditions."""

from __future__ import annotations

CREATE_NODE = "create_node"
DELETE_NODE = "delete_node"
POWER_NODE = "power_node"

SCHEDULE = "schedule"
"""The scheduler's, not a workflow's: an execution starts when it is done."""
ENVIRONMENT_PHASE = "environment"
SLOWEST_SECONDS = 14_400
"""Most that a slow provider may have for one phase of a claim: the workflows outlast such phases."""
MACHINE_PHASE = "launch"
"""The phase whose ledger lines are the machine and what was made for it alone."""
LAUNCH_REFUSALS = ("VendorRefused", "VendorQuotaExceeded")
"""Types of the errors that say that a cloud refuses a machine for good. The type is left out for a while, so that the
next claim becomes another one."""
HINDERED = "LaunchHindered"
"""The reason of a claim whose machine does not come for what its vendor says."""

SCHEDULED, PROVISIONED, JOINED = "Scheduled", "Provisioned", "Joined"
READINESS: tuple[str, ...] = (SCHEDULED, PROVISIONED, JOINED)
"""The conditions that make up the readiness of a claim."""
NOT_DRIFTED, DESTROYED = "NotDrifted", "Destroyed"
DRAIN = "drain"
DRAINED = "Drained"
"""Whether the node of a claim on its way out has been emptied."""
