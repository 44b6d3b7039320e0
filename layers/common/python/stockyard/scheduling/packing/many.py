"""Equal pods to which only room and labels matter, placed many at a time: as they would be one by one, but sooner."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.scheduling.packing.classes import PodClass
from stockyard.scheduling.packing.known import KnownNodes
from stockyard.scheduling.packing.limits import Limits
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.rows import Rows
from stockyard.scheduling.packing.states import PlannedNode, StateIndex

EPSILON = 1e-9
"""Prices that differ by less are equal."""


class ManyPods:
    """Nodes and pods of a packing, and the placement of equal pods together. ``Solver`` fills it."""

    meter: Meter
    resources: Sequence[str]
    rows: Rows
    known_nodes: KnownNodes
    limits: Limits
    index: StateIndex
    planned: list[PlannedNode]
    order: list[str]
    _min_values: Sequence[Sequence[tuple[str, int]]]
    """The ``minValues`` of each pool, by label."""

    def place_many(self, pod_class: PodClass) -> bool:
        """Put as many pods of the class, to which only room and labels matter, as one would put one by one."""
        mask = pod_class.levels[0].mask
        if self.known_nodes.candidates(pod_class.requests, pod_class.levels[0]):
            return False
        step = next(self.index.ranking(pod_class.requests, mask).steps(), None)
        if step is None:
            return self._repeat_newest(pod_class, mask)
        state = step.state
        if step.added > EPSILON or self._min_values[state.pool] or self.limits.binds(state.pool):
            return False
        room = [step.row.room.get(name, 0) for name in self.resources]
        each = 1 + min(
            (have - total) // amount
            for have, total, amount in zip(room, step.totals, pod_class.requests, strict=True)
            if amount > 0
        )
        count = min(len(state.nodes), (len(pod_class.names) - pod_class.placed) // each)
        if not count:
            return False
        totals = tuple([total + each * amount for total, amount in zip(state.totals, pod_class.requests, strict=True)])
        possible = state.mask & mask & self.rows.holding(self.resources, totals)
        for node in [state.nodes.pop() for _ in range(count)]:
            self._take_many(pod_class, node, each)
            self.index.enter(node, state.pool, possible, totals, state.ports, state.busy, step.row)
        return True

    def _repeat_newest(self, pod_class: PodClass, mask: int) -> bool:
        """No planned node takes the pods any more: plan the newest one again, if it was filled with such pods alone."""
        newest = self.planned[-1] if self.planned else None
        if newest is None or newest.state.mask & ~mask or {number for number, _ in newest.pods} != {pod_class.number}:
            return False
        state, each = newest.state, len(newest.pods)
        count = min((len(pod_class.names) - pod_class.placed) // each, self.limits.copies(state.pool, state.row))
        for _ in range(count):
            node = PlannedNode(f"planned-{len(self.planned) + 1}", state)
            self.planned.append(node)
            self.limits.take(state.pool, state.row, None)
            self._take_many(pod_class, node, each)
            self.index.enter(node, state.pool, state.mask, state.totals, state.ports, state.busy, state.row)
        return count > 0

    def _take_many(self, pod_class: PodClass, node: PlannedNode, count: int) -> None:
        self.meter.spent += 1
        names = pod_class.names[pod_class.placed : pod_class.placed + count]
        pod_class.placed += count
        node.pods += [(pod_class.number, name) for name in names]
        self.order += names
