"""Limits of an account's region on instances, for whoever makes them: callers, fleets, auto scaling groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moto.core.exceptions import ServiceException

ALIVE = frozenset({"pending", "running", "stopping", "stopped"})
_limits: list[Mapping[str, int]] = []


@dataclass
class Outage:
    """The zones that are taken away now, in every account: nothing is launched there, and what runs there ends."""

    zones: frozenset[str] = frozenset()


OUTAGE = Outage()


def take_away(zones: Collection[str]) -> None:
    """Take these zones down from now on, and no others."""
    OUTAGE.zones = frozenset(zones)


@contextmanager
def outage(zones: Collection[str]) -> Iterator[None]:
    """Begins with these zones down, and ends with none."""
    take_away(zones)
    try:
        yield
    finally:
        take_away(())


class InsufficientInstanceCapacity(ServiceException):  # type: ignore[misc]
    """The zone has no more capacity of the type."""

    code = "InsufficientInstanceCapacity"
    message = "We currently do not have sufficient capacity in the Availability Zone you requested."


@contextmanager
def limited(limits: Mapping[str, int]) -> Iterator[None]:
    """While it is open, auto scaling groups find no more instances of a type, or of ``type/zone``, than ``limits``
    says. Below zero: the zone does not offer the type at all."""
    _limits.append(limits)
    try:
        yield
    finally:
        # by identity: two equal ones may be open
        _limits[:] = [mapping for mapping in _limits if mapping is not limits]


def zones_of(backend: Any, kind: str) -> list[str]:
    """The zones of the living instances of a type, one each."""
    return [
        str(instance.placement.zone)
        for reservation in list(backend.reservations.values())
        for instance in reservation.instances
        if instance.instance_type == kind and instance.state in ALIVE
    ]


def shortage(backend: Any, kind: str, zone: str, limits: Mapping[str, int], count: int = 1) -> str:
    """``Unsupported`` or ``InsufficientInstanceCapacity`` when the zone has not that many more; else empty."""
    if zone in OUTAGE.zones:
        return InsufficientInstanceCapacity.code
    zones = zones_of(backend, kind)
    for name, present in ((kind, len(zones)), (f"{kind}/{zone}", zones.count(zone))):
        if limits.get(name, 0) < 0:
            return "Unsupported"
        if name in limits and present + count > limits[name]:
            return "InsufficientInstanceCapacity"
    return ""


def shortage_now(backend: Any, kind: str, zone: str) -> str:
    """The same by all limits that are open."""
    return next((reason for limits in _limits if (reason := shortage(backend, kind, zone, limits))), "")
