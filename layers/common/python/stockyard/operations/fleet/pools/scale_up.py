"""Nodes for pods that wait: the pods that the cluster cannot place are packed, and the claims of the plan are made.

Nothing is kept between two passes: claims of an earlier one count as room, so the same pods ask for nothing twice. All
batches of a cluster go through the record of its first dynamic pool, at the version that the plan was made from: of two
passes that saw the same pods one makes the claims, and the other looks again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from math import inf
from typing import Any

from stockyard.domain.nodes.zone_ids import is_zone_id
from stockyard.domain.pools.records import DYNAMIC, POOL_LABEL, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.quantities import milli, resource_text
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, NODE_TYPE, ZONE
from stockyard.errors import QuotaExceeded
from stockyard.lifecycle.disruption.forced import is_leaving
from stockyard.lifecycle.nodes.interruption import is_interrupted
from stockyard.lifecycle.pools.pool import LOOK_AGAIN_SECONDS, pause_text, pauses
from stockyard.operations.fleet.pools.claims import AT_ONCE, commit_claims, draft_claim
from stockyard.operations.fleet.pools.size import excess
from stockyard.operations.fleet.pools.spread import Spread
from stockyard.operations.fleet.pools.unused_room import Belief, believe, group_id
from stockyard.operations.fleet.state import PendingGroup, Workload, fleet_state
from stockyard.operations.fleet.templates import supply, templates
from stockyard.operations.quotas.limits import within_quota
from stockyard.operations.quotas.network_room import network_refusal, remaining_nodes
from stockyard.operations.quotas.node_claims import Limits
from stockyard.operations.services import Services
from stockyard.scheduling.opt_in import packed
from stockyard.scheduling.packing import model
from stockyard.scheduling.packing.alternatives import Alternatives, possible_alternatives
from stockyard.scheduling.packing.plan import Claim, LeftOut, Plan
from stockyard.scheduling.packing.reasons import (
    BUDGET,
    HOST_PORT,
    LIMIT,
    MIN_VALUES,
    NO_NODE_TYPES,
    REQUIREMENT,
    RESOURCE,
    TAINT,
    TOPOLOGY,
    UNAVAILABLE,
    VOLUME,
    Reason,
)

MOST_CLAIMS = 500
"""Claims that one pass makes; what is left waits for the next."""
MOST_GROUPS = 20
"""Groups of equal pods that a claim names as those that it is made for."""
STEPS = 5_000_000
"""The packer's work in one pass: ten to twenty seconds of the function's 60. What gets no turn is left to the next."""
DEADLINE_SECONDS = 30
"""After so many seconds a plan ends with what it has, however slow its machine is. What gets no turn is left to the
next pass, too."""
REFUSED_TYPES_SECONDS = 60
HEADROOM = "headroom"
"""The namespace of pods that stand for a pool's headroom. No namespace of a cluster can have a slash."""
LEAVING = "leaving"
"""The namespace of pods whose node leaves."""
_NAMED = 3
_TRIED = (
    NO_NODE_TYPES,
    TAINT,
    REQUIREMENT,
    VOLUME,
    HOST_PORT,
    RESOURCE,
    BUDGET,
    TOPOLOGY,
    LIMIT,
    MIN_VALUES,
    UNAVAILABLE,
)
"""The rules by which a pool refuses pods, in the order in which they are tried."""
_UNIT = 1000
"""Headroom is split into parts of at most so many thousandths of a core, so that it need not be on one node."""


def plan_of(
    services: Services,
    cluster: Cluster,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    workload: Workload,
    going: Set[str] = frozenset(),
    seconds: int = DEADLINE_SECONDS,
) -> Plan:
    """See ``believed_plan``."""
    return believed_plan(services, cluster, pools, claims, workload, going, seconds)[0]


