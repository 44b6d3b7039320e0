"""State of a VirtualMachine, read from its status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stockyard.domain.values.states import MachineState

GRACE_SECONDS = 120
"""How long a machine may be without a place, or without what it starts from, before it is given up."""
_RUNNING = frozenset({"Running", "Migrating"})
_STOPPED = frozenset({"Stopped", "Paused"})
SCARCE = frozenset({"ErrorUnschedulable"})
# An image that could not be had once (ErrImagePull) is asked for again before it becomes ImagePullBackOff.
FAILED = frozenset(
    {
        "ImagePullBackOff",
        "ErrorPvcNotFound",
        "DataVolumeError",
        "CrashLoopBackOff",
        "DataVolumeNotFound",
    }
)
_TELLING = (("Failure", "True"), ("PodScheduled", "False"), ("DataVolumesReady", "False"), ("Ready", "False"))
"""Types and states of conditions that say why a machine does not run, the one that says it best first."""
_LONGEST = 300
"""Letters of a condition that are repeated."""
_QUOTA = "exceeded quota"


@dataclass(frozen=True, slots=True)
class Status:
    """Status of a machine: ``name`` as KubeVirt prints it, and ``reason`` as a condition says it, for people."""

    name: str
    reason: str
    since: datetime | None
    """Beginning of what the condition says."""
    is_leaving: bool
    lacks_quota: bool = False

    @property
    def state(self) -> MachineState:
        """The state of a machine that is there. One that is being deleted never comes back."""
        if self.is_leaving:
            return "gone"
        if self.name in _RUNNING:
            return "running"
        return "stopped" if self.name in _STOPPED else "starting"

    def __str__(self) -> str:
        return f"{self.name}{f': {self.reason}' if self.reason else ''}"


def status_of(machine: Mapping[str, Any]) -> Status:
    """The status of a VirtualMachine; one that its controller has not seen yet is ``Pending``."""
    status = machine.get("status") or {}
    name = str(status.get("printableStatus") or "Pending")
    condition = next(_telling(status), {})
    text = " ".join(str(condition.get("message") or condition.get("reason") or "").split())[:_LONGEST]
    return Status(
        name,
        text,
        _moment(condition.get("lastTransitionTime")),
        "deletionTimestamp" in machine["metadata"],
        lacks_quota=any(_QUOTA in str(each.get("message")) for each in _telling(status)),
    )


def _telling(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    conditions = [each for each in status.get("conditions") or () if isinstance(each, Mapping)]
    for kind, value in _TELLING:
        yield from (each for each in conditions if (each.get("type"), each.get("status")) == (kind, value))


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
