"""Planned nodes by state: nodes that are alike are looked at once, however many there are.

A state is all that decides what a planned node can still take, but for pods that refuse each other on one host. For
pods of one size and one set of possible rows the states are ranked once, by what one more such pod adds to the price
and by how much it leaves unused.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stockyard.domain.nodes.node_types import CPU, MEMORY
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.rows import Row, Rows

Busy = tuple[int, int | None]
"""How many pods of a rule of hosts there are, and how many there may be in the end."""
EMPTY_A_STEP = 32
"""How many states are looked at for nodes in one step of work."""
UNEVEN = 4.0
"""How much worse an uneven rest of a machine is than an even one."""


@dataclass(slots=True, eq=False)
class PlannedNode:
    """A node that is to be made."""

    name: str
    state: State
    pods: list[tuple[int, str]] = field(default_factory=list)
    """The number of the class, and the name of the pod."""


@dataclass(slots=True, eq=False)
class State:
    """Common state of equal planned nodes: pool, possible rows, totals, ports, and counts of the busiest hosts' rules.
    ``nodes`` are those that are in it now."""

    number: int
    pool: int
    mask: int
    totals: tuple[int, ...]
    ports: int
    """The bits of the ports that its pods take."""
    busy: tuple[Busy, ...]
    row: Row
    nodes: list[PlannedNode] = field(default_factory=list)


class Step(NamedTuple):
    """One more pod for the nodes of a state. Steps are ordered: the cheapest first, then the least waste. The number
    of the state decides between equal ones, so that nothing behind it is ever compared."""

    added: float
    waste: float
    number: int
    state: State
    possible: int
    totals: tuple[int, ...]
    row: Row


class Ranking:
    """The states that can take one more pod of a size within some rows, in order. Empty states leave it when met."""

    __slots__ = ("_index", "_mask", "_present", "_requests", "_seen", "_steps", "alone")

    def __init__(self, index: StateIndex, requests: tuple[int, ...], mask: int) -> None:
        self._index, self._requests, self._mask = index, requests, mask
        rows = mask & index.rows.holding(index.resources, requests)
        self.alone = index.rows.first(rows).price if rows else None
        """The price of a node for one such pod alone, before limits; None when there is none."""
        self._steps: list[Step] = []
        self._present: set[State] = set()
        self._seen = 0

    def steps(self) -> Iterator[Step]:
        """The steps onto states that have nodes, in order. What is placed between two of them is seen the next time."""
        filled = self._index.filled
        self._index.meter.spent += 2 * (len(filled) - self._seen)
        for number in range(self._seen, len(filled)):
            state = filled[number]
            if state.nodes and state not in self._present:
                step = self._index.step(state, self._requests, self._mask)
                if step is not None:
                    self._present.add(state)
                    insort(self._steps, step)
        self._seen = len(filled)
        steps, position = self._steps, 0
        while position < len(steps):
            step = steps[position]
            if step.state.nodes:
                yield step
                position += 1
            else:
                del steps[position]
                self._present.discard(step.state)


class StateIndex:
    """All states of one packing, and the rankings of the size that is placed at the moment."""

    def __init__(self, rows: Rows, resources: Sequence[str], meter: Meter) -> None:
        self.rows, self.resources, self.meter = rows, resources, meter
        self.filled: list[State] = []
        """States in the order in which they came to have nodes; a state is there again when it was empty meanwhile."""
        self._states: dict[tuple[int, int, tuple[int, ...], int, tuple[Busy, ...]], State] = {}
        self._rankings: dict[int, Ranking] = {}
        self._requests: tuple[int, ...] = ()
        self._weighed = [(resources.index(name), name) for name in (CPU, MEMORY) if name in resources]

    def ranking(self, requests: tuple[int, ...], mask: int) -> Ranking:
        """The ranking for pods of this size. Those of another size are forgotten."""
        if requests != self._requests:
            self._requests = requests
            self._rankings.clear()
            self.meter.spent += len(self._states) // EMPTY_A_STEP
            self.filled = [state for state in self._states.values() if state.nodes]
        ranking = self._rankings.get(mask)
        if ranking is None:
            ranking = self._rankings[mask] = Ranking(self, requests, mask)
        return ranking

    def step(self, state: State, requests: tuple[int, ...], mask: int) -> Step | None:
        """One more pod on a node of the state; None when no row is left then."""
        possible = state.mask & mask
        if not possible:
            return None
        totals = tuple(map(int.__add__, state.totals, requests))
        possible &= self.rows.holding(self.resources, totals)
        if not possible:
            return None
        row = self.rows.first(possible)
        return Step(row.price - state.row.price, self.waste(row, totals), state.number, state, possible, totals, row)

    def waste(self, row: Row, totals: Sequence[int]) -> float:
        """Measure of the machine's remaining room, and of its unevenness: an even rest can still be used."""
        free = [
            (room - totals[position]) / room for position, name in self._weighed if (room := row.room.get(name, 0)) > 0
        ]
        return sum(free) + UNEVEN * (max(free) - min(free)) if free else 0.0

    def enter(
        self,
        node: PlannedNode,
        pool: int,
        mask: int,
        totals: tuple[int, ...],
        ports: int,
        busy: tuple[Busy, ...],
        row: Row,
    ) -> None:
        """Put a node into the state that it has now."""
        key = (pool, mask, totals, ports, busy)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = State(len(self._states), pool, mask, totals, ports, busy, row)
        if not state.nodes:
            self.filled.append(state)
        state.nodes.append(node)
        node.state = state
