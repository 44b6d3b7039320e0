"""Orphans: everything in an account that carries our tags, and the removal of one such thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.errors import VendorConflict
from stockyard.ports import Tagged
from stockyard.providers.clusters.ec2 import tags
from stockyard.providers.clusters.ec2.calls import Calls
from stockyard.providers.clusters.ec2.kinds import State
from stockyard.providers.clusters.ec2.registry import DELETION_ORDER, GLOBAL, KINDS
from stockyard.providers.clusters.ec2.sessions import Clients


def tagged(clients: Clients, installation: str, tenant: str, regions: Sequence[str]) -> list[Tagged]:
    """What carries all four tags, in an order in which removal succeeds. Things of no region get the first one's."""
    found: list[Tagged] = []
    for index, region in enumerate(regions):
        found += _in_region(Calls(clients, region), installation, tenant, with_global=index == 0)
    return found


def _in_region(calls: Calls, installation: str, tenant: str, *, with_global: bool) -> Iterator[Tagged]:
    for kind in DELETION_ORDER:
        if kind.name in GLOBAL and not with_global:
            continue
        for item in kind.search(calls, tags.ours(installation, tenant), None):
            if tags.RESOURCE in item.tags and tags.GENERATION in item.tags:
                yield Tagged(
                    kind.name,
                    item.vendor_id,
                    calls.region,
                    tenant,
                    item.tags[tags.RESOURCE],
                    item.tags[tags.GENERATION],
                    item.tags.get(tags.SINCE),
                )


def discard(calls: Calls, thing: Tagged) -> bool:
    """Remove one orphan. False while it is still there, also when something still uses it."""
    kind = KINDS[thing.kind]
    wanted = {tags.TENANT: thing.tenant, tags.RESOURCE: thing.resource_id, tags.GENERATION: thing.generation}
    found = kind.search(calls, wanted, None)
    living = {item.vendor_id for item in found if tags.INSTALLATION in item.tags}
    if thing.vendor_id not in living:
        # Gone, or no longer marked as ours: then it is not removed.
        return kind.state(calls, thing.vendor_id) is State.ABSENT
    try:
        kind.delete(calls, thing.vendor_id)
    except VendorConflict:
        return False
    return kind.state(calls, thing.vendor_id) is State.ABSENT
