"""Cost that a history of pods would have had under a policy: the trace is read, and replayed. Nothing is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.models.pools.simulations import (
    SimulatedPolicy,
    SimulationRequest,
    TraceNodeType,
    TracePool,
    moment,
)
from stockyard.domain.nodes.node_types import (
    DEFAULT_ZONE,
    ON_DEMAND,
    SPOT,
    Declaration,
    NodeType,
    Offering,
    node_type_of,
)
from stockyard.domain.pools.budgets import budgets_of
from stockyard.domain.pools.records import DYNAMIC, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values import durations, times
from stockyard.domain.values.manifest_lists import taken_apart
from stockyard.domain.values.pointers import pointer
from stockyard.errors import InvalidInput
from stockyard.lifecycle.disruption.candidates import is_paused
from stockyard.lifecycle.disruption.costs import eviction_cost
from stockyard.lifecycle.disruption.protection import DO_NOT_DISRUPT
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.pools.size import excess
from stockyard.operations.fleet.state import fleet_state, workload_of
from stockyard.operations.fleet.templates import Supply, supply, templates
from stockyard.operations.node_providers.catalog import Catalog
from stockyard.operations.quotas.limits import within_quota
from stockyard.operations.services import Services
from stockyard.scheduling.consolidation.model import WHEN_UNDERUTILIZED
from stockyard.scheduling.index import Index
from stockyard.scheduling.opt_in import Guard
from stockyard.scheduling.packing import model
from stockyard.scheduling.packing.workloads import CRON_JOB, DAEMON_SET, read_workloads
from stockyard.scheduling.simulation.choice import narrowed
from stockyard.scheduling.simulation.model import FOREVER, Arrival, Departure, Outcome, PodKind, PoolPolicy, Trace
from stockyard.scheduling.simulation.replay import replay

MOST_PODS, MOST_KINDS = 10_000, 2_000
"""Pods that come in one trace, and manifests of them."""
STEPS = 5_000_000
"""The work of one replay: some ten seconds of a core, for an answer within those of a request."""
DEADLINE_SECONDS = 15
"""After so many seconds a request begins no more work, however slow its machine is: a request has 29 seconds, and one
piece of work takes a few."""
MOST_DECISIONS, MOST_REMARKS = 500, 20
OF_TRACE = "trace"
"""The provider of node types that a trace declares."""
NEVER_CONSOLIDATED = "None"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def simulate(services: Services, cluster: Cluster | None, request: SimulationRequest) -> dict[str, Any]:
    """The answer as a ``SimulationView`` document. Raises ``InvalidInput`` with the place in the request."""
    expired = services.expires_in(DEADLINE_SECONDS)
    arrivals, departures, skipped = _events(request)
    own_daemons = _daemons(request.daemon_sets, skipped)
    stock = supply(services, cluster) if not request.node_types else _own_supply(request.node_types)
    daemons, places = _surroundings(services, stock, cluster)
    records = _cluster_pools(services, cluster) if cluster is not None else _own_pools(request.pools)
    pools, remarks = _priced(templates(stock, records, pods=(arrival.kind.pod for arrival in arrivals)))
    arrivals = _guarded(arrivals, pools)
    remarks += [f"Skipped {count}: {why}." for why, count in sorted(skipped.items())[:MOST_REMARKS]]
    remarks += [text for record in records for text in _left_aside(record)]
    remarks += [_pause_remark(record) for record in records if _stays_paused(record, request.policy)]
    trace = Trace(
        moment(request.starts_at),
        request.seconds(request.until),
        tuple(arrivals),
        tuple(departures),
        tuple(pools),
        _policies(records, request.policy),
        tuple({**daemons, **own_daemons}.values()),
        places,
        durations.seconds(request.start_up) or 0,
        durations.seconds(request.drain) or 0,
    )
    kinds = tuple(dict.fromkeys(arrival.kind.pod for arrival in arrivals))
    trace = replace(trace, pools=tuple(narrowed(pool, (*kinds, *trace.daemons), trace.places) for pool in pools))
    groups = tuple(model.PodGroup(pod, ()) for pod in kinds)
    too_large = excess(model.Problem(groups, trace.pools, daemons=trace.daemons))
    if too_large:
        raise InvalidInput.at("/events", too_large)
    outcome = replay(trace, STEPS, expired=expired)
    return _view(trace, outcome, remarks)


# --- pods -----------------------------------------------------------------------------------------------------------


def _events(request: SimulationRequest) -> tuple[Sequence[Arrival], Sequence[Departure], Counter[str]]:
    """Arrivals and departures, and how many documents make no pods, by why. ``InvalidInput`` where that are all."""
    arrivals: list[Arrival] = []
    skipped: Counter[str] = Counter()
    first_skipped = ""
    departures: list[Departure] = []
    paths: dict[int, str] = {}
    pods = 0
    for number, event in enumerate(request.events):
        at = request.seconds(event.at)
        for path, manifest in _each(event.arrive, ("events", number, "arrive")):
            for kind, count in _arriving(manifest, path, skipped):
                arrivals.append(Arrival(at, kind, count))
                pods += count
            first_skipped = first_skipped or (path if skipped else "")
            if pods > MOST_PODS or len(arrivals) > MOST_KINDS:
                detail = f"a trace has at most {MOST_PODS} pods, and {MOST_KINDS} manifests of them"
                raise InvalidInput.at(path, detail)
        for entry, leaving_pods in enumerate(event.depart):
            departure = Departure(at, f"{leaving_pods.namespace}/{leaving_pods.name}", leaving_pods.count)
            paths[id(departure)] = f"/events/{number}/depart/{entry}"
            departures.append(departure)
    if skipped and not arrivals:
        raise InvalidInput.at(first_skipped, f"nothing comes of it: {next(iter(skipped))}")
    _check_departures(arrivals, departures, paths)
    return arrivals, departures, skipped


def _each(manifests: Sequence[Mapping[str, Any]], at: tuple[str | int, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each manifest with its pointer; lists are taken apart."""
    for number, manifest in enumerate(manifests):
        try:
            items = list(taken_apart(manifest, (*at, number)))
        except ValueError as error:
            where, _, detail = str(error).partition(": ")
            raise InvalidInput.at(where, detail) from None
        for path, item in items:
            if not isinstance(item, Mapping):
                raise InvalidInput.at(pointer(*path), "an object is needed")
            yield pointer(*path), item


