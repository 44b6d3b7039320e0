"""The one disk of a node: what of it pods may have, and what that makes of node types and requests.

A catalogue knows types, and no disks: it counts the usual size. A pool that names another has nodes with that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.nodes.properties import ROOT_DISK
from stockyard.domain.values.quantities import milli, resource_text

STORAGE = "ephemeral-storage"
USUAL_GIB = 50
"""The size of a node's disk unless its pool names another."""
KUBELET_GIB, FREE = 1, 0.1
"""What a kubelet has for itself, and the part that it keeps free."""
_GIB = 2**30 * 1000
"""In thousandths of a byte, as resources are counted."""
_MOST_DIGITS = 6


def kept_gib(disk_gib: int) -> int:
    """GiB of a node's disk that pods cannot have."""
    return KUBELET_GIB + math.ceil(disk_gib * FREE)


def with_disk(node_type: NodeType, properties: Mapping[str, str]) -> NodeType:
    """The type as it is with the disk that a pool's or claim's properties name, at the price of that disk."""
    disk = _disk_gib(properties)
    if disk is not None and node_type.disk_gib:
        node_type = replace(node_type, disk_gib=disk)
    if disk is None or STORAGE not in node_type.capacity:
        return node_type
    capacity = {**node_type.capacity, STORAGE: disk * _GIB}
    allocatable = {**node_type.allocatable, STORAGE: _for_pods(disk)}
    return replace(node_type, capacity=MappingProxyType(capacity), allocatable=MappingProxyType(allocatable))


def price_with_disk(usd_hour: float | None, node_type: NodeType, properties: Mapping[str, str]) -> float | None:
    """The price of a node of the catalogue's type with the disk that a pool's or claim's properties name."""
    before, after = node_type.disk_usd_hour, with_disk(node_type, properties).disk_usd_hour
    return None if usd_hour is None or before is None or after is None else usd_hour - before + after


def of_catalogue(resources: Mapping[str, str], properties: Mapping[str, str]) -> Mapping[str, str]:
    """Requests of a claim to types that are counted with the usual disk: as much less as its own disk has more.

    Raises ``ValueError`` for a quantity that cannot be read.
    """
    disk = _disk_gib(properties)
    if disk is None or STORAGE not in resources:
        return resources
    amount = milli(resources[STORAGE]) - (_for_pods(disk) - _for_pods(USUAL_GIB))
    remaining = {name: quantity for name, quantity in resources.items() if name != STORAGE}
    return {**remaining, STORAGE: resource_text(STORAGE, amount)} if amount > 0 else remaining


def _for_pods(disk_gib: int) -> int:
    return (disk_gib - kept_gib(disk_gib)) * _GIB


def _disk_gib(properties: Mapping[str, str]) -> int | None:
    """The size that is named; None for none, and for a text that is no size, which the launch refuses."""
    text = properties.get(ROOT_DISK, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
