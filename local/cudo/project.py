"""Contents of the projects of the simulated Cudo, how they are found, and the planned faults."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.cudo.document import Called
from local.cudo.failure import Failure

ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
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
    """Contents of a project, by ids."""

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


def page(name: str, entries: list[Json], called: Called) -> Json:
    """A page of a list, as the request asks for it."""
    size = int(called.query.get("pageSize", 20))
    number = int(called.query.get("pageNumber", 1))
    part = entries[(number - 1) * size : number * size]
    return {name: part, "pageNumber": number, "pageSize": size, "totalCount": len(entries)}


def stored(records: Mapping[str, Any], called: Called, kind: str) -> Any:
    """Record that the request names. Raises ``Failure`` 404."""
    name = called.path["id"]
    if name not in records:
        raise Failure(404, "NOT_FOUND", f"{kind} '{name}' not found.")
    return records[name]


def check_id(name: str) -> None:
    """Raises ``Failure`` for what is no id."""
    if not ID.fullmatch(name):
        raise Failure(400, "INVALID_ARGUMENT", f"'{name}' is no id.")
