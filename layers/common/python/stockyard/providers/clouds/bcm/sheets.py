"""Inventory of a head node at a moment, as bytes that a record keeps: hosts, groups, hardware.

Plans and node types make no call: they read the sheet of the last refresh, and say from when it is.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from stockyard.errors import VendorRefused

_FORM = 1


@dataclass(frozen=True, slots=True)
class Host:
    """A device as the inventory had it. ``why_not`` says why Stockyard may not install it; None where it may.
    ``resources`` are quantities by Kubernetes' names, empty where the head node does not tell them."""

    uuid: str
    hostname: str
    why_not: str | None = None
    groups: tuple[str, ...] = ()
    resources: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sheet:
    """``moment`` is when the head node was asked, as records write it. ``groups`` is None where it does not tell its
    groups; ``tells_status``: whether it tells the status of devices."""

    moment: str
    hosts: tuple[Host, ...]
    groups: tuple[str, ...] | None = None
    tells_status: bool = False


def written(sheet: Sheet) -> bytes:
    """The sheet as a record keeps it: compressed, the same for the same sheet."""
    return gzip.compress(json.dumps({"form": _FORM, **asdict(sheet)}, separators=(",", ":")).encode(), mtime=0)


def read(data: bytes) -> Sheet:
    """The sheet that was written. Raises ``VendorRefused`` for one of another form: the next refresh writes it anew."""
    try:
        document = json.loads(gzip.decompress(data))
        if document.pop("form") != _FORM:
            raise ValueError("another form")
        groups = document.pop("groups")
        hosts = tuple(_host(entry) for entry in document.pop("hosts"))
        return Sheet(hosts=hosts, groups=None if groups is None else tuple(groups), **document)
    except (ValueError, KeyError, TypeError, OSError, EOFError, zlib.error) as error:
        raise VendorRefused("what is known of the head node's inventory was written by another release") from error


def _host(entry: Mapping[str, Any]) -> Host:
    return Host(**{**entry, "groups": tuple(entry["groups"])})


def resources_of(system: Mapping[str, Any] | None) -> Mapping[str, str | int]:
    """Quantities of a device's hardware by Kubernetes' names; empty where cores or memory are not told.

    The names of these fields are not public: each is looked for by those that it may have, memory and disks in bytes.
    """
    if system is None:
        return {}
    cores = _number(system, ("cores", "cpuCores", "numberOfCores", "vcpus"))
    memory = _number(system, ("memory", "memoryTotal", "totalMemory"))
    if not cores or not memory:
        return {}
    disk = _number(system, ("disk", "diskTotal", "totalDisk"))
    gpus = system.get("gpus")
    return {
        "cpu": cores,
        "memory": f"{memory // 2**20}Mi",
        **({"ephemeral-storage": f"{disk // 2**30}Gi"} if disk else {}),
        **({"nvidia.com/gpu": len(gpus)} if isinstance(gpus, Sequence) and gpus and not isinstance(gpus, str) else {}),
    }


def _number(system: Mapping[str, Any], names: Sequence[str]) -> int:
    values = (system.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)
