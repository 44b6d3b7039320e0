"""Auto scaling groups of EKS's node groups: machines in EC2 that come, fail to come, die, are replaced and leave.

A group changes when somebody looks: at every call to EC2 Auto Scaling or EKS, and at :func:`settle`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.compute import reservations

LOCK = threading.RLock()
"""Held while a group changes."""
DEAD = frozenset({"shutting-down", "terminated", "stopping", "stopped"})
"""States of an instance that a group takes for dead."""
LEAVING = frozenset({"Terminating", "Terminating:Wait"})
_MOST_STEPS = 1000


class ScalingActivityInProgress(ServiceException):  # type: ignore[misc]
    """The instance is leaving already."""

    code = "ScalingActivityInProgress"
    message = "The operation can't be performed because the instance is not in service."


@dataclass
class Member:
    """One instance of a group. ``at`` is when its present state ends, of ``generation`` what it was launched from."""

    id: str
    kind: str
    zone: str
    generation: int
    at: float
    state: str = "Pending"
    health: str = "Healthy"
    is_protected: bool = False
    is_ended: bool = False
    """Whether EC2 has been told to end it. The group has it for a while after that."""

    @property
    def stays(self) -> bool:
        """Whether it counts for the capacity."""
        return self.state not in LEAVING


@dataclass
class ScalingGroup:
    """``launch`` makes one instance in a subnet and returns it, or raises ``ServiceException``."""

    name: str
    region: str
    account: str
    minimum: int
    maximum: int
    desired: int
    subnets: list[str]
    zones: dict[str, str]
    """Subnet -> its zone."""
    launch: Callable[[str], Any]
    label: str = "On-Demand"
    generation: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    activities: list[dict[str, Any]] = field(default_factory=list)
    suspended_processes: set[str] = field(default_factory=set)
    created_at: datetime = field(default_factory=pace.moment)
    surge: int = 0
    """How many more than desired there may be, while machines are replaced."""
    retry_at: float = 0.0
    uneven_until: float = 0.0
    """When its machines are spread anew over the zones; 0 while they are even."""
    is_failing: bool = False
    failed_zones: set[str] = field(default_factory=set)
    """Those that had no machine since one was last looked for in all of them."""

    @property
    def _ec2(self) -> Any:
        return ec2_backends[self.account][self.region]

    @property
    def in_service(self) -> list[Member]:
        """Members that work."""
        return [member for member in self.members.values() if member.state == "InService"]

    @property
    def staying(self) -> list[Member]:
        """Members that count for the capacity, the oldest first."""
        return [member for member in self.members.values() if member.stays]

    def settle(self) -> None:
        """Do the work whose time has come, and its consequences."""
        for _ in range(_MOST_STEPS):
            if not (self._bury() or self._advance() or self._grow() or self._shrink() or self._rebalance()):
                return

    def _bury(self) -> bool:
        """Forget instances that have died, which the group then replaces."""
        states = {
            instance.id: instance.state
            for reservation in list(self._ec2.reservations.values())
            for instance in reservation.instances
            if instance.id in self.members
        }
        lost = (m for m in self.members.values() if not m.is_ended and states.get(m.id, "terminated") in DEAD)
        for member in list(lost):
            del self.members[member.id]
            if states.get(member.id, "").startswith("stop"):
                self._ec2.terminate_instances([member.id])
            if member.stays:
                self.record(
                    f"Terminating EC2 instance: {member.id}",
                    f"At {_text()} an instance was taken out of service in response to an EC2 health check indicating "
                    "it has been terminated or stopped.",
                )
            return True
        return False

    def _advance(self) -> bool:
        for member in self.members.values():
            if member.health == "Unhealthy" and member.stays:
                self.leave(member, "in response to an EC2 instance health check failure")
                return True
            if member.at <= pace.now() and member.state == "Pending":
                member.state = "InService"
                return True
            if member.at <= pace.now() and member.state in LEAVING and not member.is_ended:
                self._ec2.terminate_instances([member.id])
                member.is_ended, member.at = True, pace.after("shutdown")
                return True
            if member.at <= pace.now() and member.is_ended:
                del self.members[member.id]
                return True
        return False

    def _grow(self) -> bool:
        if len(self.staying) >= self.desired + self.surge or "Launch" in self.suspended_processes:
            self.is_failing = self.is_failing and len(self.staying) < self.desired
            self.failed_zones.clear()
            return False
        if (self.is_failing or self.failed_zones) and pace.now() < self.retry_at:
            return False
        taken_zones = Counter(member.zone for member in self.staying)
        subnets = [subnet for subnet in self.subnets if self.zones[subnet] not in self.failed_zones]
        subnet = min(subnets, key=lambda subnet: taken_zones[self.zones[subnet]])
        try:
            self._welcome(self.launch(subnet))
        except ServiceException as error:
            return self._fail(error, self.zones[subnet])
        return True

    def _welcome(self, instance: Any) -> None:
        kind, zone = str(instance.instance_type), str(instance.placement.zone)
        member = Member(str(instance.id), kind, zone, self.generation, pace.after("launch"))
        self.members[member.id] = member
        self.is_failing = False
        self.failed_zones.clear()
        cause = f"At {_text()} an instance was started in response to a difference between desired and actual capacity."
        self.record(f"Launching a new EC2 instance: {member.id}", cause)

    def _fail(self, refusal: ServiceException, zone: str) -> bool:
        """One zone has no machine; whether another one is tried now."""
        self.failed_zones.add(zone)
        is_last = self.failed_zones >= set(self.zones.values())
        self.retry_at = pace.after("launch" if is_last else "next zone")
        if is_last:
            self.is_failing = True
            self.failed_zones.clear()
        message = f"Could not launch {self.label} Instances. {refusal.code} - {refusal.message}"
        if not message.endswith("."):
            message += "."
        message += " Launching EC2 instance failed."
        earlier = takewhile(lambda activity: activity["StatusCode"] == "Failed", reversed(self.activities))
        repeated_activity = next((activity for activity in earlier if activity.get("StatusMessage") == message), None)
        if repeated_activity is not None:
            repeated_activity["EndTime"] = pace.moment()
        else:
            cause = (
                f"At {_text()} an instance was started in response to a difference between desired and actual capacity."
            )
            self.record("Launching a new EC2 instance", cause, "Failed", message)
        return not is_last

    def _shrink(self) -> bool:
        spare = [member for member in self.staying if not member.is_protected]
        if len(self.staying) <= self.desired + self.surge or not spare or "Terminate" in self.suspended_processes:
            return False
        zones = Counter(member.zone for member in self.staying)
        # Old machines first, then the fullest zone, then the oldest.
        last = max(spare, key=lambda member: (member.generation < self.generation, zones[member.zone]))
        self.leave(last, "in response to a difference between desired and actual capacity")
        return True

    def _rebalance(self) -> bool:
        """Make a machine in the zone that has least and end one where most are, when they differ by two or more."""
        counts = dict.fromkeys(self.zones.values(), 0) | Counter(member.zone for member in self.staying)
        fullest, emptiest = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        if counts[fullest] - counts[emptiest] < 2 or "AZRebalance" in self.suspended_processes:
            self.uneven_until = 0.0
            return False
        self.uneven_until = self.uneven_until or pace.after("rebalance")
        if pace.now() < self.uneven_until or self.surge:
            return False
        try:
            self._welcome(self.launch(next(subnet for subnet, zone in self.zones.items() if zone == emptiest)))
        except ServiceException:
            self.uneven_until = pace.after("rebalance") + 1
            return False
        last = next(member for member in self.staying if member.zone == fullest)
        self.leave(last, "because instances were not balanced between zones")
        return True

    def leave(self, member: Member, reason: str) -> dict[str, Any]:
        """A machine leaves; the activity of it."""
        member.state, member.at = "Terminating", pace.after("end")
        cause = f"At {_text()} instance {member.id} was taken out of service {reason}."
        return self.record(f"Terminating EC2 instance: {member.id}", cause, "InProgress")

    def record(self, description: str, cause: str, status: str = "Successful", message: str = "") -> dict[str, Any]:
        """A new activity."""
        now = pace.moment()
        activity = {
            "ActivityId": str(mock_random.uuid4()),
            "AutoScalingGroupName": self.name,
            "Description": description,
            "Cause": cause,
            "StartTime": now,
            "EndTime": now,
            "StatusCode": status,
            "Progress": 100 if status in {"Successful", "Failed"} else 50,
            "Details": "{}",
            **({"StatusMessage": message} if message else {}),
        }
        self.activities.append(activity)
        return activity


def _text() -> str:
    return pace.moment().strftime("%Y-%m-%dT%H:%M:%SZ")


class ScalingBackend(BaseBackend):  # type: ignore[misc]
    """The auto scaling groups of one account and region."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.groups: dict[str, ScalingGroup] = {}

    def settle(self) -> None:
        """One look at every group."""
        reservations.settle(self.account_id, self.region_name)
        for group in list(self.groups.values()):
            group.settle()

    def named(self, name: str) -> ScalingGroup:
        """The group. Raises ``ValidationError``."""
        if name not in self.groups:
            raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
        return self.groups[name]

    def of_instance(self, instance_id: str) -> tuple[ScalingGroup, Member]:
        """A group and its member. Raises ``ValidationError``."""
        for group in self.groups.values():
            if instance_id in group.members:
                return group, group.members[instance_id]
        raise ValidationError(f"Instance Id not found - No managed instance found for instance ID {instance_id}")

    def set_desired(self, name: str, desired: int) -> None:
        """Raises ``ValidationError`` outside of the group's bounds."""
        group = self.named(name)
        text = f"New SetDesiredCapacity value {desired} is"
        if desired > group.maximum:
            raise ValidationError(f"{text} above max value {group.maximum} for the AutoScalingGroup.")
        if desired < group.minimum:
            raise ValidationError(f"{text} below min value {group.minimum} for the AutoScalingGroup.")
        group.desired = desired

    def terminate(self, instance_id: str, *, decrement: bool) -> Mapping[str, Any]:
        """The activity of an instance that leaves. Raises ``ValidationError`` and ``ScalingActivityInProgress``."""
        group, member = self.of_instance(instance_id)
        if not member.stays:
            raise ScalingActivityInProgress
        if decrement and group.desired <= group.minimum:
            raise ValidationError(
                f"Currently, desiredSize equals minSize ({group.minimum}). Terminating instance without replacement "
                "will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or "
                "lower group's min size."
            )
        reason = "in response to a user request"
        if decrement:
            reason += f", shrinking the capacity from {group.desired} to {group.desired - 1}"
            group.desired -= 1
        return group.leave(member, reason)


scaling_backends = BackendDict(ScalingBackend, "autoscaling")


def settle(account: str, region: str) -> None:
    """One look at the groups of that account."""
    with LOCK:
        scaling_backends[account][region].settle()
