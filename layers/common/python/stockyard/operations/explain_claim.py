"""Why a claim got its node type, or none: each node type with its price and the first rule that ruled it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stockyard.domain.records import NodeClaim
from stockyard.operations.allowed_types import allowed_types
from stockyard.operations.claims import find_claim
from stockyard.operations.create_claim import NewClaim, draft_of
from stockyard.operations.node_catalog import load, state
from stockyard.operations.plan_cluster import PriceItem, price
from stockyard.operations.services import Services
from stockyard.operations.wishes import Refused, Wishes
from stockyard.scheduling.explain import PROVIDER, Verdict, explain, reasons

SHOWN = 200
"""Node types that an answer lists; ``considered`` counts all."""


def explain_claim(services: Services, id_or_name: str) -> dict[str, Any]:
    """The decision as it was taken, and every node type as it stands now for the claim."""
    claim = find_claim(services, id_or_name)
    verdicts, refused = _verdicts(services, claim)
    placed = claim.placement
    chosen = None
    if placed is not None:
        chosen = {
            "type": placed.type,
            "provider": placed.type.partition(".")[0],
            "capacity_type": placed.capacity_type,
            "zones": list(placed.zones),
            "usd_hour": placed.usd_hour,
            "cost": placed.cost,
        }
    found = "; ".join(one.message for one in reasons(verdicts))
    return {
        "claim": claim.id,
        "decided_at": placed.decided_at if placed else None,
        "chosen": chosen,
        "options": [dict(option) for option in placed.options] if placed else [],
        "candidates": [_shown(verdict) for verdict in verdicts[:SHOWN]],
        "considered": placed.considered if placed and placed.considered else _counted(verdicts),
        "message": refused or claim.message or (f"{found}." if found else ""),
    }


def _verdicts(services: Services, claim: NodeClaim) -> tuple[Sequence[Verdict], str]:
    catalog = load(services)
    wanted = Wishes(services, catalog, allowed_types(services)).read(claim)
    if isinstance(wanted, Refused):
        return (), wanted.message
    return explain(catalog.index, wanted, state(services, catalog, services.clock.now())), ""


def _shown(verdict: Verdict) -> dict[str, Any]:
    return {
        "type": verdict.kind.name,
        "provider": verdict.kind.provider,
        "capacity_type": verdict.capacity_type,
        "usd_hour": verdict.usd_hour,
        "cost": verdict.cost,
        "rule": verdict.rule,
        "message": verdict.message,
    }


def _counted(verdicts: Sequence[Verdict]) -> dict[str, int]:
    return dict(Counter(verdict.rule or "Fits" for verdict in verdicts))


def plan_claim(services: Services, wanted: NewClaim) -> dict[str, Any]:
    """The dry run of a creation: where it would be placed, at what price, and what was ruled out."""
    draft = draft_of(services, wanted, "", None)
    verdicts, refused = _verdicts(services, draft)
    best = next((verdict for verdict in verdicts if verdict.chosen), None)
    creates = [{"kind": "node-claim", "name": draft.name}]
    items: list[PriceItem] = []
    if best is not None:
        creates.append({"kind": "node", "name": best.kind.name})
        items = [PriceItem(f"{best.kind.name} ({best.capacity_type})", 1, best.usd_hour)]
    # Who names a provider asks for none of the others' types.
    against = (v for v in verdicts if v.rule not in (None, PROVIDER))
    rejected = [{"pointer": "", "detail": f"{v.kind.name}: {v.message}"} for v in against]
    warnings = (
        [] if best is not None else [{"pointer": "", "detail": refused or "No node type fits now: it will wait."}]
    )
    return {
        "creates": creates,
        "changes": [],
        "deletes": [],
        "price": price(items),
        "rejected": rejected[:SHOWN],
        "warnings": warnings,
    }
