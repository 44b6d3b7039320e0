"""What stands in the projects of the simulated Cudo, and the faults that are planned for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]


@dataclass
class Machine:
    """A machine. ``ready_at`` is when it is on, ``gone_at`` when it is no more."""

    body: Json
    made_at: datetime
    ready_at: datetime
    number: int
    fails: bool = False
    power: str = "ACTIVE"
    expires_at: datetime | None = None
    gone_at: datetime | None = None


@dataclass
class StoredDisk:
    """A storage disk; ``vm_id`` is the machine that it is on."""

    body: Json
    ready_at: datetime
    fails: bool = False
    vm_id: str = ""


@dataclass
class StoredNetwork:
    """A private network, with the machine that routes for it."""

    body: Json
    ready_at: datetime
    fails: bool = False


@dataclass
class Project:
    """What is in a project, by ids."""

    machines: dict[str, Machine] = field(default_factory=dict)
    networks: dict[str, StoredNetwork] = field(default_factory=dict)
    disks: dict[str, StoredDisk] = field(default_factory=dict)
    groups: dict[str, Json] = field(default_factory=dict)


@dataclass
class Plan:
    """Faults: by operation, how many of the next calls answer 503 or 429, or fail when they come to be."""

    unavailable: Counter[str] = field(default_factory=Counter)
    throttled: Counter[str] = field(default_factory=Counter)
    failing: Counter[str] = field(default_factory=Counter)
    """``CreateVM``, ``CreateStorageDisk`` and ``CreateNetwork``: it becomes ``FAILED``."""
