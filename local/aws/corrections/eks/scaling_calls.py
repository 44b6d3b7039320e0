"""EC2 Auto Scaling's calls, answered from the groups of EKS's node groups. moto has none of those, and knows no failed
activity, bound or state of a member that passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from local.aws.corrections.eks.scaling_groups import LOCK, Member, ScalingBackend, ScalingGroup, scaling_backends

PAGE = 100


@contextmanager
def scaling_groups() -> Iterator[None]:
    """Inside this context EC2 Auto Scaling has the groups of EKS's node groups, and no others."""
    calls: Mapping[str, Callable[[Any, ScalingBackend], Any]] = {
        "describe_auto_scaling_groups": _describe,
        "describe_auto_scaling_instances": _describe_instances,
        "describe_scaling_activities": _activities,
        "set_desired_capacity": _set_desired,
        "update_auto_scaling_group": _update,
        "terminate_instance_in_auto_scaling_group": _terminate,
        "set_instance_protection": _protect,
        "set_instance_health": _set_health,
        "suspend_processes": _suspend,
        "resume_processes": _resume,
        "create_or_update_tags": _tag,
        "delete_tags": _untag,
        "describe_tags": _describe_tags,
    }
    with ExitStack() as stack:
        for name, call in calls.items():
            stack.enter_context(patch.object(AutoScalingResponse, name, _settled(call)))
        yield


def _settled(call: Callable[[Any, ScalingBackend], Any]) -> Callable[[Any], Any]:
    def answer(response: Any) -> Any:
        with LOCK:
            backend = scaling_backends[response.current_account][response.region]
            backend.settle()
            result = call(response, backend)
            backend.settle()
            return result

    return answer


def _page(response: Any, member: str, rows: list[Any]) -> ActionResult:
    first = int(response._get_param("NextToken") or 0)
    after = first + min(int(response._get_param("MaxRecords") or PAGE), PAGE)
    return ActionResult({member: rows[first:after], "NextToken": str(after) if after < len(rows) else None})


def _describe(response: Any, backend: ScalingBackend) -> Any:
    names = response._get_param("AutoScalingGroupNames", [])
    filters = response._get_param("Filters", [])
    groups = [group for group in backend.groups.values() if not names or group.name in names]
    groups = [group for group in groups if all(_meets(group, entry) for entry in filters)]
    return _page(response, "AutoScalingGroups", [_document(group) for group in groups])


def _meets(group: ScalingGroup, entry: Mapping[str, Any]) -> bool:
    name, values = str(entry["Name"]), entry["Values"]
    if name.startswith("tag:"):
        return group.tags.get(name[4:]) in values
    return name == "tag-key" and bool(set(values) & set(group.tags))


def _document(group: ScalingGroup) -> dict[str, Any]:
    return {
        "AutoScalingGroupName": group.name,
        "AutoScalingGroupARN": (
            f"arn:aws:autoscaling:{group.region}:{group.account}:autoScalingGroup:0:autoScalingGroupName/{group.name}"
        ),
        "MinSize": group.minimum,
        "MaxSize": group.maximum,
        "DesiredCapacity": group.desired,
        "DefaultCooldown": 300,
        "AvailabilityZones": sorted(set(group.zones.values())),
        "HealthCheckType": "EC2",
        "HealthCheckGracePeriod": 15,
        "VPCZoneIdentifier": ",".join(group.subnets),
        "CreatedTime": group.created_at,
        "Instances": [_instance(member) for member in group.members.values()],
        "SuspendedProcesses": [
            {"ProcessName": name, "SuspensionReason": "User suspended"} for name in sorted(group.suspended_processes)
        ],
        "Tags": _tags(group),
        "TerminationPolicies": ["AllocationStrategy", "OldestLaunchTemplate", "OldestInstance"],
        "CapacityRebalance": group.label == "Spot",
        "NewInstancesProtectedFromScaleIn": False,
    }


def _instance(member: Member) -> dict[str, Any]:
    return {
        "InstanceId": member.id,
        "InstanceType": member.kind,
        "AvailabilityZone": member.zone,
        "LifecycleState": member.state,
        "HealthStatus": member.health,
        "ProtectedFromScaleIn": member.is_protected,
    }


