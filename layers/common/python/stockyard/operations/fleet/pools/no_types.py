"""Whether there is a node type that a pool can ever have as things are, and if not, why.

What is only taken, refused a short while ago or not available now does not count here: that passes by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.limits import PricedType, too_small
from stockyard.domain.pools.records import GROUP, Pool
from stockyard.domain.records import Cluster
from stockyard.domain.values.quantities import milli
from stockyard.lifecycle.pools.pool import wanted_nodes
from stockyard.operations.fleet.explain import kept_for_pods
from stockyard.operations.fleet.pools.claims import claim_of_pool
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import Catalog, load
from stockyard.operations.node_providers.of_account import missing_provider
from stockyard.operations.scheduler.claim_reader import ClaimReader, Refused
from stockyard.operations.services import Services
from stockyard.scheduling.explain import EXTENDED, UNSERVED, Evaluation, explain, too_few
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest, choose, possible_offerings
from stockyard.scheduling.order import RankedOffering
from stockyard.scheduling.verdict import of_interest, refusal

NO_TYPE_YET = "There is no node type yet. Register a node provider that has some."


def why_no_types(services: Services, cluster: Cluster, pool: Pool) -> str | None:
    """Reason why no node of the pool can be made, whatever pods wait; None where one can."""
    catalog = load(services)
    if pool.form == GROUP and pool.provider_ref not in catalog.providers:
        return None  # It is made with the first node that the group needs.
    claim = claim_of_pool(pool, cluster.id, pool.id, pool.name, services.now())
    request = ClaimReader(services, catalog, allowed_types(services)).read(claim)
    if isinstance(request, Refused):
        return request.message
    for_pods = not wanted_nodes(pool)
    nothing_taken = Availability({name: limit.total for name, limit in catalog.limits.items()})
    offerings = _offerings(catalog.index, request, nothing_taken, for_pods=for_pods)
    if not offerings and _come_back(catalog, request, nothing_taken, for_pods=for_pods):
        return None
    if offerings:
        return _beyond_limits(pool, offerings)
    missing = missing_provider(services, cluster, catalog.providers) if not pool.provider_ref else ""
    return " ".join(filter(None, (missing, _why(catalog, request, nothing_taken, for_pods=for_pods))))


def _offerings(
    index: Index, request: SchedulingRequest, nothing_taken: Availability, *, for_pods: bool
) -> Sequence[RankedOffering]:
    """Offerings that the pool's nodes can be: those of a floor and of a static pool what its claims ask for, others
    also what only some pods ask for."""
    if not for_pods:
        best = choose(index, request, nothing_taken)
        return [best] if best is not None else []
    offerings = possible_offerings(index, replace(request, defaults={}), nothing_taken)
    return [] if too_few(offerings, request) is not None else offerings


def _come_back(catalog: Catalog, request: SchedulingRequest, nothing_taken: Availability, *, for_pods: bool) -> bool:
    """Whether a node type would do that its provider has not now and may have again."""
    away = [
        replace(node_type, available=True)
        for node_type in catalog.index.node_types
        if not node_type.available and provider_kinds.kind(catalog.providers[node_type.provider].kind).built
    ]
    return bool(away) and bool(_offerings(Index(away), request, nothing_taken, for_pods=for_pods))


def _beyond_limits(pool: Pool, offerings: Sequence[RankedOffering]) -> str | None:
    """Message that no node fits within the limits. A limit of zero is set on purpose."""
    limits = {name: amount for name, amount in pool.limits.items() if milli(amount)}
    faults = too_small(limits, [PricedType(row.node_type, row.usd_hour) for row in offerings])
    return " ".join(f"Limit of {name}: {words}" if name else words for name, words in faults) or None


def _why(catalog: Catalog, request: SchedulingRequest, nothing_taken: Availability, *, for_pods: bool) -> str:
    index = catalog.index
    if not index.node_types:
        return NO_TYPE_YET
    if request.provider is not None and request.provider not in index.providers:
        return f"Node provider {request.provider} has no node types."
    evaluations: Sequence[Evaluation] = explain(index, request, nothing_taken)
    if for_pods:
        evaluations = _as_pods_ask(evaluations, request, nothing_taken)
    relevant = of_interest(evaluations, request)
    unserved_types = [each.node_type for each in relevant if each.rule == UNSERVED]
    return kept_for_pods(unserved_types) if unserved_types and for_pods else refusal(relevant)


def _as_pods_ask(
    evaluations: Sequence[Evaluation], request: SchedulingRequest, nothing_taken: Availability
) -> Sequence[Evaluation]:
    """The evaluations with those of types that only some pods get by what stands in the way of such pods."""
    kept_types: defaultdict[frozenset[str], list[NodeType]] = defaultdict(list)
    for each in evaluations:
        if each.rule == EXTENDED:
            kept_types[each.node_type.extended()].append(each.node_type)
    answers = [each for each in evaluations if each.rule != EXTENDED]
    for names, types in kept_types.items():
        asking = replace(request, resources={**request.resources, **dict.fromkeys(names, 1)})
        answers += explain(Index(types), asking, nothing_taken)
    return answers
