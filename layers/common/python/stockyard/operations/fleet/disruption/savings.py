"""Savings of decisions: the money of the nodes that leave for their price, less that of those that come instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.pools.budgets import UNDERUTILIZED
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.records import NodeClaim
from stockyard.operations.fleet.disruption.fleet import View
from stockyard.operations.fleet.disruption.price_now import weight_of
from stockyard.scheduling.consolidation.model import RunningNode, Settings
from stockyard.scheduling.consolidation.search import own_weight

EPSILON = 1e-9


def price_now(view: View, claim: NodeClaim) -> float:
    """Price of the claim's node in USD an hour, as the catalogue has it now, or else as it was bought."""
    node = next((node for node in view.fleet.nodes if node.name == (claim.node_name or claim.name)), None)
    placed = claim.placement.usd_hour if claim.placement is not None else None
    return (node.usd_hour if node is not None else 0.0) or placed or 0.0


def saved(
    view: View, record: ClusterDisruption, leaving: Sequence[NodeClaim], coming: Sequence[NodeClaim]
) -> Mapping[str, float] | None:
    """Saving of the decision by pool, in USD an hour; None where nodes do not leave for their price. An empty node
    costs nobody a move, and whoever needs one again makes it again: it is no saving of a decision."""
    if record.reason != UNDERUTILIZED:
        return None
    by_pool: defaultdict[str, float] = defaultdict(float)
    for sign, claims in ((1, leaving), (-1, coming)):
        for claim in claims:
            by_pool[claim.pool] += sign * price_now(view, claim)
    return by_pool


def too_little(view: View, leaving: Sequence[RunningNode], coming: Sequence[NodeClaim], *, partly: bool) -> str | None:
    """Reason why the nodes are not worth to leave for their price any more, in words; None: they are. Prices and rules
    may have changed since, and where only some of the nodes may leave, all that was made for them has come."""
    before = sum(node.price for node in leaving)
    saving = before - sum(weight_of(claim, price_now(view, claim)) for claim in coming)
    margin = Settings().margin * before if partly and coming else 0.0
    least = max(
        sum(view.fleet.rules_of(node).minimum_saving for node in leaving), margin, EPSILON + own_weight(leaving)
    )
    if saving >= least:
        return None
    return f"To let {len(leaving)} nodes go would save {saving:.4f} USD an hour, and {least:.4f} is the least."


def summed(record: ClusterDisruption, usd_hour: Mapping[str, float] | None, now: str) -> dict[str, Any]:
    """Savings of decisions of this month, with this one, as fields of the record."""
    if usd_hour is None:
        return {}
    month = now[:7]
    savings: defaultdict[str, float] = defaultdict(float, record.savings if record.savings_month == month else {})
    for pool, usd in usd_hour.items():
        savings[pool] += usd
    rounded = {pool: round(usd, 6) for pool, usd in savings.items()}
    return {"savings": rounded, "savings_month": month, "left_at": now}
