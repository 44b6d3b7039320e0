"""The pools of a cluster become what a change of it wants, and the operation follows them node by node.

Nodes that are not as they are to be have drifted. They are replaced as drifted nodes always are: one decision after the
other, within the budgets of their pools. An operation that is stopped leaves its cluster degraded, where nothing is
decided: the replacing stops between two nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import GROUP, Pool
from stockyard.domain.records import Cluster, NodeClaim, Operation
from stockyard.lifecycle.clusters.cluster_changes import changed_groups
from stockyard.lifecycle.clusters.repave import REPAVE
from stockyard.lifecycle.pools.replacing import Progress, progress_of
from stockyard.operations.engine.watch import watch
from stockyard.operations.fleet.disruption.pause import paused_by
from stockyard.operations.fleet.pools.follow import LOOK_AGAIN, follow_settings
from stockyard.operations.fleet.pools.leaving import stale_claims
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.machines.attention import attend
from stockyard.operations.node_claims.drift import MOST, compare_pool
from stockyard.operations.services import Services
from stockyard.ports import Outcome

NAMED_POOLS = 3
ATTEND_SECONDS = 600


def pools_replaced(services: Services, cluster: Cluster, operation: Operation) -> Outcome:
    """Let the pools become what the settings say, then wait until those that the operation changes are so."""
    outcome = follow_settings(services, cluster)
    if not outcome.done:
        return outcome
    pools = [
        (pool, claims_of(services, cluster.id, pool.name)) for pool in _pools_of_change(services, cluster, operation)
    ]
    progress = [(pool, claims, _progress(cluster, pool, claims)) for pool, claims in pools]
    lacking = [(pool, claims, each) for pool, claims, each in progress if not each.done]
    if not lacking:
        return outcome
    for pool, claims, _ in lacking:
        # No record of a pool tells that nodes made before a moment are out of date: nothing else would look at them.
        compare_pool(services, pool, claims, MOST, max(cluster.nodes_since, pool.nodes_since))
    # Nothing leaves a cluster that is not known well, and an agent that is not asked to comes seldom.
    attend(services, cluster.id, ATTEND_SECONDS)
    watch(services, cluster.id, begin=True)
    text = ". ".join(each.text() for _, _, each in lacking[:NAMED_POOLS])
    more = f" And {len(lacking) - NAMED_POOLS} pools more." if len(lacking) > NAMED_POOLS else ""
    return Outcome(False, f"{text}.{more}{_pause(services, cluster)}", wait_seconds=LOOK_AGAIN)


def _progress(cluster: Cluster, pool: Pool, claims: Sequence[NodeClaim]) -> Progress:
    return progress_of(pool, claims, {claim.id for claim in stale_claims(cluster, pool, claims)})


def _pools_of_change(services: Services, cluster: Cluster, operation: Operation) -> Iterator[Pool]:
    names = changed_groups(operation, cluster)
    repaves = any(change["pointer"] == REPAVE for change in operation.changes)
    everywhere = repaves or cluster.nodes_since >= operation.created_at
    for pool in pools_of(services, cluster.id):
        if not pool.deleting and (everywhere or (pool.form == GROUP and pool.name in names)):
            yield pool


def _pause(services: Services, cluster: Cluster) -> str:
    by = paused_by(services, services.store.get(ClusterDisruption, cluster.id))
    return f" Nothing is replaced: {by}." if by else ""
