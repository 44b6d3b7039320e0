"""The auto scaling group behind a managed node group: its size, its machines, and what failed in it of late."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import InsufficientCapacity, NotYetVisible, VendorError, VendorNotFound
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.errors import classify, scarcity
from stockyard.providers.clouds.aws.resources.child_names import cluster_name, node_group_name

COMING = frozenset({"Pending", "Pending:Wait", "Pending:Proceed", "InService"})
"""States of machines in a group that are there or come up."""
MOST_GENERATIONS = 50
"""Groups of a pool that may have been one after the other while the pool is there."""
ASG_TAG = "aws:autoscaling:groupName"
"""The tag that EC2 Auto Scaling gives each machine: the name of its group."""
_RECENT = 20
"""Activities that one look reads."""
_CODE = re.compile(r"\b([A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)*) - ")
_SCARCE = re.compile(r"not have sufficient|insufficient .*capacity|capacity reservation .*(exceed|not enough)", re.I)
_IN_ZONE = re.compile(r"Availability Zone(?: you requested)? \(([a-z0-9-]+)\)")
"""How EC2 names the zone that was tried. The zones that it names further on are others, which may do."""
_ZONE_OF_DETAILS = re.compile(r'"Availability Zone"\s*:\s*"([a-z0-9-]+)"')
_TEXTS = (
    (_SCARCE, "InsufficientInstanceCapacity"),
    (re.compile(r"current (vCPU|instance) limit", re.I), "VcpuLimitExceeded"),
    (re.compile(r"max(imum)? spot instance count exceeded", re.I), "MaxSpotInstanceCountExceeded"),
    (re.compile(r"not enough free addresses in subnet", re.I), "InsufficientFreeAddressesInSubnet"),
)
"""EC2's codes by their messages."""


@dataclass(frozen=True, slots=True)
class ScalingGroup:
    """``machines`` are those that stay or come, by id, as EC2 Auto Scaling describes them."""

    name: str
    least: int
    most: int
    desired: int
    zones: tuple[str, ...]
    machines: Mapping[str, Mapping[str, Any]]
    leaving: frozenset[str]
    """Machines that the group is ending."""
    issues: str | None = None
    """What EKS says is wrong with its managed group; None for nothing."""


def find(calls: Calls, cluster: Cluster, pool: str) -> list[ScalingGroup]:
    """The groups of a pool, the one that makes new machines first: of a pool whose machines were to become others a
    former group may be there, which goes when it is empty. ``NotYetVisible`` while EKS has not made the first."""
    name = cluster_name(cluster)
    listing = set(calls.call("eks", "list_nodegroups", clusterName=name)["nodegroups"])
    numbers = [number for number in range(MOST_GENERATIONS, 0, -1) if node_group_name(cluster, pool, number) in listing]
    groups: list[ScalingGroup] = []
    for number in numbers:
        groups += _of_managed_group(calls, name, node_group_name(cluster, pool, number))
    if not groups:
        raise NotYetVisible(f"The cluster has no node group {pool} that makes machines yet.")
    return groups


def _of_managed_group(calls: Calls, cluster: str, name: str) -> list[ScalingGroup]:
    """The auto scaling group behind a managed one; none while that is not there, or not any more."""
    try:
        answer = calls.call("eks", "describe_nodegroup", clusterName=cluster, nodegroupName=name)
    except VendorNotFound:
        return []
    resources = answer["nodegroup"].get("resources") or {}
    names = [str(entry["name"]) for entry in resources.get("autoScalingGroups") or ()]
    if not names or answer["nodegroup"].get("status") == "DELETING":
        return []
    group = described(calls, names[0])
    return [replace(group, issues=issues_of_group(answer["nodegroup"]))] if group is not None else []


def issues_of_group(managed_group: Mapping[str, Any]) -> str | None:
    """Faults that EKS finds in a managed group, with its codes; None without any."""
    issues = (managed_group.get("health") or {}).get("issues") or ()
    return "; ".join(f"{issue.get('code')}: {issue.get('message')}" for issue in issues) or None


def described(calls: Calls, name: str) -> ScalingGroup | None:
    """The group of that name; None when it is not there."""
    answer = calls.call("autoscaling", "describe_auto_scaling_groups", AutoScalingGroupNames=[name])
    for item in answer["AutoScalingGroups"]:
        members: Sequence[Mapping[str, Any]] = item.get("Instances") or ()
        return ScalingGroup(
            name=name,
            least=int(item["MinSize"]),
            most=int(item["MaxSize"]),
            desired=int(item["DesiredCapacity"]),
            zones=tuple(item.get("AvailabilityZones") or ()),
            machines={str(m["InstanceId"]): m for m in members if m.get("LifecycleState") in COMING},
            leaving=frozenset(str(m["InstanceId"]) for m in members if m.get("LifecycleState") not in COMING),
        )
    return None


