"""Capacity blocks: room for machines that was bought before, for a time and in one zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from stockyard.domain.values.times import to_text
from stockyard.errors import CapacityAwaited, VendorNotFound, VendorRefused
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.nodes.eks.scaling import ScalingGroup

NOT_STARTED, EXHAUSTED = "CapacityBlockNotStarted", "CapacityBlockExhausted"
_OVER = frozenset({"expired", "cancelled", "failed", "payment-failed", "unsupported"})
_LOOK_AGAIN = timedelta(minutes=5)
"""When a claim is tried again whose block has no room, or whose block is late."""
_LAST = timedelta(minutes=30)
"""EC2 ends the machines of a block so long before its end."""
_LEAVING = timedelta(minutes=12)
"""Nodes leave so long before their machines end: a new one would leave as soon as it has come."""
_HINT = "Name another capacity block in the node group."


def check(calls: Calls, reservation_id: str, group: ScalingGroup, now: datetime, *, grows: bool) -> None:
    """Say why the group cannot have a machine of the block now; ``grows``: one more than it wants already.

    ``CapacityAwaited`` for what passes by itself, with the moment of the next look; ``VendorRefused`` for a block that
    never will do."""
    block = _described(calls, reservation_id)
    text = f"capacity block {reservation_id} of {block.get('InstanceType')} in {block.get('AvailabilityZone')}"
    state, ends_at, starts_at = str(block.get("State")), block.get("EndDate"), block.get("StartDate")
    if state in _OVER or (ends_at is not None and ends_at - _LAST - _LEAVING <= now):
        verb = "ended" if ends_at is None or ends_at <= now else "has no machine any more; it ends"
        ending = f"{verb} at {to_text(ends_at)}" if ends_at is not None else f"is {state}"
        raise VendorRefused(f"{text} {ending}", code="CapacityBlockEnded", hint=_HINT)
    if group.zones and block.get("AvailabilityZone") not in group.zones:
        where = ", ".join(group.zones)
        raise VendorRefused(f"{text} is in another zone than the group: {where}", code="CapacityBlockZone", hint=_HINT)
    if starts_at is not None and now < starts_at:
        at = to_text(starts_at)
        raise CapacityAwaited(f"{text} begins at {at}; the claim waits for it.", reason=NOT_STARTED, again_at=at)
    if state != "active":
        again_at = to_text(now + _LOOK_AGAIN)
        raise CapacityAwaited(f"{text} has not begun yet; it is {state}.", reason=NOT_STARTED, again_at=again_at)
    if grows and int(block.get("AvailableInstanceCount", 1)) <= 0:
        count = block.get("TotalInstanceCount")
        detail = f"{text} is exhausted: all of its {count} machines are in use."
        raise CapacityAwaited(detail, reason=EXHAUSTED, again_at=to_text(now + _LOOK_AGAIN))


def machines_end_at(calls: Calls, reservation_id: str) -> str | None:
    """Moment when EC2 ends the machines of the block, RFC 3339; None for one that has no end, or is gone."""
    try:
        ends_at = _described(calls, reservation_id).get("EndDate")
    except VendorRefused:
        return None
    return to_text(ends_at - _LAST) if ends_at is not None else None


def _described(calls: Calls, reservation_id: str) -> Mapping[str, Any]:
    try:
        answer = calls.call("ec2", "describe_capacity_reservations", CapacityReservationIds=[reservation_id])
    except VendorNotFound as error:
        raise VendorRefused(f"there is no capacity block {reservation_id}", code=error.code, hint=_HINT) from error
    for block in answer["CapacityReservations"]:
        return dict(block)
    raise VendorRefused(f"there is no capacity block {reservation_id}", hint=_HINT)
