"""Every way to make a node as one bit: row number n is bit n, and the lowest bit of a mask is what is chosen first.

A row is a pool, a node type, a capacity type and a zone, with its price. Where a pool or a type leaves the value of a
label open and some pod asks for it, there is a row for each value that matters. So "which ways are still possible" is
one integer, and what two pods ask for together is the AND of their masks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from stockyard.domain.node_types import ANY, PODS, NodeType
from stockyard.domain.requirements import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    NODE_TYPE,
    OS,
    REGION,
    ZONE,
    Requirement,
)
from stockyard.scheduling.packing.model import HostPort, Pod, Pool, Resources, Term, Toleration, conflict
from stockyard.scheduling.table import NAME_KEYS, mask_of

OTHER = object()
"""A value that nobody names: it satisfies what excludes values, and what only asks for the key."""
Value = object
"""The value of a label in a row: a text, ``OTHER``, or None where the node does not have the label."""
WELL_KNOWN = frozenset({NODE_POOL, ZONE, REGION, INSTANCE_TYPE, NODE_TYPE, ARCH, OS, CAPACITY_TYPE}) | {
    "node.kubernetes.io/windows-build"
}
"""Labels that a node gets although neither pool nor type says so."""
UNKNOWN_PRICE = float("inf")
_NOTHING = Requirement(True)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to make a node. ``room`` is for pods: allocatable less what daemon sets take."""

    pool: int
    node_type: NodeType
    capacity_type: str
    zone: str
    price: float
    room: Mapping[str, int]
    values: Mapping[str, Value]
    """The values of the labels that were left open."""
    ports: tuple[HostPort, ...] = ()
    """The ports of the node that daemon sets take."""


def ways(pools: Sequence[Pool], pods: Iterable[Pod]) -> int:
    """How many rows these pools and pods may make at most. Each label that is left open multiplies them."""
    named = named_labels(pods)
    open_keys = [key for key in named if key not in (CAPACITY_TYPE, ZONE, HOSTNAME, *NAME_KEYS)]
    return sum(_ways_of(pool, node_type, named, open_keys) for pool in pools for node_type in pool.node_types)


def _ways_of(pool: Pool, node_type: NodeType, named: Mapping[str, Sequence[str]], open_keys: Sequence[str]) -> int:
    zone = pool.template.get(ZONE, _NOTHING)
    named_zones = max(1, len(named.get(ZONE, ())) + len(zone.values))
    count = sum(named_zones if ANY in offering.zones else len(offering.zones) for offering in node_type.offerings)
    for key in open_keys:
        declared, required = node_type.properties.get(key), pool.template.get(key)
        if declared is not None and declared != (ANY,):
            count *= max(1, len(declared))
        elif required is not None and not required.complement:
            count *= max(1, len(required.values))
        elif required is not None or key in WELL_KNOWN:
            count *= len(named[key]) + 2
    return count


def satisfies(requirement: Requirement, value: Value) -> bool:
    """Whether a node with this value of the label satisfies the requirement."""
    if value is None:
        return requirement.absence_fits
    if value is OTHER:
        return requirement.complement and not requirement.bounded
    return requirement.has(str(value))


