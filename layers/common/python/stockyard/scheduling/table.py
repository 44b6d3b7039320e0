"""Rows as bits: row number n, the n-th cheapest, is bit n of every mask, so the cheapest match is the lowest bit."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from stockyard.domain.node_types import ANY, NodeKind
from stockyard.domain.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, Requirement, integer
from stockyard.scheduling.order import Row

NAME_KEYS = (NODE_TYPE, INSTANCE_TYPE)
"""Keys whose values are names of node types; they are compared by canonical name."""


def mask_of(numbers: Iterable[int], width: int) -> int:
    """The mask of some row numbers of ``width`` rows."""
    bits = bytearray(width // 8 + 1)
    for number in numbers:
        bits[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(bits, "little")


class Column:
    """One key: for each value the rows that have it, besides the rows of any value and those without the key."""

    __slots__ = ("_any", "_at_least", "_at_most", "_every", "_numbers", "_single", "absent", "by_value")

    def __init__(self, groups: Mapping[tuple[str, ...], Sequence[int]], width: int) -> None:
        """``groups`` are row numbers by the values that the rows have; no values where the key is not there."""
        found = _grouped((value, numbers) for listed, numbers in groups.items() for value in listed)
        self._every = (1 << width) - 1
        self._any = mask_of(found.pop(ANY, ()), width)
        self._single = all(len(listed) <= 1 for listed in groups)
        self.absent = mask_of(groups.get((), ()), width)
        self.by_value: dict[str, int] = {value: mask_of(numbers, width) for value, numbers in found.items()}
        self._cumulate()

    def _cumulate(self) -> None:
        """Masks of the rows that have a number of at least, and of at most, each number that there is."""
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

    def allowing(self, asked: Requirement) -> int:
        """The rows that can satisfy ``asked``."""
        if not asked.complement:
            return self._one_of(asked) if asked.values else self.absent
        if not asked.bounded:
            return self._none_of(asked) if asked.values else self._every & ~self.absent
        if self._single and not asked.values:
            return self._any | self._between(asked)
        found = self._any | (self.absent if asked.absence_fits else 0)
        for value, mask in self.by_value.items():
            if asked.has(value):
                found |= mask
        return found

    def _one_of(self, asked: Requirement) -> int:
        found = self._any
        for value in asked.values:
            if asked.within(value):
                found |= self.by_value.get(value, 0)
        return found

    def _none_of(self, asked: Requirement) -> int:
        found = 0
        if self._single:
            for value in asked.values:
                found |= self.by_value.get(value, 0)
            return self._every & ~found
        for value, mask in self.by_value.items():
            if value not in asked.values:
                found |= mask
        return found | self._any | self.absent

    def _between(self, asked: Requirement) -> int:
        """The rows with a number in the bounds, where each row has one value at most."""
        found = self._every
        if asked.gte is not None:
            first = bisect_left(self._numbers, asked.gte)
            found &= self._at_least[first] if first < len(self._numbers) else 0
        if asked.lte is not None:
            last = bisect_right(self._numbers, asked.lte)
            found &= self._at_most[last - 1] if last else 0
        return found


class Amounts:
    """One resource: the rows with at least each amount that there is."""

    __slots__ = ("_amounts", "_masks")

    def __init__(self, by_amount: Mapping[int, Sequence[int]], width: int) -> None:
        """``by_amount`` are row numbers by what the rows have, in thousandths of the unit."""
        self._amounts = sorted(by_amount)
        self._masks: list[int] = []
        so_far = 0
        for amount in reversed(self._amounts):
            so_far |= mask_of(by_amount[amount], width)
            self._masks.append(so_far)
        self._masks.reverse()

    def at_least(self, asked: int) -> int:
        """The rows that have ``asked``."""
        first = bisect_left(self._amounts, asked)
        return self._masks[first] if first < len(self._amounts) else 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order of choice, with a mask for everything that can be asked."""

    rows: tuple[Row, ...]
    every: int
    available: int
    sound: int
    """Rows of kinds whose overhead is not larger than what they have."""
    kinds: Mapping[str, int]
    """The rows of a kind, by canonical name."""
    limited: Mapping[str, int]
    """The rows of each kind of which there are only so many."""
    providers: Mapping[str, int]
    spellings: Mapping[str, Mapping[str, int]]
    """For each of ``NAME_KEYS`` the rows of the kinds that a spelling stands for."""
    columns: Mapping[str, Column]
    zones: Mapping[str, int]
    amounts: Mapping[str, Amounts]
    extended: Mapping[str, int]
    """The rows of kinds that have an extended resource."""

    @classmethod
    def build(cls, kinds: Sequence[NodeKind], rows: Sequence[Row]) -> Table:
        """``rows`` of ``kinds``, in the order of choice."""
        width, numbers = len(rows), dict[str, list[int]]()
        for number, row in enumerate(rows):
            numbers.setdefault(row.kind.name, []).append(number)
        offered = [(kind, numbers[kind.name]) for kind in kinds if kind.name in numbers]
        keys = {key for kind in kinds for key in kind.properties} - set(NAME_KEYS)
        columns = {
            key: Column(_grouped((kind.properties.get(key, ()), found) for kind, found in offered), width)
            for key in sorted(keys)
        }
        names = Column({(name,): found for name, found in numbers.items()}, width)
        columns[CAPACITY_TYPE] = Column(_grouped(((row.capacity_type,), (n,)) for n, row in enumerate(rows)), width)
        resources = sorted({name for kind in kinds for name in kind.allocatable})
        available = [found for kind, found in offered if kind.available]
        sound = [found for kind, found in offered if min(kind.allocatable.values(), default=0) >= 0]
        return cls(
            rows=tuple(rows),
            every=(1 << width) - 1,
            available=mask_of(chain.from_iterable(available), width),
            sound=mask_of(chain.from_iterable(sound), width),
            kinds=names.by_value,
            limited={kind.name: names.by_value[kind.name] for kind, _ in offered if kind.limited},
            providers=_masks((((kind.provider,), found) for kind, found in offered), width),
            spellings=_spellings(kinds, names.by_value),
            columns=columns,
            zones=_masks(((row.zones, (number,)) for number, row in enumerate(rows)), width),
            amounts={
                name: Amounts(_grouped((kind.allocatable.get(name, 0), found) for kind, found in offered), width)
                for name in resources
            },
            extended=_masks(((tuple(kind.extended()), found) for kind, found in offered), width),
        )


