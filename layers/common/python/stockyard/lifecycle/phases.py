"""The table of phases: what each kind of operation does, in order, for which driver. Workflow documents come from it.

A phase is a row. The engine (``operations.engine``) runs the rows, and ``stacks.workflows`` writes them as documents,
so that neither tests the kind of an operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from stockyard.lifecycle.change_phases import (
    CHANGE,
    CHANGE_BALANCED,
    CHANGE_CLUSTER,
    OBJECTS,
    PROFILE,
    UPGRADE,
    UPGRADE_BALANCED,
    UPGRADE_CLUSTER,
)
from stockyard.lifecycle.nodes.node_phases import (
    CREATE_NODE,
    DELETE_NODE,
    DRAIN,
    ENVIRONMENT_PHASE,
    JOINED,
    MACHINE_PHASE,
    POWER_NODE,
    PROVISIONED,
    SCHEDULE,
    SCHEDULED,
    SLOWEST_SECONDS,
)
from stockyard.lifecycle.procedure import BLOCK, COMPENSATE, ENSURE, FAIL, REMOVE, Phase, Procedure

CREATE_CLUSTER = "create_cluster"
DELETE_CLUSTER = "delete_cluster"
RETAG_CLUSTER = "retag_cluster"

READY = "Ready"
DELETED = "Deleted"
DEGRADED = "Degraded"
"""A ready cluster's condition after a change of it has failed."""
TAGS_APPLIED = "TagsApplied"
"""A cluster's condition since its tags were changed: whether what stands in the cloud carries them."""

ANY = ""
"""The driver of rows that hold for every driver without rows of its own."""
STANDALONE = "standalone"
"""The rows of drivers whose control plane is a machine with a disk, and no balancer before it."""
BALANCED = "balanced"
"""The rows of drivers whose control plane's machines stand behind a load balancer. They are made and deleted as
those of every driver."""
MANAGED = "managed"
"""The rows of drivers whose control plane is a service of the cloud, which has no machine that reports."""


def _ensure_phase(name: str, seconds: int, condition: str, *, machine: bool = False) -> Phase:
    return Phase(name, seconds, ENSURE, condition, undoes=(name,), machine=machine)


