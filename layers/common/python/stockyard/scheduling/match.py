"""The choice of a node type for one claim or for thousands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stockyard.domain.node_types import NodeKind
from stockyard.domain.requirements import ZONE, Requirement, Requirements
from stockyard.scheduling import rules
from stockyard.scheduling.index import Index
from stockyard.scheduling.table import Table


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one claim asks for. ``resources`` (desiredCapacity) are thousandths of a unit.

    ``allowed`` are names of node types or ``provider.*``: None allows all, an empty one none. Without a ``provider``
    the cheapest of all is taken. ``out_of_reach`` are providers whose machines could not reach the claim's cluster, or
    not stand in a zone that it asks for.
    """

    requirements: Requirements = field(default_factory=Requirements)
    resources: Mapping[str, int] = field(default_factory=dict)
    provider: str | None = None
    allowed: tuple[str, ...] | None = None
    out_of_reach: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """What is scarce now: ``free`` nodes of limited kinds (not listed: none) and what was ``refused`` of late."""

    free: Mapping[str, int] = field(default_factory=dict)
    refused: frozenset[rules.Refusal] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to get the node: any of ``zones``, none of which was refused. ``usd_hour`` is None if no money is known."""

    kind: NodeKind
    capacity_type: str
    zones: tuple[str, ...]
    usd_hour: float | None
    cost: float


@dataclass(frozen=True, slots=True)
class Choice(Candidate):
    """The cheapest way, and the next ones that would do as well, in order."""

    alternatives: tuple[Candidate, ...] = ()


def choose(index: Index, wanted: Wanted, state: State, *, candidates: int = 0) -> Choice | None:
    """The cheapest way to serve one claim, with up to ``candidates`` alternatives; None when nothing fits."""
    return _Batch(index, state).choose(wanted, candidates)


def choose_all(index: Index, wanted: Sequence[Wanted], state: State, *, candidates: int = 0) -> list[Choice | None]:
    """A choice for each claim in the order given; what one takes of a limited kind, the next ones miss."""
    batch = _Batch(index, state)
    chosen: list[Choice | None] = []
    for one in wanted:
        choice = batch.choose(one, candidates)
        if choice is not None and choice.kind.limited:
            batch.take(choice.kind.name)
        chosen.append(choice)
    return chosen


class _Batch:
    """One call: the tables in use, and what is left of limited kinds."""

    def __init__(self, index: Index, state: State) -> None:
        self._index = index
        self._state = state
        self._free = dict(state.free)
        self._passes: dict[str | None, _Pass] = {}

    def choose(self, wanted: Wanted, candidates: int) -> Choice | None:
        found = self._passes.get(wanted.provider)
        if found is None:
            found = _Pass(self._index.table(wanted.provider), self._free, self._state.refused)
            self._passes[wanted.provider] = found
        return found.choose(wanted, candidates)

    def take(self, name: str) -> None:
        left = self._free[name] = self._free[name] - 1
        if left <= 0:
            for one in self._passes.values():
                one.close(name)


class _Pass:
    """One table in one call, with the masks of the wishes met so far."""

    def __init__(self, table: Table, free: Mapping[str, int], refused: frozenset[rules.Refusal]) -> None:
        self._table = table
        self._open = rules.available(table) & rules.sound(table) & rules.with_room(table, free)
        self._zones = rules.unrefused(table, refused)
        self._allowed: dict[tuple[str, ...], int] = {}
        self._extended: dict[frozenset[str], int] = {}
        self._required: dict[str, dict[int, int]] = {}
        """By key and identity: a batch has one object for equal entries, and to hash it would cost more."""
        self._met: list[Requirement] = []
        """Keeps them alive, so that no other object gets their identity."""
        self._amounts: dict[str, dict[int, int]] = {}
        self._offered: dict[int, tuple[frozenset[str], int]] = {}
        self._made: dict[frozenset[str], dict[int, Choice]] = {}

    def close(self, name: str) -> None:
        """No node of the kind is left."""
        self._open &= ~self._table.kinds.get(name, 0)

    def choose(self, wanted: Wanted, candidates: int) -> Choice | None:
        zones, left = self._left(wanted)
        if not left:
            return None
        first = self._choice((left & -left).bit_length() - 1, zones)
        if not candidates:
            return first
        others = tuple(
            Candidate(one.kind, one.capacity_type, one.zones, one.usd_hour, one.cost)
            for one in self._after_first(left, zones, candidates)
        )
        return Choice(first.kind, first.capacity_type, first.zones, first.usd_hour, first.cost, others)

    def _left(self, wanted: Wanted) -> tuple[frozenset[str], int]:
        """The zones that may be and the rows that satisfy every rule."""
        left = self._open & self._resources(wanted.resources)
        if wanted.allowed is not None:
            left &= self._allowing(wanted.allowed)
        if wanted.out_of_reach:
            left &= rules.in_reach(self._table, wanted.out_of_reach)
        where: Requirement | None = None
        counted: list[tuple[str, Requirement]] | None = None
        for key, asked in wanted.requirements.items():
            if asked.min_values is not None:
                counted = [*(counted or ()), (key, asked)]
            if key == ZONE:
                where = asked
                continue
            known = self._required.get(key)
            if known is None:
                known = self._required[key] = {}
            mask = known.get(id(asked))
            if mask is None:
                mask = known[id(asked)] = rules.requirement(self._table, key, asked)
                self._met.append(asked)
            left &= mask
        zones, offered = self._offered.get(id(where)) or self._offering(where)
        left &= offered
        if (
            counted
            and left
            and not all(rules.various(self._table, self._zones, key, asked, left) for key, asked in counted)
        ):
            left = 0
        return zones, left

    def _resources(self, resources: Mapping[str, int]) -> int:
        left = self._table.every
        asked: frozenset[str] = frozenset()
        for name, amount in resources.items():
            known = self._amounts.get(name)
            if known is None:
                known = self._amounts[name] = {}
            mask = known.get(amount)
            if mask is None:
                mask = known[amount] = rules.resource(self._table, name, amount)
            left &= mask
            if amount > 0 and name in self._table.extended:
                asked |= {name}
        plain = self._extended.get(asked)
        if plain is None:
            plain = self._extended[asked] = rules.extended(self._table, asked)
        return left & plain

    def _allowing(self, entries: tuple[str, ...]) -> int:
        mask = self._allowed.get(entries)
        if mask is None:
            mask = self._allowed[entries] = rules.allowed(self._table, entries)
        return mask

    def _offering(self, where: Requirement | None) -> tuple[frozenset[str], int]:
        zones = rules.zones_of(self._zones, where)
        found = self._offered[id(where)] = (zones, rules.offered(self._zones, zones))
        if where is not None:
            self._met.append(where)
        return found

    def _after_first(self, left: int, zones: frozenset[str], most: int) -> Iterator[Choice]:
        left &= left - 1
        while left and most:
            yield self._choice((left & -left).bit_length() - 1, zones)
            left &= left - 1
            most -= 1

    def _choice(self, number: int, zones: frozenset[str]) -> Choice:
        """Row ``number`` with what is left of its zones."""
        known = self._made.get(zones)
        if known is None:
            known = self._made[zones] = {}
        made = known.get(number)
        if made is None:
            row = self._table.rows[number]
            possible = tuple(zone for zone in row.zones if zone in zones and self._zones[zone] >> number & 1)
            made = known[number] = Choice(row.kind, row.capacity_type, possible, row.usd_hour, row.cost)
        return made
