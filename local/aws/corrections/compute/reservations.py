"""Capacity reservations and capacity blocks of an account: who may launch into them, and when.

A block has a begin and an end; what runs in it is ended half an hour before that end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.moto_api._internal import mock_random

from local.aws.corrections import pace
from local.aws.corrections.scarcity import ALIVE

BLOCK = "capacity-block"
NOTICE = timedelta(minutes=30)
"""How long before its end the instances of a block are ended."""


class ReservationRefusal(ServiceException):  # type: ignore[misc]
    """A launch that targets a reservation does not fit in it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _exceeded(reason: str) -> ReservationRefusal:
    text = "The requested reservation does not have sufficient compatible and available capacity for this request."
    return ReservationRefusal("ReservationCapacityExceeded", f"{text} {reason}".strip())


@dataclass
class Reservation:
    """One reservation. ``begin`` and ``end`` are of a block, or the end of another that has one."""

    id: str
    kind: str
    zone: str
    count: int
    begin: datetime
    end: datetime | None = None
    is_block: bool = False
    is_paid: bool = True
    is_open: bool = False
    is_cancelled: bool = False
    platform: str = "Linux/UNIX"
    created_at: datetime = field(default_factory=pace.moment)
    instance_ids: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """As EC2 tells it."""
        now = pace.moment()
        if self.is_cancelled:
            return "cancelled"
        if self.end is not None and now >= self.end:
            return "expired"
        if not self.is_paid:
            return "payment-pending"
        if now < self.begin:
            return "scheduled"
        return "active"


class ReservationsBackend(BaseBackend):  # type: ignore[misc]
    """The reservations of one account and region."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.reservations: dict[str, Reservation] = {}
        self.by_token: dict[str, Reservation] = {}

    @property
    def _ec2(self) -> Any:
        return ec2_backends[self.account_id][self.region_name]

    def settle(self) -> None:
        """End what runs in a block whose end is near."""
        for block in self.reservations.values():
            if block.is_block and block.end is not None and pace.moment() >= block.end - NOTICE:
                running = self.running(block)
                if running:
                    self._ec2.terminate_instances(running)

    def running(self, reservation: Reservation) -> list[str]:
        """The ids of the living instances in a reservation."""
        states = {
            instance.id: instance.state
            for group in list(self._ec2.reservations.values())
            for instance in group.instances
            if instance.id in reservation.instance_ids
        }
        return [name for name in reservation.instance_ids if states.get(name) in ALIVE]

    def fitting(self, target: str, kind: str, zone: str, count: int, market: str) -> Reservation:
        """The reservation that a launch targets. Raises ``ServiceException`` when the launch does not fit."""
        reservation = self.named(target)
        if reservation.is_block and market != BLOCK:
            text = "A launch into a capacity block needs the market type capacity-block."
            raise ReservationRefusal("InvalidParameterCombination", text)
        now = pace.moment()
        ends = reservation.end is not None and reservation.is_block and now >= reservation.end - NOTICE
        if reservation.state != "active" or ends:
            raise _exceeded(f"The reservation is {'ending' if ends else reservation.state}.")
        if (reservation.kind, reservation.zone) != (kind, zone):
            raise _exceeded(f"It is of {reservation.kind} in {reservation.zone}.")
        if len(self.running(reservation)) + count > reservation.count:
            raise _exceeded("")
        return reservation

    def open_for(self, kind: str, zone: str, count: int) -> Reservation | None:
        """A reservation that takes a launch which targets none."""
        for reservation in self.reservations.values():
            alike = (reservation.kind, reservation.zone, reservation.state) == (kind, zone, "active")
            if reservation.is_open and alike and len(self.running(reservation)) + count <= reservation.count:
                return reservation
        return None

    def named(self, name: str) -> Reservation:
        """The reservation with that id. Raises ``ServiceException``."""
        if name not in self.reservations:
            if not re.fullmatch(r"cr-[0-9a-f]{8,17}", name):
                raise ReservationRefusal("InvalidCapacityReservationId.Malformed", f"Invalid id: '{name}'")
            text = f"The Capacity Reservation ID '{name}' does not exist"
            raise ReservationRefusal("InvalidCapacityReservationId.NotFound", text)
        return self.reservations[name]

    def document(self, reservation: Reservation) -> dict[str, Any]:
        """Description of a reservation, as EC2 gives it."""
        zones = RegionsAndZonesBackend.zones.get(self.region_name, [])
        state, tags = reservation.state, self._ec2.tags.get(reservation.id, {})
        free = reservation.count - len(self.running(reservation)) if state == "active" else 0
        dates = {"StartDate": reservation.begin} | ({"EndDate": reservation.end} if reservation.end else {})
        return {
            "CapacityReservationId": reservation.id,
            "OwnerId": self.account_id,
            "CapacityReservationArn": (
                f"arn:aws:ec2:{self.region_name}:{self.account_id}:capacity-reservation/{reservation.id}"
            ),
            "InstanceType": reservation.kind,
            "InstancePlatform": reservation.platform,
            "AvailabilityZone": reservation.zone,
            "AvailabilityZoneId": next((zone.zone_id for zone in zones if zone.name == reservation.zone), ""),
            "Tenancy": "default",
            "TotalInstanceCount": reservation.count,
            "AvailableInstanceCount": free,
            "EbsOptimized": False,
            "EphemeralStorage": False,
            "State": state,
            **dates,
            "EndDateType": "limited" if reservation.end else "unlimited",
            "InstanceMatchCriteria": "open" if reservation.is_open else "targeted",
            "CreateDate": reservation.created_at,
            "ReservationType": BLOCK if reservation.is_block else "default",
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }


reservation_backends = BackendDict(ReservationsBackend, "ec2")


def new_block(
    account: str,
    region: str,
    kind: str,
    zone: str,
    count: int,
    begin: datetime,
    end: datetime,
    *,
    name: str = "",
    is_paid: bool = True,
    tags: Mapping[str, str] | None = None,
) -> str:
    """The id of a new capacity block, as one that somebody has bought: ``name``, or a new one."""
    block_id = name or f"cr-{mock_random.get_random_hex(17)}"
    block = Reservation(block_id, kind, zone, count, begin, end, is_block=True, is_paid=is_paid)
    reservation_backends[account][region].reservations[block_id] = block
    ec2_backends[account][region].create_tags([block_id], dict(tags or {}))
    return block_id


def settle(account: str, region: str) -> None:
    """One look at the reservations of that account: what a block's end ends is ended."""
    reservation_backends[account][region].settle()
