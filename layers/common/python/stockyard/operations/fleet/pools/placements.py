"""Nodes that pods would need, and their cost: the packer is asked, and nothing is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.notes import Note, remark
from stockyard.errors import InvalidInput
from stockyard.operations.fleet.opting_in import of_plan
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.pools.size import excess
from stockyard.operations.fleet.state import fleet_state, workload_of
from stockyard.operations.fleet.templates import Supply, every_provider, supply, templates
from stockyard.operations.quotas.limits import within_quota
from stockyard.operations.services import Services
from stockyard.scheduling.opt_in import packed
from stockyard.scheduling.packing import model
from stockyard.scheduling.packing.plan import Claim, LeftOut, Plan, grouped
from stockyard.scheduling.packing.reasons import BUDGET
from stockyard.scheduling.packing.rows import UNKNOWN_PRICE
from stockyard.scheduling.packing.workloads import Workloads, read_workloads

MOST_PODS, MOST_KINDS = 20_000, 2_000
"""Pods of one question, and different ones among them."""
STEPS, STEPS_A_POD = 1_000_000, 50
"""The packer's work for one question: a few seconds of one core, for an answer within those of a request."""
DEADLINE_SECONDS = 15
"""After so many seconds a question ends with what it has, however slow its machine is: a request has 29 seconds."""
MOST_NAMES, MOST_REMARKS, SHOWN_NODES = 20, 20, 3
EVERY = "*"
"""The pool that stands for all providers where no cluster is named."""


def plan_placements(
    services: Services, cluster: Cluster | None, manifests: Sequence[Mapping[str, Any]], *, preferences: bool = True
) -> dict[str, Any]:
    """The answer as a ``PlacementsView`` document. Raises ``InvalidInput`` with the place in the manifests."""
    expired = services.expires_in(DEADLINE_SECONDS)
    workloads = _workloads(manifests)
    stock = supply(services, cluster)
    groups = grouped(workloads.pods)
    pods = [group.pod for group in groups]
    everywhere = Supplied((every_provider(stock, EVERY, pods),))
    supplied = everywhere if cluster is None else _of_cluster(services, cluster, stock, pods)
    daemons = {**supplied.daemons, **workloads.daemon_sets}
    steps = STEPS + STEPS_A_POD * len(workloads.pods)
    settings = model.Settings(preferences, preferred_nodes=False, steps=steps, expired=expired)
    nodes, free = supplied.nodes, stock.availability.free
    problem = model.Problem(groups, supplied.pools, nodes, tuple(daemons.values()), settings, free)
    too_large = excess(problem)
    if too_large:
        raise InvalidInput.at("/manifests", f"{too_large}; ask for fewer at once")
    plan = packed(problem)
    return {**_view(cluster, workloads, supplied, plan), "opt_in": of_plan(stock, supplied.records, plan.claims)}


@dataclass(frozen=True, slots=True)
class Supplied:
    """Places that pods may go to: nodes that are there or on their way, and new ones of pools. ``daemons`` run on
    each."""

    pools: tuple[model.Pool, ...]
    nodes: tuple[model.Node, ...] = ()
    daemons: Mapping[str, model.Pod] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    records: Mapping[str, Pool] = field(default_factory=dict)
    """The pools as they are recorded, by name."""
    ready: Set[str] = frozenset()
    """The names of the nodes that the cluster's agent reports as ready."""


def _of_cluster(services: Services, cluster: Cluster, stock: Supply, pods: Sequence[model.Pod]) -> Supplied:
    claims, limited = claims_of(services, cluster.id), within_quota(services, cluster, pools_of(services, cluster.id))
    pools, records = tuple(templates(stock, limited, claims, pods=pods)), {pool.name: pool for pool in limited}
    remarks = []
    if not pools:
        remarks.append(f"Cluster {cluster.name} has no dynamic pool: no nodes are made for pods.")
    report = workload_of(services, cluster.id)
    if report is not None:
        state, now = fleet_state(services, cluster, stock, claims, report), services.clock.now()
        doubtful_names = {name for name, node in state.nodes.items() if report.doubts(node.claim, now)}
        remarks += [_doubt(doubtful_names)] if doubtful_names else []
        nodes = tuple(node for node in state.packed if node.name not in doubtful_names)
        return Supplied(pools, nodes, report.daemons, tuple(remarks), records, frozenset(state.ready))
    if claims:
        remarks.append("The cluster has not told yet what runs on its nodes, so room on them is not looked at.")
    return Supplied(pools, remarks=tuple(remarks), records=records)