def _tags(group: ScalingGroup) -> list[dict[str, Any]]:
    usual = {"ResourceId": group.name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": True}
    return [{**usual, "Key": key, "Value": value} for key, value in group.tags.items()]


def _describe_instances(response: Any, backend: ScalingBackend) -> Any:
    ids = response._get_param("InstanceIds", [])
    rows = [
        {**_instance(member), "AutoScalingGroupName": group.name}
        for group in backend.groups.values()
        for member in group.members.values()
        if not ids or member.id in ids
    ]
    return _page(response, "AutoScalingInstances", rows)


def _activities(response: Any, backend: ScalingBackend) -> Any:
    name = response._get_param("AutoScalingGroupName")
    groups = [backend.named(name)] if name else list(backend.groups.values())
    # The newest first; those of one moment in the order of their making.
    rows = [activity for group in groups for activity in reversed(group.activities)]
    return _page(response, "Activities", sorted(rows, key=lambda row: row["StartTime"], reverse=True))


def _set_desired(response: Any, backend: ScalingBackend) -> Any:
    name = response._get_param("AutoScalingGroupName")
    backend.set_desired(name, int(response._get_param("DesiredCapacity")))
    return EmptyResult()


def _update(response: Any, backend: ScalingBackend) -> Any:
    group = backend.named(response._get_param("AutoScalingGroupName"))
    minimum = int(response._get_param("MinSize", group.minimum))
    maximum = int(response._get_param("MaxSize", group.maximum))
    desired = response._get_param("DesiredCapacity")
    if minimum > maximum:
        raise ValidationError("Max bound, must be greater than or equal to min bound")
    bounded = min(max(int(desired if desired is not None else group.desired), minimum), maximum)
    if desired is not None and int(desired) != bounded:
        raise ValidationError(f"Desired capacity:{desired} must be between the specified min size and max size")
    group.minimum, group.maximum, group.desired = minimum, maximum, bounded
    return EmptyResult()


def _terminate(response: Any, backend: ScalingBackend) -> Any:
    decrement = response._get_bool_param("ShouldDecrementDesiredCapacity", False)
    return ActionResult({"Activity": backend.terminate(response._get_param("InstanceId"), decrement=decrement)})


def _protect(response: Any, backend: ScalingBackend) -> Any:
    for instance_id in response._get_param("InstanceIds", []):
        _, member = backend.of_instance(instance_id)
        member.is_protected = response._get_bool_param("ProtectedFromScaleIn")
    return EmptyResult()


def _set_health(response: Any, backend: ScalingBackend) -> Any:
    _, member = backend.of_instance(response._get_param("InstanceId"))
    member.health = response._get_param("HealthStatus")
    return EmptyResult()


def _suspend(response: Any, backend: ScalingBackend) -> Any:
    group = backend.named(response._get_param("AutoScalingGroupName"))
    group.suspended_processes |= set(response._get_param("ScalingProcesses", []))
    return EmptyResult()


def _resume(response: Any, backend: ScalingBackend) -> Any:
    group = backend.named(response._get_param("AutoScalingGroupName"))
    group.suspended_processes -= set(response._get_param("ScalingProcesses", [])) or group.suspended_processes
    return EmptyResult()


def _tag(response: Any, backend: ScalingBackend) -> Any:
    for tag in response._get_param("Tags", []):
        backend.named(tag["ResourceId"]).tags[tag["Key"]] = tag.get("Value", "")
    return EmptyResult()


def _untag(response: Any, backend: ScalingBackend) -> Any:
    for tag in response._get_param("Tags", []):
        backend.named(tag["ResourceId"]).tags.pop(tag["Key"], None)
    return EmptyResult()


def _describe_tags(response: Any, backend: ScalingBackend) -> Any:
    filters = {entry["Name"]: entry["Values"] for entry in response._get_param("Filters", [])}
    fields = {"auto-scaling-group": "ResourceId", "key": "Key", "value": "Value"}
    rows = [
        tag
        for group in backend.groups.values()
        for tag in _tags(group)
        if all(tag[fields[name]] in values for name, values in filters.items() if name in fields)
    ]
    return _page(response, "Tags", rows)
