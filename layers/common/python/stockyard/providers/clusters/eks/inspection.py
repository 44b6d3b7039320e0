"""Live checks of a cluster's settings in the account, and of an upgrade of one that stands. Nothing is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.records import Cluster
from stockyard.errors import PermissionDenied, VendorNotFound
from stockyard.ports import Finding
from stockyard.providers.clouds.aws.catalog import offerings, quotas, volume_keys
from stockyard.providers.clouds.aws.catalog.processor_quotas import MachineNeed
from stockyard.providers.clouds.aws.catalog.quotas import NetworkNeed
from stockyard.providers.clouds.aws.kinds import eks as eks_kinds
from stockyard.providers.clouds.aws.network import own_network
from stockyard.providers.clouds.aws.policies import template_versions
from stockyard.providers.clouds.aws.policies.template_parts import BLOCKS, EKS, FILES, KUBEADM
from stockyard.providers.clusters.eks import names, network, planning, validation
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.configuration import has_block_storage, has_storage, node_groups

_VERSION = "/kubernetes_version"
BLOCK = "capacity-block"
"""The type of a reservation that somebody has bought for a time."""
_SKEW = 3
"""By how many minors nodes may be older than their control plane."""


def findings(builder: Builder) -> Iterator[Finding]:
    """Everything that is wrong or surprising."""
    cluster, calls = builder.work.cluster, builder.calls
    if cluster.status != "ready":
        faults = list(offerings.region_findings(calls.region, builder.work.account))
        yield from faults
        if not all(fault.warning for fault in faults):
            return
    lacking = list(offerings.template_findings(calls, builder.work.account, _features(cluster)))
    yield from lacking
    if not all(finding.warning for finding in lacking):
        # What comes next asks by permissions of the parts: a denial would hide why.
        return
    yield from _launch_templates(builder)
    if _new_groups(builder):
        yield from volume_keys.findings(calls, builder.work.account, is_scaled=True)
    zones, zone_faults = _zones(builder)
    yield from zone_faults
    yield from _groups(builder, zones)
    # What stands counts as used: a creation that goes on must not need room for it twice.
    if cluster.status != "ready" and not builder.work.ledger.lines():
        services = quotas.ServiceNeed.of(planning.creates(cluster, ""))
        yield from quotas.findings(calls, _machines(cluster), _network_need(cluster, zones), services)
    yield from _group_sizes(builder)


def _group_sizes(builder: Builder) -> Iterator[Finding]:
    """Groups that have, or may come to have, more nodes than EKS lets a managed node group have in the account. An
    account in which nobody has raised that is asked for larger ones alone: see ``validation.USUAL_NODES``."""
    groups = list(validation.sent_groups(builder.work.cluster))
    if all(int(group["max_size"]) <= validation.USUAL_NODES for _, group in groups):
        return
    try:
        most = quotas.nodes_of_group(builder.calls)
    except PermissionDenied:
        return
    for pointer, group in groups:
        for field in ("count", "min_size", "max_size"):
            if int(group.get(field) or 0) > most:
                text = f"A managed node group has at most {most:g} nodes in the account (quota {quotas.GROUP_NODES[1]}"
                text += " of eks). Ask AWS to raise the quota, or take a second group."
                yield Finding(f"{pointer}/{field}", text, warning=field == "max_size")
                break


def _machines(cluster: Cluster) -> list[MachineNeed]:
    """Machines that run at first, by group; machines of capacity blocks are there already."""
    own = "/settings/node_groups"
    sent = [(f"{pointer}/count", group) for pointer, group in validation.sent_groups(cluster)]
    builtin = [(own, group) for group in node_groups(cluster) if group.get("builtin")]
    return [
        MachineNeed(pointer, (str(group["instance_type"]),), int(group["count"]))
        for pointer, group in (*builtin, *sent)
        if not group.get("capacity_reservation_id") and int(group["count"])
    ]


def _network_need(cluster: Cluster, zones: Sequence[str]) -> NetworkNeed:
    count = planning.nat_gateways(cluster)
    nats_at = "/settings/nat_gateways" if network.has_nat_in_each_zone(cluster) else ""
    # Where zones are lacking, that is said elsewhere.
    nat_zones = [*zones[:count], *[""] * (count - len(zones[:count]))]
    return NetworkNeed("/settings/vpc_cidr", nat_zones=nat_zones, nats_at=nats_at)


def _features(cluster: Cluster) -> list[str]:
    """The parts of the tenant's template that the cluster needs."""
    blocks = any(group.get("capacity_reservation_id") for group in node_groups(cluster))
    # The role of EBS's driver is as on clusters of kubeadm, with their boundary.
    parts = ((KUBEADM, has_block_storage(cluster)), (FILES, has_storage(cluster)), (BLOCKS, blocks))
    return [EKS, *(part for part, is_needed in parts if is_needed)]


