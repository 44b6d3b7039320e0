"""Explains a choice: for each node type the first rule, in the order of ``RULES``, that excluded it.

It evaluates the rules node type by node type, without the masks of ``match``, so that each tests the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Self

from stockyard.domain.nodes.defaults import unasked
from stockyard.domain.nodes.node_types import ANY, LEAST_GIB, MEMORY, NodeType, Offering, is_extended
from stockyard.domain.nodes.prices import least_price
from stockyard.domain.pools.bids import ABOVE_BID, Bid
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.quantities import amount_text, resource_text
from stockyard.domain.values.requirements import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement
from stockyard.scheduling.bidding import asked_zones, in_range, in_zones
from stockyard.scheduling.index import Index
from stockyard.scheduling.match import Availability, SchedulingRequest
from stockyard.scheduling.order import RankedOffering, cheapest_first, ranked
from stockyard.scheduling.rules import lacks_image, named_zones
from stockyard.scheduling.table import NAME_KEYS

PROVIDER, OUT_OF_REACH, NOT_ALLOWED = "Provider", "OutOfReach", "NotAllowed"
UNAVAILABLE, REQUIREMENT = "Unavailable", "Requirement"
EXTENDED, RESOURCE, SMALL, OFFERING = "ExtendedResource", "Resource", "Small", "Offering"
UNSERVED, IMAGE, NOT_ASKED = "Unserved", "Image", "NotAskedFor"
FULL, REFUSED, MIN_VALUES = "Full", "RefusedRecently", "MinValues"
MOST_WORDS = 10
"""Values of a requirement that a message repeats."""
RULES = (
    PROVIDER,
    OUT_OF_REACH,
    NOT_ALLOWED,
    UNAVAILABLE,
    REQUIREMENT,
    EXTENDED,
    RESOURCE,
    SMALL,
    UNSERVED,
    IMAGE,
    OFFERING,
    NOT_ASKED,
    FULL,
    REFUSED,
    ABOVE_BID,
    MIN_VALUES,
)
"""The order in which rules are tried. Within a rule: requirements as the claim lists them, resources by name."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of one node type. ``rule`` is None when it matches, else the rule that excluded it.

    ``subject`` is the rule's key or resource. Price, cost, capacity type and zones are those of the cheapest matching
    offering, or of the cheapest offering when none matches.
    """

    node_type: NodeType
    rule: str | None
    subject: str
    message: str
    capacity_type: str | None = None
    zones: tuple[str, ...] = ()
    usd_hour: float | None = None
    cost: float | None = None
    selected: bool = False
    least_price: float | None = None
    """The least that it costs where it costs more than the bid."""

    @classmethod
    def of(cls, row: RankedOffering, rule: str | None, subject: str, message: str, *, selected: bool = False) -> Self:
        """The evaluation of the node type of an offering, with that offering's price and place."""
        offering = (row.capacity_type, row.zones, row.usd_hour, row.cost)
        return cls(row.node_type, rule, subject, message, *offering, selected)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    rule: str
    subject: str
    message: str
    least_price: float | None = None


def explain(index: Index, request: SchedulingRequest, availability: Availability) -> list[Evaluation]:
    """An evaluation for each node type: first those that match, in the order of choice, then the others by the order of
    the rules that excluded them, and by name.

    The work grows with the node types and with the values that they have, not with the values that the claim lists.
    """
    rules = _Rules(index, request, availability)
    fitting: list[RankedOffering] = []
    ruled: list[Evaluation] = []
    for node_type in index.node_types:
        result = rules.excluding(node_type)
        if isinstance(result, Incompatibility):
            ruled.append(_evaluation(index, node_type, request, result))
        else:
            fitting += result
    fitting, unlikely = _likely(fitting, request)
    ruled += [_evaluation(index, node_type, request, _not_looked(node_type)) for node_type in unlikely]
    few = too_few(fitting, request)
    if few is not None:
        node_types = {row.node_type.name: row.node_type for row in fitting}
        ruled += [_evaluation(index, node_type, request, few) for node_type in node_types.values()]
        fitting = []
    order = {rule: number for number, rule in enumerate(RULES)}
    return _in_order(fitting, request) + sorted(ruled, key=lambda each: (order[str(each.rule)], each.node_type.name))


