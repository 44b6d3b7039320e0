"""Cures of a claim that waits: changes of what it asks for, each of which would get it a machine now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from stockyard.domain.nodes.disks import price_with_disk
from stockyard.domain.nodes.node_types import NodeType, canonical
from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.quantities import milli, resource_text
from stockyard.operations.listing import every
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import Catalog, availability, load, refusals
from stockyard.operations.scheduler.claim_reader import ClaimReader, Refused
from stockyard.operations.services import Services
from stockyard.scheduling.explain import FULL, NOT_ASKED, REFUSED, RESOURCE, Evaluation, explain

MOST_CURES = 6
MOST_TRIES = 16
"""Changes that are looked at: each looks at every node type."""
_OTHER_CLUSTERS = 3
_KEPT_FIELDS = (
    "properties",
    "taints",
    "startup_taints",
    "kubelet_args",
    "priority",
    "keep_failed",
    "termination_grace_period",
    "labels",
    "annotations",
)
"""Fields that every changed request keeps, by the names that requests have for them."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A claim that asks for something else, and in words for what."""

    words: str
    claim: NodeClaim


class _Market:
    """Node types and what is scarce, read once for all changes of a claim."""

    def __init__(self, services: Services) -> None:
        self.catalog: Catalog = load(services)
        self._services = services
        self._allowed = allowed_types(services)
        self._now = availability(services, self.catalog, services.clock.now())

    def judged(self, claim: NodeClaim, *, ahead: bool = False) -> Sequence[Evaluation]:
        """Every node type as it stands for the claim; none where it cannot be placed whatever there is. ``ahead``: as
        if its cluster were ready."""
        request = ClaimReader(self._services, self.catalog, self._allowed, ahead=ahead).read(claim)
        return () if isinstance(request, Refused) else explain(self.catalog.index, request, self._now)


def cures_of(services: Services, claim: NodeClaim) -> dict[str, Any]:
    """The cures as a ``CuresView`` document; none for a claim that has a machine or leaves."""
    if claim.placement is not None or claim.deleting:
        return {"tried": 0, "cures": [], "passing": []}
    market = _Market(services)
    judged = market.judged(claim, ahead=True)
    tried, cures = 0, list[dict[str, Any]]()
    for change in islice(_changes(services, market, claim, judged), MOST_TRIES):
        tried += 1
        fitting = [each for each in market.judged(change.claim) if each.rule is None]
        if fitting:
            cures.append(_view(change, fitting))
        if len(cures) == MOST_CURES:
            break
    return {"tried": tried, "cures": cures, "passing": list(_passing(services, market, claim, judged))}


def _view(change: _Change, fitting: Sequence[Evaluation]) -> dict[str, Any]:
    best = next(each for each in fitting if each.selected)
    price = price_with_disk(best.usd_hour, best.node_type, change.claim.properties)
    return {
        "change": change.words,
        "body": body_of(change.claim),
        "type": best.node_type.name,
        "capacity_type": best.capacity_type,
        "zones": list(best.zones),
        "usd_hour": price,
        "fits": len(fitting),
    }


def body_of(claim: NodeClaim) -> dict[str, Any]:
    """The request for a claim like this one, without a name; what says nothing is left out."""
    fields: dict[str, Any] = {
        "provider": claim.provider_ref,
        "requirements": [_requirement(entry) for entry in claim.requirements],
        "resources": dict(claim.resources),
        **{name: _plain(getattr(claim, name)) for name in _KEPT_FIELDS},
        "max_price": dict(claim.max_price),
    }
    return {"cluster": claim.cluster_ref or claim.cluster_id, **{key: value for key, value in fields.items() if value}}


