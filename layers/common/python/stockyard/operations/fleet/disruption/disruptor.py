"""The passes that let the nodes of clusters go which are empty, out of date, or dearer than they have to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.operations.fleet.pools.passes import Passes
from stockyard.operations.services import Services


class Disruptor(Passes):
    """Looks at the disruption of clusters."""

    kind: ClassVar = ClusterDisruption

    def look(self, services: Services, cluster_id: str, _lease: str | None, /) -> Mapping[str, int]:
        """One step of the disruption of a cluster. Each says itself when the next is due."""
        # Loads all that packs nodes: a run of the schedule only begins such passes.
        from stockyard.operations.fleet.disruption.run import look

        return look(services, cluster_id)