def _likely(
    fitting: list[RankedOffering], request: SchedulingRequest
) -> tuple[list[RankedOffering], Sequence[NodeType]]:
    """Offerings that fit, without the node types that may lack an image where others will do; and these node types."""
    unlikely = request.unlikely
    likely = [row for row in fitting if not lacks_image(row.node_type, unlikely)]
    if not likely or too_few(likely, request) is not None:
        return fitting, ()
    put_off = {row.node_type.name: row.node_type for row in fitting if lacks_image(row.node_type, unlikely)}
    return likely, list(put_off.values())


def _not_looked(node_type: NodeType) -> Incompatibility:
    own = ", ".join(node_type.properties[ARCH])
    text = f"whether {node_type.provider} has an image for {own} there is known with its first node; ask by {ARCH}"
    return Incompatibility(IMAGE, "", text)


def _not_asked(request: SchedulingRequest, node_type: NodeType, offering: Offering) -> Incompatibility:
    """Incompatibility of a type that is not what nodes are by default."""
    key = min(unasked(request.defaults, node_type, offering))
    own = offering.capacity_type if key == CAPACITY_TYPE else ", ".join(node_type.properties[key])
    text = f"it is {own}, and nobody asks for that by {key}: without it nodes are {request.defaults[key]}"
    return Incompatibility(NOT_ASKED, key, text)