class Rows:
    """The rows of some pools, in order of weight and price, and the masks of what is asked of them."""

    def __init__(self, pools: Sequence[Pool], pods: Iterable[Pod], daemons: Sequence[Pod]) -> None:
        self.pools = sorted(pools, key=lambda pool: pool.name, reverse=True)
        self.pools.sort(key=lambda pool: -pool.weight)
        self.mentioned = named_labels((*pods, *daemons))
        rows = [row for number, pool in enumerate(self.pools) for row in self._rows_of(number, pool, daemons)]
        rows.sort(key=self._order)
        self.rows = rows
        self.prices = [row.price for row in rows]
        self.every = (1 << len(rows)) - 1
        self.priced = self._mask(row.price != UNKNOWN_PRICE for row in rows)
        """The rows whose price is known. Of one weight they come first, so the cheapest plan is made of them."""
        self.of_pool = [self._mask(row.pool == number for row in rows) for number in range(len(self.pools))]
        self._columns: dict[str, dict[Value, int]] = {}
        self._thresholds: dict[str, tuple[list[int], list[int]]] = {}
        self._distinct: dict[str, dict[str, int]] = {}
        self._terms: dict[Term, int] = {}
        self._tolerated: dict[tuple[tuple[Toleration, ...], bool], int] = {}
        self._by_ports = {
            ports: self._mask(row.ports == ports for row in rows) for ports in {row.ports for row in rows} - {()}
        }
        """The rows whose daemon sets take ports of the node, by these ports."""
        self._extended = {
            name: self._mask(name in row.node_type.extended() for row in rows)
            for name in sorted({name for row in rows for name in row.node_type.extended()})
        }

    # --- masks ------------------------------------------------------------------------------------------------------

    def column(self, key: str) -> Mapping[Value, int]:
        """The rows of each value of a label; under None those without it."""
        column = self._columns.get(key)
        if column is None:
            numbers: defaultdict[Value, list[int]] = defaultdict(list)
            for number, row in enumerate(self.rows):
                for value in self._values(row, key):
                    numbers[value].append(number)
            column = self._columns[key] = {value: mask_of(listed, len(self.rows)) for value, listed in numbers.items()}
        return column

    def of_term(self, term: Term) -> int:
        """The rows that satisfy all requirements of the term."""
        if not term:
            return self.every
        rows = self._terms.get(term)
        if rows is None:
            rows = self.every
            for key, requirement in term:
                rows &= self.of_requirement(key, requirement)
            self._terms[term] = rows
        return rows

    def of_terms(self, terms: Sequence[Term]) -> int:
        """The rows that satisfy one of the terms."""
        rows = 0
        for term in terms:
            rows |= self.of_term(term)
        return rows

    def of_requirement(self, key: str, requirement: Requirement) -> int:
        """The rows that satisfy one requirement. No new node has a name yet that a pod could ask for."""
        if key == HOSTNAME:
            return self.every if requirement.absence_fits else 0
        column = self.column(key)
        if key in NAME_KEYS and requirement.complement:
            # A type has several spellings, and none of them may be excluded.
            excluded = 0
            for value in requirement.values:
                excluded |= column.get(value, 0)
            return self.every & ~excluded
        rows = 0
        if not requirement.complement and not requirement.bounded:
            for value in requirement.values:
                rows |= column.get(value, 0)
            return rows if requirement.values else column.get(None, 0)
        for listed, mask in column.items():
            if satisfies(requirement, listed):
                rows |= mask
        return rows

    def tolerated(self, pod: Pod, *, preferred: bool) -> int:
        """The rows of the pools whose taints the pod tolerates."""
        mark = (pod.tolerations, preferred)
        rows = self._tolerated.get(mark)
        if rows is None:
            rows = 0
            for pool, mask in zip(self.pools, self.of_pool, strict=True):
                if pod.tolerates(pool.taints, preferred=preferred):
                    rows |= mask
            self._tolerated[mark] = rows
        return rows

    def without_conflict(self, ports: Sequence[HostPort]) -> int:
        """The rows whose daemon sets take none of these ports."""
        rows = self.every
        for taken, mask in self._by_ports.items():
            if conflict(ports, taken):
                rows &= ~mask
        return rows

    def without_extended(self, requests: Resources) -> int:
        """The rows that have no extended resource but those that are asked for."""
        rows = self.every
        if not self._extended:
            return rows
        requested = {name for name, amount in requests if amount > 0}
        for name, mask in self._extended.items():
            if name not in requested:
                rows &= ~mask
        return rows

    def holding(self, names: Sequence[str], totals: Sequence[int]) -> int:
        """The rows with room for these totals of the named resources."""
        rows = self.every
        for name, total in zip(names, totals, strict=True):
            if total > 0:
                amounts, masks = self._thresholds.get(name) or self._threshold(name)
                place = bisect_left(amounts, total)
                if place == len(amounts):
                    return 0
                rows &= masks[place]
        return rows

    def within(self, pool: int, remaining: Mapping[str, int]) -> int:
        """The pool's rows whose capacity is within what remains of its limits."""
        rows = self.of_pool[pool]
        if not remaining:
            return rows
        return rows & self._mask(
            all(row.node_type.capacity.get(name, 0) <= amount for name, amount in remaining.items())
            for row in self.rows
        )

    def distinct(self, key: str) -> Mapping[str, int]:
        """The rows by each value of a label, for counting: a name of a type counts once, however it is spelt."""
        rows = self._distinct.get(key)
        if rows is None:
            numbers: defaultdict[str, list[int]] = defaultdict(list)
            for number, row in enumerate(self.rows):
                for value in self._counted(row, key):
                    numbers[value].append(number)
            rows = self._distinct[key] = {value: mask_of(listed, len(self.rows)) for value, listed in numbers.items()}
        return rows

    def _counted(self, row: Row, key: str) -> Sequence[str]:
        if key in NAME_KEYS:
            return (row.node_type.name,)
        if key in (ZONE, CAPACITY_TYPE):
            return (row.zone if key == ZONE else row.capacity_type,)
        required = self.pools[row.pool].template.get(key, _NOTHING)
        return [value for value in row.node_type.properties.get(key, ()) if required.has(value)]

    def first(self, mask: int) -> Row:
        """The row that is chosen first of a mask that is not empty."""
        return self.rows[(mask & -mask).bit_length() - 1]

    def each(self, mask: int) -> Iterator[Row]:
        """The rows of a mask in order."""
        while mask:
            yield self.first(mask)
            mask &= mask - 1

    # --- how they are made ------------------------------------------------------------------------------------------

    def _mask(self, flags: Iterable[bool]) -> int:
        return mask_of((number for number, item in enumerate(flags) if item), len(self.rows))

    def _order(self, row: Row) -> tuple[int, float, str, str, str, int]:
        pool = self.pools[row.pool]
        return (-pool.weight, row.price, row.node_type.name, row.capacity_type, row.zone, row.pool)

    def _threshold(self, name: str) -> tuple[list[int], list[int]]:
        """The distinct amounts of a resource, ascending, and for each the rows with at least as much."""
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for number, row in enumerate(self.rows):
            numbers[row.room.get(name, 0)].append(number)
        amounts, masks, rows = sorted(numbers), [], 0
        for amount in reversed(amounts):
            rows |= mask_of(numbers[amount], len(self.rows))
            masks.append(rows)
        self._thresholds[name] = threshold = (amounts, masks[::-1])
        return threshold

    def _values(self, row: Row, key: str) -> Sequence[Value]:
        """The value of a label in a row; all spellings of a name."""
        if key in NAME_KEYS:
            return tuple({row.node_type.name, row.node_type.bare, *row.node_type.properties.get(key, ())})
        if key == CAPACITY_TYPE:
            return (row.capacity_type,)
        if key in row.values:
            return (row.values[key],)
        return self._possible(self.pools[row.pool], row.node_type, key)[:1] or (None,)

    def _rows_of(self, number: int, pool: Pool, daemons: Sequence[Pod]) -> Iterator[Row]:
        if any(not pool.requirements[key].has(value) for key, value in pool.labels.items() if key in pool.requirements):
            return
        candidates = [daemon for daemon in daemons if daemon.tolerates(pool.taints, preferred=False)]
        for node_type in pool.node_types:
            if not node_type.available or not self._named(pool, node_type):
                continue
            overhead = self._daemons(pool, node_type, candidates)
            room = {name: amount - overhead.get(name, 0) for name, amount in node_type.allocatable.items()}
            if any(amount < 0 for amount in room.values()) or not room.get(PODS, 1):
                continue
            taken = [daemon for daemon in candidates if daemon.ports and self._runs_on(pool, node_type, daemon)]
            ports = tuple(sorted({port for daemon in taken for port in daemon.ports}, key=repr))
            for row in self._rows_of_type(number, pool, node_type, room):
                yield replace(row, ports=ports) if ports else row

    def _named(self, pool: Pool, node_type: NodeType) -> bool:
        """Whether the pool's requirements on names of types allow this one."""
        for key in NAME_KEYS:
            requirement = pool.template.get(key)
            if requirement is not None:
                spellings = {node_type.name, node_type.bare, *node_type.properties.get(key, ())}
                if requirement.complement:
                    if not all(map(requirement.has, spellings)):
                        return False
                elif not any(map(requirement.has, spellings)):
                    return False
        return True

    def _rows_of_type(self, number: int, pool: Pool, node_type: NodeType, room: Mapping[str, int]) -> Iterator[Row]:
        template = pool.template
        keys = [key for key in node_type.properties if key in template and key not in NAME_KEYS]
        if any(not self._possible(pool, node_type, key) for key in keys):
            return
        open_keys, choices = [], []
        for key in self.mentioned:
            if key in (CAPACITY_TYPE, ZONE, HOSTNAME, *NAME_KEYS):
                continue
            values = self._possible(pool, node_type, key)
            if not values:
                return
            if len(values) > 1:
                open_keys.append(key)
                choices.append(values)
        combinations = [dict(zip(open_keys, combination, strict=True)) for combination in product(*choices)]
        capacity, zones = template.get(CAPACITY_TYPE, _NOTHING), template.get(ZONE, _NOTHING)
        for offering in node_type.offerings:
            if not capacity.has(offering.capacity_type):
                continue
            money = node_type.money(offering)
            price = UNKNOWN_PRICE if money is None else money
            for zone in self._zones(offering.zones, zones):
                for values_of_open in combinations:
                    named = {**values_of_open, ZONE: zone}
                    yield Row(number, node_type, offering.capacity_type, str(zone), price, room, named)

    def _zones(self, zones: Sequence[str], requirement: Requirement) -> list[str]:
        """The zones of an offering that the pool allows; for any zone those that somebody names."""
        if ANY not in zones:
            return [zone for zone in zones if requirement.has(zone)]
        named = {zone for zone in self._names(ZONE) if requirement.has(zone)} | set(requirement.values - {""})
        return sorted(zone for zone in named if requirement.has(zone)) or ([ANY] if requirement.complement else [])

    def _names(self, key: str) -> list[str]:
        return [str(value) for value in self.mentioned.get(key, ())]

    def _possible(self, pool: Pool, node_type: NodeType, key: str) -> Sequence[Value]:
        """The values that a node of this pool and type may have of a label; empty when there can be no such node."""
        required = pool.template.get(key)
        declared = node_type.properties.get(key)
        if declared is not None and declared != (ANY,):
            if not declared:
                return (None,) if required is None or required.absence_fits else ()
            return tuple(value for value in declared if required is None or required.has(value))
        if required is None:
            if key not in WELL_KNOWN:
                return (None,)
            return (OTHER, *self._names(key), None)
        if not required.complement:
            return tuple(sorted(required.values)) or (None,)
        named = tuple(value for value in self._names(key) if required.has(value))
        return (*([] if required.bounded else [OTHER]), *named) or (str(required.gte or required.lte or 0),)

    def _daemons(self, pool: Pool, node_type: NodeType, daemons: Sequence[Pod]) -> Mapping[str, int]:
        """What the daemon sets take that would run on such a node."""
        overhead: defaultdict[str, int] = defaultdict(int)
        for daemon in daemons:
            if self._runs_on(pool, node_type, daemon):
                for name, amount in daemon.requests:
                    overhead[name] += amount
        return overhead

    def _runs_on(self, pool: Pool, node_type: NodeType, daemon: Pod) -> bool:
        """Whether a daemon set has a pod on nodes of this pool and type, as far as their labels go."""
        return any(self._runs(pool, node_type, term) for term in daemon.terms)

    def _runs(self, pool: Pool, node_type: NodeType, term: Term) -> bool:
        for key, requirement in term:
            if key == HOSTNAME:
                continue
            required = pool.template.get(key)
            if required is None and key not in WELL_KNOWN and not requirement.absence_fits:
                return False
            if required is not None and not required.overlaps(requirement):
                return False
            declared = node_type.properties.get(key)
            if declared is not None and declared != (ANY,):
                fits = any(map(requirement.has, declared)) if declared else requirement.absence_fits
                if not fits:
                    return False
        return True


def named_labels(pods: Iterable[Pod]) -> dict[str, tuple[str, ...]]:
    """The labels that pods ask about, with the values that they name; the bounds of a range are such values."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for pod in pods:
        preferred = [preference.requirements for preference in pod.preferences]
        for item in (*pod.terms, *preferred, *pod.volumes):
            for key, requirement in item:
                values[key] |= requirement.values
                values[key] |= {str(bound) for bound in (requirement.gte, requirement.lte) if bound is not None}
        terms = [*pod.affinity, *pod.anti_affinity]
        for key in [spread.key for spread in pod.spreads] + [item.key for item in terms]:
            values[key] |= set()
    return {key: tuple(sorted(listed)) for key, listed in sorted(values.items())}
