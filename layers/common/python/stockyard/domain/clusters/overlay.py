"""The overlay of a cluster: who is in it, at which address, and what is given out again when.

All of it is one document, ``Table``, which is changed as a whole: two machines that ask at once never get one address.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Any

from stockyard.domain.values import times
from stockyard.domain.values.frozen import dataclass

SETTING = "overlay"
"""The setting of a cluster that has one."""
DEFAULT_RANGE = "100.64.0.0/16"
"""Of the addresses between providers and their customers, which no cloud's networks use."""
LEAST_PREFIX, MOST_PREFIX = 12, 20
PORT = 51820
"""The UDP port of every machine, and of the first hub for those outside; each other hub has one of the next."""
HUBS = 8
"""How many members a control plane may have at a time: five, and those that take their places."""
REST_SPAN = timedelta(hours=24)
"""How long an address is not given out again: what had it may be known somewhere."""
MOST_PEERS = 2_000
"""Machines of an overlay. Of the list in the cluster each has 256 bytes at most, so that twice as many would stay below
a ConfigMap's 1 MiB; the table of a cluster is one record, and comes first."""
MOST_BYTES = 340_000
"""Of the table as text, with the addresses that rest: a record may have 350,000."""
CONFIG_MAP = "overlay"
"""The name of the list in the cluster."""


class Full(Exception):
    """No address, or no slot of a hub, is left."""


@dataclass(frozen=True, slots=True)
class Table:
    """``peers``: owner (a claim, or the cluster for its first machine) -> ``address``, ``key``, and of hubs ``slot``
    and ``local``, the address in their own network. ``released``: address -> when it was given back. ``number``: where
    the search for the next address begins."""

    peers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    released: Mapping[str, str] = field(default_factory=dict)
    number: int = 1

    @classmethod
    def read(cls, text: str | None) -> Table:
        """The table of a record; an empty one where there is none."""
        return cls(**json.loads(text)) if text else cls()

    def text(self) -> str:
        """As a record keeps it."""
        document = {"peers": self.peers, "released": self.released, "number": self.number}
        return json.dumps(document, sort_keys=True, separators=(",", ":"))

    def version(self) -> str:
        """Another one for each other list of machines."""
        return hashlib.sha256(json.dumps(self.peers, sort_keys=True).encode()).hexdigest()[:16]


def range_of(settings: Mapping[str, Any]) -> str | None:
    """The range of the cluster's overlay; None for a cluster without one."""
    overlay = settings.get(SETTING)
    return str(overlay["range"]) if overlay else None


def admitted(
    table: Table, span: str, owner: str, key: str, now: datetime, *, local: str | None = None, hub: bool = False
) -> Table:
    """The table with the owner's machine in it, at the address that the owner has already, else at a new one. ``Full``
    where there is none."""
    free = {address: at for address, at in table.released.items() if times.from_text(at) + REST_SPAN > now}
    peer: dict[str, Any] = dict(table.peers.get(owner, {}))
    number = table.number
    if not peer:
        if len(table.peers) >= MOST_PEERS:
            raise Full(f"An overlay has at most {MOST_PEERS} machines.")
        used_addresses = {str(other["address"]) for other in table.peers.values()} | free.keys()
        peer["address"], number = _next(span, used_addresses, table.number)
    peer["key"] = key
    # A machine that is in it already is let in anew whatever rests.
    if owner not in table.peers and len(replace(table, released=free).text()) > MOST_BYTES:
        raise Full("Too many machines came and went within a day: their addresses fill the overlay's table.")
    if hub:
        slots = {other.get("slot") for name, other in table.peers.items() if name != owner}
        slot = peer.get("slot", next((slot for slot in range(HUBS) if slot not in slots), None))
        if slot is None:
            raise Full(f"A control plane has at most {HUBS} hubs at a time.")
        peer |= {"slot": slot, "local": local}
    return replace(table, peers={**table.peers, owner: peer}, released=free, number=number)


def _next(span: str, used_addresses: set[str], number: int) -> tuple[str, int]:
    """The first address of the lower half from a number on that nobody has; the upper half stands for direct paths."""
    lower = next(ipaddress.IPv4Network(span).subnets(1))
    most = lower.num_addresses - 1
    for step in range(most):
        candidate = (number - 1 + step) % most + 1
        address = str(lower.network_address + candidate)
        if address not in used_addresses:
            return address, candidate % most + 1
    raise Full(f"All addresses of {lower} are used, or were less than {REST_SPAN} ago.")


def released(table: Table, owner: str, now: datetime) -> Table:
    """The table without the owner's machine, whose address rests."""
    peer = table.peers.get(owner)
    if peer is None:
        return table
    peers = {name: other for name, other in table.peers.items() if name != owner}
    return replace(table, peers=peers, released={**table.released, str(peer["address"]): times.to_text(now)})


def entries(table: Table, host: str) -> list[dict[str, Any]]:
    """Rows of the list, as machines read them. ``host`` is where those outside reach hubs: each by a port of its own.
    A hub's own network comes first: who is in it, gets there for nothing."""
    rows = []
    for peer in table.peers.values():
        row: dict[str, Any] = {"address": peer["address"], "key": peer["key"]}
        if "slot" in peer:
            local_endpoints = [f"{peer['local']}:{PORT}"] if peer.get("local") else []
            row |= {"hub": True, "endpoints": [*local_endpoints, f"{host}:{PORT + int(peer['slot'])}"]}
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["address"]))