class _Rules:
    """The rules for one claim; what is the same for many node types is worked out once."""

    def __init__(self, index: Index, request: SchedulingRequest, availability: Availability) -> None:
        self._request = request
        self._free = availability.free
        self._allowed = None if request.allowed is None else frozenset(request.allowed)
        self._not_as_asked = dict(_not_as_asked(index, request))
        self._asked = sorted((name, amount) for name, amount in request.resources.items() if amount > 0)
        self._asked_extended = {name for name, _ in self._asked}
        self._names_type, self._takes_small = request.names_type, request.takes_small
        self._refusals = availability.refused
        self._refused: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for name, capacity_type, zone in availability.refused:
            self._refused[name, capacity_type].add(zone)
        self._allows = cache(lambda key, value: _allows(request.requirements.get(key), (value,)))

    def excluding(self, node_type: NodeType) -> Incompatibility | list[RankedOffering]:
        """The first rule that excludes ``node_type``, else its matching offerings with their usable zones."""
        request, provider = self._request, node_type.provider
        if request.provider not in (None, provider):
            return Incompatibility(PROVIDER, "", f"the claim asks for provider {request.provider}")
        if provider in request.out_of_reach:
            text = f"{provider} has none in the cluster's network and a zone as asked"
            return Incompatibility(OUT_OF_REACH, "", text)
        if self._allowed is not None and not {node_type.name, f"{provider}.*"} & self._allowed:
            return Incompatibility(NOT_ALLOWED, "", "it is not among the allowed node types")
        if not node_type.available:
            return Incompatibility(UNAVAILABLE, "", "it is not available now")
        return self._not_as_asked.get(node_type.name) or self._too_small(node_type) or self._not_now(node_type)

    def _too_small(self, node_type: NodeType) -> Incompatibility | None:
        allocatable = node_type.allocatable
        for name in sorted(filter(is_extended, {*node_type.capacity, *allocatable})):
            has = max(node_type.capacity.get(name, 0), allocatable.get(name, 0)) > 0
            if has and name not in self._asked_extended and not self._names_type:
                return Incompatibility(EXTENDED, name, f"it has {name}, which the claim does not ask for")
        if min(allocatable.values(), default=0) < 0:
            name = min(name for name, amount in allocatable.items() if amount < 0)
            return Incompatibility(RESOURCE, name, f"{name}: its overhead is larger than what it has")
        for name, amount in self._asked:
            have = allocatable.get(name, 0)
            if amount > have:
                asked_text, text = amount_text(name, amount), amount_text(name, have)
                return Incompatibility(RESOURCE, name, f"{name}: {asked_text} asked, {text} allocatable")
        if node_type.small and not self._takes_small:
            has_text = resource_text(MEMORY, node_type.capacity[MEMORY])
            text = f"it has {has_text} of memory; below {LEAST_GIB}Gi its type or its memory has to be asked for"
            return Incompatibility(SMALL, "", text)
        if node_type.unserved is not None:
            return Incompatibility(UNSERVED, "", node_type.unserved)
        return self._without_image(node_type)

    def _without_image(self, node_type: NodeType) -> Incompatibility | None:
        images = self._request.images
        if not lacks_image(node_type, images):
            return None
        own, served = ", ".join(node_type.properties[ARCH]), ", ".join(sorted(images[node_type.provider]))
        return Incompatibility(IMAGE, "", f"{node_type.provider} has no image for {own} there, only for {served}")

    def _not_now(self, node_type: NodeType) -> Incompatibility | list[RankedOffering]:
        offered = [
            (offering, zones)
            for offering in node_type.offerings
            if self._allows(CAPACITY_TYPE, offering.capacity_type)
            if (zones := [name for name in offering.zones if self._allows(ZONE, name)])
        ]
        if not offered:
            has = "; ".join(f"{item.capacity_type} in {', '.join(item.zones)}" for item in node_type.offerings)
            text = f"no offering has the capacity type and a zone as asked; it has {has or 'nothing'}"
            return Incompatibility(OFFERING, "", text)
        by_default = [choice for choice in offered if not unasked(self._request.defaults, node_type, choice[0])]
        if not by_default:
            return _not_asked(self._request, node_type, offered[0][0])
        offered = by_default
        if node_type.limited and self._free.get(node_type.name, 0) <= 0:
            return Incompatibility(FULL, "", "all its nodes are taken")
        rows = [row for offering, zones in offered if (row := self._usable(node_type, offering, zones)).zones]
        if self._request.bid is not None and rows:
            return self._bid_for(rows, offered, self._request.bid)
        if not rows:
            refused_zones = sorted({zone_name for _, zones in offered for zone_name in zones})
            text = f"the provider refused it a short while ago in {', '.join(refused_zones)}"
            return Incompatibility(REFUSED, "", text)
        return [in_zones(row, self._request.zone_ids, self._request.requirements, self._refusals) for row in rows]

    def _bid_for(
        self, rows: Sequence[RankedOffering], offered: Sequence[tuple[Offering, Sequence[str]]], bid: Bid
    ) -> Incompatibility | list[RankedOffering]:
        """The rows in the zones in which they cost at most the bid, else the price that was seen."""
        request = self._request
        narrowed = [in_range(bid, row, request.zone_ids, request.requirements, self._refusals) for row in rows]
        affordable = [row for row in narrowed if row is not None]
        if affordable:
            return affordable
        node_type = rows[0].node_type
        ids = request.zone_ids.get(node_type.provider, {})
        refused = [row for row in rows if in_range(bid, row, request.zone_ids, request.requirements, ()) is not None]
        if refused:
            return Incompatibility(REFUSED, "", "the provider refused it a short while ago where it is cheap enough")
        prices = [
            price
            for offering, zones in offered
            if (price := least_price(offering, asked_zones(zones, ids, request.requirements), ids)) is not None
        ]
        price_text = f"{min(prices):g} USD an hour" if prices else "nobody knows what"
        text = f"spot costs {price_text} at least, the bid is {bid.text}"
        return Incompatibility(ABOVE_BID, bid.text, text, min(prices, default=None))

    def _usable(self, node_type: NodeType, offering: Offering, zones: Sequence[str]) -> RankedOffering:
        """The offering with the zones in which it was not refused."""
        refused = self._refused.get((node_type.name, offering.capacity_type), ())
        named = named_zones(self._request.requirements.get(ZONE))
        everywhere = ANY in refused or (bool(named) and named <= set(refused))
        zones_left = () if everywhere else tuple(zone for zone in zones if zone not in refused)
        return replace(ranked(node_type, offering), zones=zones_left)


def _not_as_asked(index: Index, request: SchedulingRequest) -> Iterator[tuple[str, Incompatibility]]:
    """Names of the node types that a requirement excludes, each with the first such requirement.

    They come in groups: node types that have the same values of a key have the same answer.
    """
    excluded: set[str] = set()
    for key, requirement in request.requirements.items():
        if key in (ZONE, CAPACITY_TYPE):
            continue
        words = _words(key, requirement)
        groups: Iterable[tuple[Sequence[str], Sequence[str]]]
        if key in NAME_KEYS:
            resolved = _resolved(index, request.provider, key, requirement)
            groups = [((each.name,), [each.name]) for each in index.node_types if not resolved.has(each.name)]
        else:
            groups = [pair for pair in index.by_values(key).items() if not _allows(requirement, pair[0])]
        for values, having in groups:
            there = f"is {', '.join(values)}" if values else "is not there"
            incompatibility = Incompatibility(REQUIREMENT, key, f"{key} {there}; asked is {words}")
            for name in having:
                if name not in excluded:
                    excluded.add(name)
                    yield name, incompatibility


