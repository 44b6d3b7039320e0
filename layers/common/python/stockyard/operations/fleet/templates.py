"""Pools as the packer reads them: for each the node types that its claims could be bound to now, and what it has.

``supply`` reads what the tenant has; everything else is a function of its arguments. A type that the scheduler would
refuse to a claim of the pool is none of the pool's types here, so what is planned can be bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from stockyard.domain.month_budgets import USD_MONTH, usd_of
from stockyard.domain.nodes.defaults import defaults_of, unasked
from stockyard.domain.nodes.disks import of_catalogue, price_with_disk, with_disk
from stockyard.domain.nodes.manifests import is_planned, matched
from stockyard.domain.nodes.node_types import NodeType, read_resources
from stockyard.domain.nodes.properties import ROOT_DISK
from stockyard.domain.nodes.zone_ids import by_name, is_zone_id, of_all
from stockyard.domain.pools.bids import Bid
from stockyard.domain.pools.node_groups import node_properties
from stockyard.domain.pools.records import DYNAMIC, NODES, POOL_LABEL, USD_HOUR, Pool
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, Placement
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import Requirements
from stockyard.lifecycle.pools.spread import spread_requirements
from stockyard.operations.fleet.likely_types import only_served
from stockyard.operations.fleet.priced_types import NO_PODS, PodRequests, priced_type
from stockyard.operations.node_claims.work import environment_id
from stockyard.operations.node_providers.allowed_types import allowed_types
from stockyard.operations.node_providers.catalog import Catalog, availability, load
from stockyard.operations.node_providers.images import Architectures, images_of
from stockyard.operations.node_providers.reach import out_of_reach as why_out_of_reach
from stockyard.operations.services import Services
from stockyard.scheduling.bidding import offering_of
from stockyard.scheduling.match import (
    OPTIONS,
    Availability,
    SchedulingRequest,
    choose,
    possible_offerings,
    unserved_types,
)
from stockyard.scheduling.opt_in import opt_in_labels
from stockyard.scheduling.order import RankedOffering
from stockyard.scheduling.packing import model
from stockyard.scheduling.reading import Reader

BEYOND_LIMITS = 1e9
"""USD an hour that no limit in money leaves room for: what stands for a price that is not known."""


@dataclass(frozen=True, slots=True)
class Supply:
    """Supply of nodes for a cluster now. Keys are names of providers."""

    catalog: Catalog
    availability: Availability = field(default_factory=Availability)
    allowed: tuple[str, ...] | None = None
    """Names of types and ``provider.*`` that the tenant may use; None: all."""
    out_of_reach: frozenset[str] = frozenset()
    """Whose machines cannot reach the cluster."""
    grouped: frozenset[str] = frozenset()
    """Whose machines come out of node groups: only pools that name such a provider get them."""
    zones: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The zones in which a provider's machines can stand, where that is known."""
    zone_ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The ids of a provider's zones by name, where prices go by them."""
    images: Architectures = field(default_factory=dict)
    """The architectures for which a provider has images, where that is known: it makes no node of others."""
    likely: Architectures = field(default_factory=dict)
    """Those that are taken for granted of a provider of which it is not."""

    def beyond(self, provider: str) -> frozenset[str]:
        """The providers that a claim which names ``provider`` (empty: none) cannot get a machine of."""
        return self.out_of_reach | (self.grouped - {provider})

    def ids_of(self, provider: str) -> Mapping[str, str]:
        """The ids of zones by name for what names ``provider`` (empty: all); empty while no zone is known."""
        return self.zone_ids.get(provider, {}) if provider else of_all(self.zone_ids.values())