def _requirement(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"min_values" if key == "minValues" else key: value for key, value in entry.items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _changes(services: Services, market: _Market, claim: NodeClaim, judged: Sequence[Evaluation]) -> Iterator[_Change]:
    """Changes that may be a cure, the smallest first: less that is asked for, then less of each, then elsewhere."""
    if claim.provider_ref:
        yield _Change("from any provider", replace(claim, provider_ref=""))
    if claim.max_price:
        yield _Change("whatever spot costs", replace(claim, max_price={}))
    for key in sorted({each.subject for each in judged if each.rule == NOT_ASKED}):
        wider = (*claim.requirements, {"key": key, "operator": "Exists"})
        yield _Change(f"with any {key}", replace(claim, requirements=wider))
    yield from _without_requirements(claim)
    yield from _smaller(market, claim, judged)
    yield from _elsewhere(services, claim)


def _without_requirements(claim: NodeClaim) -> Iterator[_Change]:
    for entry in claim.requirements:
        if entry.get("minValues"):
            fewer = [_without_least(each) if each is entry else each for each in claim.requirements]
            yield _Change(f"with fewer values of {entry['key']}", replace(claim, requirements=tuple(fewer)))
    for key in dict.fromkeys(str(entry["key"]) for entry in claim.requirements):
        remaining = tuple(entry for entry in claim.requirements if entry["key"] != key)
        yield _Change(f"without {key}", replace(claim, requirements=remaining))


def _without_least(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "minValues"}


def _smaller(market: _Market, claim: NodeClaim, judged: Sequence[Evaluation]) -> Iterator[_Change]:
    """With as much of what no machine has enough of as the largest that fits otherwise; of one such resource alone,
    then of all together."""
    short = sorted({each.subject for each in judged if each.rule == RESOURCE and each.subject in claim.resources})
    lowered = [_lowered(market, claim, [name]) for name in short]
    yield from filter(None, lowered)
    together = _lowered(market, claim, list(claim.resources)) if short and not any(lowered) else None
    if together is not None:
        yield together


def _lowered(market: _Market, claim: NodeClaim, names: Sequence[str]) -> _Change | None:
    """The claim with no more of these resources than the machine has that comes nearest to it."""
    unchanged = {name: amount for name, amount in claim.resources.items() if name not in names}
    amounts = {name: milli(claim.resources[name]) for name in names}
    types = [each.node_type for each in market.judged(replace(claim, resources=unchanged)) if each.rule is None]
    if not types:
        return None

    def share(node_type: NodeType) -> float:
        return min(node_type.allocatable.get(name, 0) / amount for name, amount in amounts.items() if amount > 0)

    nearest = max(types, key=share)
    less = {name: min(amount, nearest.allocatable.get(name, 0)) for name, amount in amounts.items()}
    texts = {name: resource_text(name, amount) for name, amount in less.items() if amount > 0}
    changed = [f"{texts.get(name, 'nothing')} of {name}" for name in names if less[name] < amounts[name]]
    if not changed:
        return None
    return _Change(f"with {', '.join(changed)}", replace(claim, resources={**unchanged, **texts}))


def _elsewhere(services: Services, claim: NodeClaim) -> Iterator[_Change]:
    """The claim for other clusters that are ready; a pool's claim is of its own cluster."""
    if claim.pool or not claim.cluster_ref:
        return
    clusters = (each for each in every(services.store, Cluster) if each.status == "ready")
    candidates = (each for each in clusters if each.id != claim.cluster_id and each.name != claim.cluster_ref)
    for other in islice(candidates, _OTHER_CLUSTERS):
        yield _Change(f"in cluster {other.name}", replace(claim, cluster_ref=other.name, cluster_id=other.id))


def _passing(services: Services, market: _Market, claim: NodeClaim, judged: Sequence[Evaluation]) -> Iterator[str]:
    """Sentences of what keeps machines from the claim and passes by itself."""
    fitting = next((each for each in judged if each.selected), None)
    if fitting is not None and not market.judged(claim):
        yield f"It gets {fitting.node_type.name} as soon as its cluster is ready."
    full = [each.node_type.name for each in judged if each.rule == FULL]
    if full:
        yield f"All nodes of {_first_names(full)} are taken: the next that is given back is one for it."
    refused = {each.node_type.name for each in judged if each.rule == REFUSED}
    moments = [
        each.until
        for name in sorted({name.partition(".")[0] for name in refused})
        for each in refusals(services, market.catalog.providers[name])
        if canonical(name, each.type) in refused
    ]
    if moments:
        names = _first_names(sorted(refused))
        yield f"{names} was refused a short while ago; it is tried again from {min(moments)} on."


def _first_names(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
