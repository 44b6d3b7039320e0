"""Chooses an offering for one claim or for thousands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from itertools import islice

from stockyard.domain.nodes.node_types import ANY, MEMORY, NodeType
from stockyard.domain.pools.bids import Bid
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import ARCH, ZONE, Requirement, Requirements
from stockyard.scheduling import rules
from stockyard.scheduling.bidding import ZoneIds, in_range, in_zones
from stockyard.scheduling.index import Index
from stockyard.scheduling.order import RankedOffering, cheapest_first
from stockyard.scheduling.table import NAME_KEYS, Table

OPTIONS = 30
"""Ways besides the chosen one that are kept for the launch of a claim: what one call may try."""


@dataclass(frozen=True, slots=True)
class SchedulingRequest:
    """The requirements of one claim. ``resources`` (desiredCapacity) are thousandths of a unit.

    ``allowed`` lists names of node types or ``provider.*``; None allows all, an empty tuple none. Without a
    ``provider`` all providers compete. ``out_of_reach`` names providers whose machines could not reach the claim's
    cluster, or could not be in a zone that the claim asks for. ``in_money``: the types of a provider go by their price,
    whatever the provider calls cheap. ``images`` are the architectures for which a provider has images for the claim's
    cluster, where that is known; ``likely`` are those that are taken for granted of providers of which it is not.
    ``bid`` is the most that spot may cost. ``zone_ids`` are the ids of the cluster's zones, by which prices differ.
    ``defaults`` are the labels that the request does not ask by, with the value that its node has therefore
    (``domain.nodes.defaults``).
    """

    requirements: Requirements = field(default_factory=Requirements)
    resources: Mapping[str, int] = field(default_factory=dict)
    provider: str | None = None
    allowed: tuple[str, ...] | None = None
    out_of_reach: frozenset[str] = frozenset()
    in_money: bool = False
    bid: Bid | None = None
    zone_ids: ZoneIds = field(default_factory=dict)
    images: Mapping[str, frozenset[str]] = field(default_factory=dict)
    likely: Mapping[str, frozenset[str]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def unlikely(self) -> Mapping[str, frozenset[str]]:
        """The architectures by provider beyond which a node type is taken only when no other one fits: ``likely``, but
        for a request that names an architecture, which means it. Who only excludes some names none."""
        requirement = self.requirements.get(ARCH)
        return self.likely if requirement is None or requirement.excludes_only else {}

    @property
    def names_type(self) -> bool:
        """Whether it names one node type: then it means that one, also where the scheduler would keep it for others."""
        return any(len(requirement.values) == 1 for requirement in self._lists_of_types())

    @property
    def takes_small(self) -> bool:
        """Whether small machines may serve it: it lists node types by name, or says how much memory it needs."""
        return self.resources.get(MEMORY, 0) > 0 or any(True for _ in self._lists_of_types())

    def _lists_of_types(self) -> Iterator[Requirement]:
        for key in NAME_KEYS:
            requirement = self.requirements.get(key)
            if requirement is not None and requirement.values and not requirement.complement:
                yield requirement


@dataclass(frozen=True, slots=True)
class Availability:
    """Available capacity: ``free`` nodes of limited node types (0 if not listed), and recently ``refused``
    offerings."""

    free: Mapping[str, int] = field(default_factory=dict)
    refused: frozenset[rules.Refusal] = frozenset()


@dataclass(frozen=True, slots=True)
class SelectedOffering(RankedOffering):
    """The cheapest matching offering, and the next cheaper ones as ``alternatives``, in order."""

    alternatives: tuple[RankedOffering, ...] = ()


def choose(
    index: Index, request: SchedulingRequest, availability: Availability, *, candidates: int = 0
) -> SelectedOffering | None:
    """The cheapest offering for one claim, with up to ``candidates`` alternatives; None when nothing matches."""
    return _Batch(index, availability).choose(request, candidates)


def choose_all(
    index: Index, requests: Sequence[SchedulingRequest], availability: Availability, *, candidates: int = 0
) -> list[SelectedOffering | None]:
    """A choice for each request, in order. A node of a limited type that one gets is not free for the next ones."""
    batch = _Batch(index, availability)
    selected: list[SelectedOffering | None] = []
    for request in requests:
        choice = batch.choose(request, candidates)
        if choice is not None and choice.node_type.limited:
            batch.take(choice.node_type.name)
        selected.append(choice)
    return selected


def possible_offerings(
    index: Index, request: SchedulingRequest, availability: Availability
) -> Sequence[RankedOffering]:
    """Every offering that claims with these requirements may get, whatever resources they ask for, in order.

    Each has the zones that are allowed and were not refused. Least numbers of values are not looked at. Small machines
    are among them where the requirements list node types by name.
    """
    matcher = _TableMatcher(index.table(request.provider), availability.free, availability.refused)
    return matcher.possible(request)


def unserved_types(index: Index, request: SchedulingRequest) -> Sequence[NodeType]:
    """The node types of which no node can be made yet, and that claims with these requirements could have otherwise."""
    table = index.table(request.provider)
    if not table.unserved:
        return ()
    rows = _TableMatcher(table, {}, frozenset()).unserved(request)
    return list({row.node_type.name: row.node_type for row in rows}.values())


class _Batch:
    """The state of one call: a matcher per table, and the free nodes of limited node types."""

    def __init__(self, index: Index, availability: Availability) -> None:
        self._index = index
        self._availability = availability
        self._free = dict(availability.free)
        self._matchers: dict[tuple[str | None, bool], _TableMatcher] = {}

    def choose(self, request: SchedulingRequest, candidates: int) -> SelectedOffering | None:
        memo_key = (request.provider, request.in_money)
        matcher = self._matchers.get(memo_key)
        if matcher is None:
            table = self._index.table(request.provider, in_money=request.in_money)
            matcher = self._matchers[memo_key] = _TableMatcher(table, self._free, self._availability.refused)
        return matcher.choose(request, candidates)

    def take(self, name: str) -> None:
        remaining = self._free[name] = self._free[name] - 1
        if remaining <= 0:
            for matcher in self._matchers.values():
                matcher.close(name)


class _TableMatcher:
    """Matches requests against one table. The masks of earlier requests of the call are kept."""

    def __init__(self, table: Table, free: Mapping[str, int], refused: frozenset[rules.Refusal]) -> None:
        self._table = table
        self._sound = rules.available(table) & rules.sound(table)
        self._candidates = self._sound & rules.with_free_nodes(table, free) & rules.served(table)
        self._zones = rules.not_refused(table, refused)
        self._refused = refused
        self._allowed = cache(partial(rules.allowed, table))
        self._with_image = cache(lambda images: rules.with_image(table, dict(images)))
        self._extended = cache(partial(rules.extended, table))
        self._by_default = cache(partial(rules.by_default, table))
        self._required: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """Masks by key and identity of the requirement: equal entries of a batch share one object."""
        self._kept_alive: list[object] = []
        """References to what is known by its identity, so that no other object gets the same one."""
        self._amounts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._rows_of_zones: dict[int, tuple[frozenset[str], int]] = {}
        self._prices: dict[tuple[frozenset[str], int, int], dict[int, RankedOffering]] = {}
        self._choices: defaultdict[frozenset[str], dict[int, RankedOffering]] = defaultdict(dict)

    def close(self, name: str) -> None:
        """Exclude a node type that has no free node any more."""
        self._candidates &= ~self._table.node_types.get(name, 0)

    def choose(self, request: SchedulingRequest, candidates: int) -> SelectedOffering | None:
        zones, matches = self._matching_rows(request)
        if not matches:
            return None
        first, *alternatives = islice(self._rows(request, matches, zones), 1 + candidates)
        return SelectedOffering(
            first.node_type, first.capacity_type, first.zones, first.usd_hour, first.cost, tuple(alternatives)
        )

    def possible(self, request: SchedulingRequest) -> Sequence[RankedOffering]:
        """See ``possible_offerings``."""
        zones, matches, _ = self._permitted(request, self._candidates & self._large_enough(request))
        matches = self._affordable(request, matches, zones)
        return list(self._rows(request, self._likely(request, matches) or matches, zones))

    def unserved(self, request: SchedulingRequest) -> Sequence[RankedOffering]:
        """See ``unserved_types``."""
        zones, matches, _ = self._permitted(request, self._sound & self._table.unserved)
        return list(self._rows(request, self._affordable(request, matches, zones), zones))

    def _matching_rows(self, request: SchedulingRequest) -> tuple[frozenset[str], int]:
        """The allowed zones, and the rows that satisfy every rule."""
        zones, matches, counted = self._permitted(request, self._candidates & self._resources(request))
        matches = self._affordable(request, matches, zones)
        if request.likely:
            likely = self._likely(request, matches)
            if likely and self._has_values(request, counted or (), likely, zones):
                return zones, likely
        if counted and matches and not self._has_values(request, counted, matches, zones):
            matches = 0
        return zones, matches

    def _likely(self, request: SchedulingRequest, matches: int) -> int:
        """Rows of ``matches`` with images, as far as is known or taken for granted."""
        unlikely = request.unlikely
        return matches & self._with_image(frozenset(unlikely.items())) if unlikely else matches

    def _has_values(
        self,
        request: SchedulingRequest,
        counted: Sequence[tuple[str, Requirement]],
        matches: int,
        zones: frozenset[str],
    ) -> bool:
        """MinValues: whether the rows have as many values as asked for."""
        return all(
            rules.satisfies_min_values(self._table, self._zones, key, requirement, matches)
            if request.bid is None or key != ZONE
            else self._has_zones(request, requirement, matches, zones)
            for key, requirement in counted
        )

    def _permitted(
        self, request: SchedulingRequest, matches: int
    ) -> tuple[frozenset[str], int, list[tuple[str, Requirement]] | None]:
        """The allowed zones, those of the rows that the request's requirements permit, and the requirements that ask
        for a number of values."""
        if request.allowed is not None:
            matches &= self._allowed(request.allowed)
        if request.out_of_reach:
            matches &= rules.in_reach(self._table, request.out_of_reach)
        if request.images:
            matches &= self._with_image(frozenset(request.images.items()))
        for default in request.defaults.items():
            matches &= self._by_default(*default)
        zone_requirement: Requirement | None = None
        counted: list[tuple[str, Requirement]] | None = None
        for key, requirement in request.requirements.items():
            if requirement.min_values is not None:
                counted = [*(counted or ()), (key, requirement)]
            if key == ZONE:
                zone_requirement = requirement
                continue
            masks = self._required[key]
            mask = masks.get(id(requirement))
            if mask is None:
                mask = masks[id(requirement)] = rules.requirement(self._table, key, requirement)
                self._kept_alive.append(requirement)
            matches &= mask
        zones, offered = self._rows_of_zones.get(id(zone_requirement)) or self._offering(zone_requirement)
        return zones, matches & offered, counted

    def _large_enough(self, request: SchedulingRequest) -> int:
        return self._table.every if not self._table.small or request.takes_small else rules.large_enough(self._table)

    def _resources(self, request: SchedulingRequest) -> int:
        matches = self._large_enough(request)
        extended_names: frozenset[str] = frozenset()
        for name, amount in request.resources.items():
            masks = self._amounts[name]
            mask = masks.get(amount)
            if mask is None:
                mask = masks[amount] = rules.resource(self._table, name, amount)
            matches &= mask
            if amount > 0 and name in self._table.extended:
                extended_names |= {name}
        return matches if request.names_type else matches & self._extended(extended_names)

    def _offering(self, requirement: Requirement | None) -> tuple[frozenset[str], int]:
        zones = rules.zones_of(self._zones, requirement)
        rows = rules.offered(self._zones, zones)
        if self._refused:
            rows &= ~rules.refused_everywhere(self._table, self._refused, requirement)
        zones_and_rows = self._rows_of_zones[id(requirement)] = (zones, rows)
        if requirement is not None:
            self._kept_alive.append(requirement)
        return zones_and_rows

    def _affordable(self, request: SchedulingRequest, matches: int, zones: frozenset[str]) -> int:
        """Rows of ``matches`` that cost at most the request's bid in one of their zones."""
        if request.bid is None:
            return matches
        affordable, remaining = matches, matches
        while remaining:
            bit = remaining & -remaining
            if self._in_range(request, bit.bit_length() - 1, zones) is None:
                affordable &= ~bit
            remaining &= remaining - 1
        return affordable

    def _in_range(self, request: SchedulingRequest, number: int, zones: frozenset[str]) -> RankedOffering | None:
        choice = self._choice(number, zones)
        if request.bid is not None:
            return in_range(request.bid, choice, request.zone_ids, request.requirements, self._refused)
        if not self._table.by_zone >> number & 1:
            return choice
        priced = self._priced_for(request, zones)
        row = priced.get(number)
        if row is None:
            row = priced[number] = in_zones(choice, request.zone_ids, request.requirements, self._refused)
        return row

    def _priced_for(self, request: SchedulingRequest, zones: frozenset[str]) -> dict[int, RankedOffering]:
        """The rows at their prices in the zones of requests like this one, by number."""
        requirement = request.requirements.get(ZONE)
        memo_key = (zones, id(requirement), id(request.zone_ids))
        priced = self._prices.get(memo_key)
        if priced is None:
            priced = self._prices[memo_key] = {}
            self._kept_alive += [requirement, request.zone_ids]
        return priced

    def _rows(self, request: SchedulingRequest, matches: int, zones: frozenset[str]) -> Iterator[RankedOffering]:
        """The rows in order, each in the zones that the request may have. Where prices differ by zone, those of its
        zones order them, not the dearest."""
        rows = self._one_by_one(request, matches, zones)
        if request.bid is None and not matches & self._table.by_zone:
            return rows
        return iter(cheapest_first(list(rows), None if request.in_money else request.provider))

    def _one_by_one(self, request: SchedulingRequest, matches: int, zones: frozenset[str]) -> Iterator[RankedOffering]:
        while matches:
            row = self._in_range(request, (matches & -matches).bit_length() - 1, zones)
            if row is not None:
                yield row
            matches &= matches - 1

    def _has_zones(
        self, request: SchedulingRequest, requirement: Requirement, matches: int, zones: frozenset[str]
    ) -> bool:
        """MinValues of zones, where the bid leaves some of them out."""
        names = {zone for row in self._rows(request, matches, zones) for zone in row.zones}
        return sum(zone != ANY and requirement.has(zone) for zone in names) >= (requirement.min_values or 0)

    def _choice(self, number: int, zones: frozenset[str]) -> RankedOffering:
        """The offering of row ``number``, with the zones that are allowed and were not refused."""
        choices = self._choices[zones]
        choice = choices.get(number)
        if choice is None:
            row = self._table.rows[number]
            possible = tuple(zone for zone in row.zones if zone in zones and self._zones[zone] >> number & 1)
            choice = choices[number] = replace(row, zones=possible)
        return choice
