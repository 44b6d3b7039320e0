"""Rows as bits: row number n, the n-th cheapest, is bit n of every mask, so the cheapest match is the lowest bit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, Requirement, integer
from stockyard.scheduling.order import RankedOffering

NAME_KEYS = (NODE_TYPE, INSTANCE_TYPE)
"""Keys whose values are names of node types. They are compared by canonical name."""


def mask_of(numbers: Iterable[int], width: int) -> int:
    """The mask of some row numbers of ``width`` rows."""
    bits = bytearray(width // 8 + 1)
    for number in numbers:
        bits[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(bits, "little")


class Column:
    """The masks of one key: the rows of each value, the rows with any value (``*``), and the rows without the key."""

    __slots__ = ("_any", "_at_least", "_at_most", "_every", "_numbers", "_single", "absent", "by_value")

    def __init__(self, groups: Mapping[tuple[str, ...], Sequence[int]], width: int) -> None:
        """``groups`` maps the values that rows have to their row numbers; an empty tuple stands for no such key."""
        by_value = _grouped((value, numbers) for listed, numbers in groups.items() for value in listed)
        self._every = (1 << width) - 1
        self._any = mask_of(by_value.pop(ANY, ()), width)
        self._single = all(len(listed) <= 1 for listed in groups)
        self.absent = mask_of(groups.get((), ()), width)
        self.by_value: dict[str, int] = {value: mask_of(numbers, width) for value, numbers in by_value.items()}
        self._cumulate()

    def _cumulate(self) -> None:
        """Compute for each number the mask of rows with at least, and with at most, that number."""
        by_number: dict[int, int] = {}
        for value, mask in self.by_value.items():
            number = integer(value)
            if number is not None:
                by_number[number] = by_number.get(number, 0) | mask
        self._numbers = sorted(by_number)
        self._at_most: list[int] = []
        self._at_least: list[int] = []
        for numbers, masks in ((self._numbers, self._at_most), (self._numbers[::-1], self._at_least)):
            so_far = 0
            for number in numbers:
                so_far |= by_number[number]
                masks.append(so_far)
        self._at_least.reverse()

    def allowing(self, requirement: Requirement) -> int:
        """The rows that can satisfy ``requirement``."""
        if not requirement.complement:
            return self._one_of(requirement) if requirement.values else self.absent
        if not requirement.bounded:
            return self._none_of(requirement) if requirement.values else self._every & ~self.absent
        if self._single and not requirement.values:
            return self._any | self._between(requirement)
        rows = self._any | (self.absent if requirement.absence_fits else 0)
        for value, mask in self.by_value.items():
            if requirement.has(value):
                rows |= mask
        return rows

    def _one_of(self, requirement: Requirement) -> int:
        rows = self._any
        for value in requirement.values:
            if requirement.within(value):
                rows |= self.by_value.get(value, 0)
        return rows

    def _none_of(self, requirement: Requirement) -> int:
        rows = 0
        if self._single:
            for value in requirement.values:
                rows |= self.by_value.get(value, 0)
            return self._every & ~rows
        for value, mask in self.by_value.items():
            if value not in requirement.values:
                rows |= mask
        return rows | self._any | self.absent

    def _between(self, requirement: Requirement) -> int:
        """The rows with a number within the bounds. Each row has at most one value."""
        rows = self._every
        if requirement.gte is not None:
            first = bisect_left(self._numbers, requirement.gte)
            rows &= self._at_least[first] if first < len(self._numbers) else 0
        if requirement.lte is not None:
            last = bisect_right(self._numbers, requirement.lte)
            rows &= self._at_most[last - 1] if last else 0
        return rows


class Amounts:
    """The masks of one resource: for each existing amount the rows with at least that amount."""

    __slots__ = ("_amounts", "_masks")

    def __init__(self, by_amount: Mapping[int, Sequence[int]], width: int) -> None:
        """``by_amount`` maps an amount, in thousandths of the unit, to the row numbers that have it."""
        self._amounts = sorted(by_amount)
        self._masks: list[int] = []
        so_far = 0
        for amount in reversed(self._amounts):
            so_far |= mask_of(by_amount[amount], width)
            self._masks.append(so_far)
        self._masks.reverse()

    def at_least(self, amount: int) -> int:
        """The rows with at least ``amount``."""
        first = bisect_left(self._amounts, amount)
        return self._masks[first] if first < len(self._amounts) else 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order of choice, with a mask for everything that a request can ask for."""

    rows: tuple[RankedOffering, ...]
    every: int
    available: int
    sound: int
    """Rows of node types whose overhead does not exceed their capacity."""
    node_types: Mapping[str, int]
    """The rows of a node type, by canonical name."""
    limited: Mapping[str, int]
    """The rows of each node type with a limited number of nodes."""
    providers: Mapping[str, int]
    spellings: Mapping[str, Mapping[str, int]]
    """For each of ``NAME_KEYS`` the rows of the node types that a spelling stands for."""
    columns: Mapping[str, Column]
    zones: Mapping[str, int]
    amounts: Mapping[str, Amounts]
    extended: Mapping[str, int]
    """The rows of node types that have an extended resource."""
    small: int
    """The rows of node types whose machines are too small to be chosen unasked."""
    unserved: int
    """The rows of node types of which no node can be made yet."""
    by_zone: int
    """The rows of node types that cost something else in each zone."""

    @classmethod
    def build(cls, node_types: Sequence[NodeType], rows: Sequence[RankedOffering]) -> Table:
        """``rows`` of ``node_types``, in the order of choice."""
        width, numbers = len(rows), dict[str, list[int]]()
        for number, row in enumerate(rows):
            numbers.setdefault(row.node_type.name, []).append(number)
        offered = [(node_type, numbers[node_type.name]) for node_type in node_types if node_type.name in numbers]
        keys = {key for node_type in node_types for key in node_type.properties} - set(NAME_KEYS)
        columns = {
            key: Column(
                _grouped((node_type.properties.get(key, ()), row_numbers) for node_type, row_numbers in offered), width
            )
            for key in sorted(keys)
        }
        names = Column({(name,): row_numbers for name, row_numbers in numbers.items()}, width)
        columns[CAPACITY_TYPE] = Column(_grouped(((row.capacity_type,), (n,)) for n, row in enumerate(rows)), width)
        resources = sorted({name for node_type in node_types for name in node_type.allocatable})
        available = [row_numbers for node_type, row_numbers in offered if node_type.available]
        sound = [
            row_numbers for node_type, row_numbers in offered if min(node_type.allocatable.values(), default=0) >= 0
        ]
        return cls(
            rows=tuple(rows),
            every=(1 << width) - 1,
            available=mask_of(chain.from_iterable(available), width),
            sound=mask_of(chain.from_iterable(sound), width),
            node_types=names.by_value,
            limited={node_type.name: names.by_value[node_type.name] for node_type, _ in offered if node_type.limited},
            providers=_masks((((node_type.provider,), row_numbers) for node_type, row_numbers in offered), width),
            spellings=_spellings(node_types, names.by_value),
            columns=columns,
            zones=_masks(((row.zones, (number,)) for number, row in enumerate(rows)), width),
            amounts={
                name: Amounts(
                    _grouped((node_type.allocatable.get(name, 0), row_numbers) for node_type, row_numbers in offered),
                    width,
                )
                for name in resources
            },
            extended=_masks(((tuple(node_type.extended()), row_numbers) for node_type, row_numbers in offered), width),
            small=mask_of(chain.from_iterable(row_numbers for each, row_numbers in offered if each.small), width),
            unserved=mask_of(chain.from_iterable(numbers for each, numbers in offered if each.unserved), width),
            by_zone=mask_of(chain.from_iterable(listed for each, listed in offered if _moves(each)), width),
        )


