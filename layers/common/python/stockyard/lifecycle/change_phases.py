"""The rows of operations that change a ready cluster.

What is wanted is on the record before an operation begins, and each phase brings what stands to it. So a phase that is
done twice, or after another operation has failed, does what is still missing and no more.
"""

from __future__ import annotations

from dataclasses import replace

from stockyard.lifecycle.procedure import ENSURE, FAIL, Phase, Procedure

CHANGE_CLUSTER = "change_cluster"
UPGRADE_CLUSTER = "upgrade_cluster"
CHANGES = (CHANGE_CLUSTER, UPGRADE_CLUSTER)

SNAPSHOT_POLICY = "snapshots"
"""The row that brings the policy of etcd's daily snapshots to the settings; its line is of the row of the first
machine."""
APPROVAL_SECONDS = 172_800
"""For how long an operation waits for somebody to approve that nodes are replaced."""

_END = Phase("complete", 600, "changed")
PROFILE = Phase("profile", 3600, "profile")
"""The packs of a cluster's profiles; skipped where it has none."""
_CHECKS = Phase("checks", 600, "checks")
_NETWORK = Phase("network", 1800, ENSURE, moves_network=True)
_STANDS_ON = (_NETWORK, Phase("identity", 600, ENSURE))
"""What a cluster stands on: what somebody has taken away by hand is made again before anything is built on it."""
_FIRST = _NETWORK.name
"""Where a resume begins: it may have failed for what is gone."""
OBJECTS = Phase("objects", 900, ENSURE, with_agent=True)
CHANGE = Procedure(
    kind=CHANGE_CLUSTER,
    workflow="change-managed-cluster",
    subject="cluster",
    comment="Brings what stands of a ready cluster to its changed settings. The cluster goes on serving.",
    phases=(
        _CHECKS,
        *_STANDS_ON,
        Phase("control_plane", 3600, ENSURE, resumed_at=_FIRST),
        Phase("access", 600, ENSURE, resumed_at=_FIRST),
        # Nodes leave before the groups do that they came from; new groups are there before their nodes.
        Phase("surplus", 14_400, "surplus"),
        Phase("node_groups", 36_000, ENSURE, resumed_at=_FIRST),
        Phase("pools", 600, "pools"),
        Phase("addons", 2400, ENSURE, resumed_at=_FIRST),
        Phase("storage", 1800, ENSURE, resumed_at=_FIRST),
        OBJECTS,
        PROFILE,
        _END,
    ),
    on_failure=FAIL,
    error="ClusterCouldNotBeChanged",
    doing="its settings were being changed",
    advice="A resume makes again what is gone, and goes on; a further change begins anew.",
    ends=("changed", "not_changed"),
    resumable=True,
    timeout_seconds=86_400,
)
UPGRADE = replace(
    CHANGE,
    kind=UPGRADE_CLUSTER,
    workflow="upgrade-managed-cluster",
    comment="Brings a ready cluster to the next minor of Kubernetes. The cluster goes on serving.",
    phases=(
        _CHECKS,
        *_STANDS_ON,
        Phase("control_plane", 7200, ENSURE, resumed_at=_FIRST),
        Phase("access", 600, ENSURE, resumed_at=_FIRST),
        Phase("addons", 2400, ENSURE, resumed_at=_FIRST),
        Phase("node_groups", 36_000, ENSURE, resumed_at=_FIRST),
        OBJECTS,
        PROFILE,
        _END,
    ),
    error="ClusterCouldNotBeUpgraded",
    doing="it was being upgraded",
    advice="A resume makes again what is gone, and goes on.",
    ends=("upgraded", "not_upgraded"),
)

_APPROVAL = Phase("approval", APPROVAL_SECONDS, "approval")
_MEMBERS = Phase("members", 28_800, "members", "ControlPlaneComplete")
# Machines of workers get another minor only when the API server serves it. Also after an upgrade that was not finished.
_VERSION_SKEW = Phase("version_skew", 7200, "version_skew")
_POOLS = Phase("pools", 86_400, "pools_replaced")
REPLACING_PHASES = frozenset({_VERSION_SKEW.name, _POOLS.name})
"""Phases in which nodes of a ready cluster are replaced one after the other: each step waits for word of the last."""
CHANGE_BALANCED = replace(
    CHANGE,
    workflow="change-balanced-cluster",
    phases=(
        _CHECKS,
        _APPROVAL,
        _NETWORK,
        Phase("security", 600, ENSURE),
        Phase("identity", 600, ENSURE),
        Phase("endpoint", 1200, ENSURE),
        Phase("bastion", 900, ENSURE),
        Phase(SNAPSHOT_POLICY, 600, ENSURE),
        Phase("restore", 14_400, "restore"),
        _MEMBERS,
        _VERSION_SKEW,
        # Pools of groups that go leave first: then new ones have room.
        Phase("surplus", 14_400, "surplus"),
        _POOLS,
        PROFILE,
        _END,
    ),
    timeout_seconds=345_600,
)
UPGRADE_BALANCED = replace(
    UPGRADE,
    workflow="upgrade-balanced-cluster",
    phases=(
        _CHECKS,
        _APPROVAL,
        _MEMBERS,
        _VERSION_SKEW,
        _POOLS,
        PROFILE,
        _END,
    ),
    timeout_seconds=345_600,
)
