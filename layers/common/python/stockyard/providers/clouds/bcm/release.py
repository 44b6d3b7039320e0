"""Way back of a device: its scripts and notes as they were, wiped by a full installation where it was ours to use.

Each step reads the device and does one thing; what is done stands on the device itself, so that it goes on wherever an
earlier worker stopped, with a ledger or without.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stockyard.errors import VendorNotFound
from stockyard.providers.clouds.bcm import power, scripts
from stockyard.providers.clouds.bcm.client import HeadNode
from stockyard.providers.clouds.bcm.devices import FULL, Device
from stockyard.providers.clouds.bcm.errors import DeviceChanged, HostRefused
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL, Marks, without_lines

UP, DOWN = "UP", "DOWN"
SOON, LATER, BLOCKED = 2, 30, 300
"""Seconds until the next look: at what we have changed, at what boots, and at what a person has to do first."""


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one step. ``is_over``: nothing of ours is on the device. ``wait`` is when to look again, in seconds."""

    is_over: bool
    text: str
    wait: int = SOON


@dataclass(frozen=True, slots=True)
class Release:
    """The release of the device ``uuid`` from the record that the other fields name. ``ends_off``: it is switched off
    when the wipe has ended, where the head node tells that."""

    head_node: HeadNode
    uuid: str
    installation: str
    tenant: str
    resource: str
    now: datetime
    ends_off: bool = False

    def step(self) -> Step:
        """Do the next thing, or see that there is none. A device that changes meanwhile is read again the next time."""
        device = self.head_node.device(self.uuid)
        if device is None:
            return Step(True, "The host is no longer in the inventory.")
        try:
            return self._step(device)
        except (DeviceChanged, VendorNotFound):
            return Step(False, f"Host {device.hostname} changes just now.")
        except HostRefused as refusal:
            return Step(False, refusal.detail, wait=BLOCKED)

    def _step(self, device: Device) -> Step:
        marks = device.marks
        if marks is None or not marks.is_of(self.installation, self.tenant, self.resource):
            return self._unmarked(device)
        if not device.is_node:
            name = device.hostname or self.uuid
            text = f"{name} is no compute node, and is not touched: remove our line from its notes."
            return Step(False, text, wait=BLOCKED)
        is_ordered = device.next_mode == FULL
        if marks.stage == "install" or (marks.stage == "installing" and is_ordered):
            # No installer has begun for us: it is what it was.
            return self._restored(device, marks, mode=is_ordered)
        if marks.stage == "wiping" and not is_ordered:
            return self._end(device, marks)
        return self._wipe(device, marks) if device.may_install else self._without_word(device, marks)

    def _wipe(self, device: Device, marks: Marks) -> Step:
        if marks.stage in ("wipe", "wiping") and device.next_mode == FULL:
            power.reset_for(self.head_node, device, marks, "wiping", self.now)
            return Step(False, f"Host {device.hostname} boots for its wipe.", LATER)
        return self._order(device, marks)

    def _unmarked(self, device: Device) -> Step:
        """A person has taken our line away: what is left of us is the script, and the machine is theirs."""
        finalize = device.entity.get("finalize")
        if device.is_node and scripts.owner_of(finalize) == (self.resource, device.uuid):
            self.head_node.update(device, {"finalize": scripts.before_of(finalize)})
            return Step(False, f"The script of host {device.hostname} is taken away.")
        return Step(True, f"Host {device.hostname or self.uuid} is not ours.")

    def _restored(self, device: Device, marks: Marks, *, mode: bool = False) -> Step:
        changes: dict[str, Any] = {"finalize": self._before(device, marks), "notes": without_lines(device.notes)}
        if mode:
            changes[device.mode_field] = marks.before
        self.head_node.update(device, changes)
        return Step(False, f"Host {device.hostname} is as it was.")

    def _without_word(self, device: Device, marks: Marks) -> Step:
        """The owner has taken the word away in the middle: nothing is switched or wiped, and what was ordered is taken
        back."""
        before = self._before(device, marks)
        changes: dict[str, Any] = {}
        if device.entity.get("finalize") != before:
            changes["finalize"] = before
        if device.next_mode == FULL and marks.stage != "run":
            changes |= {device.mode_field: marks.before, "notes": self._notes(device, marks.to("run"))}
        if changes:
            self.head_node.update(device, changes)
        text = (
            f"Host {device.hostname} still has the claim's data, and its notes have no {MAY_INSTALL} any more: write "
            "it there again and the host is wiped; or remove our line from the notes, and it is left as it is."
        )
        return Step(False, text, wait=BLOCKED)

    def _order(self, device: Device, marks: Marks) -> Step:
        changes = {
            "finalize": self._before(device, marks),
            device.mode_field: FULL,
            "notes": self._notes(device, marks.to("wipe")),
        }
        self.head_node.update(device, changes)
        return Step(False, f"Host {device.hostname} is to be wiped.")

    def _end(self, device: Device, marks: Marks) -> Step:
        if self.ends_off and device.may_install:
            status = self.head_node.status(device.uuid)
            if status is not None and status != DOWN:
                if status == UP:
                    power.switch(self.head_node, marks, "OFF")
                text = f"Host {device.hostname} is {status}, and is switched off when its wipe has ended."
                return Step(False, text, LATER)
        return self._restored(device, marks)

    @staticmethod
    def _before(device: Device, marks: Marks) -> Any:
        """The finalize script as it is to be: as it was, or what a person has written since."""
        finalize = device.entity.get("finalize")
        is_own = scripts.owner_of(finalize) == (marks.resource, device.uuid)
        return scripts.before_of(finalize) if is_own else finalize

    @staticmethod
    def _notes(device: Device, marks: Marks) -> str:
        return without_lines(device.notes) + marks.line()