def count_of(groups: Iterable[ScalingGroup], machine_ids: Iterable[str]) -> int:
    """Number of the machines that are in one of the groups."""
    members = {machine_id for group in groups for machine_id in (*group.machines, *group.leaving)}
    return sum(machine_id in members for machine_id in machine_ids)


def resize(calls: Calls, group: ScalingGroup, size: int) -> None:
    """Set the desired size, which is absolute: said twice it is the same."""
    calls.call(
        "autoscaling",
        "set_desired_capacity",
        AutoScalingGroupName=group.name,
        DesiredCapacity=size,
        HonorCooldown=False,
    )


def shrink(calls: Calls, group: ScalingGroup, need: int) -> None:
    """Lower the desired size to what is still wanted: never below the machines that are there, since the group would
    end any of them, and not below the least."""
    size = max(group.least, len(group.machines), min(group.desired, need))
    if size < group.desired:
        resize(calls, group, size)


def end(calls: Calls, group: ScalingGroup, machine_id: str) -> None:
    """End a machine of the group by name. At the least size the group replaces it."""
    calls.call(
        "autoscaling",
        "terminate_instance_in_auto_scaling_group",
        InstanceId=machine_id,
        ShouldDecrementDesiredCapacity=group.desired > group.least,
    )


def activities(calls: Calls, group: ScalingGroup) -> Sequence[Mapping[str, Any]]:
    """Activities of the group of late, the newest first."""
    answer = calls.call(
        "autoscaling", "describe_scaling_activities", AutoScalingGroupName=group.name, MaxRecords=_RECENT
    )
    return list(answer.get("Activities") or ())


def newest_activity(shown_activities: Sequence[Mapping[str, Any]]) -> str:
    """Text that tells the newest activity as it is now from all that comes later; empty for none."""
    return _moment_of(shown_activities[0]) if shown_activities else ""


def _moment_of(activity: Mapping[str, Any]) -> str:
    """A failure that repeats itself may be told by the same activity, which then has a later end."""
    return f"{activity['ActivityId']} {activity.get('EndTime') or ''}"


def failure_after(
    shown_activities: Sequence[Mapping[str, Any]], moment: str, zones: Iterable[str] = ()
) -> VendorError | None:
    """Final failure after a moment that ``newest_activity`` has told: the group tries it again for ever, its claims do
    not. A zone without a machine is no failure while there are others in ``zones``: the group tries them next."""
    untried_zones, scarce = set(zones), None
    for message, failure_zone in _failures_after(shown_activities, moment):
        error = error_of(message)
        zone = _zone_of(message) or (failure_zone if scarcity(error.code, message) == "addresses" else "")
        if zone and untried_zones:
            untried_zones.discard(zone)
            scarce = error if scarce is None or isinstance(error, InsufficientCapacity) else scarce
            if not untried_zones:
                return scarce
        elif isinstance(error, InsufficientCapacity) or not error.retryable:
            return error
    return None


def _failures_after(shown_activities: Sequence[Mapping[str, Any]], moment: str) -> Iterator[tuple[str, str]]:
    """Messages of failed activities that are later than the marked one, or have ended again since then, and the zone
    that each was in."""
    marked_id, _, marked_end = moment.partition(" ")
    is_later = True
    for activity in shown_activities:
        is_later = is_later and str(activity["ActivityId"]) != marked_id
        if activity.get("StatusCode") == "Failed" and (is_later or str(activity.get("EndTime") or "") > marked_end):
            zone = _ZONE_OF_DETAILS.search(str(activity.get("Details") or ""))
            yield str(activity.get("StatusMessage") or ""), zone[1] if zone else ""


def _zone_of(message: str) -> str:
    """The zone that had no machine; empty where the message is of something else."""
    match = _IN_ZONE.search(message)
    return match[1] if match else ""


def error_of(message: str) -> VendorError:
    """Error that a failed activity means. Its text begins with EC2's code, or is EC2's message alone. A quota that is
    used up and a full subnet are scarce, too: the claim waits, and others may have another type or zone."""
    match = _CODE.search(message)
    code = match[1] if match else next((code for pattern, code in _TEXTS if pattern.search(message)), "")
    kind, hint = classify(code, message, 400)
    if scarcity(code, message) is not None:
        return InsufficientCapacity(
            message if kind is InsufficientCapacity else f"{message} {hint}", code=code, hint=hint
        )
    return kind(message or "a machine could not be launched", code=code, hint=hint)
