"""The nodes of a cluster as the search for savings reads them: what runs on each, its price, and what keeps it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.nodes.node_types import SPOT
from stockyard.domain.pools import budgets as pool_budgets
from stockyard.domain.pools.budgets import NodeState
from stockyard.domain.pools.records import DYNAMIC, STATIC, USD_HOUR, Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.quantities import milli
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.disruption import candidates, forced
from stockyard.lifecycle.disruption.costs import disruption_cost, eviction_cost
from stockyard.lifecycle.disruption.update_strategy import budgets_of_updates, replaceable_now
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.lifecycle.nodes.interruption import INTERRUPTED, is_interrupted
from stockyard.lifecycle.pools.pool import living, pauses
from stockyard.lifecycle.pools.spread import kept_for_balance
from stockyard.operations.fleet.disruption.price_now import price_of, weight_of
from stockyard.operations.fleet.pools.scale_up import headroom_of, waiting_groups
from stockyard.operations.fleet.pools.unused_room import believe
from stockyard.operations.fleet.state import Workload, fleet_state
from stockyard.operations.fleet.templates import Supply, supply, templates, usage
from stockyard.operations.quotas.limits import within_quota
from stockyard.operations.quotas.node_claims import remaining_claims
from stockyard.operations.services import Services
from stockyard.scheduling.consolidation import model
from stockyard.scheduling.opt_in import guarded_fleet
from stockyard.scheduling.packing import model as packing
from stockyard.scheduling.packing.model import Node, Pod, Problem
from stockyard.scheduling.packing.model import Settings as PackingSettings
from stockyard.scheduling.packing.plan import pack
from stockyard.scheduling.reading import Reader

EPSILON = 1e-9
STEPS = 1_000_000
"""The packer's work to find out which room the pods that wait will take."""


@dataclass(frozen=True, slots=True)
class View:
    """A cluster's nodes at one moment. ``claims`` are by the name of their node.

    ``looks_at`` is when something may go that may not go now, because time passes: a pod has been quiet for long
    enough, or a budget's window opens.
    """

    fleet: model.Fleet
    claims: Mapping[str, NodeClaim]
    pools: Mapping[str, Pool]
    now: datetime
    replaceable: Mapping[str, Sequence[model.RunningNode]] = field(default_factory=dict)
    """By reason: nodes that are not as their pool or provider would make them now, that are too old, or that their
    cloud may take back. They may be replaced, empty ones first, then those of the longest."""
    unready: Sequence[NodeClaim] = ()
    """Claims whose nodes have not been ready for so long that they are replaced."""
    looks_at: datetime | None = None
    until: Mapping[str, datetime] = field(default_factory=dict)
    """By the name of the node: when what keeps it from going ends by itself, where that is known."""
    states: Mapping[str, Sequence[NodeState]] = field(default_factory=dict)
    more: Mapping[str, int] = field(default_factory=dict)
    """By the name of a static pool with limits: how many more nodes like those it has its limits allow."""
    sequence: int = 0
    """Of the report of pods that it was made of."""
    notes: Sequence[tuple[NodeClaim, Transition | None]] = ()
    """Claims with what is new of their Node object: it is gone, or there again."""
    misses: bool = False
    """Whether a node that joined a short time ago is not told of, so that the agent has to vouch for its report."""
    vanished: Sequence[NodeClaim] = ()
    """Claims whose Node object has been gone for so long that they end."""

    def most_more(self, pool: Pool) -> int:
        """Number of further nodes, beyond its size, that the static pool may have for a while."""
        return self.more.get(pool.name, pool_budgets.UNBOUNDED)

    @property
    def rolled(self) -> Set[str]:
        """The pools with drifted nodes that may be replaced, now or when others of them have gone."""
        drifted = {node.pool for node in self.replaceable.get(pool_budgets.DRIFTED, ())}
        return {pool for pool in drifted if self._allowed_in_all(pool, pool_budgets.DRIFTED) > 0}

    def _allowed_in_all(self, pool: str, reason: str) -> int:
        budgets = pool_budgets.budgets_of(self.pools[pool].disruption)
        count = sum(state.counts for state in self.states.get(pool, ()))
        return pool_budgets.allowed(budgets, reason, count, self.now)

    def allowed(self, pool: str, reason: str) -> int:
        """Number of further nodes of the pool that may be disrupted for the reason now. What is replaced has no floor
        that stands against it; what a cloud takes back has no budget either."""
        if reason == INTERRUPTED:
            return pool_budgets.UNBOUNDED
        if reason == pool_budgets.DRIFTED and pool in self.pools:
            by_strategy = replaceable_now(self.pools[pool], tuple(self.claims.values()), self.states.get(pool, ()))
            budgets = budgets_of_updates(self.pools[pool])
            return min(by_strategy, pool_budgets.remaining(budgets, reason, self.states.get(pool, ()), self.now))
        if reason in (pool_budgets.DRIFTED, pool_budgets.EXPIRED):
            budgets = pool_budgets.budgets_of(self.pools[pool].disruption) if pool in self.pools else ()
            return pool_budgets.remaining(budgets, reason, self.states.get(pool, ()), self.now)
        rules = self.fleet.rules.get(pool, model.PoolRules())
        return rules.empty if reason == pool_budgets.EMPTY else rules.underutilized