def supply(services: Services, cluster: Cluster | None) -> Supply:
    """Supply of the tenant for the cluster; without one all providers are in reach."""
    catalog = load(services)
    out_of_reach: set[str] = set()
    zones: dict[str, frozenset[str]] = {}
    zone_ids: dict[str, Mapping[str, str]] = {}
    grouped: set[str] = set()
    environments: dict[str, NodeEnvironment | None] = {}
    for name, provider in catalog.providers.items():
        source = services.node_sources.get(provider.kind)
        if source is not None and source.takes_from_groups:
            grouped.add(name)
        if cluster is None:
            continue
        if why_out_of_reach(source, provider, cluster):
            out_of_reach.add(name)
            continue
        if source is None or not source.has_topology:
            continue
        environment = environments[name] = services.store.get(NodeEnvironment, environment_id(cluster.id, provider.id))
        if environment is not None and environment.is_stale:
            environment = None
        if reached_zones := source.zones(provider, environment):
            zones[name] = reached_zones
        if source.zone_id_label is not None:
            zone_ids[name] = source.zone_ids(provider, environment)
    scarce = availability(services, catalog, services.clock.now())
    reach = (frozenset(out_of_reach), frozenset(grouped))
    reached = [catalog.providers[name] for name in environments]
    images = images_of(services, reached, lambda provider: environments[provider.name])
    return Supply(catalog, scarce, allowed_types(services), *reach, zones, zone_ids, *images)


def templates(
    stock: Supply,
    pools: Iterable[Pool],
    claims: Iterable[NodeClaim] = (),
    *,
    dearest: bool = False,
    pods: Iterable[model.Pod] = (),
) -> Sequence[model.Pool]:
    """The pools that make nodes for pods: the dynamic ones that nobody deletes, in the order given.

    With ``dearest`` the types have the most that they cost of late. ``claims`` are those of the cluster, those on their
    way out too: they count against the limits of their pool until they are gone. ``pods`` are those to place: where
    nobody has looked for images, types that may have none are only for pods that nothing else fits, and what nodes are
    not by default only for pods that ask for it: its types bear labels for that (``scheduling.opt_in``).

    Raises ``ValueError`` for a requirement or limit that cannot be read, which is checked when it comes.
    """
    by_pool: defaultdict[str, list[NodeClaim]] = defaultdict(list)
    for claim in claims:
        by_pool[claim.pool].append(claim)
    reader, asking = Reader(), PodRequests.of(pods, likely=bool(stock.likely))
    return [
        _template(stock, reader, pool, by_pool[pool.name], asking, dearest=dearest)
        for pool in pools
        if pool.kind == DYNAMIC and not pool.deleting
    ]


def every_provider(stock: Supply, name: str, pods: Iterable[model.Pod] = ()) -> model.Pool:
    """One pool of that name over all providers, without limits. ``pods``: see ``templates``."""
    offered = partial(node_types, requirements=Requirements(), pods=PodRequests.of(pods, likely=bool(stock.likely)))
    known_types = offered(stock)
    refused_types = tuple(_refused(stock, offered, known_types))
    return model.Pool(name, known_types, unserved=_unserved(stock, Requirements(), ""), refused=refused_types)


def node_types(
    stock: Supply,
    requirements: Requirements,
    provider: str = "",
    pods: PodRequests = NO_PODS,
    *,
    dearest: bool = False,
    bid: Bid | None = None,
) -> tuple[NodeType, ...]:
    """The node types that claims with these requirements could be bound to now, in order of price, each with the
    offerings that are left. ``provider``: the one that is asked, empty for all. Spot costs at most the ``bid``.
    ``pods``: see ``templates``."""
    reach = (stock.allowed, stock.beyond(provider))
    request = SchedulingRequest(requirements, {}, provider or None, *reach, bid=bid, zone_ids=stock.zone_ids)
    defaults = defaults_of(requirements, bids=bid is not None)
    own_defaults = {key: value for key, value in defaults.items() if key not in pods.asked_keys}
    request = replace(request, images=stock.images, likely=stock.likely, defaults=own_defaults)
    offerings: dict[tuple[str, str], list[RankedOffering]] = {}
    for row in _possible(stock, request, pods.likely):
        offerings.setdefault(
            (row.node_type.name, str(opt_in_labels(defaults, row.node_type, offering_of(row)))), []
        ).append(row)
    offered = (priced_type(stock, rows, requirements, defaults, dearest=dearest) for rows in offerings.values())
    return tuple(node_type for node_type in offered if node_type.offerings)


