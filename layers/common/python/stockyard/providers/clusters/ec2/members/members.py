"""Members of the control plane after the first: claims of the cluster's own EC2 provider, behind the same balancer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stockyard.domain.clusters.control_plane import ROLE, takes_pods
from stockyard.domain.nodes.node_types import ON_DEMAND
from stockyard.domain.nodes.properties import ROOT_DISK
from stockyard.domain.pools.records import CONTROL_PLANE, NewPool
from stockyard.domain.records import Cluster
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, INSTANCE_TYPE
from stockyard.errors import PermissionDenied, VendorNotFound
from stockyard.ports import Outcome
from stockyard.ports.clusters import DRAINING, GONE
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.errors import accepting
from stockyard.providers.clouds.aws.kinds import dlm as dlm_kinds
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.policies import template_versions
from stockyard.providers.clusters.ec2 import groups
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import (
    control_plane_disk_gib,
    control_plane_types,
    control_plane_zones,
)
from stockyard.providers.clusters.ec2.network import hubs, network
from stockyard.providers.clusters.ec2.network.endpoint import made_target_group
from stockyard.providers.clusters.ec2.network.network_configuration import is_given
from stockyard.providers.clusters.ec2.network.security import API_PORT

LINE = (ec2_kinds.INSTANCE.name, "machine")
PHASE = "control_plane"
TAINT = {"key": ROLE, "effect": "NoSchedule"}
"""What keeps pods away from a member that takes none."""
_END_STATES = ["shutting-down", "terminated"]


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
        taints=() if takes_pods(cluster.settings) else (dict(TAINT),),
    )


def zones(builder: Builder) -> list[str]:
    """The control group's zones, else all of the cluster's network, in its order. A line of an earlier release tells of
    none. Of a given network those alone whose subnet is there, while any is: nobody makes it again."""
    settings = builder.work.cluster.settings
    group_zones = control_plane_zones(settings)
    subnet_zones = [subnet_zone for subnet_zone in network.of(builder).places if subnet_zone[1]]
    if group_zones:
        subnet_zones = [subnet_zone for subnet_zone in subnet_zones if subnet_zone[1] in group_zones]
    if is_given(settings) and len(subnet_zones) > 1:
        subnet_zones = _present(builder, subnet_zones) or subnet_zones
    return list(dict.fromkeys(zone for _, zone in subnet_zones))


def _present(builder: Builder, subnet_zones: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    # Filtered: a call that names one by its id is refused when that is gone.
    words = [{"Name": "subnet-id", "Values": [subnet for subnet, _ in subnet_zones]}]
    there = {
        str(subnet["SubnetId"]) for subnet in builder.calls.pages("ec2", "describe_subnets", "Subnets", Filters=words)
    }
    return [subnet_zone for subnet_zone in subnet_zones if subnet_zone[0] in there]


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
    """Machines, of the given ones, that have been ended, by one call. What EC2 does not show at all may be young: it
    counts as there. So they are filtered by their ids: a call that names one by its id is refused while that is
    unknown."""
    if not machine_ids:
        return
    filters = {"instance-id": list(machine_ids), "instance-state-name": _END_STATES}
    words = [{"Name": name, "Values": values} for name, values in filters.items()]
    for reservation in builder.calls.pages("ec2", "describe_instances", "Reservations", Filters=words):
        yield from (str(instance["InstanceId"]) for instance in reservation["Instances"])


def name_cluster(builder: Builder, machine_ids: Sequence[str]) -> str | None:
    """See ``ports.clusters.TagsMembers.tag_members``. Only what lacks the tag is given it; the first member has the
    newer key of the two that the cloud controller knows."""
    cluster = builder.work.cluster
    if not machine_ids or not cluster.settings.get("cloud_controllers"):
        return None
    unnamed = list(_unnamed(builder, machine_ids))
    if not unnamed:
        return None
    pair = {tags.CLUSTER_OF_MEMBER: cluster.client_id}
    try:
        builder.calls.call("ec2", "create_tags", Resources=unnamed, Tags=tags.pairs(pair))
    except VendorNotFound:
        return None  # one that has just ended; the next look names the others
    except PermissionDenied:
        return (
            f"{', '.join(unnamed)}: no tag {tags.CLUSTER_OF_MEMBER} = {cluster.client_id}, without which the cloud"
            " controller ends there, and no new node becomes Available while it runs on none that has it. Stockyard"
            f" may give it from version {template_versions.NAMED_MEMBERS} of the account's template on: deploy the"
            " account's current template again."
        )
    return None


def _unnamed(builder: Builder, machine_ids: Sequence[str]) -> Iterator[str]:
    words = [{"Name": "instance-id", "Values": list(machine_ids)}]
    keys = {tags.CLUSTER_OF_MEMBER, tags.kubernetes(builder.work.cluster.client_id)}
    for reservation in builder.calls.pages("ec2", "describe_instances", "Reservations", Filters=words):
        for instance in reservation["Instances"]:
            is_ended = instance["State"]["Name"] in _END_STATES
            if not is_ended and not keys & tags.mapping(instance.get("Tags")).keys():
                yield str(instance["InstanceId"])


def _target(machine_id: str) -> list[Mapping[str, object]]:
    return [{"Id": machine_id, "Port": API_PORT}]


def admit(builder: Builder, machine_id: str) -> None:
    """See ``ports.clusters.BalancesMembers.admit``."""
    group = made_target_group(builder)
    builder.calls.call("elbv2", "register_targets", TargetGroupArn=group, Targets=_target(machine_id))
    hubs.admit(builder, machine_id)


def withdraw(builder: Builder, machine_id: str) -> None:
    """See ``ports.clusters.BalancesMembers.withdraw``."""
    group = made_target_group(builder)
    with accepting("InvalidTarget"):
        builder.calls.call("elbv2", "deregister_targets", TargetGroupArn=group, Targets=_target(machine_id))
    hubs.withdraw(builder, machine_id)


def release_first(builder: Builder) -> Outcome:
    """See ``ports.clusters.BalancesMembers.release_first``. Other members have their data on their own disks, of which
    the policy that stays takes daily snapshots."""
    return builder.unmake(PHASE, kept_kinds=[dlm_kinds.SNAPSHOT_POLICY.name])