def view_of(
    services: Services,
    cluster: Cluster,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    workload: Workload,
    paused: str | None = None,
) -> View:
    """View of the fleet, as ``workload`` and the records tell it. Only nodes that are ready and nobody's are
    candidates.

    ``paused`` says who has paused disruption; then only nodes go that are not ready or that their cloud takes back.
    """
    now = services.clock.now()
    stock = supply(services, cluster)
    dynamic = [pool for pool in pools if pool.kind == DYNAMIC and not pool.deleting]
    pool_templates, most_new = _pool_templates(services, cluster, stock, dynamic, claims, workload)
    by_pool = {pool.name: pool for pool in pools}
    state_now = fleet_state(services, cluster, stock, claims, workload)
    ready = state_now.ready
    by_node = {claim.node_name or claim.name: claim for claim in claims}
    by_node |= {name: state.claim for name, state in ready.items()}
    there = {name: state.node for name, state in ready.items()}
    groups = (
        *waiting_groups(workload, [claim for claim in claims if claim.deleting]),
        *(group for pool in dynamic if (group := headroom_of(pool)) is not None),
    )
    # Scale-up and disruption believe the same of room that pods have not used.
    belief = believe(services, cluster.id, pools, claims, workload, state_now, groups)
    awaited = _awaited(belief.arrivals(groups), there)
    until: dict[str, datetime] = {}
    needed_by_zones = kept_for_balance(
        by_pool, claims, {by_node[name].id for name in there if not workload.reschedulable.get(name)}
    )
    nodes = []
    for name, node in sorted(there.items()):
        claim = by_node[name]
        obstacle = _obstacle(workload, name, claim, by_pool.get(claim.pool), now, paused)
        if obstacle is not None and obstacle.until is not None:
            until[name] = obstacle.until
        there_now = (*workload.reschedulable.get(name, ()), *workload.nominated.get(name, ()))
        pods = (*belief.of_running(there_now, workload), *awaited.get(name, ()))
        needed = _NEEDED_BY_ZONE if claim.id in needed_by_zones else None
        why = obstacle.why if obstacle is not None else needed
        why = why or (None if pods else belief.kept_for.get(name))
        nodes.append(_running_node(node, claim, pods, price_of(stock, claim), why))
    states = _states(claims, workload)
    rules = {pool.name: _rules(pool, states.get(pool.name, ()), claims, now) for pool in dynamic}
    changes = [pool_budgets.next_change(pool_budgets.budgets_of(pool.disruption), now) for pool in pools]
    looks = [*until.values(), *(change for change in changes if change is not None)]
    daemons = tuple(workload.daemons.values())
    fleet = model.Fleet(tuple(nodes), pool_templates, rules, daemons, stock.availability.free, awaited, most_new)
    fleet = guarded_fleet(fleet)
    replaceable, forced_looks = _replaceable(by_pool, by_node, fleet.nodes, workload, now, paused)
    unready, repair_looks = _unready(by_pool, claims, workload, now)
    looks += [*forced_looks, *repair_looks]
    more = {pool.name: _most_more(stock, pool, claims) for pool in pools if pool.kind == STATIC and pool.limits}
    looks_at = min(looks, default=None)
    return View(fleet, by_node, by_pool, now, replaceable, unready, looks_at, until, states, more, workload.sequence)