def believed_plan(
    services: Services,
    cluster: Cluster,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    workload: Workload,
    going: Set[str] = frozenset(),
    seconds: int = DEADLINE_SECONDS,
) -> tuple[Plan, Belief]:
    """The placement of waiting pods on present, coming and new nodes, and the assumptions about room for them.

    Pods of nodes that leave wait too. Pools that pause get no new node. ``going`` are ids of claims whose nodes are
    being replaced: they have no room. After so many ``seconds`` the plan ends with what it has.

    Raises ``QuotaExceeded`` when there are too many ways to make a node for one pass.
    """
    expired = services.expires_in(seconds)
    stock = supply(services, cluster)
    now = services.now()
    dynamic = [pool for pool in pools if pool.kind == DYNAMIC and not pool.deleting and not pauses(pool, now)]
    groups = waiting_groups(workload, [claim for claim in claims if is_leaving(claim)])
    spare = [group for pool in dynamic if (group := headroom_of(pool)) is not None]
    staying = [claim for claim in claims if claim.id not in going and not is_interrupted(claim)]
    fleet = fleet_state(services, cluster, stock, staying, workload)
    wanted_groups = (*groups, *spare)
    belief = believe(services, cluster.id, pools, claims, workload, fleet, wanted_groups)
    believed_groups = belief.groups(wanted_groups)
    pods = (group.pod for group in believed_groups)
    problem = model.Problem(
        believed_groups,
        tuple(templates(stock, within_quota(services, cluster, dynamic), claims, pods=pods)),
        fleet.packed,
        tuple(workload.daemons.values()),
        model.Settings(preferred_nodes=False, steps=STEPS, expired=expired),
        stock.availability.free,
    )
    too_large = excess(problem)
    if too_large:
        raise QuotaExceeded(f"{too_large} for one pass. Requirements of the pools make them fewer.")
    return packed(problem), belief


def create_claims(
    services: Services, cluster: Cluster, pools: Sequence[Pool], plan: Plan, going: Set[str] = frozenset()
) -> int:
    """Make the claims of a plan; how many were made. Raises ``Conflict`` when a pool has changed since ``pools`` were
    read, ``QuotaExceeded``. ``going`` are the ids of claims that are being replaced."""
    current = {pool.name: pool for pool in pools}
    first = min((pool.name for pool in pools if pool.kind == DYNAMIC), default="")
    by_pool: dict[str, list[Claim]] = {}
    room = remaining_nodes(services, cluster) if plan.claims else 0
    for claim in plan.claims[: min(MOST_CLAIMS, room)]:
        by_pool.setdefault(claim.pool.name, []).append(claim)
    count = 0
    # Many nodes of a plan are alike, and a quota is the same for all batches.
    narrowed, spread = _Narrowed(spare_money(plan.claims)), Spread(services, going)
    limits: Limits = {}
    for name, planned in by_pool.items():
        for start in range(0, len(planned), AT_ONCE):
            batch = planned[start : start + AT_ONCE]
            pool = current[name]
            drafts = [spread.bound(pool, _draft(services, cluster, pool, claim, narrowed.of(claim))) for claim in batch]
            current |= commit_claims(services, cluster, pool, drafts, current[first], limits)
            count += len(batch)
    if room < len(plan.claims):
        raise network_refusal(services, cluster)
    return count


def spare_money(planned: Sequence[Claim]) -> Mapping[str, float]:
    """Amount by which each planned node of a pool with a limit in money may come to cost more than planned, in USD an
    hour, so that the limit holds whichever of its ways each becomes."""
    by_pool: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in planned:
        if claim.pool.money is not None:
            by_pool[claim.pool.name].append(claim)
    return {
        name: max(0.0, (claims[0].pool.money or 0.0) - claims[0].pool.spent - sum(claim.price for claim in claims))
        / len(claims)
        for name, claims in by_pool.items()
    }


class _Narrowed:
    """The requirements of planned nodes: of those with the same possible ways they are made once. ``spare`` is what
    ``spare_money`` says."""

    def __init__(self, spare: Mapping[str, float]) -> None:
        self._spare = spare
        self._by_mask: dict[tuple[int, str, str, str], Sequence[dict[str, Any]]] = {}

    def of(self, claim: Claim) -> Sequence[dict[str, Any]]:
        """Requirements that bind the claim to the ways that are still possible."""
        ids = _ids_of_zone(claim)
        memo_key = (claim.mask, claim.row.capacity_type, claim.row.zone, repr(ids))
        if memo_key not in self._by_mask:
            ceiling = claim.price + self._spare.get(claim.pool.name, inf)
            self._by_mask[memo_key] = [*_narrowing(possible_alternatives(claim, ceiling)), *ids]
        return self._by_mask[memo_key]


