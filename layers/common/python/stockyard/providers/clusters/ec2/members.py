"""Members of the control plane after the first: claims of the cluster's own EC2 provider, behind the same balancer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stockyard.domain.node_groups import ROOT_DISK
from stockyard.domain.node_types import ON_DEMAND
from stockyard.domain.pool_records import CONTROL_PLANE, NewPool
from stockyard.domain.records import Cluster
from stockyard.domain.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE
from stockyard.errors import VendorNotFound
from stockyard.ports import Outcome
from stockyard.ports.clusters import DRAINING, GONE
from stockyard.providers.clouds.aws import dlm_kinds, ec2_kinds
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clusters.ec2 import etcd_volume, groups, network
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import control_plane_disk_gib, control_plane_types
from stockyard.providers.clusters.ec2.endpoint import made_target_group
from stockyard.providers.clusters.ec2.security import API_PORT

LINE = (ec2_kinds.INSTANCE.name, "machine")
PHASE = "control_plane"
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
"""What keeps pods away from a member that takes none."""
_END_STATES = frozenset({"shutting-down", "terminated"})


def pool(cluster: Cluster) -> NewPool:
    """See ``ports.clusters.BalancesMembers.member_pool``."""
    return NewPool(
        name=CONTROL_PLANE,
        form=CONTROL_PLANE,
        provider_ref=groups.provider(cluster).name,
        requirements=(
            {"key": INSTANCE_TYPE, "operator": IN, "values": list(control_plane_types(cluster))},
            {"key": CAPACITY_TYPE, "operator": IN, "values": [ON_DEMAND]},
        ),
        properties={ROOT_DISK: str(control_plane_disk_gib(cluster.settings))},
        taints=() if cluster.settings.get("control_plane_workloads") else (dict(TAINT),),
    )


def zones(builder: Builder) -> list[str]:
    """The zones of the cluster's network, in its order. A line of an earlier release tells of none."""
    return list(dict.fromkeys(zone for _, zone in network.of(builder).places if zone))


def targets(builder: Builder, machine_ids: Sequence[str]) -> dict[str, str]:
    """See ``ports.clusters.BalancesMembers.targets``."""
    health = builder.calls.call("elbv2", "describe_target_health", TargetGroupArn=made_target_group(builder))
    states = {
        str(entry["Target"]["Id"]): _state(str(entry["TargetHealth"]["State"]))
        for entry in health["TargetHealthDescriptions"]
    }
    ended_machines = dict.fromkeys(_ended_machines(builder, machine_ids), GONE)
    return {**{target: state for target, state in states.items() if target in machine_ids}, **ended_machines}


def _state(state: str) -> str:
    return DRAINING if state == "draining" else state


def _ended_machines(builder: Builder, machine_ids: Sequence[str]) -> Iterator[str]:
    """Those of the machines that have been ended. What EC2 does not show at all may be young: it counts as there."""
    for machine_id in machine_ids:
        try:
            item = ec2_kinds.INSTANCE.describe(builder.calls, machine_id)
        except VendorNotFound:
            continue
        if item is not None and item["State"]["Name"] in _END_STATES:
            yield machine_id


def _target(machine_id: str) -> list[Mapping[str, object]]:
    return [{"Id": machine_id, "Port": API_PORT}]


def admit(builder: Builder, machine_id: str) -> None:
    """See ``ports.clusters.BalancesMembers.admit``."""
    group = made_target_group(builder)
    builder.calls.call("elbv2", "register_targets", TargetGroupArn=group, Targets=_target(machine_id))


def withdraw(builder: Builder, machine_id: str) -> None:
    """See ``ports.clusters.BalancesMembers.withdraw``."""
    group = made_target_group(builder)
    with accepting("InvalidTarget"):
        builder.calls.call("elbv2", "deregister_targets", TargetGroupArn=group, Targets=_target(machine_id))


def release_first(builder: Builder) -> Outcome:
    """See ``ports.clusters.BalancesMembers.release_first``. Other members have their data on their own disks."""
    kinds = {ec2_kinds.VOLUME.name, dlm_kinds.SNAPSHOT_POLICY.name}
    if not any(line.kind in kinds and line.key == etcd_volume.KEY for line in builder.work.ledger.lines(PHASE)):
        return Outcome(True)
    return builder.unmake(PHASE)