def _possible(stock: Supply, request: SchedulingRequest, pods: Sequence[model.Pod]) -> Sequence[RankedOffering]:
    likely = possible_offerings(stock.catalog.index, request, stock.availability)
    if not pods or not request.unlikely:
        return likely
    offered = possible_offerings(stock.catalog.index, replace(request, likely={}), stock.availability)
    likely_types = {row.node_type.name: row.node_type for row in likely}
    unlikely = {row.node_type.name: row.node_type for row in offered if row.node_type.name not in likely_types}
    names = likely_types.keys() | only_served(pods, list(likely_types.values()), list(unlikely.values()))
    return [row for row in offered if row.node_type.name in names]


def _template(
    stock: Supply,
    reader: Reader,
    pool: Pool,
    claims: Sequence[NodeClaim],
    pods: PodRequests,
    *,
    dearest: bool,
) -> model.Pool:
    ids, requirements = stock.ids_of(pool.provider_ref), reader.request(spread_requirements(pool)).requirements
    if any(map(is_zone_id, requirements)) and (not pool.provider_ref or pool.provider_ref in stock.zone_ids):
        # Providers whose zones have no ids have no such node.
        unnamed = stock.catalog.providers.keys() - stock.zone_ids.keys()
        stock = replace(stock, out_of_reach=stock.out_of_reach | unnamed)
        requirements = by_name(requirements, ids)
    limits = {name: milli(quantity) for name, quantity in pool.limits.items() if name not in (USD_HOUR, USD_MONTH)}
    money = pool.limits.get(USD_HOUR)
    used, spent = usage(stock, reader, claims) if pool.limits else ({}, 0.0)
    offered = partial(
        node_types,
        requirements=requirements,
        provider=pool.provider_ref,
        pods=pods,
        dearest=dearest,
        bid=Bid.of(pool.max_price),
    )
    known_types, properties = offered(stock), node_properties(pool)
    return model.Pool(
        pool.name,
        tuple(with_disk(node_type, properties) for node_type in known_types),
        requirements,
        {**pool.labels, POOL_LABEL: pool.name},
        tuple(model.Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in pool.taints),
        pool.weight,
        limits,
        used,
        None if money is None else usd_of(money),
        spent,
        _unserved(stock, requirements, pool.provider_ref),
        tuple(with_disk(node_type, properties) for node_type in _refused(stock, offered, known_types)),
        ids,
        not ids and any(name == pool.provider_ref or not pool.provider_ref for name in stock.zone_ids),
        () if known_types else _unasked(stock, requirements, pool),
    )


def _unasked(stock: Supply, requirements: Requirements, pool: Pool) -> tuple[str, ...]:
    """Labels by which the pool, or pods, would have to ask so that it had a node type; none where nothing helps."""
    bid = Bid.of(pool.max_price)
    defaults = defaults_of(requirements, bids=bid is not None)
    everything = node_types(stock, requirements, pool.provider_ref, PodRequests(frozenset(defaults)), bid=bid)
    sets_of_keys = [unasked(defaults, node_type, each) for node_type in everything for each in node_type.offerings]
    fewest = min(map(len, sets_of_keys), default=0)
    return tuple(sorted(next((keys for keys in sets_of_keys if len(keys) == fewest), ())))


def _unserved(stock: Supply, requirements: Requirements, provider: str) -> Mapping[str, str]:
    """Reasons why no node can be made yet of the types that have an extended resource, by its name; by an empty one of
    types without."""
    request = SchedulingRequest(requirements, {}, provider or None, stock.allowed, stock.beyond(provider))
    types = unserved_types(stock.catalog.index, request)
    return {name: str(node_type.unserved) for node_type in types for name in node_type.extended() or ("",)}