def _draft(
    services: Services, cluster: Cluster, pool: Pool, claim: Claim, narrowed: Sequence[dict[str, Any]]
) -> NodeClaim:
    """The claim of a planned node: the pool's, bound to the ways that are still possible, with what is packed."""
    resources = {name: resource_text(name, amount) for name, amount in sorted(claim.requests.items()) if amount > 0}
    draft = draft_claim(services, cluster.id, pool)
    groups = tuple(dict.fromkeys(map(group_id, claim.pods)))[:MOST_GROUPS]
    requirements = (*draft.requirements, *narrowed)
    return replace(draft, requirements=requirements, resources=resources, pod_groups=groups)


def planned_draft(services: Services, cluster: Cluster, pool: Pool, claim: Claim, ceiling: float) -> NodeClaim:
    """The claim of a planned node that may cost at most ``ceiling`` USD an hour, as nobody has written it yet. In a
    pool with a limit in money it costs no more than it is planned to."""
    ceiling = min(ceiling, claim.price) if claim.pool.money is not None else ceiling
    narrowed = [*_narrowing(possible_alternatives(claim, ceiling)), *_ids_of_zone(claim)]
    return _draft(services, cluster, pool, claim, narrowed)


def _ids_of_zone(claim: Claim) -> list[dict[str, Any]]:
    """Requirements that bind the claim to the zone whose id its pods name."""
    ids = ((key, value) for key, value in claim.row.values.items() if is_zone_id(key) and isinstance(value, str))
    return [{"key": key, "operator": IN, "values": [value]} for key, value in ids]


def _narrowing(alternatives: Alternatives) -> Sequence[dict[str, Any]]:
    types, zones, capacity_types = alternatives
    own = {NODE_TYPE: types, ZONE: zones, CAPACITY_TYPE: capacity_types}
    return [{"key": key, "operator": IN, "values": list(values)} for key, values in own.items() if values]


def left_out(
    plan: Plan, workload: Workload, pausing: Sequence[Pool] = (), withheld: Set[str] = frozenset()
) -> str | None:
    """Words for the pods that no pool takes, and why; None when all have a place. Headroom that finds none is no pod.

    ``pausing``: pools that get no node for now; ``withheld``: groups of pods that get none, of which is told elsewhere.
    """
    groups = {group.id: group for group in workload.pending}
    entries = [
        entry
        for entry in plan.left_out
        if not entry.pods[0].startswith(f"{HEADROOM}/") and group_id(entry.pods[0]) not in withheld
    ]
    no_reason = "no other dynamic pool is there." if pausing else "the cluster has no dynamic pool."
    texts = [_refusal(entry, groups.get(group_id(entry.pods[0])), no_reason) for entry in entries[:_NAMED]]
    more = f" (and {len(entries) - _NAMED} more kinds of pods)" if len(entries) > _NAMED else ""
    return (
        "; ".join(texts) + more + "".join(f"; {pool.name} {pause_text(pool)}." for pool in pausing) if texts else None
    )


def beside_missed(plan: Plan, workload: Workload, missed_nodes: Set[str]) -> str | None:
    """Words for the pods that are planned onto nodes that have joined but are in no report; None where none are. Until
    their cluster's agent vouches for a report without such a node, it may be there."""
    names = {group.id: group for group in workload.pending}
    texts = []
    for placement in plan.placements:
        pods = [group_id(name) for name in placement.pods if group_id(name) in names]
        if placement.node in missed_nodes and pods:
            group = names[pods[0]]
            example, more = next(iter(group.names), "a pod"), f" and {len(pods) - 1} like it" if len(pods) > 1 else ""
            text = f"has joined and is not reported. If it is gone, another is made.{group.scheduler_text}"
            texts.append(f"{example}{more}: node {placement.node} {text}")
    return " ".join(texts[:_NAMED]) or None


def without_node(plan: Plan | None, workload: Workload) -> str:
    """The pods for which no node is made of the plan, or that could not be planned, as a text begins that goes on with
    why; empty where none waits."""
    planned_groups = {group_id(name) for claim in plan.claims for name in claim.pods} if plan is not None else None
    texts = [
        _example(group, group.count)
        for group in workload.pending
        if planned_groups is None or group.id in planned_groups
    ]
    more = f" (and {len(texts) - _NAMED} more kinds of pods)" if len(texts) > _NAMED else ""
    return f"{', '.join(texts[:_NAMED])}{more}: " if texts else ""