def _doubt(names: Set[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - SHOWN_NODES} more" if len(listed) > SHOWN_NODES else ""
    return f"No pod is planned onto {', '.join(listed[:SHOWN_NODES])}{more}: the cluster's agent does not tell of it."


def _workloads(manifests: Sequence[Mapping[str, Any]]) -> Workloads:
    try:
        return read_workloads(manifests, MOST_PODS, MOST_KINDS)
    except ValueError as error:
        path, _, detail = str(error).partition(": ")
        raise InvalidInput.at(f"/manifests{path}", detail) from None


_ALIKE = 1e-6
"""USD an hour by which a plan's price may differ from its weight."""


def _view(cluster: Cluster | None, workloads: Workloads, supplied: Supplied, plan: Plan) -> dict[str, Any]:
    nodes = [_node(claim) for claim in plan.claims]
    is_priced = all(node["usd_hour"] is not None for node in nodes)
    # A bound is of what plans make small: where owners say prices, that is another sum.
    is_priced_alike = is_priced and abs(plan.usd_hour - plan.price) < _ALIKE
    bound = plan.bound if is_priced_alike and plan.bound is not None and plan.bound < UNKNOWN_PRICE else None
    gap = plan.gap if bound is not None else None
    cut_short = _cut_short(plan)
    remarks = [*cut_short, *_remarks(workloads, supplied, is_priced)]
    return {
        "cluster_id": cluster.id if cluster is not None else None,
        "pods": len(workloads.pods),
        "nodes": nodes,
        "existing": [
            {"node": placement.node, "ready": placement.node in supplied.ready, "pods": list(placement.pods)}
            for placement in plan.placements
        ],
        "left_out": [_left_out(item) for item in plan.left_out],
        "complete": not cut_short,
        "usd_hour": round(plan.usd_hour, 6) if is_priced else None,
        "bound": None if bound is None else round(bound, 6),
        "gap": None if gap is None else max(0.0, round(gap, 6)),
        "warnings": [remark("", detail) for detail in remarks],
    }


def _cut_short(plan: Plan) -> Sequence[str]:
    """The sentence on pods that had no turn, if there are any. It comes first: such pods may have a place all the
    same."""
    count = sum(len(item.pods) for item in plan.left_out if any(reason.rule == BUDGET for reason in item.reasons))
    if not count:
        return ()
    pods = "1 pod" if count == 1 else f"{count} pods"
    return (
        f"The plan is not whole: {pods} had no turn before the work or the time of one question was used up. "
        "Ask for fewer pods at once, or narrow the pools by requirements.",
    )


def _remarks(workloads: Workloads, supplied: Supplied, is_priced: bool) -> Sequence[str]:
    reasons = sorted(workloads.skipped.items())
    remarks: list[str] = [Note(f"Skipped {count}: {why}.") for why, count in reasons[:MOST_REMARKS]]
    if len(reasons) > MOST_REMARKS:
        remarks.append(Note(f"Skipped {sum(count for _, count in reasons[MOST_REMARKS:])} of other kinds as well."))
    if not is_priced:
        remarks.append("Some nodes have no known price, so there is no sum.")
    return [*remarks, *supplied.remarks]


def _node(claim: Claim) -> dict[str, Any]:
    row = claim.row
    return {
        "pool": claim.pool.name,
        "type": row.node_type.name,
        "provider": row.node_type.provider,
        "zone": row.zone,
        "capacity_type": row.capacity_type,
        "usd_hour": None if row.usd_hour == UNKNOWN_PRICE else row.usd_hour,
        "owned": row.node_type.owned,
        "alternatives": len(claim.node_types) - 1,
        "pods": list(claim.pods),
    }


def _left_out(item: LeftOut) -> dict[str, Any]:
    reasons = [
        {"pool": reason.pool, "rule": reason.rule, "subject": reason.subject, "message": reason.message}
        for reason in item.reasons
    ]
    return {"count": len(item.pods), "pods": list(item.pods[:MOST_NAMES]), "reasons": reasons}
