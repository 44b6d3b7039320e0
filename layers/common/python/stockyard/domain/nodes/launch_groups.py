"""The legal moves of a launch group: pure functions from a record and what was seen to the next record.

::

    open ──a call is announced──> intended ──what it made is known──> made
      ▲                              │
      └──────it made nothing─────────┘

A member leaves when nothing of the group is its own any more: from ``open``, or from ``made`` with its machine ended,
but never while a call for it may be under way. A record without members is removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from stockyard.domain.records import LaunchGroup
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import CapacityAwaited, InsufficientCapacity

OPEN: Final = "open"
INTENDED: Final = "intended"
MADE: Final = "made"


@dataclass(frozen=True, slots=True)
class Share:
    """A member's part of its group: whether a call for it may be running, and its machine's id."""

    in_flight: bool
    machine_id: str

    @property
    def nothing(self) -> bool:
        """Whether the member can leave without anything to undo."""
        return not self.in_flight and not self.machine_id


def share(group: LaunchGroup, claim_id: str) -> Share:
    """The share of one member."""
    in_flight = group.state == INTENDED and claim_id in group.asked
    return Share(in_flight, group.machines.get(claim_id, {}).get("id", ""))


def announce_call(group: LaunchGroup, members: Sequence[str], template_at: str | None, now: str) -> LaunchGroup:
    """The group before a call for machines of ``members``, with a token that no other call of the group has."""
    token = hashlib.sha256(f"{group.id}/{group.version + 1}".encode()).hexdigest()[:32]
    fields = {"asked": tuple(members), "token": token, "intended_at": now, "template_at": template_at}
    return replace(group, state=INTENDED, pause_until=None, version=group.version + 1, **fields)  # type: ignore[arg-type]


def record_launch(
    group: LaunchGroup, machines: Sequence[Mapping[str, str]], refusal: InsufficientCapacity | None, now: str
) -> LaunchGroup:
    """The group after a call that launched ``machines``, in the order of the members of the call."""
    machines_by_claim = {claim_id: dict(machine) for claim_id, machine in zip(group.asked, machines, strict=False)}
    why: dict[str, Any] = {}
    if refusal is not None:
        why = {
            "detail": refusal.detail,
            "code": refusal.code,
            "refused": [list(offering) for offering in refusal.refused],
            "own": [list(offering) for offering in refusal.own],
        }
    if isinstance(refusal, CapacityAwaited):
        why |= {"reason": refusal.reason, "again_at": refusal.again_at}
    return replace(group, state=MADE, made_at=now, machines=machines_by_claim, refusal=why, version=group.version + 1)


def reopen(group: LaunchGroup, pause_until: str | None) -> LaunchGroup:
    """The group after a call that launched nothing."""
    return replace(group, state=OPEN, asked=(), token="", pause_until=pause_until, version=group.version + 1)


def without_member(group: LaunchGroup, claim_id: str) -> LaunchGroup:
    """The group without the member ``claim_id``."""
    members = tuple(member for member in group.members if member != claim_id)
    machines = {member: machine for member, machine in group.machines.items() if member != claim_id}
    return replace(group, members=members, machines=machines, version=group.version + 1)


def refusal_of(group: LaunchGroup) -> InsufficientCapacity:
    """The error that says why a member got no machine."""
    why = group.refusal
    refused, own = _offerings(why.get("refused", ())), _offerings(why.get("own", ()))
    detail = str(why.get("detail") or "There were fewer machines than claims.")
    if "again_at" in why:
        reason, again_at = str(why["reason"]), str(why["again_at"])
        return CapacityAwaited(detail, reason=reason, again_at=again_at, code=str(why.get("code", "")))
    return InsufficientCapacity(detail, code=str(why.get("code", "")), refused=refused, own=own)


def _offerings(entries: Sequence[Sequence[object]]) -> list[tuple[str, str, str]]:
    return [(str(kind), str(capacity_type), str(zone)) for kind, capacity_type, zone in entries]