def seconds_until_next_try(plan: Plan) -> int:
    """Seconds until a pass looks again: soon where a pod waits for types that their cloud refused a moment ago, since
    nothing tells that they may be tried again."""
    rules = {reason.rule for entry in plan.left_out for reason in entry.reasons}
    return REFUSED_TYPES_SECONDS if UNAVAILABLE in rules else LOOK_AGAIN_SECONDS


def limits_reached(plan: Plan, workload: Workload) -> Mapping[str, str]:
    """Limits of pools that keep pods waiting, by the name of the pool, in words."""
    names = {group.id: group.names for group in workload.pending}
    texts: dict[str, str] = {}
    for entry in plan.left_out:
        group = group_id(entry.pods[0])
        for reason in entry.reasons if group in names else ():
            if reason.rule == LIMIT:
                example, count = next(iter(names[group]), "a pod"), len(entry.pods) - 1
                more = f" and {count} like it wait" if count else " waits"
                texts.setdefault(reason.pool, f"{reason.message.rstrip('.')}: {example}{more}.")
    return texts


def _refusal(entry: LeftOut, group: PendingGroup | None, no_reason: str) -> str:
    """Reason why the pods have no place; where the plan knows no rule, with what the cluster's scheduler says."""
    reasons, more = list(entry.reasons), len(entry.reasons) - _NAMED
    if more > 0:
        # Not all are named. What refused the pods last fits them best: that is the pool that people mean.
        reasons.sort(key=_fitness, reverse=True)
    why = "; ".join(reason.text.rstrip(".") for reason in reasons[:_NAMED])
    why += f"; and {more} more pools" if more > 1 else "; and 1 more pool" if more == 1 else ""
    says = group.scheduler_text if group is not None else ""
    return f"{_example(group, len(entry.pods))}: {f'{why}.' if why else f'{no_reason}{says}'}"


def _fitness(reason: Reason) -> int:
    """Number of rules that the pods passed in the pool before one refused them; most where the rule holds for all
    pools."""
    return _TRIED.index(reason.rule) if reason.pool and reason.rule in _TRIED else len(_TRIED)


def _example(group: PendingGroup | None, count: int) -> str:
    """One of the pods by its name, and how many are like it."""
    example = next(iter(group.names if group is not None else ()), "a pod")
    return f"{example} and {count - 1} like it" if count > 1 else example


def waiting_groups(workload: Workload, losing: Iterable[NodeClaim] = ()) -> tuple[model.PodGroup, ...]:
    """The pods that wait for a node, in the packer's form, and the pods that are expected: they are still on a node of
    ``losing``. So their next node is asked for before they have left."""
    waiting = (model.PodGroup(group.pod, _names(group.id, group.count)) for group in workload.pending)
    leaving = (
        model.PodGroup(pod, _names(f"{LEAVING}/{claim.id}/{kind}", count))
        for claim in losing
        for kind, (pod, count) in enumerate(workload.reschedulable.get(claim.node_name or claim.name, ()))
    )
    return (*waiting, *leaving)


def _names(group: str, count: int) -> tuple[str, ...]:
    return tuple(f"{group}/{number}" for number in range(count))


def headroom_of(pool: Pool) -> model.PodGroup | None:
    """Pods that stand for the room that a pool keeps free: only its nodes take them, and they come last."""
    amounts = {name: milli(quantity) for name, quantity in pool.headroom.items()}
    if not any(amounts.values()):
        return None
    parts = max(1, -(-amounts.get("cpu", 0) // _UNIT))
    requests = tuple(sorted({**{name: -(-amount // parts) for name, amount in amounts.items()}, "pods": 1000}.items()))
    only_here = model.term([{"key": POOL_LABEL, "operator": IN, "values": [pool.name]}])
    pod = model.Pod(
        HEADROOM, (), requests, (only_here,), tolerations=(model.Toleration(operator="Exists"),), priority=-(2**31)
    )
    return model.PodGroup(pod, _names(f"{HEADROOM}/{pool.name}", parts))