def _replaceable(
    by_pool: Mapping[str, Pool],
    by_node: Mapping[str, NodeClaim],
    nodes: Sequence[model.RunningNode],
    workload: Workload,
    now: datetime,
    paused: str | None,
) -> tuple[Mapping[str, Sequence[model.RunningNode]], Sequence[datetime]]:
    """The nodes that may be replaced by reason, see ``View``, and when others may be."""
    running = {by_node[node.name].id: node for node in nodes}
    present = [by_node[node.name] for node in nodes]
    movable = [claim for claim in present if not (paused or _is_paused(by_pool.get(claim.pool)))]
    drifted, until_drifted = _drifted(by_pool, movable, workload, now)
    expires = {claim.id: moment for claim in movable if (moment := forced.expires_at(claim, by_pool.get(claim.pool)))}
    listed = {
        INTERRUPTED: [claim for claim in present if is_interrupted(claim)],
        pool_budgets.EXPIRED: _expired(present, expires, now),
        pool_budgets.DRIFTED: drifted,
    }
    replaceable = {
        reason: _empty_first(running[entry.id] for entry in entries if entry.pool in by_pool)
        for reason, entries in listed.items()
    }
    return replaceable, [*until_drifted, *(moment for moment in expires.values() if moment > now)]


def _pool_templates(
    services: Services,
    cluster: Cluster,
    stock: Supply,
    dynamic: Sequence[Pool],
    claims: Sequence[NodeClaim],
    workload: Workload,
) -> tuple[tuple[packing.Pool, ...], int]:
    """Templates of dynamic pools that can make nodes now, and the smallest number of claims that one of them may
    have."""
    usable = within_quota(services, cluster, (pool for pool in dynamic if not pauses(pool, services.now())))
    most = {pool.name: remaining_claims(services, pool.provider_ref, pool.created_by) for pool in usable}
    pods = (pod for there in workload.reschedulable.values() for pod, _ in there)
    pool_templates = templates(stock, [pool for pool in usable if most[pool.name] > 0], claims, dearest=True, pods=pods)
    return tuple(pool_templates), min((count for count in most.values() if count > 0), default=0)


def _empty_first(nodes: Iterable[model.RunningNode]) -> list[model.RunningNode]:
    """Empty nodes need nothing in their place."""
    return sorted(nodes, key=lambda node: not node.empty)


_NEEDED_BY_ZONE = "its zone would have too few nodes of the pool"


def _obstacle(
    workload: Workload, name: str, claim: NodeClaim, pool: Pool | None, now: datetime, paused: str | None
) -> candidates.Obstacle | None:
    """Obstacle that keeps a node beside prices and zones."""
    if paused:
        return candidates.Obstacle(paused)
    empty, budgets = _is_empty(workload, name), workload.budgets or {}
    obstacle = candidates.obstacle(claim, pool, workload.facts_of(claim), budgets, now, empty=empty)
    if obstacle is not None:
        return obstacle
    if name in workload.obscure:
        return candidates.Obstacle(f"a pod on it cannot be read: {workload.obscure[name]}")
    return candidates.Obstacle("pods are about to be bound to it") if workload.nominated.get(name) else None


def _is_empty(workload: Workload, name: str) -> bool:
    return not workload.reschedulable.get(name) and name not in workload.obscure


def _running_node(
    node: Node, claim: NodeClaim, pods: tuple[tuple[Pod, int], ...], price: float | None, why: str | None
) -> model.RunningNode:
    """A node with its pods; ``why`` is what keeps it, and an unknown price does so too."""
    costs = (eviction_cost(pod.deletion_cost, pod.priority) for pod, count in pods for _ in range(count))
    owned = claim.placement is not None and claim.placement.owned
    return model.RunningNode(
        node,
        pods,
        claim.pool,
        weight_of(claim, price or 0.0),
        disruption_cost(costs),
        spot=claim.placement is not None and claim.placement.capacity_type == SPOT,
        blocker=why or (None if price is not None else "its price is not known"),
        drifted=is_drifted(claim),
        own_usd_hour=price if owned else None,
    )


def _expired(claims: Sequence[NodeClaim], expires: Mapping[str, datetime], now: datetime) -> list[NodeClaim]:
    """The claims whose time is over, the one that has been so for longest first."""
    over = [claim for claim in claims if claim.id in expires and expires[claim.id] <= now]
    return sorted(over, key=lambda claim: (expires[claim.id], claim.id))