V = TypeVar("V", bound=Hashable)


def _grouped(pairs: Iterable[tuple[V, Sequence[int]]]) -> dict[V, list[int]]:
    """All numbers of each value."""
    found: dict[V, list[int]] = {}
    for value, numbers in pairs:
        found.setdefault(value, []).extend(numbers)
    return found


def _masks(pairs: Iterable[tuple[tuple[str, ...], Sequence[int]]], width: int) -> dict[str, int]:
    """For each value the rows that list it; ``ANY`` is a value like others."""
    listed = _grouped((value, numbers) for values, numbers in pairs for value in values)
    return {value: mask_of(numbers, width) for value, numbers in listed.items()}


def _spellings(kinds: Sequence[NodeKind], rows: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The rows that each spelling stands for. ``kinds`` may be without rows; their names count all the same.

    A bare name counts where only one kind has it, the vendor's label of the instance type for all that carry it.
    """
    bare: dict[str, list[str]] = {}
    labels: dict[str, int] = {}
    for kind in kinds:
        bare.setdefault(kind.bare, []).append(kind.name)
        for label in kind.properties.get(INSTANCE_TYPE, ()):
            labels[label] = labels.get(label, 0) | rows.get(kind.name, 0)
    labels.pop(ANY, None)
    unique = {short: rows.get(found[0], 0) for short, found in bare.items() if len(found) == 1}
    own = {kind.name: rows.get(kind.name, 0) for kind in kinds}
    return {NODE_TYPE: {**unique, **own}, INSTANCE_TYPE: {**unique, **labels, **own}}
