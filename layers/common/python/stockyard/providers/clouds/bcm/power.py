"""The one way to switch a device: it is read once more, and refused where it is not ours and its owner's to install."""

from __future__ import annotations

from datetime import datetime, timedelta

from stockyard.domain.values import times
from stockyard.errors import VendorNotFound, VendorRefused
from stockyard.providers.clouds.bcm.client import HeadNode
from stockyard.providers.clouds.bcm.devices import Device
from stockyard.providers.clouds.bcm.errors import HostRefused
from stockyard.providers.clouds.bcm.marks import Marks, Stage, without_lines

_OFF_ALREADY = "Failed"
_AGAIN = timedelta(seconds=300)
"""How long a reset is given before it is sent again, where nothing came of it: then twice as long, and so on. An answer
may have been lost, and a large host takes minutes until its installer begins."""


def read_again(head_node: HeadNode, marks: Marks) -> Device:
    """The device of those marks as it is now. Raises ``HostRefused`` where it must not be switched for them."""
    device = head_node.device(marks.device)
    if device is None:
        raise VendorNotFound("The host is no longer in the head node's inventory.", code="404")
    reason = device.why_not_ours(marks)
    if reason is not None:
        raise HostRefused(
            f"Host {device.hostname or marks.device} is not switched: {reason}.",
            code="HostRefused",
            hint="Its owner decides what may be done to it, by its notes.",
        )
    return device


def switch(head_node: HeadNode, marks: Marks, operation: str) -> None:
    """Switch the device of those marks: ``ON``, ``OFF``, or ``RESET``, which switches on what is off."""
    read_again(head_node, marks)
    try:
        head_node.operate(marks.device, operation)
    except VendorRefused as error:
        if operation != "RESET" or error.code != _OFF_ALREADY:
            raise
        # A machine that is off cannot be reset.
        read_again(head_node, marks)
        head_node.operate(marks.device, "ON")


def reset_for(head_node: HeadNode, device: Device, marks: Marks, stage: Stage, now: datetime) -> None:
    """Reset the device for that stage: it is written on the device first, then sent. Nothing happens while an earlier
    reset for it may still come to something."""
    if marks.stage == stage and not _is_due(marks, now):
        return
    ordered = marks.reset_at(stage, times.to_text(now))
    head_node.update(device, {"notes": without_lines(device.notes) + ordered.line()})
    switch(head_node, ordered, "RESET")


def _is_due(marks: Marks, now: datetime) -> bool:
    try:
        begin = times.from_text(marks.at)
    except ValueError:
        return True
    waits: int = 2 ** max(0, min(marks.tries - 1, 6))
    return now - begin >= _AGAIN * waits