def _allows(requirement: Requirement | None, values: tuple[str, ...]) -> bool:
    """Whether a node type with these values of a key can satisfy ``requirement``; ``*`` stands for any value."""
    if requirement is None or ANY in values:
        return requirement is None or not requirement.empty
    if not values:
        return requirement.absence_fits
    return any(requirement.has(value) for value in values)


def too_few(fitting: Sequence[RankedOffering], request: SchedulingRequest) -> Incompatibility | None:
    """The first requirement whose least number of values (``minValues``) the offerings that fit do not have; None: they
    have all."""
    for key, requirement in request.requirements.items():
        if requirement.min_values is None or not fitting:
            continue
        values: set[str] = set()
        for row in fitting:
            if key in NAME_KEYS:
                values.add(row.node_type.name)
            else:
                values.update(value for value in _values(row, key) if value != ANY and requirement.has(value))
            if len(values) >= requirement.min_values:
                break
        else:
            message = f"{key}: {len(values)} values are left to choose from, minValues is {requirement.min_values}"
            return Incompatibility(MIN_VALUES, key, message)
    return None


def _values(row: RankedOffering, key: str) -> tuple[str, ...]:
    if key == ZONE:
        return row.zones
    return (row.capacity_type,) if key == CAPACITY_TYPE else row.node_type.properties.get(key, ())


def _resolved(index: Index, provider: str | None, key: str, requirement: Requirement) -> Requirement:
    """``requirement`` with its values replaced by the canonical names of the node types that they stand for.

    A bare name stands for its node type if no other has it. A vendor's instance type stands for all with that label.
    """
    scope = [node_type for node_type in index.node_types if provider in (None, node_type.provider)]
    own = {node_type.name for node_type in scope}
    labelled: defaultdict[str, list[str]] = defaultdict(list)
    bare: defaultdict[str, list[str]] = defaultdict(list)
    for node_type in scope:
        bare[node_type.bare].append(node_type.name)
        for label in node_type.properties.get(key, ()) if key == INSTANCE_TYPE else ():
            labelled[label].append(node_type.name)
    labelled.pop(ANY, None)
    names = set()
    for value in requirement.values:
        alike = bare.get(value, ())
        if value not in own and value in labelled:
            names.update(labelled[value])
        else:
            names.add(value if value in own or len(alike) != 1 else alike[0])
    return replace(requirement, values=frozenset(names))


def _in_order(fitting: Sequence[RankedOffering], request: SchedulingRequest) -> list[Evaluation]:
    """One evaluation per node type, for its cheapest matching offering."""
    best: dict[str, RankedOffering] = {}
    for row in cheapest_first(fitting, request.provider):
        best.setdefault(row.node_type.name, row)
    unpriced = "; no price is known, so it ranks last"
    return [
        Evaluation.of(
            row,
            None,
            "",
            _first_words(row, first=not index)
            + (unpriced if row.usd_hour is None and request.provider is None else ""),
            selected=index == 0,
        )
        for index, row in enumerate(best.values())
    ]


def _first_words(row: RankedOffering, *, first: bool) -> str:
    """Words for the rank of an offering that fits."""
    if not first:
        return "it fits, but others come first"
    return "the first of your own machines that fit" if row.node_type.owned else "the cheapest that fits"


def _evaluation(index: Index, node_type: NodeType, request: SchedulingRequest, ruled: Incompatibility) -> Evaluation:
    row = index.cheapest_offering(node_type, request.provider)
    if row is None:
        return Evaluation(node_type, ruled.rule, ruled.subject, ruled.message, cost=node_type.cost)
    row = in_zones(row, request.zone_ids, request.requirements)
    return replace(Evaluation.of(row, ruled.rule, ruled.subject, ruled.message), least_price=ruled.least_price)


def _words(key: str, requirement: Requirement) -> str:
    """Words for a requirement, with the first values."""
    texts = []
    for entry in requirement.entries(key):
        values = entry.get("values", ())
        more = f" and {len(values) - MOST_WORDS} more" if len(values) > MOST_WORDS else ""
        texts.append(f"{entry['operator']} {', '.join(values[:MOST_WORDS])}{more}".strip())
    return " and ".join(texts)
