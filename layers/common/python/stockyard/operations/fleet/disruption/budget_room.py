"""Decisions whose nodes cannot be replaced now, as a month's budget has no room: they wait, and nothing leaves.

What waits goes on when there is room, so nothing of it is given up or held. Only nodes that are empty may leave
meanwhile: they give room.
"""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.month_budgets import BUDGET_REACHED
from stockyard.domain.pools.budgets import DRIFTED, EXPIRED
from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.lifecycle.disruption.update_strategy import allowance, size_of
from stockyard.lifecycle.pools.pool import living
from stockyard.operations.costs.budgets import budgets_over
from stockyard.operations.fleet.explain import cheapest
from stockyard.operations.fleet.pools.claims import draft_claim
from stockyard.operations.services import Services


def waits_for_budget(claim: NodeClaim) -> bool:
    """Whether a budget keeps the claim from being bound."""
    return claim.phase == "Pending" and claim.placement is None and claim.reason == BUDGET_REACHED


def lacking_room(
    services: Services,
    pools: Sequence[Pool],
    claims: Sequence[NodeClaim],
    record: ClusterDisruption,
    going: Sequence[NodeClaim],
) -> str | None:
    """The reason why a decision has no room in a budget; None: it has. Only nodes that have to be others wait for it:
    what leaves for its price, or because it is empty, finds other ways to save."""
    if record.reason not in (DRIFTED, EXPIRED):
        return None
    names = {claim.pool for claim in going}
    coming = [
        claim
        for claim in living(claims)
        if (claim.id in record.replacements if record.replacements else claim.pool in names)
    ]
    waiting = list(filter(waits_for_budget, coming))
    if waiting:
        return f"room for {waiting[0].name}: {waiting[0].message}".removesuffix(".")
    if record.reason != DRIFTED or record.leaving:
        return None
    texts = (_before_others(services, pool, claims, going) for pool in pools if pool.name in names)
    return next(filter(None, texts), None)


def _before_others(
    services: Services, pool: Pool, claims: Sequence[NodeClaim], going: Sequence[NodeClaim]
) -> str | None:
    """The reason why nodes of a pool that lets them go before others come may not go: once they are gone, budgets may
    have no room for the next ones."""
    allowed = allowance(pool, size_of(pool, claims))
    own = [claim for claim in going if claim.pool == pool.name]
    if allowed is None or not allowed.unavailable or not own:
        return None
    budgets = budgets_over(services, [(pool.cluster_id, pool.name)])
    cluster = services.store.get(Cluster, pool.cluster_id) if budgets else None
    if cluster is None:
        return None
    best, _ = cheapest(services, draft_claim(services, cluster.id, pool), "")
    price = best.usd_hour if best is not None else None
    freed = sum(claim.placement.usd_hour or 0.0 for claim in own if claim.placement is not None)
    from stockyard.operations.costs.kept_sums import ledger_now

    for budget in ledger_now(services, budgets).budgets:
        if price is None or not budget.allows(price * len(own) - freed):
            return f"room in the month's budget of {budget.name}, {budget.usd:.2f} USD for {budget.month}"
    return None