def _arriving(manifest: Mapping[str, Any], path: str, skipped: Counter[str]) -> Iterator[tuple[PodKind, int]]:
    if manifest.get("kind") == DAEMON_SET:
        raise InvalidInput.at(f"{path}/kind", "a DaemonSet belongs in daemonSets")
    try:
        workloads = read_workloads([manifest], MOST_PODS, MOST_KINDS)
    except ValueError as error:
        raise _placed(error, path) from None
    skipped.update(workloads.skipped)
    if not workloads.pods:
        return
    metadata = manifest["metadata"]
    app = f"{metadata.get('namespace') or 'default'}/{metadata.get('name') or metadata.get('generateName')}"
    annotations = _annotations(manifest)
    pod = workloads.pods[0][1]
    cost = max(0.0, eviction_cost(_number(annotations.get(_DELETION_COST)), pod.priority))
    yield PodKind(app, pod, cost, _protection(annotations.get(DO_NOT_DISRUPT))), len(workloads.pods)


def _placed(error: ValueError, path: str) -> InvalidInput:
    """The error of a reader of one manifest, at that manifest's place."""
    where, _, detail = str(error).partition(": ")
    return InvalidInput.at(f"{path}{where.removeprefix('/0')}", detail)


def _annotations(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of the pods that the manifest makes."""
    document: Any = manifest
    if manifest["kind"] == CRON_JOB:
        document = manifest["spec"]["jobTemplate"]
    if manifest["kind"] != "Pod":
        document = document["spec"]["template"]
    annotations = (document.get("metadata") or {}).get("annotations")
    return annotations if isinstance(annotations, Mapping) else {}


def _number(text: Any) -> int:
    """Number that a deletion cost says; Kubernetes ignores what is no number."""
    try:
        return int(str(text))
    except ValueError:
        return 0


def _protection(text: Any) -> float:
    if text == "true":
        return FOREVER
    seconds = durations.go_seconds(text) if isinstance(text, str) else None
    return max(0.0, seconds or 0.0)


def _check_departures(arrivals: Sequence[Arrival], departures: Sequence[Departure], paths: Mapping[int, str]) -> None:
    """Raise ``InvalidInput`` where more pods go than there are. At one moment pods go before others come."""
    there: Counter[str] = Counter()
    changes: list[Arrival | Departure] = [*departures, *arrivals]
    changes.sort(key=lambda change: (change.at, isinstance(change, Arrival), getattr(change, "count", 0) is None))
    for change in changes:
        if isinstance(change, Arrival):
            there[change.kind.app] += change.count
            continue
        count = there[change.app] if change.count is None else change.count
        if not there[change.app] or count > there[change.app]:
            detail = f"only {there[change.app]} pods of that name are there before this moment"
            raise InvalidInput.at(paths[id(change)], detail)
        there[change.app] -= count


def _daemons(manifests: Sequence[Mapping[str, Any]], skipped: Counter[str]) -> Mapping[str, model.Pod]:
    """The pods of DaemonSets by namespace and name."""
    pods: dict[str, model.Pod] = {}
    for path, manifest in _each(manifests, ("daemonSets",)):
        if manifest.get("kind") != DAEMON_SET:
            raise InvalidInput.at(f"{path}/kind", "must be DaemonSet")
        try:
            workloads = read_workloads([manifest], MOST_PODS, MOST_KINDS)
        except ValueError as error:
            raise _placed(error, path) from None
        skipped.update(workloads.skipped)
        pods.update(workloads.daemon_sets)
    return pods


# --- nodes ----------------------------------------------------------------------------------------------------------


def _own_supply(node_types: Sequence[TraceNodeType]) -> Supply:
    declared = [_node_type(node_type, number) for number, node_type in enumerate(node_types)]
    return Supply(Catalog(Index.build(declared), {each.name: each for each in declared}, {}, {}, {}))


def _node_type(written: TraceNodeType, number: int) -> NodeType:
    zones = tuple(written.zones or (DEFAULT_ZONE,))
    offerings = [Offering(ON_DEMAND, zones, float(written.usd_per_hour))]
    if written.spot_usd_per_hour is not None:
        offerings.append(Offering(SPOT, zones, float(written.spot_usd_per_hour)))
    try:
        return node_type_of(
            Declaration(
                provider=OF_TRACE,
                name=written.name,
                resources=written.resources,
                properties=written.properties,
                offerings=tuple(offerings),
            )
        )
    except ValueError as error:
        raise InvalidInput.at(f"/nodeTypes/{number}", str(error)) from None


def _cluster_pools(services: Services, cluster: Cluster) -> Sequence[Pool]:
    present = [pool for pool in pools_of(services, cluster.id) if not pool.deleting]
    pools = within_quota(services, cluster, present)
    if not any(pool.kind == DYNAMIC for pool in pools):
        raise InvalidInput.at("/cluster", "it has no dynamic pool")
    return pools


def _own_pools(written: Sequence[TracePool]) -> Sequence[Pool]:
    return [_own_pool(pool) for pool in written or (TracePool(name="default"),)]


def _own_pool(written: TracePool) -> Pool:
    return Pool(
        id=written.name,
        cluster_id="",
        name=written.name,
        created_at="",
        updated_at="",
        kind=DYNAMIC,
        requirements=tuple(requirement.entry() for requirement in written.requirements),
        labels=dict(written.labels),
        taints=tuple(taint.entry() for taint in written.taints),
        limits={name: str(amount) for name, amount in written.limits.items()},
        weight=written.weight or 0,
        disruption=written.disruption.document() if written.disruption is not None else {},
    )


def _priced(pools: Sequence[model.Pool]) -> tuple[list[model.Pool], list[str]]:
    """The pools without what has no known price: such a node would cost nothing in the sum."""
    remarks = []
    priced = []
    for pool in pools:
        node_types = [
            replace(node_type, offerings=offerings)
            for node_type in pool.node_types
            if (offerings := tuple(each for each in node_type.offerings if node_type.money(each) is not None))
        ]
        absent = len(pool.node_types) - len(node_types)
        if absent:
            remarks.append(f"{absent} node types of pool {pool.name} have no known price and are left out.")
        priced.append(replace(pool, node_types=tuple(node_types)))
    return priced, remarks


def _guarded(arrivals: Sequence[Arrival], pools: Sequence[model.Pool]) -> Sequence[Arrival]:
    """Arrivals with pods that exclude the nodes which only others ask for."""
    guard = Guard(pools)
    return [replace(each, kind=replace(each.kind, pod=guard.of(each.kind.pod))) for each in arrivals]


def _left_aside(pool: Pool) -> Iterator[str]:
    if pool.kind != DYNAMIC:
        yield f"Pool {pool.name} is static: its nodes are not replayed."
    elif pool.floor or any(pool.headroom.values()):
        yield f"Floor and headroom of pool {pool.name} are not replayed."


def _surroundings(
    services: Services, stock: Supply, cluster: Cluster | None
) -> tuple[Mapping[str, model.Pod], Mapping[str, int]]:
    """Surroundings of a replay in the state of the cluster: the pods of its DaemonSets as they really are, and how
    many nodes there can be of a type, those that are free now and those that the cluster has."""
    places = Counter(dict(stock.availability.free))
    if cluster is None:
        return {}, places
    claims, report = claims_of(services, cluster.id), workload_of(services, cluster.id)
    if report is not None:
        claims = [node.claim for node in fleet_state(services, cluster, stock, claims, report).nodes.values()]
    for claim in claims:
        if claim.placement is not None and claim.placement.type in places:
            places[claim.placement.type] += 1
    return report.daemons if report is not None else {}, places


def _policies(pools: Sequence[Pool], override: SimulatedPolicy) -> Mapping[str, PoolPolicy]:
    if override.consolidation_policy == NEVER_CONSOLIDATED:
        return {}
    return {
        pool.name: _policy(pool.disruption, override)
        for pool in pools
        if pool.kind == DYNAMIC and not _stays_paused(pool, override)
    }


def _stays_paused(pool: Pool, override: SimulatedPolicy) -> bool:
    """Whether none of the pool's nodes leaves, as it says itself. Who names a ``consolidationPolicy`` asks what that
    would save, also in a pool that is paused now."""
    return pool.kind == DYNAMIC and is_paused(pool) and override.consolidation_policy is None


def _pause_remark(pool: Pool) -> str:
    return f"The disruption of pool {pool.name} is paused: its nodes stay, unless the policy has a consolidationPolicy."


def _policy(own: Mapping[str, Any], override: SimulatedPolicy) -> PoolPolicy:
    after = own.get("consolidateAfter", "0s") if override.consolidate_after is None else override.consolidate_after
    saving = own.get("minimumSaving", 0.0) if override.minimum_saving is None else override.minimum_saving
    budgets = own if override.budgets is None else {"budgets": [budget.entry() for budget in override.budgets]}
    policy = override.consolidation_policy or own.get("consolidationPolicy", WHEN_UNDERUTILIZED)
    return PoolPolicy(policy, durations.seconds(after), budgets_of(budgets), saving)


# --- the answer -----------------------------------------------------------------------------------------------------


def _view(trace: Trace, outcome: Outcome, remarks: Sequence[str]) -> dict[str, Any]:
    def text(at: int) -> str:
        return times.to_text(trace.starts_at + timedelta(seconds=at))

    waits = outcome.waits
    if not outcome.complete:
        used_up = f"The work or the time of one request was used up at {text(outcome.end)}: nothing later is counted."
        remarks = [used_up, *remarks]
    return {
        "complete": outcome.complete,
        "ended_at": text(outcome.end),
        "hours": round(outcome.end / 3600, 6),
        "usd": round(outcome.usd, 6),
        "node_hours": round(outcome.node_seconds / 3600, 6),
        "mean_nodes": round(outcome.mean_nodes, 6),
        "peak_nodes": outcome.peak_nodes,
        "nodes": outcome.nodes,
        "pods": outcome.pods,
        "evictions": outcome.evictions,
        "waits": {"count": waits.count, "longest_seconds": waits.longest, "mean_seconds": round(waits.mean, 3)},
        "decision_count": len(outcome.events),
        "abandoned": outcome.abandoned,
        "decisions": [
            {
                "at": text(event.at),
                "reason": event.reason,
                "nodes": list(event.nodes),
                "replacements": list(event.replacements),
                "evictions": event.evictions,
                "saving": round(event.saving, 6),
            }
            for event in outcome.events[:MOST_DECISIONS]
        ],
        "without_place": [{"name": item.app, "count": item.count, "why": item.why} for item in outcome.homeless],
        "warnings": [{"pointer": "", "detail": detail} for detail in remarks],
    }
