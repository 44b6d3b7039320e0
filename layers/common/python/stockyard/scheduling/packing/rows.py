"""Every way to make a node as one bit: row number n is bit n, and the lowest bit of a mask is what is chosen first.

So "which ways are still possible" is one integer, and what two pods ask for together is the AND of their masks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.values.requirements import CAPACITY_TYPE, HOSTNAME, ZONE, Requirement
from stockyard.scheduling.host_ports import HostPort, PortsInUse
from stockyard.scheduling.packing.model import Node, Pod, Pool, Resources, Term, Toleration
from stockyard.scheduling.packing.row_source import (
    NOTHING,
    OTHER,
    UNKNOWN_PRICE,
    WELL_KNOWN,
    Row,
    RowSource,
    Value,
    named_labels,
    zones_of,
)
from stockyard.scheduling.packing.topology import NodeFilter
from stockyard.scheduling.table import NAME_KEYS, mask_of

__all__ = ["UNKNOWN_PRICE", "Row", "Rows", "most_rows", "named_labels", "satisfies"]


def most_rows(pools: Sequence[Pool], pods: Iterable[Pod]) -> int:
    """Largest number of rows that these pools and pods may make. Each label that is left open multiplies them."""
    named = named_labels(pods)
    open_keys = [key for key in named if key not in (CAPACITY_TYPE, ZONE, HOSTNAME, *NAME_KEYS)]
    if ZONE in named:
        named[ZONE] = tuple({*named[ZONE], *zones_of(pools)})
    return sum(_rows_of(pool, node_type, named, open_keys) for pool in pools for node_type in pool.node_types)


def _rows_of(pool: Pool, node_type: NodeType, named: Mapping[str, Sequence[str]], open_keys: Sequence[str]) -> int:
    zone = pool.template.get(ZONE, NOTHING)
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


class Rows(RowSource):
    """The rows of some pools, in order of weight and price, and the masks of what is asked of them."""

    def __init__(
        self,
        pools: Sequence[Pool],
        pods: Iterable[Pod],
        daemons: Sequence[Pod],
        nodes: Iterable[Node] = (),
        volumes: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(pools, pods, daemons, nodes, volumes)
        rows = self.rows
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
        # Rows with the same daemon sets share one object: to compare thousands of ports takes longer than all else.
        distinct = {id(row.ports): row.ports for row in rows if row.ports}
        self._by_ports = [
            (PortsInUse(ports), self._mask(row.ports is ports for row in rows)) for ports in distinct.values()
        ]
        """The ports that daemon sets take of nodes, with the rows of these nodes."""
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
        memo_key = (pod.tolerations, preferred)
        rows = self._tolerated.get(memo_key)
        if rows is None:
            rows = 0
            for pool, mask in zip(self.pools, self.of_pool, strict=True):
                if pod.tolerates(pool.taints, preferred=preferred):
                    rows |= mask
            self._tolerated[memo_key] = rows
        return rows

    def counting(self, where: NodeFilter) -> int:
        """The rows of nodes whose pods a rule counts."""
        rows = self.of_terms(where.terms)
        return rows if where.taints_of is None else rows & self.tolerated(where.taints_of, preferred=False)

    def without_conflict(self, ports: Sequence[HostPort]) -> int:
        """The rows whose daemon sets take none of these ports."""
        rows = self.every
        for taken_ports, mask in self._by_ports if ports else ():
            if taken_ports.conflict(ports):
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
                index = bisect_left(amounts, total)
                if index == len(amounts):
                    return 0
                rows &= masks[index]
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
        required = self.pools[row.pool].template.get(key, NOTHING)
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
        return self.possible(self.pools[row.pool], row.node_type, key)[:1] or (None,)