def _moves(node_type: NodeType) -> bool:
    return any(offering.zone_prices for offering in node_type.offerings)


V = TypeVar("V", bound=Hashable)


def _grouped(pairs: Iterable[tuple[V, Sequence[int]]]) -> dict[V, list[int]]:
    """All numbers of each value."""
    by_value: dict[V, list[int]] = {}
    for value, numbers in pairs:
        by_value.setdefault(value, []).extend(numbers)
    return by_value


def _masks(pairs: Iterable[tuple[tuple[str, ...], Sequence[int]]], width: int) -> dict[str, int]:
    """For each value the rows that list it; ``ANY`` is a value like others."""
    listed = _grouped((value, numbers) for values, numbers in pairs for value in values)
    return {value: mask_of(numbers, width) for value, numbers in listed.items()}


def _spellings(node_types: Sequence[NodeType], rows: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The rows that each spelling stands for. Names of node types without rows count too.

    A bare name stands for its node type if no other has it. A vendor's instance type stands for all with that label.
    """
    bare: dict[str, list[str]] = {}
    labels: dict[str, int] = {}
    for node_type in node_types:
        bare.setdefault(node_type.bare, []).append(node_type.name)
        for label in node_type.properties.get(INSTANCE_TYPE, ()):
            labels[label] = labels.get(label, 0) | rows.get(node_type.name, 0)
    labels.pop(ANY, None)
    unique = {short: rows.get(names[0], 0) for short, names in bare.items() if len(names) == 1}
    own = {node_type.name: rows.get(node_type.name, 0) for node_type in node_types}
    return {NODE_TYPE: {**unique, **own}, INSTANCE_TYPE: {**unique, **labels, **own}}