_deletion = partial(
    Procedure,
    on_failure=BLOCK,
    doing="it was being deleted",
    advice="The deletion is tried again by itself.",
    ends=("gone", "blocked"),
    failure="DeletionBlocked",
    timeout_seconds=28_800,
)
_AFTER_THE_MACHINE = (
    Phase(
        "report",
        2400,
        "report",
        "ControlPlaneReported",
        # A machine that never reported is replaced.
        undoes=("control_plane",),
        resumed_at="control_plane",
        token_seconds=1800,
        machine=True,
        hears_machine=True,
    ),
    Phase("deploy", 1800, "deploy", "Deployed"),
    Phase("complete", 600, "complete"),
)
_CREATE = Procedure(
    kind=CREATE_CLUSTER,
    workflow="provision-cluster",
    subject="cluster",
    comment="Creates a cluster. A failure undoes the phase and is written on the operation.",
    phases=(
        _ensure_phase("account", 600, "AccountReachable"),
        _ensure_phase("network", 1800, "NetworkReady"),
        _ensure_phase("security", 600, "SecurityReady"),
        _ensure_phase("identity", 600, "IdentityReady"),
        _ensure_phase("endpoint", 1200, "EndpointReady"),
        _ensure_phase("bastion", 900, "BastionReady"),
        _ensure_phase("control_plane", 1800, "ControlPlaneRunning", machine=True),
        _AFTER_THE_MACHINE[0],
        PROFILE,
        *_AFTER_THE_MACHINE[1:],
    ),
    on_failure=COMPENSATE,
    error="ClusterCouldNotBeDeployed",
    doing="it was being created",
    advice="A resume goes on from the phase that failed.",
    ends=("ready", "not_deployed"),
    resumable=True,
)
_DELETE = _deletion(
    kind=DELETE_CLUSTER,
    workflow="delete-cluster",
    subject="cluster",
    comment="Deletes a cluster: exactly what its ledger names, then its identity, then its record.",
    phases=(
        Phase("settle", 3600, "settle"),
        Phase("leftovers", 3600, REMOVE, beyond_lines=True),
        Phase("control_plane", 1800, REMOVE, beyond_lines=True),
        Phase("bastion", 1200, REMOVE),
        Phase("endpoint", 1200, REMOVE),
        Phase("identity", 600, REMOVE),
        Phase("security", 600, REMOVE),
        Phase("network", 1800, REMOVE),
        Phase("client", 600, "client"),
        Phase("forget", 600, "forget"),
    ),
    error="ClusterCouldNotBeDeployed",
)
_CREATE_STANDALONE = replace(
    _CREATE,
    workflow="provision-standalone-cluster",
    comment="Creates a cluster whose control plane is a machine with a disk. A failure undoes the phase and is written "
    "on the operation.",
    phases=(
        _ensure_phase("account", 600, "AccountReachable"),
        _ensure_phase("machine_type", 600, "MachineTypeChosen"),
        _ensure_phase("network", 1800, "NetworkReady"),
        _ensure_phase("disk", 1800, "DiskReady"),
        _ensure_phase("control_plane", 3600, "ControlPlaneRunning", machine=True),
        *_AFTER_THE_MACHINE,
    ),
)
_DELETE_STANDALONE = replace(
    _DELETE,
    workflow="delete-standalone-cluster",
    phases=(
        Phase("settle", 3600, "settle"),
        Phase("control_plane", 1800, REMOVE, beyond_lines=True),
        Phase("disk", 1200, REMOVE),
        Phase("network", 1800, REMOVE),
        Phase("machine_type", 600, REMOVE),
        *_DELETE.phases[-2:],
    ),
)
_CREATE_MANAGED = replace(
    _CREATE,
    workflow="provision-managed-cluster",
    comment="Creates a cluster whose control plane is a service of the cloud. A failure undoes the phase and is "
    "written on the operation.",
    phases=(
        _ensure_phase("account", 600, "AccountReachable"),
        _ensure_phase("network", 1800, "NetworkReady"),
        _ensure_phase("identity", 600, "IdentityReady"),
        _ensure_phase("control_plane", 3600, "ControlPlaneRunning"),
        _ensure_phase("access", 600, "AccessReady"),
        _ensure_phase("node_groups", 2400, "NodeGroupsReady"),
        _ensure_phase("addons", 2400, "AddonsReady"),
        _ensure_phase("storage", 1800, "StorageReady"),
        replace(OBJECTS, condition="ObjectsApplied", undoes=("objects",)),
        PROFILE,
        *_AFTER_THE_MACHINE[1:],
    ),
)
_DELETE_MANAGED = replace(
    _DELETE,
    workflow="delete-managed-cluster",
    phases=(
        Phase("settle", 3600, "settle"),
        Phase("leftovers", 3600, REMOVE, beyond_lines=True),
        Phase("objects", 600, REMOVE),
        Phase("storage", 1800, REMOVE),
        Phase("addons", 1800, REMOVE),
        Phase("node_groups", 3600, REMOVE),
        Phase("access", 600, REMOVE),
        Phase("control_plane", 3600, REMOVE, beyond_lines=True),
        Phase("identity", 600, REMOVE),
        Phase("network", 1800, REMOVE),
        *_DELETE.phases[-2:],
    ),
)
_RETAG = Procedure(
    kind=RETAG_CLUSTER,
    workflow="retag-cluster",
    subject="cluster",
    comment="Gives what stands in the cloud for a cluster the tags that the cluster has now.",
    phases=(Phase("tags", 7200, "retag", TAGS_APPLIED),),
    on_failure=FAIL,
    error="ClusterCouldNotBeRetagged",
    doing="its tags were being changed",
    advice="Then send the tags again, also if they are the same; what carries them already stays as it is.",
    ends=("retagged", "not_retagged"),
)
_MACHINE = (MACHINE_PHASE,)
_CREATE_NODE = Procedure(
    kind=CREATE_NODE,
    workflow="provision-node",
    subject="claim",
    comment="Makes the node of a placed claim.",
    phases=(
        Phase(SCHEDULE, 0, "schedule", SCHEDULED, undoes=_MACHINE, before_workflow=True),
        Phase(ENVIRONMENT_PHASE, 1800, "environment", PROVISIONED, undoes=_MACHINE),
        Phase(MACHINE_PHASE, 300, "launch", PROVISIONED, undoes=_MACHINE, machine=True),
        Phase("register", 900, "register", JOINED, undoes=_MACHINE, machine=True, hears_machine=True),
        Phase("initialize", 900, "initialize", JOINED, undoes=_MACHINE, machine=True),
    ),
    on_failure=COMPENSATE,
    error="NodeCouldNotBeProvisioned",
    doing="its node was being made",
    advice="The claim does not try again: delete it and make another.",
    ends=("available", "not_provisioned"),
    # Three slow phases of a provider, one after the other.
    timeout_seconds=3 * SLOWEST_SECONDS + 3600,
    together=True,
)
_DELETE_NODE = _deletion(
    kind=DELETE_NODE,
    workflow="delete-node",
    subject="claim",
    comment="Gives the node of a claim back.",
    # A drain may wait for weeks. Before a week is over the next execution goes on; see ``lifecycle.history``.
    timeout_seconds=604_800,
    together=True,
    phases=(
        Phase("settle", 1800, "settle"),
        Phase(DRAIN, 3600, "drain"),
        Phase("terminate", 3600, "terminate"),
        Phase("release", 600, "release"),
    ),
    error="NodeCouldNotBeProvisioned",
)
_POWER_NODE = Procedure(
    kind=POWER_NODE,
    workflow="power-node",
    subject="claim",
    comment="Switches the machine of an available node.",
    phases=(Phase("power", 1200, "power"),),
    on_failure=FAIL,
    error="NodeCouldNotBeProvisioned",
    doing="its machine was being switched",
    advice="The switch can be asked for again.",
    ends=("switched", "not_switched"),
    failure="NodeCouldNotBeSwitched",
    timeout_seconds=SLOWEST_SECONDS + 3600,
)

