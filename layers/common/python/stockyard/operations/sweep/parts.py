"""The parts of a cluster in the cloud are compared with what a sweep has listed: what is gone is said on the cluster.

The list of a sweep is there anyway. Only of what it lacks the cloud is asked once more, so that neither a failed read
nor a tag that somebody took away makes anything look gone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stockyard.domain.records import Cluster
from stockyard.domain.values.conditions import Condition
from stockyard.lifecycle import sweeping
from stockyard.lifecycle.change_phases import CHANGE_CLUSTER
from stockyard.lifecycle.procedure import ENSURE
from stockyard.operations.clusters.changes.queue import is_busy
from stockyard.operations.clusters.cloud_work import cloud_work
from stockyard.operations.clusters.nodes import claims_of
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.services import Services
from stockyard.ports import Tagged
from stockyard.ports.clusters import GonePart


def tell_gone_parts(
    services: Services, cluster_id: str, things: Sequence[Tagged], silent_regions: Collection[str]
) -> str | None:
    """Say on a ready cluster which of its parts are gone, as long as they are; what was seen, None for nothing.

    ``things`` are what a sweep of the cluster's account has listed, without the ``silent_regions``. Nothing is said
    while an operation works on the cluster: it makes and removes parts. Raises ``VendorError`` leaves.
    """
    cluster = services.store.get(Cluster, cluster_id)
    driver = services.cluster_drivers.get(cluster.driver) if cluster is not None else None
    if cluster is None or cluster.status != "ready" or driver is None or not driver.looks_at_parts:
        return None
    lines = lines_of(services, cluster.id)
    if is_busy(services, cluster) or any(line.region in silent_regions for line in lines):
        return None
    suspects = sweeping.unlisted(lines, {(thing.kind, thing.vendor_id) for thing in things})
    if suspects:
        # Of machines of claims their claims tell: read only where something is missing, which is seldom.
        machine_ids = {claim.machine_id for claim in claims_of(services, cluster)}
        suspects = [line for line in suspects if line.vendor_id not in machine_ids][: sweeping.MOST_SUSPECTS]
    parts: Sequence[GonePart] = ()
    if suspects:
        _, work = cloud_work(services, cluster, "parts", Fence.of(cluster))
        parts = driver.gone_parts(work, suspects)
    shown_conditions = [_condition(services, cluster, parts)] if parts else []
    conditions.show(services, cluster, shown_conditions, void=() if parts else (sweeping.COMPLETE,))
    return f"misses {', '.join(part.name for part in parts)} of" if parts else None


def _condition(services: Services, cluster: Cluster, parts: Sequence[GonePart]) -> Condition:
    phases = services.procedure(CHANGE_CLUSTER, cluster.driver).phases
    ensured = {phase.name for phase in phases if phase.runs == ENSURE}
    given_parts = [part.name for part in parts if part.is_given]
    own = [part for part in parts if not part.is_given]
    remade = [part.name for part in own if part.line.phase in ensured]
    other_parts = [part.name for part in own if part.line.phase not in ensured]
    return sweeping.incomplete(remade, other_parts, given_parts, services.now())
