"""The members of a control plane are looked at: what is wrong with one is said on its claim and on the cluster, and one
that has been unhealthy for too long is replaced, as one that is gone is.

The sweep looks, and so does whoever hears what the cluster's agent tells of nodes that are ready no more. Of what
nobody knows the best is assumed: no machine is ended for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stockyard.domain.records import Cluster, NodeClaim
from stockyard.errors import Conflict
from stockyard.lifecycle.clusters.member_health import MARKED, Sight, completeness, failing, noted, summary, unmarked
from stockyard.lifecycle.nodes.node_claim import AVAILABLE
from stockyard.operations.clusters.cloud_work import cloud_work
from stockyard.operations.clusters.healing.completion import complete_members
from stockyard.operations.clusters.members.members import ControlPlane, member_claims, node_of_member, wanted_size
from stockyard.operations.engine.advance import WORKFLOW_ACTOR, Fence
from stockyard.operations.engine.tell import tell
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.machines.attention import report_age
from stockyard.operations.machines.observe import silence_seconds
from stockyard.operations.machines.pending_pods import pod_state_of
from stockyard.operations.services import Services
from stockyard.ports import Replace
from stockyard.ports.clusters import DRAINING, GONE, HEALTHY


def attend_members(services: Services, cluster_id: str) -> str | None:
    """Look at the members of a ready cluster, if it has several; what has begun, None for nothing."""
    cluster = services.store.get(Cluster, cluster_id)
    driver = services.cluster_drivers.get(cluster.driver) if cluster is not None else None
    balancer = driver.balancer if driver is not None else None
    if cluster is None or cluster.status != "ready" or balancer is None:
        return None
    claims = member_claims(services, cluster.id)
    if len(claims) < 2:
        return None
    _, work = cloud_work(services, cluster, "members", Fence.of(cluster))
    targets = balancer.targets(work, [claim.machine_id for claim in claims if claim.machine_id])
    nodes = _nodes(services, cluster)
    observed_claims = [_observed_claim(services, claim, targets.get(claim.machine_id, ""), nodes) for claim in claims]
    gone_ids = {claim.id for claim in claims if targets.get(claim.machine_id) == GONE}
    size, now = wanted_size(cluster), services.now()
    shown_conditions = [
        summary(observed_claims, now, size, gone_ids),
        completeness(observed_claims, now, size, gone_ids),
    ]
    conditions.show(services, cluster, shown_conditions)
    sick = failing(observed_claims, services.settings.unhealthy_member_seconds, services.now())
    if sick and ControlPlane(services, balancer, work).replaces_failing():
        return "replacing a member" if complete_members(services, cluster.id, sick) else None
    return None


def tag_members(services: Services, cluster_id: str) -> str | None:
    """Give the members of a ready cluster the mark that an earlier release did not give, and write on the cluster the
    obstacle if there is one. Nothing is said of what is as it should be."""
    cluster = services.store.get(Cluster, cluster_id)
    driver = services.cluster_drivers.get(cluster.driver) if cluster is not None else None
    if cluster is None or cluster.status != "ready" or driver is None or not driver.tags_members:
        return None
    machine_ids = [claim.machine_id for claim in member_claims(services, cluster.id) if claim.machine_id]
    if machine_ids:
        _, work = cloud_work(services, cluster, "members", Fence.of(cluster))
        lack = driver.tag_members(work, machine_ids)
        shown_conditions = [unmarked(lack, services.now())] if lack else []
        conditions.show(services, cluster, shown_conditions, void=() if lack else (MARKED,))
    return None


def _nodes(services: Services, cluster: Cluster) -> Mapping[str, Any]:
    """The facts of the cluster's nodes as its agent told them; none where it has been silent for long."""
    age = report_age(services, cluster.id, services.clock.now())
    report = pod_state_of(services, cluster.id) if age is not None and age < silence_seconds(services) else None
    return (report[1].get("nodes") or {}) if report is not None else {}


def _observed_claim(services: Services, claim: NodeClaim, state: str, nodes: Mapping[str, Any]) -> NodeClaim:
    """The claim with the latest observation of its member, written if something is new. Of one that comes or goes, or
    that the balancer does not send to, nothing is said."""
    if claim.phase != AVAILABLE or claim.deleting or state in ("", DRAINING, GONE):
        return claim
    facts = nodes.get(node_of_member(claim))
    ready = facts is None or facts["ready"] == "True"
    news = noted(claim, Sight(state == HEALTHY, ready, _since(facts)), services.now())
    if news is None:
        return claim
    changed = replace(news[0], sequence=claim.sequence + 1)
    with suppress(Conflict):
        services.store.commit(Replace(changed), *tell(services, WORKFLOW_ACTOR, changed, news[1]))
        return changed
    return claim


def _since(facts: Mapping[str, Any] | None) -> str:
    return str((facts or {}).get("ready_since") or "")


def unready_nodes(nodes: Mapping[str, Any] | None, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
    """The claims whose node is not ready, or not there, as the cluster's agent tells it; none where it tells of no
    node."""
    if nodes is None:
        return []
    ready = {name for name, facts in nodes.items() if facts["ready"] == "True"}
    return [claim for claim in claims if node_of_member(claim) not in ready]
