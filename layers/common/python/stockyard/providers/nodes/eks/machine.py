"""A claim's machine: taken from its node group, looked at, given back by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stockyard.domain.nodes.node_types import ANY, CAPACITY_BLOCK, ON_DEMAND
from stockyard.domain.nodes.zone_ids import by_name
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.domain.values.states import DesiredPower, MachineState
from stockyard.errors import (
    InsufficientCapacity,
    NodeCouldNotBeProvisioned,
    NotYetVisible,
    VendorError,
    VendorNotFound,
    VendorRefused,
)
from stockyard.ports import Outcome
from stockyard.ports.node_work import Machine, MachineHolds, NodeWork
from stockyard.ports.nodes import BLOCKER
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clouds.aws.resources.making import Reconciler
from stockyard.providers.nodes.eks import capacity_blocks, scaling, topology
from stockyard.providers.nodes.eks.configuration import reservation_of
from stockyard.providers.nodes.eks.scaling import ScalingGroup
from stockyard.providers.nodes.eks.work import REBOOT

KEY = "machine"
AFTER = "after"
"""In the line's detail: the newest activity of the group when the claim first waited for a machine."""
_STATES: dict[str, MachineState] = {
    "pending": "starting",
    "running": "running",
    "stopping": "stopped",
    "stopped": "stopped",
    "shutting-down": "gone",
    "terminated": "gone",
}
_WAIT, _ENDING = 15, 10
"""Seconds between looks at a group that makes a machine, and at a machine that is being ended."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One try to get one claim's machine."""

    reconciler: Reconciler
    work: NodeWork
    cluster: Cluster
    holds: MachineHolds
    pool: str

    def run(self) -> Outcome:
        """Take a machine of the group that nobody holds, or have the group make one and come again."""
        line = self.reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
        if line is not None and line.state == "made":
            return self._outcome(line.vendor_id)
        groups = scaling.find(self.reconciler.calls, self.cluster, self.pool)
        if line is None:
            line = self.reconciler.ledger.intend(ec2_kinds.INSTANCE.name, KEY, {"name": self.work.claim.name})
        holders = self.holds.holders()
        machine_id = self._machine(groups, holders)
        if not machine_id:
            return self._grow(groups[0], line, scaling.count_of(groups[1:], holders))
        since, name = str(line.detail.get("since") or line.intended_at), self.reconciler.name(self.work.claim.name)
        marks = tags.full(self.reconciler.owner, ec2_kinds.INSTANCE.name, KEY, name, since)
        self.reconciler.calls.call("ec2", "create_tags", Resources=[machine_id], Tags=tags.pairs(marks))
        self.reconciler.ledger.made(line, machine_id)
        return self._outcome(machine_id)

    def _machine(self, groups: Sequence[ScalingGroup], holders: Mapping[str, str]) -> str:
        """The machine that the claim holds, or takes now; empty when there is none for it."""
        for machine_id, holder in holders.items():
            if holder == self.work.claim.id:
                return machine_id
        for group in groups:
            for machine_id in self._candidates(group, holders):
                if self.holds.take(machine_id):
                    return machine_id
        return ""

    def _candidates(self, group: ScalingGroup, holders: Mapping[str, str]) -> list[str]:
        """The machines that nobody holds, in a zone that will do; those that are up first. Claims that look at one time
        begin with different ones."""
        candidates = [
            machine_id
            for machine_id, member in group.machines.items()
            if machine_id not in holders
            and member.get("HealthStatus", "Healthy").lower() == "healthy"
            and self._may_be_in(str(member.get("AvailabilityZone", "")))
        ]

        def order(machine_id: str) -> tuple[bool, str]:
            digest = hashlib.sha256(f"{self.work.claim.id}/{machine_id}".encode()).hexdigest()
            return group.machines[machine_id]["LifecycleState"] != "InService", digest

        return sorted(candidates, key=order)

    def _may_be_in(self, zone: str) -> bool:
        ids = topology.zone_ids(self.work.provider, self.work.environment)
        requirement = by_name(Requirements.of(self.work.claim.requirements), ids).get(ZONE)
        return requirement is None or requirement.has(zone)

    def _grow(self, group: ScalingGroup, line: Resource, elsewhere: int) -> Outcome:
        """Give the group the size for its claims, unless the group has answered that the size is impossible.
        ``elsewhere``: so many claims have machines of former groups."""
        shown_activities = scaling.activities(self.reconciler.calls, group)
        failure = self._failure(shown_activities, group, line)
        if failure is not None:
            scaling.shrink(self.reconciler.calls, group, self.holds.count(own=False) - elsewhere)
            self.reconciler.ledger.gone(line)
            raise self._with_offerings(failure, group)
        need = self.holds.count() - elsewhere
        size = max(group.desired, min(group.most, need))
        self._check_zone(group, need)
        if size > group.desired or AFTER not in line.detail:
            reservation = reservation_of(self.cluster, self.pool)
            if reservation:
                grows = size > group.desired
                capacity_blocks.check(self.reconciler.calls, reservation, group, self.reconciler.now, grows=grows)
            # What failed before concerns earlier claims, so that the moment is kept from the first try on.
            self.reconciler.ledger.intend(line.kind, line.key, {AFTER: scaling.newest_activity(shown_activities)})
        if size > group.desired:
            scaling.resize(self.reconciler.calls, group, size)
        if need > group.most:
            text = f"Node group {self.pool} has all of the {group.most} machines that it may have."
            return Outcome(False, text, wait_seconds=_WAIT)
        text = f"Node group {self.pool} makes a machine."
        if not group.issues:
            return Outcome(False, text, wait_seconds=_WAIT)
        blocker = f"EKS says of node group {self.pool}: {group.issues}"
        return Outcome(False, f"{text} {blocker}", wait_seconds=_WAIT, facts={BLOCKER: blocker})

    def _failure(
        self, shown_activities: Sequence[Mapping[str, Any]], group: ScalingGroup, line: Resource
    ) -> VendorError | None:
        if AFTER not in line.detail:
            return None
        zones = [zone for zone in group.zones if self._may_be_in(zone)]
        return scaling.failure_after(shown_activities, str(line.detail[AFTER]), zones)

    def _check_zone(self, group: ScalingGroup, need: int) -> None:
        """``InsufficientCapacity`` when the group has a machine for each claim, and none left in a zone for this one: a
        group chooses the zones itself."""
        if len(group.machines) >= max(need, group.desired) and not all(map(self._may_be_in, group.zones)):
            refusal = InsufficientCapacity(f"Node group {self.pool} made no machine in a zone that was asked for.")
            raise self._with_offerings(refusal, group)

    def _with_offerings(self, error: VendorError, group: ScalingGroup) -> VendorError:
        """Name what was refused in the error of a refused capacity."""
        if not isinstance(error, InsufficientCapacity):
            return error
        placed = self.work.claim.placement
        options = placed.options if placed is not None else ()
        zones = [zone for zone in group.zones if self._may_be_in(zone)]
        refused = {
            (name, option.capacity_type, zone): None
            for option in options
            if (name := option.type_of(self.work.provider.name))
            for zone in (*zones, *((ANY,) if ANY in option.zones else ()))
        }
        return InsufficientCapacity(error.detail, code=error.code, hint=error.hint, refused=list(refused))

    def _outcome(self, machine_id: str) -> Outcome:
        """State of the claim's machine. ``NodeCouldNotBeProvisioned`` when it was ended meanwhile."""
        item = described(self.reconciler, machine_id)
        # One that is ended has no name any more either.
        if item is not None and _STATES.get(item["State"]["Name"]) == "gone":
            why = item.get("StateReason", {}).get("Message") or "no reason given"
            raise NodeCouldNotBeProvisioned(f"{machine_id} was ended: {why}")
        if item is None or not item.get("PrivateDnsName"):
            raise NotYetVisible(f"{machine_id} is not shown yet")
        facts = {
            "machine_id": machine_id,
            "host_name": str(item["PrivateDnsName"]),
            "type": f"{self.work.provider.name}.{item['InstanceType']}",
            "capacity_type": str(item.get("InstanceLifecycle") or self._bought_as()),
            "zone": str(item["Placement"]["AvailabilityZone"]),
        }
        reservation = reservation_of(self.cluster, self.pool)
        ends_at = capacity_blocks.machines_end_at(self.reconciler.calls, reservation) if reservation else None
        if ends_at is not None:
            facts["reserved_until"] = ends_at
        text = f"{machine_id} ({facts['type']}) of node group {self.pool} was taken in {facts['zone']}."
        return Outcome(True, text, facts=facts)

    def _bought_as(self) -> str:
        return CAPACITY_BLOCK if reservation_of(self.cluster, self.pool) else ON_DEMAND