def _refused(
    stock: Supply, offered: Callable[[Supply], Sequence[NodeType]], known_types: Iterable[NodeType]
) -> Iterator[NodeType]:
    """The types of which offerings are ``offered`` but not among ``known_types``, because their cloud refused them of
    late; each with the offerings that are missing."""
    if not stock.availability.refused:
        return
    served = {
        (t.name, offering.capacity_type, zone)
        for t in known_types
        for offering in t.offerings
        for zone in offering.zones
    }
    for node_type in offered(replace(stock, availability=replace(stock.availability, refused=frozenset()))):
        zones = [
            (
                offering,
                tuple(zone for zone in offering.zones if (node_type.name, offering.capacity_type, zone) not in served),
            )
            for offering in node_type.offerings
        ]
        missing = tuple(replace(offering, zones=names) for offering, names in zones if names)
        if missing:
            yield replace(node_type, offerings=missing)


def usage(stock: Supply, reader: Reader, claims: Iterable[NodeClaim]) -> tuple[Mapping[str, int], float]:
    """Amount that claims have of what limits count: thousandths of a unit by resource and of ``nodes``, and USD an
    hour.

    A claim that is not placed yet counts as what it would be bound to now. One that is planned may be launched in any
    of its ways until it is: it counts as the dearest of them, so that a limit in money holds whichever it becomes. One
    that failed counts while its machine is kept. While one price is not known, nothing is left below a limit in money:
    nobody can say that it holds.
    """
    used: defaultdict[str, int] = defaultdict(int)
    spent = 0.0
    not_placed: dict[str, tuple[Mapping[str, int], float | None]] = {}
    for claim in claims:
        if claim.phase == "Failed" and claim.kept_until is None:
            continue
        if claim.placement is not None:
            node_type = stock.catalog.node_types.get(claim.placement.type)
            known_type = with_disk(node_type, claim.properties) if node_type is not None else None
            capacity = known_type.capacity if known_type is not None else read_resources(claim.resources, pods=None)
            price = _at_most(claim, claim.placement)
        else:
            disk = claim.properties.get(ROOT_DISK, "")
            memo_key = f"{claim.provider_ref} {claim.requirements} {claim.resources} {claim.max_price} {disk}"
            if memo_key not in not_placed:
                not_placed[memo_key] = _next_binding(stock, reader, claim)
            capacity, price = not_placed[memo_key]
        used[NODES] += 1000
        spent += BEYOND_LIMITS if price is None else price
        for name, amount in capacity.items():
            used[name] += amount
    return dict(used), spent


def _at_most(claim: NodeClaim, placement: Placement) -> float | None:
    """The most that the node of a placed claim may come to cost."""
    if claim.machine_id or not is_planned(claim) or not placement.options:
        return placement.usd_hour
    prices = [option.usd_hour for option in placement.options]
    return None if None in prices else max(price for price in prices if price is not None)


def _next_binding(stock: Supply, reader: Reader, claim: NodeClaim) -> tuple[Mapping[str, int], float | None]:
    """Capacity of what the claim would be bound to now, and the most that it may cost; what it asks for when nothing
    fits, and nothing for a claim that cannot be read: the scheduler refuses it."""
    try:
        request = reader.request(
            matched(claim),
            of_catalogue(claim.resources, claim.properties),
            claim.provider_ref or None,
            stock.allowed,
            stock.beyond(claim.provider_ref),
            is_planned(claim),
            Bid.of(claim.max_price),
            stock.zone_ids,
        )
    except ValueError:
        return {}, 0.0
    requirements = by_name(request.requirements, stock.ids_of(claim.provider_ref))
    request = replace(request, requirements=requirements, images=stock.images, likely=stock.likely)
    best = choose(stock.catalog.index, request, stock.availability, candidates=OPTIONS if is_planned(claim) else 0)
    if best is None:
        return request.resources, 0.0
    prices = [price_with_disk(row.usd_hour, row.node_type, claim.properties) for row in (best, *best.alternatives)]
    most = None if None in prices else max(price for price in prices if price is not None)
    return with_disk(best.node_type, claim.properties).capacity, most
