"""Count the nodes that stand on a limited type without having taken a place of it.

A claim that is bound to a limited type takes its place by the same write. One that was bound while the type was not
limited, or that only its launch made one of the type, takes it here. The limit is not asked: what is there is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.declared_types import capacity_counter, declared
from stockyard.domain.nodes.node_types import canonical
from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict
from stockyard.lifecycle.nodes import node_claim as lifecycle
from stockyard.operations.listing import every
from stockyard.operations.node_providers.catalog import stock_of
from stockyard.operations.node_providers.visible import users
from stockyard.operations.services import Services
from stockyard.ports import Add, Replace

BATCH = 50
"""Claims of one transaction. It takes a hundred writes, but one claim that was changed makes it start over."""

Counters = Mapping[tuple[str, str], str]
"""The counter of each limited type by its provider's id and its canonical name."""


def counters_of(services: Services, providers: Iterable[NodeProvider]) -> Counters:
    """The counters of the types that these providers limit, by their documents or because machines are counted."""
    providers = list(providers)
    counters = dict(_declared_counters(providers))
    for provider in providers:
        stock = stock_of(services, provider)
        for name in stock.totals if stock is not None else ():
            counters[(provider.id, canonical(provider.name, name))] = capacity_counter(provider, name)
    return counters


def _declared_counters(providers: Iterable[NodeProvider]) -> Counters:
    return {
        (provider.id, canonical(provider.name, declaration.name)): capacity_counter(provider, declaration.name)
        for provider in providers
        for declaration in declared(provider)
        if declaration.max_capacity is not None
    }


def becomes_limited(before: NodeProvider, after: NodeProvider) -> bool:
    """Whether a change of the document limits a type that was not limited."""
    return not _declared_counters([after]).keys() <= _declared_counters([before]).keys()


def lacking(counters: Counters, claim: NodeClaim) -> str | None:
    """The counter that has to count the claim's node and does not; None when there is none.

    A claim on its way out has its node until it is gone. One that failed has none.
    """
    placed = claim.placement
    if placed is None or placed.counted or claim.phase == lifecycle.FAILED:
        return None
    return counters.get((placed.provider_id, placed.type))


def take_over(services: Services, counters: Counters, claims: Iterable[NodeClaim]) -> int:
    """Count those of the tenant's ``claims`` that are not; how many were. One that was changed since it was read is
    left to the next look: its version keeps it from being counted twice."""
    uncounted: dict[str, list[NodeClaim]] = {}
    for claim in claims:
        counter = lacking(counters, claim)
        if counter is not None:
            uncounted.setdefault(counter, []).append(claim)
    return sum(
        _count(services, counter, uncounted_claims[start : start + BATCH])
        for counter, uncounted_claims in uncounted.items()
        for start in range(0, len(uncounted_claims), BATCH)
    )


def take_over_all(services: Services, provider: NodeProvider) -> int:
    """Count all nodes of the types that the provider's document limits, of a shared one those of every tenant."""
    counters = counters_of(services, [provider])
    return sum(take_over(user, counters, every(user.store, NodeClaim)) for user in users(services, provider))


def _count(services: Services, counter: str, claims: Sequence[NodeClaim]) -> int:
    """Count these in one transaction, without what was changed meanwhile."""
    remaining = list(claims)
    while remaining:
        try:
            services.store.commit(*(Replace(_counted(claim)) for claim in remaining), Add(counter, len(remaining)))
        except Conflict as conflict:
            if conflict.index is None or conflict.index >= len(remaining):
                raise
            del remaining[conflict.index]
            continue
        break
    return len(remaining)


def _counted(claim: NodeClaim) -> NodeClaim:
    # Neither news for anybody nor work on the claim: ``updated_at`` stays, from which a drain is timed.
    placement = None if claim.placement is None else replace(claim.placement, counted=True)
    return replace(claim, placement=placement, version=claim.version + 1)
