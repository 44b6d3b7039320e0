"""Compare nodes with new nodes of their provider and pool, and write the differences on their claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice

from stockyard.domain.nodes.disks import with_disk
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.nodes.prices import price_in
from stockyard.domain.nodes.properties import node_labels
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.domain.values.requirements import ZONE, Requirements
from stockyard.errors import Conflict, StockyardError
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes import drift, pool_drift
from stockyard.lifecycle.nodes.node_claim import FAILED, launched
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED
from stockyard.lifecycle.pools.spread import spread_requirements
from stockyard.operations.engine.advance import WORKFLOW_ACTOR
from stockyard.operations.engine.tell import tell
from stockyard.operations.listing import every
from stockyard.operations.node_providers.catalog import provider_node_types
from stockyard.operations.node_providers.visible import users
from stockyard.operations.services import Services
from stockyard.ports import Replace
from stockyard.ports.node_work import NodeWork

MOST = 200
"""Claims that one look after a change writes at most; the sweep goes on with the others."""
DRIFTED, UNDRIFTED = "drifted", "undrifted"


def as_launched(services: Services, work: NodeWork, facts: Mapping[str, str]) -> dict[str, object]:
    """The fields of a claim that its launch decides: which of the options it became, its labels, its fingerprint.

    The provider is the one that the launch was done by, so that a later change of it counts.
    """
    claim = work.claim
    if claim.placement is None:
        return {}
    placement = launched(claim.placement, facts)
    node_type = next(
        (candidate for candidate in provider_node_types(services, work.provider) if candidate.name == placement.type),
        None,
    )
    if node_type is not None:
        placement = _priced(placement, with_disk(node_type, claim.properties), _zone_ids(services, work))
    labels = node_labels(node_type, claim, placement)
    fingerprint = drift.fingerprint(work.provider, replace(claim, node_labels=labels), placement, offered=True)
    return {
        "placement": placement,
        "type_ref": placement.type,
        "node_labels": {**labels, **_zone_id(services, work, labels.get(ZONE, ""))},
        "drift_hash": fingerprint,
        "kubernetes_version": _minor(work),
        "drift_reasons": (),
        "reserved_until": facts.get("reserved_until"),
    }


def _priced(placement: Placement, node_type: NodeType, ids: Mapping[str, str]) -> Placement:
    """The placement at the price of the zone in which the machine stands, where prices differ by zone."""
    alike = (
        spot_offering
        for spot_offering in node_type.offerings
        if spot_offering.capacity_type == placement.capacity_type and spot_offering.zone_prices
    )
    spot_offering = next(alike, None)
    if spot_offering is None or len(placement.zones) != 1 or not set(placement.zones) <= ids.keys():
        return placement
    price = price_in(spot_offering, placement.zones, ids)
    if price is None:
        return placement
    offering = replace(spot_offering, usd_hour=price)
    return replace(placement, usd_hour=node_type.money(offering), cost=node_type.rank(offering))


def _zone_id(services: Services, work: NodeWork, zone: str) -> Mapping[str, str]:
    """The label that says the id of the zone, where the node's source knows it."""
    source = services.node_sources.get(work.provider.kind)
    label = source.zone_id_label if source is not None else None
    zone_id = _zone_ids(services, work).get(zone)
    return {label: zone_id} if label is not None and zone_id else {}


def _zone_ids(services: Services, work: NodeWork) -> Mapping[str, str]:
    source = services.node_sources.get(work.provider.kind)
    return source.zone_ids(work.provider, work.environment) if source is not None else {}


def _minor(work: NodeWork) -> str:
    """The minor of Kubernetes that the node is made with: members of a control plane get a new one first."""
    if work.cluster is None:
        return ""
    return work.cluster.kubernetes_version if work.claim.control_plane else work.cluster.node_minor


def compare_providers(services: Services, provider_ids: Iterable[str]) -> int:
    """Compare the nodes of providers that were changed. Returns how many claims say something else now.

    Of shared ones, one tenant's failure keeps none of the others; the first is raised when all were looked at.
    """
    records = (services.store.get(NodeProvider, provider_id) for provider_id in provider_ids)
    having: dict[str, tuple[Services, dict[str, NodeProvider]]] = {}
    for provider in [record for record in records if record is not None]:
        for user in users(services, provider):
            having.setdefault(user.tenant, (user, {}))[1][provider.id] = provider
    count = 0
    failures: list[StockyardError] = []
    for user, changed in having.values():
        nodes = ((claim, claim.placement) for claim in every(user.store, NodeClaim))
        comparisons = (compare(user, changed.get(at.provider_id), claim) for claim, at in nodes if at)
        try:
            count += sum(1 for _ in islice(filter(None, comparisons), MOST))
        except StockyardError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return count


def compare(services: Services, provider: NodeProvider | None, claim: NodeClaim) -> str | None:
    """Compare one node with its provider; what its claim says since, None when that is what it said before.

    What somebody else has just changed, claim or provider, is left to the next look.
    """
    placed = claim.placement
    if provider is None or placed is None or placed.provider_id != provider.id or not claim.drift_hash:
        return None
    if claim.deleting or claim.phase == FAILED:
        return None
    source = services.node_sources.get(provider.kind)
    offered = source.still_offers(provider, placed) if source is not None else None
    offered = drift.still_declared(provider, placed) if offered is None else offered
    now = drift.fingerprint(provider, claim, placed, offered=offered)
    noted_drift = drift.note_drift(claim, drift.differences(claim.drift_hash, now), services.now())
    latest = services.store.get(NodeProvider, provider.id) if noted_drift is not None else None
    if noted_drift is None or latest is None or latest.version != provider.version:
        return None
    return note(services, *noted_drift)


def compare_pool(services: Services, pool: Pool, claims: Iterable[NodeClaim], most: int, nodes_since: str = "") -> int:
    """Compare the nodes of a pool with what it would make now. Returns how many claims say something else since, at
    most ``most``: then others may be left. Nodes that were made before ``nodes_since`` have drifted in any case.

    Only nodes are compared: a claim without a machine has drifted from nothing yet. What somebody else has just changed
    is left to the next look.
    """
    requirements, current_hash = Requirements.of(spread_requirements(pool)), pool_drift.template_hash(pool)
    now = services.now()
    noted = (
        drift.note_drift(
            claim,
            pool_drift.pool_drift(pool, requirements, current_hash, claim, nodes_since),
            now,
            pool_drift.REASONS,
        )
        for claim in claims
        if _is_node(claim)
    )
    return sum(note(services, *changed) is not None for changed in islice(filter(None, noted), most))


def _is_node(claim: NodeClaim) -> bool:
    launched_once = any(condition.type == NOT_DRIFTED for condition in claim.conditions)
    return launched_once and not claim.deleting and claim.phase != FAILED


def note(services: Services, claim: NodeClaim, transition: Transition) -> str | None:
    """Write what a claim says now, with an event; None when somebody else has changed the claim meanwhile."""
    claim = replace(claim, sequence=claim.sequence + 1)
    try:
        services.store.commit(Replace(claim), *tell(services, WORKFLOW_ACTOR, claim, transition))
    except Conflict:
        return None
    return UNDRIFTED if transition.reason == drift.AS_LAUNCHED else DRIFTED