Procedures = Mapping[tuple[str, str], Procedure]
PROCEDURES: Procedures = {
    **{
        (procedure.kind, ANY): procedure
        for procedure in (_CREATE, _DELETE, _RETAG, _CREATE_NODE, _DELETE_NODE, _POWER_NODE)
    },
    (CREATE_CLUSTER, STANDALONE): _CREATE_STANDALONE,
    (DELETE_CLUSTER, STANDALONE): _DELETE_STANDALONE,
    (CREATE_CLUSTER, MANAGED): _CREATE_MANAGED,
    (DELETE_CLUSTER, MANAGED): _DELETE_MANAGED,
    (CHANGE_CLUSTER, MANAGED): CHANGE,
    (UPGRADE_CLUSTER, MANAGED): UPGRADE,
    (CHANGE_CLUSTER, BALANCED): CHANGE_BALANCED,
    (UPGRADE_CLUSTER, BALANCED): UPGRADE_BALANCED,
}
"""By kind of operation and rows: ``ANY``, or what the drivers whose phases differ call theirs."""


def procedure_of(procedures: Procedures, kind: str, *rows: str) -> Procedure:
    """The procedure of a kind of operation: that of the first of these rows that has it, else that of every driver.
    Raises ``KeyError`` for a kind that is not known."""
    for name in rows:
        if (kind, name) in procedures:
            return procedures[kind, name]
    return procedures[kind, ANY]


def phase_names(subject: str) -> tuple[str, ...]:
    """Names of the phases that an operation on a ``cluster`` or ``claim`` may be in, with whatever driver, in order
    of the alphabet."""
    return tuple(sorted({name for row in PROCEDURES.values() if row.subject == subject for name in row.names}))
