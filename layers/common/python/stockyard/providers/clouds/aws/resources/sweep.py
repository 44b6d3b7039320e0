"""Orphans: everything in an account that carries our tags, and the removal of one such thing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from stockyard import side_by_side
from stockyard.errors import VendorConflict, VendorError
from stockyard.ports import LedgerThings, Skipped, Tagged
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls, ListingCalls
from stockyard.providers.clouds.aws.kinds.base import State
from stockyard.providers.clouds.aws.kinds.registry import DELETION_ORDER, GLOBAL, INNER, KINDS
from stockyard.providers.clouds.aws.sessions import Clients

NOTHING = LedgerThings({})


def tagged(
    clients: Clients,
    installation: str,
    tenant: str,
    regions: Sequence[str],
    skipped: Skipped | None = None,
    ledger: LedgerThings = NOTHING,
) -> list[Tagged]:
    """Things with all four tags, in an order in which removal succeeds. Things of no region get the first one's.

    What is on the ``ledger`` is not asked for; see ``ports.clouds.ListsByLedger``. A region that fails is told to
    ``skipped`` and left out as a whole; see ``ports.Cloud.tagged``.
    """
    things: list[Tagged] = []
    failed: dict[str, VendorError] = {}
    for region in regions:
        try:
            first = len(failed) == regions.index(region)
            calls = ListingCalls(clients, region, ledger, tags.of_tenant(installation, tenant))
            things += _in_region(calls, installation, tenant, with_global=first)
        except VendorError as error:
            if skipped is None:
                raise
            failed[region] = error
    if failed and len(failed) == len(regions):
        # No region's fault then, but the account's.
        raise failed[regions[0]]
    for region, reason in failed.items():
        if skipped is not None:
            skipped(region, reason)
    return things


def _in_region(calls: Calls, installation: str, tenant: str, *, with_global: bool) -> list[Tagged]:
    required_tags = tags.of_tenant(installation, tenant)
    kinds = [kind for kind in DELETION_ORDER if with_global or kind.name not in GLOBAL]
    # Inner kinds come last: by then what they stand in has been listed, and none waits for another one's list.
    order = sorted(range(len(kinds)), key=lambda at: kinds[at].name in INNER)
    works = [partial(kinds[at].tagged, calls, required_tags) for at in order]
    listed = dict(zip(order, side_by_side.results(works), strict=True))
    return [
        Tagged(
            kind.name,
            item.vendor_id,
            calls.region,
            tenant,
            item.tags[tags.RESOURCE],
            item.tags[tags.GENERATION],
            item.tags.get(tags.SINCE),
        )
        for at, kind in enumerate(kinds)
        for item in listed[at]
        if tags.RESOURCE in item.tags and tags.GENERATION in item.tags
    ]


def discard(calls: Calls, thing: Tagged) -> bool:
    """Remove one orphan. False while it is still there, also when something still uses it."""
    kind = KINDS[thing.kind]
    required_tags = {tags.TENANT: thing.tenant, tags.RESOURCE: thing.resource_id, tags.GENERATION: thing.generation}
    matches = kind.search(calls, required_tags, None)
    living = {item.vendor_id for item in matches if tags.INSTALLATION in item.tags}
    if thing.vendor_id not in living:
        # Gone, or no longer marked as ours: then it is not removed.
        return kind.state(calls, thing.vendor_id) is State.ABSENT
    try:
        kind.delete(calls, thing.vendor_id)
    except VendorConflict:
        return False
    return kind.state(calls, thing.vendor_id) is State.ABSENT
