"""Machines of a cluster's overlay: who joins gets an address, whose claim ends gives it back, and the list of all.

The table is one fact of the cluster, guarded by its version. A second one has its version alone, and is read with the
other facts of each post of the agent: the table itself is read only when the agent has an older one.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from dataclasses import field
from typing import Any

from stockyard.domain.clusters import overlay
from stockyard.domain.clusters.overlay import Table
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict, InvalidInput, RequestInProgress
from stockyard.operations.engine.advance import until_written
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Put, Replace, Write

TABLE = "overlay"
"""The cluster's fact of its overlay's machines."""
VERSION = "observed-overlay"
"""The cluster's fact of the version of that. It begins as that of the agent's last post does: one query reads both."""
KEY_NEEDED = "is needed: the cluster has an overlay"


@dataclass(frozen=True, slots=True)
class OverlayConfiguration:
    """Configuration of a machine in the overlay of its cluster: its address, and the hubs that it begins with."""

    address: str
    range: str
    hub: bool
    peers: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OverlayList:
    """All machines of an overlay, as the agent writes them into the cluster."""

    version: str
    peers: list[dict[str, Any]]


def admit(
    services: Services, cluster: Cluster, owner: str, key: str | None, *, local: str | None = None, hub: bool = False
) -> OverlayConfiguration | None:
    """Give the owner's machine its address; None where the cluster has no overlay. The same one whenever it asks.

    ``InvalidInput`` without a key, ``RequestInProgress`` where no address is left or others have changed the table too
    often.
    """
    span = overlay.range_of(cluster.settings)
    if span is None:
        return None
    if key is None:
        raise InvalidInput.at("/overlay_key", KEY_NEEDED)
    now = services.clock.now()
    try:
        table = _change(
            services, cluster, lambda table: overlay.admitted(table, span, owner, key, now, local=local, hub=hub)
        )
    except overlay.Full as full:
        raise RequestInProgress(str(full), retry_after=60) from full
    except Conflict as conflict:
        raise RequestInProgress("Many machines ask for addresses at once.", retry_after=2) from conflict
    own = str(table.peers[owner]["address"])
    hubs = [row for row in overlay.entries(table, host_of(cluster)) if row.get("hub") and row["address"] != own]
    return OverlayConfiguration(own, span, hub, hubs)


def release(services: Services, cluster: Cluster | None, owner: str) -> None:
    """Take the owner's machine out: nobody is told of it any more, and its address rests. Nothing happens where it is
    not in. Raises ``Conflict`` when others have changed the table too often."""
    if cluster is None or overlay.range_of(cluster.settings) is None:
        return
    now = services.clock.now()
    _change(services, cluster, lambda table: overlay.released(table, owner, now))


@until_written("overlay changes too often")
def _change(services: Services, cluster: Cluster, change: Callable[[Table], Table]) -> Table:
    fact = services.store.get(Fact, f"{cluster.id}/{TABLE}")
    before = Table.read(fact.value if fact is not None else None)
    table = change(before)
    if table == before:
        return table
    now = services.now()
    if fact is None:
        write: Write = Create(Fact(f"{cluster.id}/{TABLE}", table.text(), now))
    else:
        write = Replace(Fact(fact.id, table.text(), now, version=fact.version + 1))
    # What is written for a cluster that is gone would stay for ever.
    services.store.commit(
        write, Put(Fact(f"{cluster.id}/{VERSION}", table.version(), now)), Check(Cluster, cluster.id, {})
    )
    return table


def news(services: Services, cluster: Cluster, version: Fact | None, have: str | None) -> OverlayList | None:
    """The list for an agent that has written another version of it than there is; None where it has the newest
    (``have``), and without an overlay."""
    if version is None or version.value == have or overlay.range_of(cluster.settings) is None:
        return None
    fact = services.store.get(Fact, f"{cluster.id}/{TABLE}")
    table = Table.read(fact.value if fact is not None else None)
    return OverlayList(table.version(), overlay.entries(table, host_of(cluster)))


def hub_slots(services: Services, cluster: Cluster) -> dict[str, int]:
    """Slot of each hub, by its machine's id; empty for a cluster without an overlay."""
    if overlay.range_of(cluster.settings) is None:
        return {}
    fact = services.store.get(Fact, f"{cluster.id}/{TABLE}")
    slots: dict[str, int] = {}
    for owner, peer in Table.read(fact.value if fact is not None else None).peers.items():
        claim = services.store.get(NodeClaim, owner) if "slot" in peer and owner != cluster.id else None
        machine_id = cluster.instance_id if owner == cluster.id else claim.machine_id if claim is not None else None
        if "slot" in peer and machine_id:
            slots[machine_id] = int(peer["slot"])
    return slots


def hub_addresses(configuration: OverlayConfiguration) -> list[str]:
    """Addresses at which a machine finds the control plane."""
    return [str(row["address"]) for row in configuration.peers]


def host_of(cluster: Cluster) -> str:
    """Host of the cluster's endpoint, before which its hubs are."""
    return urllib.parse.urlsplit(cluster.endpoint or "").hostname or ""
