"""Looks at machines that are waited for: one question to EC2 answers for all machines of a cluster, for a while.

A thousand nodes that boot would otherwise use up what an account may ask, and the tenant's own tools with them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from stockyard.ports.node_work import Machine
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.kinds import ec2 as ec2_kinds
from stockyard.providers.clouds.aws.resources.making import Reconciler
from stockyard.providers.nodes.ec2 import machine

SECONDS = 60
"""How long an answer is used."""
MOST_CLUSTERS = 32


@dataclass(frozen=True, slots=True)
class Listing:
    """The machines of one cluster by id, as EC2 described them at ``moment``."""

    moment: datetime
    items: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class Looks:
    """The listings of one process, by tenant and cluster."""

    _listings: OrderedDict[tuple[str, str, str], Listing] = field(default_factory=OrderedDict)

    def glance(self, reconciler: Reconciler) -> Machine:
        """The claim's machine as it was within the last minute.

        One that the listing does not have is young, or is asked for by itself: a list may be late, and that a machine
        is gone must not rest on it.
        """
        line = reconciler.ledger.find(ec2_kinds.INSTANCE.name, machine.KEY)
        if line is None or line.state != "made":
            return Machine("absent")
        item = self._listing(reconciler).items.get(line.vendor_id)
        if item is not None:
            return machine.described_machine(line.vendor_id, item)
        return Machine("starting", line.vendor_id) if reconciler.recent(line.made_at) else machine.look(reconciler)

    def _listing(self, reconciler: Reconciler) -> Listing:
        owner = reconciler.owner
        key = (owner.tenant, reconciler.calls.region, owner.client_id)
        listing = self._listings.get(key)
        if listing is None or not 0 <= (reconciler.now - listing.moment).total_seconds() < SECONDS:
            listing = self._listings[key] = Listing(reconciler.now, _described(reconciler))
            while len(self._listings) > MOST_CLUSTERS:
                self._listings.popitem(last=False)
        self._listings.move_to_end(key)
        return listing


def _described(reconciler: Reconciler) -> dict[str, Mapping[str, Any]]:
    cluster_tags = tags.of_cluster(reconciler.owner)
    filters = tags.filters(cluster_tags)
    reservations = reconciler.calls.pages("ec2", "describe_instances", "Reservations", Filters=filters)
    return {str(item["InstanceId"]): item for reservation in reservations for item in reservation["Instances"]}
