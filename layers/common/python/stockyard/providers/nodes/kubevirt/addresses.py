"""Addresses of machines, out of a range of their provider: no two claims have one at a time.

An address is a ``Name`` that its claim owns. The ledger has a line of it before, so that a crash leaves none behind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import islice

from stockyard.domain.records import Name, NodeProvider
from stockyard.errors import Conflict, InsufficientCapacity
from stockyard.ports import Create, Remove, Store
from stockyard.ports.node_work import NodeWork
from stockyard.providers.clouds.kubernetes import ranges
from stockyard.providers.nodes.kubevirt import networks, properties

ADDRESS = "address"
"""The kind of the ledger's line."""
PREFIX = "machine-address"
_TRIES = 20
"""How often another address is tried that somebody has taken a moment ago."""


def address_of(work: NodeWork, store: Store, settings: Mapping[str, str]) -> str | None:
    """The claim's address, of this attempt or of an earlier one; None where the settings want none.

    Raises ``InsufficientCapacity`` where every address is in use.
    """
    if not networks.needs_address(settings):
        return None
    candidates = list(islice(properties.candidates(settings), ranges.MOST_ADDRESSES))
    for line in work.ledger.lines():
        if line.kind == ADDRESS and line.key in candidates and _hold(work, store, line.key):
            if line.state != "made":
                work.ledger.made(line, line.key)
            return line.key
    used = _in_use(store, work.provider)
    free = [each for each in candidates if each not in used]
    # Whoever begins elsewhere than others meets them seldom.
    start = int.from_bytes(hashlib.sha256(work.claim.id.encode()).digest()[:4]) % len(free) if free else 0
    for candidate in [*free[start:], *free[:start]][:_TRIES]:
        line = work.ledger.intend(ADDRESS, candidate)
        if _hold(work, store, candidate):
            work.ledger.made(line, candidate)
            return candidate
        work.ledger.gone(line)
    key = properties.RANGE if settings.get(properties.RANGE) else properties.CIDR
    raise InsufficientCapacity(f"{key}: every address of {settings[key]} is in use.", code="NoFreeAddress")


def release(work: NodeWork, store: Store) -> None:
    """Give the claim's addresses back. Those that somebody else holds stay."""
    for line in work.ledger.lines():
        if line.kind != ADDRESS:
            continue
        holder = store.get(Name, _id(work.provider, line.key))
        if holder is not None and holder.owner == work.claim.id:
            store.commit(Remove(Name, holder.id))
        work.ledger.gone(line)


def _hold(work: NodeWork, store: Store, address: str) -> bool:
    """Whether the claim has the address now."""
    name = Name(_id(work.provider, address), work.claim.id)
    try:
        store.commit(Create(name))
    except Conflict:
        holder = store.get(Name, name.id)
        return holder is not None and holder.owner == work.claim.id
    return True


def _in_use(store: Store, provider: NodeProvider) -> frozenset[str]:
    used: set[str] = set()
    after: str | None = None
    while True:
        page = store.list(Name, prefix=_id(provider, ""), after=after, limit=1000)
        used |= {name.id.rpartition("/")[2] for name in page.items}
        if page.next_id is None:
            return frozenset(used)
        after = page.next_id


def _id(provider: NodeProvider, address: str) -> str:
    return f"{PREFIX}/{provider.id}/{address}"
