"""The ways to get a control plane's machine, each type in each zone, and which of them EC2 has refused a moment ago.

A refusal is a line of the ledger, so that a worker that takes over from one that died goes on with the next way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.errors import InsufficientCapacity, VendorError
from stockyard.providers.clouds.aws.errors import scarcity
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.kinds.base import REFUSED_CAPACITY
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import control_plane_types, control_plane_zones
from stockyard.providers.clusters.ec2.members import etcd_volume
from stockyard.providers.clusters.ec2.network import network

_OTHERS_MAY_DO = frozenset({"Unsupported", "InvalidInstanceType"})
"""Codes of refusals that hold for a type or a zone, besides those of what is scarce: the type is not offered there."""


@dataclass(frozen=True, slots=True)
class MachineOption:
    """One type in one subnet."""

    type: str
    subnet: str
    zone: str

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> MachineOption:
        """The way that a machine's ledger line has. Those of an earlier release have no subnet and no zone."""
        return cls(str(detail["type"]), str(detail.get("subnet") or ""), str(detail.get("zone") or ""))

    @property
    def key(self) -> str:
        """Name of the way on the ledger and for people."""
        return f"{self.type}/{self.zone}"


def remaining(builder: Builder) -> list[MachineOption]:
    """The ways that were not refused, in order: the first type in each zone, then the next one."""
    keys = {line.key for line in builder.work.ledger.lines() if line.kind == REFUSED_CAPACITY.name}
    volume = builder.work.ledger.find(ec2_kinds.VOLUME.name, etcd_volume.KEY)
    # A volume cannot leave its zone, and what is on it makes the next machine the same cluster.
    zones = [str(volume.detail["zone"])] if volume is not None else control_plane_zones(builder.work.cluster.settings)
    subnet_zones = [subnet_zone for subnet_zone in network.of(builder).places if not zones or subnet_zone[1] in zones]
    every = [
        MachineOption(name, *subnet_zone)
        for name in control_plane_types(builder.work.cluster)
        for subnet_zone in subnet_zones
    ]
    return [option for option in every if option.key not in keys]


def may_do_elsewhere(error: VendorError) -> bool:
    """Whether another type or zone may do where this error was the answer."""
    if isinstance(error, InsufficientCapacity) or error.code in _OTHERS_MAY_DO:
        return True
    return scarcity(error.code, error.detail) is not None


def refuse(builder: Builder, option: MachineOption, reason: str) -> None:
    """Remember that EC2 has none of it."""
    ledger = builder.work.ledger
    line = ledger.intend(REFUSED_CAPACITY.name, option.key, {"reason": reason})
    if line.state != "made":
        ledger.made(line, option.key)


def forget(builder: Builder) -> None:
    """Forget what was refused: the machine is there, or all ways were tried and a later round begins anew."""
    for line in builder.work.ledger.lines():
        if line.kind == REFUSED_CAPACITY.name:
            builder.work.ledger.gone(line)
