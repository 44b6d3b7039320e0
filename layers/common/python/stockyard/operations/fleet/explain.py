"""Reasons why a claim got its node type, or none: each node type with its price and the first rule that ruled it
out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.clusters import overlay
from stockyard.domain.nodes.disks import price_with_disk
from stockyard.domain.nodes.node_types import NodeType, offering_text
from stockyard.domain.nodes.records import NewClaim, Placement
from stockyard.domain.nodes.views import option_views
from stockyard.domain.pools.limits import PricedType
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider
from stockyard.domain.values.prices import PriceItem
from stockyard.domain.values.quantities import resource_text
from stockyard.domain.views import attributes
from stockyard.operations.costs.plan_notes import budget_warnings, known_hour
from stockyard.operations.engine.find import find_claim
from stockyard.operations.fleet import opting_in
from stockyard.operations.fleet.cures import cures_of
from stockyard.operations.fleet.planned_runs import planned_run
from stockyard.operations.fleet.state import fleet_state, workload_of
from stockyard.operations.fleet.templates import supply
from stockyard.operations.machines import overlay_paths
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.node_claims.create import draft_of
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import availability, load
from stockyard.operations.node_providers.of_account import missing_provider
from stockyard.operations.node_providers.reach import egress_text, network_of
from stockyard.operations.node_providers.run_costs import run_notes
from stockyard.operations.pricing import kept_warnings, plan_of
from stockyard.operations.scheduler.claim_reader import ClaimReader, Refused, unnamed_cluster
from stockyard.operations.services import Services
from stockyard.scheduling.explain import (
    EXTENDED,
    FULL,
    NOT_ASKED,
    REFUSED,
    UNAVAILABLE,
    UNSERVED,
    Evaluation,
    explain,
)
from stockyard.scheduling.verdict import FITS, Group, excluded, groups, of_interest, verdict

_FOR_SOME_PODS = (EXTENDED, UNSERVED, NOT_ASKED)
"""Rules that leave a node type to some pods."""
_FITTING = (None, EXTENDED, UNSERVED, FULL, REFUSED, UNAVAILABLE)
"""Rules that leave a node type to a pool: another claim of it, or a later one, may have it."""
MAX_CANDIDATES = 200
"""Node types that an answer lists; ``considered`` counts all."""


def explain_claim(services: Services, id_or_name: str, *, with_cures: bool = False) -> dict[str, Any]:
    """The decision as it was taken, and every node type as it stands now for the claim; ``with_cures`` also what would
    get a machine for a claim that waits."""
    claim = find_claim(services, id_or_name)
    evaluations, relevant, refused, opt_in = _evaluations(services, claim)
    placed = claim.placement
    selected = None
    if placed is not None:
        fields = attributes(placed, ("type", "capacity_type", "usd_hour", "cost", "owned"))
        selected = {**fields, "provider": placed.type.partition(".")[0], "zones": list(placed.zones)}
    message = "; ".join(group.sentence for group in excluded(relevant))
    return {
        "claim": claim.id,
        "decided_at": placed.decided_at if placed else None,
        "chosen": selected,
        "options": option_views(placed) if placed else [],
        "passed_over": placed.passed_over if placed else {},
        "groups": _group_views(groups(relevant)),
        "candidates": [_candidate(evaluation) for evaluation in evaluations[:MAX_CANDIDATES]],
        "considered": placed.considered if placed and placed.considered else _counted(evaluations),
        "message": refused or claim.message or (f"{message}." if message else ""),
        "opt_in": opt_in,
        **_bound(claim, evaluations),
        "node": _node_view(services, claim),
        "cures": cures_of(services, claim) if with_cures else None,
        "network": _network_text(services, claim),
    }


def _bound(claim: NodeClaim, evaluations: Sequence[Evaluation]) -> dict[str, float | None]:
    """Least price of the machines that fit the claim now, and the part of its own price above that. Every type was
    looked at, so no machine costs less; where a price is not known, or own machines come first, nobody can say that.
    """
    placed = claim.placement
    prices = [judged.usd_hour for judged in evaluations if judged.rule is None]
    own = [placed.usd_hour] if placed is not None else []
    known_prices = [price for price in (*prices, *own) if price is not None]
    is_owned = placed is not None and placed.owned
    if is_owned or not prices or len(known_prices) < len(prices) + len(own):
        return {"bound": None, "gap": None}
    bound = min(known_prices)
    gap = own[0] / bound - 1 if own and own[0] is not None and bound > 0 else None
    return {"bound": round(bound, 6), "gap": None if gap is None else round(gap, 6)}


def _network_text(services: Services, claim: NodeClaim) -> str | None:
    """Network of the claim's machine and its path in the cluster's overlay; None without an overlay or a machine
    there."""
    cluster = services.store.get(Cluster, claim.cluster_id) if claim.cluster_id else None
    if cluster is None or overlay.range_of(cluster.settings) is None:
        return None
    paths = overlay_paths.paths_of(services, cluster, claims_of(services, cluster.id))
    path_text = overlay_paths.sentence(paths, claim.id) if paths is not None else None
    placed = claim.placement
    provider = services.store.get(NodeProvider, placed.provider_id) if placed is not None and path_text else None
    if provider is None:
        return path_text
    egress = egress_text(services, cluster, provider)
    network = network_of(services.node_sources.get(provider.kind), provider)
    return "; ".join(filter(None, (network, path_text, egress)))


def egress_warnings(services: Services, claim: NodeClaim, best: Evaluation | None) -> list[dict[str, Any]]:
    """Warning of a plan whose nodes stand in another network than their cluster, where what goes there is billed."""
    cluster = services.store.get(Cluster, claim.cluster_id) if claim.cluster_id and best is not None else None
    if cluster is None or best is None or overlay.range_of(cluster.settings) is None:
        return []
    provider = load(services).providers.get(best.node_type.provider)
    text = egress_text(services, cluster, provider) if provider is not None else None
    if text is None:
        return []
    name = best.node_type.provider
    return [{"pointer": "", "detail": f"A node of {name} stands in another network: {text}. It is in no price here."}]


def _node_view(services: Services, claim: NodeClaim) -> dict[str, Any] | None:
    """The claim's node as its cluster's state has it; None for a claim that is no node now, and where no agent
    has told of the cluster yet."""
    cluster = services.store.get(Cluster, claim.cluster_id) if claim.cluster_id else None
    workload = workload_of(services, cluster.id) if cluster is not None else None
    if cluster is None or workload is None:
        return None
    states = fleet_state(services, cluster, supply(services, cluster), [claim], workload).nodes.values()
    state = next((state for state in states if state.claim.id == claim.id), None)
    if state is None:
        return None
    node = state.node
    return {
        "name": node.name,
        "reported": node.initialized and state.facts is not None,
        "unschedulable_reason": state.unschedulable_reason,
        "taints": [
            "".join((taint.key, f"={taint.value}" * bool(taint.value), f":{taint.effect}")) for taint in node.taints
        ],
        "free": {name: resource_text(name, amount) for name, amount in sorted(node.free.items()) if amount > 0},
    }


def _evaluations(
    services: Services, claim: NodeClaim, *, ahead: bool = False, draft: Cluster | None = None
) -> tuple[Sequence[Evaluation], Sequence[Evaluation], str, str]:
    """Every node type, the instructive ones among them, the reason of a claim that cannot be placed, and the savings of
    a wider request. ``ahead``: as it will be when the claim's cluster is ready. ``draft``: its cluster, which may not
    be written yet."""
    catalog = load(services)
    request = ClaimReader(services, catalog, allowed_types(services), ahead=ahead, draft=draft).read(claim)
    if isinstance(request, Refused):
        return (), (), request.message, ""
    now = availability(services, catalog, services.clock.now())
    evaluations = [
        replace(judged, usd_hour=price_with_disk(judged.usd_hour, judged.node_type, claim.properties))
        for judged in explain(catalog.index, request, now)
    ]
    best = next((judged.usd_hour for judged in evaluations if judged.selected), None)
    price = claim.placement.usd_hour if claim.placement is not None else best
    is_own = any(judged.selected and judged.node_type.owned for judged in evaluations)
    # What is owned comes first whatever it costs: no other way of asking would be taken in its place.
    price = None if is_own or (claim.placement is not None and claim.placement.owned) else price
    opt_in = opting_in.of_request(catalog.index, request, now, claim.properties, price)
    return evaluations, of_interest(evaluations, request), "", opt_in


def _group_views(listed_groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [attributes(group, ("rule", "message", "count", "types")) for group in listed_groups]


def _candidate(evaluation: Evaluation) -> dict[str, Any]:
    node_type = evaluation.node_type
    fields = attributes(evaluation, ("capacity_type", "usd_hour", "cost", "rule", "message"))
    return {"type": node_type.name, "provider": node_type.provider, "owned": node_type.owned, **fields}


def _counted(evaluations: Sequence[Evaluation]) -> dict[str, int]:
    return dict(Counter(evaluation.rule or FITS for evaluation in evaluations))


def plan_claim(services: Services, request: NewClaim, *, with_run: bool = False) -> dict[str, Any]:
    """The dry run of a creation: where it would be placed, at what price, and what was ruled out; ``with_run`` also the
    run of a template that would make its node."""
    draft = draft_of(services, request, "", None)
    best, judged = cheapest(services, draft, "it will wait")
    creates = [{"kind": "node-claim", "name": draft.name}]
    # What a node costs that nothing is known of, nobody knows.
    items = [PriceItem("1 node", 1, None)]
    if best is not None:
        creates.append({"kind": "node", "name": best.node_type.name})
        items = [
            PriceItem(f"{best.node_type.name} ({offering_text(best.node_type, best.capacity_type)})", 1, best.usd_hour)
        ]
    waits = [{"pointer": "", "detail": judged["verdict"]}]
    warnings = [*([] if best is not None else waits), *kept_warnings(draft.keep_failed, items)]
    warnings += budget_warnings(services, draft.cluster_id, "", known_hour(items))
    if best is not None:
        warnings += run_notes(services, load(services).providers.get(best.node_type.provider), best.node_type)
    warnings += egress_warnings(services, draft, best)
    run: dict[str, Any] = {}
    if with_run:
        planned, reason = _planned_run(services, draft, best)
        run = {"run": planned}
        warnings += [{"pointer": "", "detail": reason}] if reason is not None else []
    return {**plan_of(items, creates=creates, warnings=warnings, **judged), **run}


def _planned_run(
    services: Services, draft: NodeClaim, best: Evaluation | None
) -> tuple[dict[str, Any] | None, str | None]:
    """The run that would make the node of the best way, and why there is none."""
    if best is None or best.capacity_type is None or best.cost is None:
        return None, "No node would be made now, so there is no run to plan."
    provider = load(services).providers.get(best.node_type.provider)
    placement = Placement(
        provider_id=provider.id if provider is not None else "",
        type=best.node_type.name,
        capacity_type=best.capacity_type,
        zones=best.zones,
        cost=best.cost,
        decided_at=services.now(),
        usd_hour=best.usd_hour,
    )
    return planned_run(services, provider, draft, placement)


def kept_for_pods(types: Sequence[NodeType], asked_keys: Collection[str] = ()) -> str:
    """Words of a plan about node types that only some pods get; ``asked_keys`` are labels by which these ask."""
    names = ", ".join(sorted({*asked_keys, *(name for node_type in types for name in node_type.extended())}))
    single = len(types) == 1
    text = f"{len(types)} node type{'' if single else 's'} {'is' if single else 'are'} left"
    text += f", for pods that ask for {names}" if names else ""
    reasons = sorted({node_type.unserved or "" for node_type in types})
    if "" in reasons:
        return f"{text}."
    return f"{text}, and no node of {'it' if single else 'them'} can be made yet: {'; '.join(reasons)}."


def fitting_types(services: Services, cluster: Cluster, claim: NodeClaim) -> list[PricedType]:
    """The node types that the claim of the cluster, or a narrower one, could get now or once they are free and the
    cluster is ready, each with the price of its cheapest launch."""
    evaluations, *_ = _evaluations(services, claim, ahead=True, draft=cluster)
    return [PricedType(v.node_type, v.usd_hour) for v in evaluations if v.rule in _FITTING]


def cheapest(
    services: Services,
    claim: NodeClaim,
    waits: str,
    *,
    for_pods: bool = False,
    ahead: bool = False,
    draft: Cluster | None = None,
) -> tuple[Evaluation | None, dict[str, Any]]:
    """The way that the claim would be placed now, if any, and what a plan says of that: the ``verdict``, node types in
    ``groups``, and one by one those that were ``rejected``. ``waits`` says what happens when nothing fits.

    ``for_pods``: the claim stands for those that pods will ask for. Where nothing else fits, node types are not
    rejected that are kept for pods which ask for what they have; the verdict tells of them. ``ahead``: a cluster that
    is not ready is taken as it will be, with zones that nobody knows yet. ``draft``: the claim's cluster, which may not
    be written yet.
    """
    _, relevant, refused, opt_in = _evaluations(services, claim, ahead=ahead, draft=draft)
    best = next((evaluation for evaluation in relevant if evaluation.selected), None)
    limited_types = [v for v in relevant if v.rule in _FOR_SOME_PODS] if for_pods and best is None else []
    if limited_types and not refused:
        asked_keys = {v.subject for v in limited_types if v.rule == NOT_ASKED}
        refused = kept_for_pods([v.node_type for v in limited_types], asked_keys)
        relevant = [v for v in relevant if v.rule not in _FOR_SOME_PODS]
    rejected = [{"pointer": "", "detail": f"{v.node_type.name}: {v.message}"} for v in relevant if v.rule is not None]
    lacking = unnamed_cluster(claim) if best is None else None
    advice = opt_in
    if best is None and not claim.provider_ref:
        cluster = draft or (services.store.get(Cluster, claim.cluster_id) if claim.cluster_id else None)
        advice = missing_provider(services, cluster, load(services).providers)
    judged = {
        "verdict": refused or lacking or " ".join(filter(None, (verdict(relevant, waits=waits), advice))),
        "groups": _group_views(excluded(relevant)),
    }
    return best, {**judged, "rejected": rejected[:MAX_CANDIDATES]}