def look(reconciler: Reconciler) -> Machine:
    """The machine as EC2 has it. What was just taken and is not shown is ``starting``."""
    line = reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    if line is None or line.state != "made":
        return Machine("absent")
    item = described(reconciler, line.vendor_id)
    if item is None:
        return Machine("starting" if reconciler.recent(line.made_at) else "gone", line.vendor_id)
    zone = str(item.get("Placement", {}).get("AvailabilityZone", ""))
    return Machine(_STATES.get(item["State"]["Name"], "starting"), line.vendor_id, zone=zone)


def power(reconciler: Reconciler, state: DesiredPower, operation: str) -> Outcome:
    """Reboot it, once for an operation. ``VendorRefused`` for ``Off``: its group would replace a machine that is."""
    now = look(reconciler)
    if now.state in ("absent", "gone"):
        raise NodeCouldNotBeProvisioned("The claim has no machine.")
    if state == "Off":
        raise VendorRefused(
            "a machine of a node group cannot be switched off: the group would replace it",
            hint="Delete the claim, or give the node group a smaller minimum.",
        )
    if state == "Reboot":
        line = reconciler.ledger.intend(REBOOT.name, operation)
        if line.state != "made":
            reconciler.calls.call("ec2", "reboot_instances", InstanceIds=[now.machine_id])
            reconciler.ledger.made(line, now.machine_id)
        return Outcome(True, f"{now.machine_id} was rebooted.", facts={"power": "On"})
    if now.state == "running":
        return Outcome(True, f"{now.machine_id} is On.", facts={"power": "On"})
    return Outcome(False, f"{now.machine_id} is {now.state}", wait_seconds=_ENDING)


