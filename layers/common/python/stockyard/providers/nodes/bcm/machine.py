"""A claim's host: leased, marked, installed by its next boot, looked at, switched, and given back wiped.

The ledger has a line for the host. How far it is stands on the device itself, so that the sweep can go on without a
ledger; that an installer has begun is seen by its order, which is gone from the device then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.records import PlacementOption, Resource
from stockyard.domain.values import times
from stockyard.domain.values.states import DesiredPower, MachineState
from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.machines import node
from stockyard.ports import Outcome
from stockyard.ports.node_work import Machine, MachineHolds, NodeWork
from stockyard.providers.clouds.bcm import power, scripts
from stockyard.providers.clouds.bcm.client import HeadNode
from stockyard.providers.clouds.bcm.cloud import HOST
from stockyard.providers.clouds.bcm.devices import FULL, NOSYNC, Device
from stockyard.providers.clouds.bcm.errors import DeviceChanged
from stockyard.providers.clouds.bcm.marks import Marks, texts, without_lines
from stockyard.providers.clouds.bcm.release import DOWN, LATER, SOON, UP, Release
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.inventory import ends_off, live_hosts

MOST_BUSY = 20
"""Free hosts that are asked for their status in vain, in one look for a host: others are still being wiped."""
SWITCH = "switch"
"""A line of the ledger: an operation has rebooted the host."""
_STATES: dict[str, MachineState] = {UP: "running", DOWN: "stopped"}


@dataclass(frozen=True, slots=True)
class HostWork:
    """One step of a claim's host."""

    head_node: HeadNode
    work: NodeWork
    config: BcmNodesConfig

    # --- launch -------------------------------------------------------------------------------------------------------

    def launch(self) -> Outcome:
        """Done when the installation has ended, or has begun where the head node does not tell its end."""
        if self.work.claim.placement is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        line = self.line()
        if line is not None and line.state == "made":
            return self._launched(line)
        if line is None or not self._holds.take(line.key):
            line = self._leased(line)
        device = self.head_node.device(line.key)
        try:
            return self._install(line, device)
        except DeviceChanged as changed:
            return Outcome(False, changed.detail, SOON)

    @property
    def _holds(self) -> MachineHolds:
        if self.work.holds is None:
            raise NodeCouldNotBeProvisioned("The claim's hosts are not leased.")
        return self.work.holds

    def line(self) -> Resource | None:
        """The ledger line of the claim's host; None when none is announced."""
        return next((line for line in self.work.ledger.lines() if line.kind == HOST), None)

    def _leased(self, lost: Resource | None) -> Resource:
        """The line of a host that is free and ours from now on. ``InsufficientCapacity`` names every type that has
        none."""
        if lost is not None:
            self.work.ledger.gone(lost)
        hosts = live_hosts(self.work.provider, self.head_node)
        holders = self._holds.holders()
        refused: list[tuple[str, str, str]] = []
        busy = 0
        for option in self._options():
            name = option.type_of(self.work.provider.name)
            for device in hosts.get(name, ()):
                if device.why_not_free() is not None or device.uuid in holders:
                    continue
                if busy >= MOST_BUSY or not self._is_still(device):
                    busy += 1
                    continue
                detail = {"type": name, "zone": option.zones[0], "capacity_type": option.capacity_type}
                line = self.work.ledger.intend(HOST, device.uuid, {**detail, "host": device.hostname})
                if self._holds.take(device.uuid):
                    return line
                self.work.ledger.gone(line)
            refused += [(name, option.capacity_type, zone) for zone in option.zones]
        names = ", ".join(sorted({name for name, _, _ in refused}))
        raise InsufficientCapacity(f"No host is free of {names}.", code="NoFreeHost", refused=refused)

    def _options(self) -> Sequence[PlacementOption]:
        placement = self.work.claim.placement
        return placement.options if placement is not None else ()

    def _is_still(self, device: Device) -> bool:
        """Whether nothing goes on with a device: it is up or off, as far as the head node tells."""
        return self.head_node.status(device.uuid) in (None, UP, DOWN)

    def _install(self, line: Resource, device: Device | None) -> Outcome:
        if device is None:
            return self._given_back(line, "is gone")
        marks = device.marks
        if marks is None and device.why_not_free() is None:
            self._order(line, device)
            return Outcome(False, f"Host {device.hostname} is to be installed.", 1)
        if marks is None or not self._is_own(marks):
            return self._given_back(line, "is no longer free")
        is_ordered = device.next_mode == FULL
        if marks.stage in ("install", "installing") and is_ordered:
            power.reset_for(self.head_node, device, marks, "installing", self.work.now)
            return Outcome(False, f"Host {device.hostname} boots for its installation.", LATER)
        if marks.stage in ("install", "wipe", "wiping"):
            # An earlier try gives it back, or somebody has taken our order away: then it is not installed for us.
            step = self._release(line).step()
            return self._given_back(line, "is given back") if step.is_over else Outcome(False, step.text, step.wait)
        return self._installing(line, device, marks)

    def _installing(self, line: Resource, device: Device, marks: Marks) -> Outcome:
        """The installer has begun: what is on the disk from now on is ours, and is wiped in the end."""
        if marks.stage == "installing":
            self.head_node.update(device, {"notes": without_lines(device.notes) + marks.to("run").line()})
        status = self.head_node.status(device.uuid)
        if status not in (None, UP):
            return Outcome(False, f"Host {device.hostname} is {status}.", LATER)
        return self._launched(self.work.ledger.made(line, device.uuid))

    def _given_back(self, line: Resource, reason: str) -> Outcome:
        """The host is not touched: another one is looked for, once no change of ours can come late."""
        if self._may_come_late(line):
            return Outcome(False, f"Host {line.detail.get('host')} {reason}.", LATER)
        self._holds.release(line.key)
        self.work.ledger.gone(line)
        return Outcome(False, f"Host {line.detail.get('host')} {reason}; another one is looked for.", SOON)

    def _may_come_late(self, line: Resource) -> bool:
        """Whether a change of the device whose answer was lost may still be made."""
        age = (self.work.now - times.from_text(line.intended_at)).total_seconds()
        return line.state != "made" and age < self.config.in_flight_seconds

    def _order(self, line: Resource, device: Device) -> None:
        """Mark the device and order its installation, by one change of it as it was read."""
        self.work.ledger.intend(HOST, line.key)
        marks = self._marks(device.uuid, device.entity[device.mode_field])
        payload = self._payload()
        before = device.entity.get("finalize")
        script = scripts.script(marks.resource, device.uuid, texts(device.entity, "mac"), before, payload)
        changes = {"finalize": script, "notes": device.notes + marks.line(), device.mode_field: FULL}
        self.head_node.update(device, changes)

    def _payload(self) -> str:
        work, cluster = self.work, self.work.cluster
        if cluster is None:
            raise NodeCouldNotBeProvisioned("A host joins a cluster; the claim names none.")
        return node.first_boot_by_token(self.config, cluster, work.claim.id, work.machine_token).into("$root")

    def _marks(self, uuid: str, before: Any = None) -> Marks:
        work = self.work
        generation = str(work.claim.generation)
        return Marks(work.installation, work.tenant, work.claim.id, generation, uuid, "install", before=before)

    def _is_own(self, marks: Marks) -> bool:
        return marks.is_of(self.work.installation, self.work.tenant, self.work.claim.id)

    def _launched(self, line: Resource) -> Outcome:
        name = f"{self.work.provider.name}.{line.detail['type']}"
        facts = {
            "machine_id": line.key,
            "type": name,
            "capacity_type": str(line.detail["capacity_type"]),
            "zone": str(line.detail["zone"]),
        }
        return Outcome(True, f"Host {line.detail['host']} ({name}) was installed.", facts=facts)

    # --- the rest of its life -----------------------------------------------------------------------------------------

    def look(self) -> Machine:
        """The host as the head node has it. One whose marks a person has taken away is gone for the claim."""
        line = self.line()
        if line is None or line.state != "made":
            return Machine("absent")
        device = self.head_node.device(line.key)
        marks = device.marks if device is not None else None
        if device is None or marks is None or not self._is_own(marks):
            return Machine("gone", line.key)
        status = self.head_node.status(line.key)
        state = "running" if status is None else _STATES.get(status, "starting")
        return Machine(state, line.key, zone=str(line.detail["zone"]))

    def power(self, state: DesiredPower) -> Outcome:
        """Switch it. Its next boot keeps the disk, whatever the category says. An operation reboots once."""
        line = self.line()
        if line is None or line.state != "made":
            raise NodeCouldNotBeProvisioned("The claim has no machine.")
        marks, host = self._marks(line.key), line.detail["host"]
        device = power.read_again(self.head_node, marks)
        status = self.head_node.status(line.key)
        if state != "Reboot" and status == {"On": UP, "Off": DOWN}[state]:
            return Outcome(True, f"Host {host} is {state}.", facts={"power": state})
        if state != "Off" and device.next_mode is None:
            try:
                self.head_node.update(device, {device.mode_field: NOSYNC})
            except DeviceChanged as changed:
                return Outcome(False, changed.detail, SOON)
        if state == "Reboot":
            order = self.work.ledger.intend(SWITCH, self.work.session)
            if order.state != "made":
                power.switch(self.head_node, marks, "RESET")
                self.work.ledger.made(order, line.key)
            return Outcome(True, f"Host {host} was rebooted.", facts={"power": "On"})
        if status in (None, UP, DOWN):
            power.switch(self.head_node, marks, state.upper())
        if status is None:
            return Outcome(True, f"Host {host} was switched {state.lower()}.", facts={"power": state})
        return Outcome(False, f"Host {host} is {status}.", LATER)

    def terminate(self) -> Outcome:
        """Give each host back; done when nothing of ours is on it, and its lease is over."""
        for line in self.work.ledger.lines():
            if line.kind == HOST:
                step = self._release(line).step()
                if not step.is_over or self._may_come_late(line):
                    remaining = (f"host {line.detail.get('host')}",)
                    return Outcome(False, step.text, LATER if step.is_over else step.wait, remaining=remaining)
                self._holds.release(line.key)
                self.work.ledger.gone(line)
        for line in self.work.ledger.lines():
            if line.kind == SWITCH:
                self.work.ledger.gone(line)
        return Outcome(True, "The host is given back.")

    def _release(self, line: Resource) -> Release:
        work = self.work
        off = ends_off(work.provider, str(line.detail.get("type")))
        return Release(self.head_node, line.key, work.installation, work.tenant, work.claim.id, work.now, off)
