"""The tags of a ready cluster are put on what stands in the cloud for it, after they were changed."""

from __future__ import annotations

import math
from contextlib import suppress

from stockyard.domain.records import Cluster, Operation, TagChange
from stockyard.errors import Conflict, IllegalTransition, PermissionDenied
from stockyard.lifecycle.change import Change
from stockyard.lifecycle.clusters.cluster import MOVES
from stockyard.lifecycle.clusters.cluster_changes import is_unfinished
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.lifecycle.phases import RETAG_CLUSTER
from stockyard.operations.clusters.changes.start_change import start_change
from stockyard.operations.clusters.nodes import claims_of
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence, Loaded, advance
from stockyard.operations.engine.step import HIDDEN_WAIT
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver, Outcome

MOST_WAIT = 60
"""Seconds until the next look, at most."""


def retag(services: Services, driver: ClusterDriver, work: CloudWork) -> Outcome:
    """Look at all that stands in the cloud, and give it the cluster's tags.

    Not done while a worker that read the earlier tags may still make a machine: then all is looked at once more.
    """
    change = work.cluster.tag_change
    if change is None or not driver.retags:
        return Outcome(True, "Nothing in the cloud carries the cluster's tags.", facts={"skipped": "true"})
    # Asked before the look: what is made until then is seen by it.
    seconds_left = _seconds_in_flight(services, work.cluster, change)
    try:
        outcome = driver.retag(work, change.stale_keys)
    except PermissionDenied as denied:
        # The right hangs on tags of ours, which the cloud may not know everywhere yet where a machine is new.
        if services.seconds_since(change.time) >= services.settings.visibility_seconds:
            raise
        return Outcome(False, denied.detail, wait_seconds=HIDDEN_WAIT)
    if not outcome.done or not seconds_left:
        return outcome
    text = f"{outcome.message} What was being made when they changed is looked at again."
    return Outcome(False, text, wait_seconds=min(seconds_left, MOST_WAIT))


def _seconds_in_flight(services: Services, cluster: Cluster, change: TagChange) -> int:
    """Seconds in which a worker that read the tags before the change may still make a machine; 0 when none can."""
    age, in_flight = services.seconds_since(change.time), services.settings.in_flight_seconds
    if age >= in_flight:
        return 0
    for claim in claims_of(services, cluster):
        recent = services.seconds_since(claim.updated_at) < age + in_flight
        if claim.placement is not None and (claim.phase == PENDING or recent):
            return math.ceil(in_flight - age)
    return 0


def end_retag(services: Services, fence: Fence[Cluster], loaded: Loaded[Cluster], outcome: Outcome) -> Outcome:
    """The operation ends, unless the tags were changed again since they were read: then it goes on with those."""
    change = loaded[0].tag_change

    def decide(cluster: Cluster, operation: Operation) -> Change[Cluster] | None:
        return MOVES.end_retag(cluster, operation, change, outcome.message, services.now())

    cluster = advance(services, fence, decide, loaded=loaded)
    if cluster.tag_change is None:
        return outcome
    return Outcome(False, "The tags were changed again.", wait_seconds=1)


def start_if_due(services: Services, cluster: Cluster) -> bool:
    """Begin with tags that were changed while something else worked on the cluster. True when it has begun.

    What has failed with these tags is not tried again by itself: a person has to do something about it first.
    """
    change = cluster.tag_change
    if change is None or cluster.status != "ready":
        return False
    current = services.store.get(Operation, cluster.operation_id or "")
    if current is not None:
        failed = current.kind == RETAG_CLUSTER and current.created_at >= change.time
        if failed or current.status == "running" or is_unfinished(current):
            return False
    with suppress(Conflict, IllegalTransition):  # Another worker or a person was first.
        start_change(services, cluster.id, RETAG_CLUSTER, WORKFLOW_ACTOR)
        return True
    return False