def terminate(reconciler: Reconciler, cluster: Cluster, holds: MachineHolds, work: NodeWork) -> Outcome:
    """Have the group end the machine, and hold it no longer when it is gone. Of a claim that has none yet the size of
    the group follows."""
    line = reconciler.ledger.find(ec2_kinds.INSTANCE.name, KEY)
    if line is None:
        return _forget(reconciler)
    own_machines = (machine_id for machine_id, holder in holds.holders().items() if holder == work.claim.id)
    machine_id = line.vendor_id if line.state == "made" else next(own_machines, "")
    if not machine_id:
        return _unwanted(reconciler, cluster, holds, work, line)
    item = described(reconciler, machine_id)
    state = item["State"]["Name"] if item is not None else "terminated"
    if state == "terminated" and (item is not None or not reconciler.recent(line.made_at or line.intended_at)):
        holds.release(machine_id)
        reconciler.ledger.gone(line)
        return _forget(reconciler)
    if state != "shutting-down" and item is not None:
        _end(reconciler, machine_id, tags.mapping(item.get("Tags")).get(scaling.ASG_TAG, ""))
    return Outcome(False, f"{machine_id} is being ended", wait_seconds=_ENDING, remaining=(f"instance {machine_id}",))


def _end(reconciler: Reconciler, machine_id: str, group_name: str) -> None:
    """End the machine by its group while the group has it, so that no other is made; else by EC2, since the group is
    gone."""
    group = scaling.described(reconciler.calls, group_name) if group_name else None
    if group is not None and machine_id in group.leaving:
        return
    if group is not None and machine_id in group.machines:
        with suppress(VendorNotFound):
            scaling.end(reconciler.calls, group, machine_id)
        return
    # The group may have let it go because it ended meanwhile: then there is nothing left to end, nor the right to.
    item = described(reconciler, machine_id)
    if item is not None and ec2_kinds.state_of(item) not in (State.LEAVING, State.ABSENT):
        ec2_kinds.INSTANCE.delete(reconciler.calls, machine_id)


def _unwanted(reconciler: Reconciler, cluster: Cluster, holds: MachineHolds, work: NodeWork, line: Resource) -> Outcome:
    if AFTER in line.detail:
        with suppress(NotYetVisible, VendorNotFound):
            newest, *former = scaling.find(reconciler.calls, cluster, work.claim.pool)
            need = holds.count(own=False) - scaling.count_of(former, holds.holders())
            scaling.shrink(reconciler.calls, newest, need)
    reconciler.ledger.gone(line)
    return _forget(reconciler)


def _forget(reconciler: Reconciler) -> Outcome:
    """Forget lines of the ledger that stand for nothing in the cloud."""
    for line in reconciler.ledger.lines():
        if line.kind == REBOOT.name:
            reconciler.ledger.gone(line)
    return Outcome(True)


def described(reconciler: Reconciler, machine_id: str) -> Mapping[str, Any] | None:
    """The machine as EC2 describes it; None when it does not show it."""
    with suppress(VendorNotFound):
        return ec2_kinds.INSTANCE.describe(reconciler.calls, machine_id)
    return None
