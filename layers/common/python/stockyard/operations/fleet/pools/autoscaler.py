"""The passes that keep the pools of clusters at the nodes that they are to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from stockyard.domain.pools.records import Pool
from stockyard.operations.fleet.pools.passes import Passes
from stockyard.operations.services import Services

TRIES = 3
"""How often a pass looks at a cluster again whose pools somebody else changed meanwhile."""


class Autoscaler(Passes):
    """Looks at the pools of clusters."""

    kind: ClassVar = Pool

    def look(self, services: Services, cluster_id: str, lease: str | None, /) -> Mapping[str, int]:
        """Look at the pools of a cluster, again when somebody else was first."""
        # Loads all that packs nodes: a run of the schedule only begins such passes.
        from stockyard.operations.fleet.pools.reconcile import Report, reconcile

        total = Report()
        for _ in range(TRIES):
            report = reconcile(services, cluster_id, lease)
            total.created += report.created
            total.given_back += report.given_back
            total.lost += report.lost
            if not report.lost:
                break
        return {
            "claims_created": total.created,
            "claims_given_back": total.given_back,
            "lost": total.lost,
        }