def _most_more(stock: Supply, pool: Pool, claims: Sequence[NodeClaim]) -> int:
    """Number of further nodes of the size of its largest that the static pool may have within its limits."""
    own = [claim for claim in claims if claim.pool == pool.name]
    reader = Reader()
    used, spent = usage(stock, reader, own)
    sizes = [usage(stock, reader, [claim]) for claim in own]
    counts = []
    for name, quantity in pool.limits.items():
        if name == USD_MONTH:
            continue  # What is to come waits for its budget, and what runs stays until then.
        limit = float(quantity) if name == USD_HOUR else milli(quantity)
        in_use = spent if name == USD_HOUR else used.get(name, 0)
        largest = max((usd if name == USD_HOUR else amounts.get(name, 0) for amounts, usd in sizes), default=0)
        if largest > 0:
            counts.append(max(0, int((limit - in_use) / largest + EPSILON)))
    return min(counts, default=pool_budgets.UNBOUNDED)


def _is_paused(pool: Pool | None) -> bool:
    return pool is not None and candidates.is_paused(pool)


def _drifted(
    by_pool: Mapping[str, Pool], claims: Sequence[NodeClaim], workload: Workload, now: datetime
) -> tuple[Sequence[NodeClaim], Sequence[datetime]]:
    """The claims that have drifted and may go, and when others may."""
    listed, budgets = candidates.drifted(claims), workload.budgets or {}
    obstacles = {
        claim.id: candidates.obstacle_of_drift(
            claim,
            by_pool.get(claim.pool),
            workload.facts_of(claim),
            budgets,
            now,
            empty=_is_empty(workload, claim.node_name or claim.name),
        )
        for claim in listed
        if (claim.node_name or claim.name) not in workload.obscure
    }
    until = [each.until for each in obstacles.values() if each is not None and each.until is not None]
    return [claim for claim in listed if claim.id in obstacles and obstacles[claim.id] is None], until


def _unready(
    by_pool: Mapping[str, Pool], claims: Sequence[NodeClaim], workload: Workload, now: datetime
) -> tuple[Sequence[NodeClaim], Sequence[datetime]]:
    """The claims whose nodes are to be repaired, and when others may have to be."""
    facts = {claim.id: workload.facts_of(claim) for claim in claims}
    until = [forced.unready_until(claim, facts[claim.id]) for claim in claims if claim.pool in by_pool]
    unready: list[NodeClaim] = []
    for name in by_pool:
        unready += forced.to_repair([claim for claim in claims if claim.pool == name], facts, now)
    return unready, [moment for moment in until if moment is not None and moment > now]


def _awaited(groups: Sequence[packing.PodGroup], there: dict[str, Node]) -> Mapping[str, tuple[tuple[Pod, int], ...]]:
    """Pods that will come onto each node: they wait for room, or are still on a node that leaves. The room of ``there``
    is less what these take.

    Pods that differ in their deletion cost alone are equal, and stand there side by side: each has a cost of its own.
    """
    if not groups:
        return {}
    awaited = {}
    pods = {name: group.pod for group in groups for name in group.names}
    problem = Problem(tuple(groups), (), tuple(there.values()), settings=PackingSettings(steps=STEPS))
    for placement in pack(problem).placements:
        placed_pods = [pods[name] for name in placement.pods]
        awaited[placement.node] = tuple(Counter(placed_pods).items())
        there[placement.node] = there[placement.node].less((pod, 1) for pod in placed_pods)
    return awaited


def _states(claims: Sequence[NodeClaim], workload: Workload) -> Mapping[str, Sequence[NodeState]]:
    """The nodes of each pool as its budgets count them."""
    states: defaultdict[str, list[NodeState]] = defaultdict(list)
    for claim in claims:
        facts = workload.facts_of(claim)
        initialized = claim.phase == "Available"
        ready = facts is not None and facts.ready == "True"
        is_gone = claim.phase == "Failed"
        states[claim.pool].append(NodeState(True, initialized, ready, claim.deleting, is_gone))
    return states


def _rules(pool: Pool, states: Sequence[NodeState], claims: Sequence[NodeClaim], now: datetime) -> model.PoolRules:
    budgets = pool_budgets.budgets_of(pool.disruption)
    # A pool that would go below its floor makes the next node at once.
    above_floor = max(0, len(living([claim for claim in claims if claim.pool == pool.name])) - pool.floor)

    def allowed(reason: str) -> int:
        return min(above_floor, pool_budgets.remaining(budgets, reason, states, now))

    return model.PoolRules(
        pool.disruption.get("consolidationPolicy", model.WHEN_UNDERUTILIZED),
        allowed(pool_budgets.EMPTY),
        allowed(pool_budgets.UNDERUTILIZED),
        pool.disruption.get("minimumSaving", 0.0),
    )