def _new_groups(builder: Builder) -> list[Group]:
    """The groups of the settings that have not been made yet."""
    lines = [line for line in builder.work.ledger.lines() if line.kind == eks_kinds.NODE_GROUP.name]
    made_groups = {line.key.partition("/")[0] for line in lines}
    return [group for group in node_groups(builder.work.cluster) if group["name"] not in made_groups]


def _launch_templates(builder: Builder) -> Iterator[Finding]:
    """Findings about new groups, whose launch templates EKS reads in the name of the account's role."""
    new_groups = {str(group["name"]) for group in _new_groups(builder)}
    pointers = [
        pointer for pointer, group in validation.sent_groups(builder.work.cluster) if group["name"] in new_groups
    ]
    if not pointers:
        return
    version = template_versions.deployed(builder.calls, builder.work.account).version
    if version < template_versions.LAUNCH_TEMPLATES:
        needed = template_versions.LAUNCH_TEMPLATES
        text = (
            f"The template of the cloud account is version {version}; node groups need {needed}, which"
            " has ec2:DescribeLaunchTemplateVersions. Deploy the account's current template again."
        )
        for pointer in pointers:
            yield Finding(pointer, text)


def upgrade_findings(builder: Builder) -> Iterator[Finding]:
    """See ``ports.clusters.Upgrades``: what EKS itself has seen, and groups whose nodes would be too old."""
    cluster, calls = builder.work.cluster, builder.calls
    name = names.cluster_name(cluster)
    present = str(calls.call("eks", "describe_cluster", name=name)["cluster"]["version"])
    if present == cluster.kubernetes_version:
        return
    listing = calls.pages(
        "eks",
        "list_insights",
        "insights",
        clusterName=name,
        filter={"categories": ["UPGRADE_READINESS"], "kubernetesVersions": [cluster.kubernetes_version]},
    )
    for insight in listing:
        status = insight.get("insightStatus") or {}
        if status.get("status") in ("ERROR", "WARNING"):
            reason = status.get("reason") or insight.get("description") or "EKS gives no reason"
            text = f"EKS finds for {cluster.kubernetes_version}: {insight.get('name')}: {reason}"
            yield Finding(_VERSION, text, warning=status["status"] == "WARNING")
    for group in calls.pages("eks", "list_nodegroups", "nodegroups", clusterName=name):
        yield from _too_old(builder, name, str(group))


def _too_old(builder: Builder, cluster: str, group: str) -> Iterator[Finding]:
    target = builder.work.cluster.kubernetes_version
    try:
        answer = builder.calls.call("eks", "describe_nodegroup", clusterName=cluster, nodegroupName=group)
    except VendorNotFound:
        return
    version = str(answer["nodegroup"].get("version") or target)
    if _minor(target) - _minor(version) > _SKEW:
        text = f"The nodes of {group} have Kubernetes {version}: they must not be more than {_SKEW} minors behind."
        yield Finding(_VERSION, text)
    elif answer["nodegroup"].get("capacityType") == "CAPACITY_BLOCK" and version != target:
        text = (
            f"The nodes of {group} keep Kubernetes {version} while there are any: those of a capacity block are not"
            f" replaced. New ones get {target} with the next change after the last has gone."
        )
        yield Finding(_VERSION, text, warning=True)


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _zones(builder: Builder) -> tuple[Sequence[str], list[Finding]]:
    """The zones of the cluster's subnets, and what is wrong with those that the settings name."""
    cluster = builder.work.cluster
    here = {str(zone["ZoneName"]): str(zone.get("ZoneId")) for zone in own_network.available_zones(builder.calls)}
    named_zones = [str(zone) for zone in cluster.settings.get("zones") or ()]
    if not named_zones:
        usable = [zone for zone, zone_id in here.items() if zone_id not in network.WITHOUT_CONTROL_PLANES]
        count = len(cluster.settings["subnet_cidrs"])
        text = f"{builder.calls.region} has {len(usable)} zones for {count} subnets. Name fewer, or another region."
        return usable[:count], [Finding("/settings/subnet_cidrs", text)] if len(usable) < count else []
    faults = []
    for index, zone in enumerate(named_zones):
        if zone not in here:
            faults.append(Finding(f"/settings/zones/{index}", f"{builder.calls.region} has no zone {zone}."))
        elif here[zone] in network.WITHOUT_CONTROL_PLANES:
            faults.append(Finding(f"/settings/zones/{index}", f"EKS has no control planes in {zone}."))
    return named_zones, faults


