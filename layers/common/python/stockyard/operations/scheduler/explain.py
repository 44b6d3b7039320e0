"""Why a claim got its node type, or none: each node type with its price and the first rule that ruled it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stockyard.domain.node_records import NewClaim
from stockyard.domain.node_views import option_views
from stockyard.domain.pool_limits import PricedType
from stockyard.domain.prices import PriceItem
from stockyard.domain.records import NodeClaim
from stockyard.domain.views import attributes
from stockyard.operations.engine.find import find_claim
from stockyard.operations.node_claims.create import draft_of
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import availability, load
from stockyard.operations.pricing import kept_warnings, plan_of
from stockyard.operations.scheduler.claim_reader import ClaimReader, Refused
from stockyard.operations.services import Services
from stockyard.scheduling.explain import (
    EXTENDED,
    FULL,
    PROVIDER,
    REFUSED,
    UNAVAILABLE,
    Evaluation,
    explain,
    reasons,
)

_FITTING = (None, EXTENDED, FULL, REFUSED, UNAVAILABLE)
"""Rules that leave a node type to a pool: another claim of it, or a later one, may have it."""
MAX_CANDIDATES = 200
"""Node types that an answer lists; ``considered`` counts all."""


def explain_claim(services: Services, id_or_name: str) -> dict[str, Any]:
    """The decision as it was taken, and every node type as it stands now for the claim."""
    claim = find_claim(services, id_or_name)
    evaluations, refused = _evaluations(services, claim)
    placed = claim.placement
    selected = None
    if placed is not None:
        fields = attributes(placed, ("type", "capacity_type", "usd_hour", "cost"))
        selected = {**fields, "provider": placed.type.partition(".")[0], "zones": list(placed.zones)}
    message = "; ".join(reason.message for reason in reasons(evaluations))
    return {
        "claim": claim.id,
        "decided_at": placed.decided_at if placed else None,
        "chosen": selected,
        "options": option_views(placed) if placed else [],
        "candidates": [_candidate(evaluation) for evaluation in evaluations[:MAX_CANDIDATES]],
        "considered": placed.considered if placed and placed.considered else _counted(evaluations),
        "message": refused or claim.message or (f"{message}." if message else ""),
    }


def _evaluations(services: Services, claim: NodeClaim) -> tuple[Sequence[Evaluation], str]:
    catalog = load(services)
    request = ClaimReader(services, catalog, allowed_types(services)).read(claim)
    if isinstance(request, Refused):
        return (), request.message
    return explain(catalog.index, request, availability(services, catalog, services.clock.now())), ""


def _candidate(evaluation: Evaluation) -> dict[str, Any]:
    node_type = evaluation.node_type
    fields = attributes(evaluation, ("capacity_type", "usd_hour", "cost", "rule", "message"))
    return {"type": node_type.name, "provider": node_type.provider, **fields}


def _counted(evaluations: Sequence[Evaluation]) -> dict[str, int]:
    return dict(Counter(evaluation.rule or "Fits" for evaluation in evaluations))


def plan_claim(services: Services, request: NewClaim) -> dict[str, Any]:
    """The dry run of a creation: where it would be placed, at what price, and what was ruled out."""
    draft = draft_of(services, request, "", None)
    best, rejected, refused = cheapest(services, draft)
    creates = [{"kind": "node-claim", "name": draft.name}]
    items: list[PriceItem] = []
    if best is not None:
        creates.append({"kind": "node", "name": best.node_type.name})
        items = [PriceItem(f"{best.node_type.name} ({best.capacity_type})", 1, best.usd_hour)]
    waits = [{"pointer": "", "detail": refused or "No node type fits now: it will wait."}]
    warnings = [*([] if best is not None else waits), *kept_warnings(draft.keep_failed, items)]
    return plan_of(items, creates=creates, rejected=rejected, warnings=warnings)


def fitting_types(services: Services, claim: NodeClaim) -> list[PricedType]:
    """The node types that the claim, or one that asks for what only some have, could get now or when they are free,
    each with the price of the cheapest way to it."""
    evaluations, _ = _evaluations(services, claim)
    return [PricedType(v.node_type, v.usd_hour) for v in evaluations if v.rule in _FITTING]


def cheapest(services: Services, claim: NodeClaim) -> tuple[Evaluation | None, list[dict[str, str]], str]:
    """The way that the claim would be placed now, if any; what was ruled out and why; why it cannot be placed at all,
    empty where that is not so."""
    evaluations, refused = _evaluations(services, claim)
    best = next((evaluation for evaluation in evaluations if evaluation.selected), None)
    # Who names a provider asks for none of the others' types.
    against = (v for v in evaluations if v.rule not in (None, PROVIDER))
    rejected = [{"pointer": "", "detail": f"{v.node_type.name}: {v.message}"} for v in against]
    return best, rejected[:MAX_CANDIDATES], refused