def _groups(builder: Builder, zones: Sequence[str]) -> Iterator[Finding]:
    cluster = builder.work.cluster
    types = sorted({str(group["instance_type"]) for group in node_groups(cluster)})
    offers = offerings.offered_locations(builder.calls, types, zones=True)
    machines: Counter[str] = Counter()
    for pointer, group in validation.sent_groups(cluster):
        outside = [zone for zone in group["zones"] if zone not in zones]
        if outside:
            text = f"The cluster has no subnet in {', '.join(outside)}; its zones are {', '.join(zones)}."
            yield Finding(f"{pointer}/zones", text)
            continue
        if group.get("capacity_reservation_id"):
            # Machines that somebody has bought are there, whatever the zone offers to others.
            yield from _reservation(builder, group, pointer, machines)
            continue
        name = str(group["instance_type"])
        lacking = [zone for zone in group["zones"] or zones if (name, zone) not in offers]
        if lacking and (group["zones"] or len(lacking) == len(zones)):
            yield Finding(f"{pointer}/instance_type", f"{name} is not offered in {', '.join(lacking)}.")


def _reservation(builder: Builder, group: Group, group_pointer: str, machines: Counter[str]) -> Iterator[Finding]:
    """Whether there is such a capacity block, and whether it is what the group takes it for. ``machines`` counts those
    of each block that the groups before this one have."""
    reservation = str(group["capacity_reservation_id"])
    pointer = f"{group_pointer}/capacity_reservation_id"
    listing = builder.calls.described_items(
        "describe_capacity_reservations", "CapacityReservations", CapacityReservationIds=[reservation]
    )
    if not listing:
        yield Finding(pointer, f"There is no capacity reservation {reservation} in {builder.calls.region}.")
        return
    described = listing[0]
    if described.get("ReservationType", BLOCK) != BLOCK:
        yield Finding(pointer, f"{reservation} is no capacity block, and a node group takes machines of nothing else.")
        return
    if described.get("InstanceType") != group["instance_type"]:
        yield Finding(f"{group_pointer}/instance_type", f"{reservation} is of {described.get('InstanceType')}.")
    if described.get("AvailabilityZone") not in group["zones"]:
        yield Finding(f"{group_pointer}/zones", f"{reservation} is in {described.get('AvailabilityZone')}.")
    count = int(described.get("TotalInstanceCount") or 0)
    before, noun = machines[reservation], "machine" if count == 1 else "machines"
    machines[reservation] += int(group["count"])
    if machines[reservation] > count:
        remark = f", of which other groups have {before}" if before else ""
        yield Finding(f"{group_pointer}/count", f"{reservation} has {count} {noun}{remark}.")
    elif int(group["max_size"]) > count:
        text = f"{reservation} has {count} {noun}, and the group will have no more."
        yield Finding(f"{group_pointer}/max_size", text, warning=True)
    yield from _dates(builder.now, described, reservation, pointer)


def _dates(now: datetime, described: Mapping[str, Any], reservation: str, pointer: str) -> Iterator[Finding]:
    start, end = described.get("StartDate"), described.get("EndDate")
    over = described.get("State") in ("expired", "cancelled", "failed", "payment-failed")
    if over or (isinstance(end, datetime) and end <= now):
        yield Finding(pointer, f"{reservation} has ended{f' at {end:%Y-%m-%d %H:%M}' if end else ''}.")
    elif isinstance(start, datetime) and start > now:
        text = f"{reservation} begins at {start:%Y-%m-%d %H:%M}; nodes of the group wait until then."
        yield Finding(pointer, text, warning=True)
