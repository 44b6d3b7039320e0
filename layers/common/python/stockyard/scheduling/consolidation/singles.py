"""Each node by itself: whether its pods have room elsewhere, or on one cheaper node.

All candidates are looked at, however many there are: the nodes are read once, and what one candidate's pods would take
is undone before the next. Rules between pods (spread, affinity, ports) are left out here, so what this says of such
pods is a hope, and only a packing tells whether it comes true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stockyard.domain.pools.budgets import EMPTY
from stockyard.scheduling.consolidation.model import Fleet, RunningNode
from stockyard.scheduling.packing.classes import PodClass
from stockyard.scheduling.packing.model import Pod, PodGroup, Problem
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.rows import UNKNOWN_PRICE
from stockyard.scheduling.packing.solve import Solver

DELETE, REPLACE, NO_SAVING, NO_PLACE = "Delete", "Replace", "NoSaving", "NoPlace"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on one candidate by itself.

    ``outcome`` is ``Empty`` (nothing runs on it), ``Delete`` (its pods have room elsewhere), ``Replace`` (what has no
    room elsewhere fits a cheaper node), ``NoSaving`` (that node is no cheaper) or ``NoPlace`` (no one node holds it).
    ``price`` is that of the new node in USD an hour, ``type`` its node type. ``certain`` says that no pod has a rule
    that was left out.
    """

    node: RunningNode
    outcome: str
    price: float = 0.0
    type: str = ""
    certain: bool = True

    @property
    def saving(self) -> float:
        """USD an hour; nothing where the node has to stay."""
        return self.node.price - self.price if self.outcome in (EMPTY, DELETE, REPLACE) else 0.0


def verdicts(fleet: Fleet, candidates: Sequence[RunningNode], meter: Meter) -> list[Verdict]:
    """Judge each candidate by itself, in order."""
    counts: dict[Pod, int] = {}
    for node in candidates:
        for pod, count in node.pods:
            counts[pod] = counts.get(pod, 0) + count
    groups = tuple(PodGroup(pod, ("",) * count) for pod, count in counts.items())
    nodes = tuple(running.node for running in fleet.nodes)
    solver = Solver(Problem(groups, fleet.pools, nodes, fleet.daemons, places=fleet.places), meter, split=False)
    trial = _Trial(solver)
    return [trial.verdict(candidate) for candidate in candidates]


class _Trial:
    def __init__(self, solver: Solver) -> None:
        self._solver, self._known, self._meter = solver, solver.known_nodes, solver.meter
        self._classes = {pod_class.pod: pod_class for pod_class in solver.classes}
        self._index = {pod_class.pod: index for index, pod_class in enumerate(solver.classes)}
        self._numbers = {entry.node.name: number for number, entry in enumerate(self._known.nodes)}
        self._room: dict[PodClass, tuple[int, int]] = {}

    def verdict(self, candidate: RunningNode) -> Verdict:
        """Judge the candidate as if it went alone."""
        if candidate.empty:
            return Verdict(candidate, EMPTY)
        own = ~(1 << self._numbers[candidate.name])
        states: dict[int, int] = {}
        homeless: list[tuple[PodClass, int]] = []
        for pod, count in sorted(candidate.pods, key=lambda entry: self._index[entry[0]]):
            pod_class = self._classes[pod]
            without_room = self._fill(pod_class, count, own, states)
            if without_room:
                homeless.append((pod_class, without_room))
        certain = all(self._classes[pod].plain for pod, _ in candidate.pods)
        if not homeless:
            return Verdict(candidate, DELETE, certain=certain)
        return self._on_new(candidate, homeless, certain=certain)

    def _fill(self, pod_class: PodClass, count: int, own: int, states: dict[int, int]) -> int:
        """Put equal pods onto nodes that are there; how many have no room. ``states`` are those of nodes that took some
        before."""
        mask, request = self._room_of(pod_class)
        guard, base = self._known.guard, self._known.states
        for number in _bits(mask & own):
            self._meter.spent += 1
            state = states.get(number, base[number])
            while count and (state - request) & guard == guard:
                state -= request
                count -= 1
            states[number] = state
            if not count:
                return 0
        return count

    def _room_of(self, pod_class: PodClass) -> tuple[int, int]:
        """The nodes with room for one pod of the class, and its requests as ``KnownNodes`` counts them."""
        entry = self._room.get(pod_class)
        if entry is None:
            mask = self._known.candidates(pod_class.requests, pod_class.levels[-1])
            entry = self._room[pod_class] = (mask, self._known.packed(pod_class.requests))
        return entry

    def _on_new(self, candidate: RunningNode, homeless: Sequence[tuple[PodClass, int]], *, certain: bool) -> Verdict:
        rows, solver = self._solver.rows, self._solver
        totals = [0] * len(solver.resources)
        mask = rows.priced
        for pod_class, count in homeless:
            mask &= pod_class.levels[-1].mask
            totals = [total + amount * count for total, amount in zip(totals, pod_class.requests, strict=True)]
        self._meter.spent += 2 * len(homeless)
        mask &= rows.holding(solver.resources, totals)
        best = None
        for pool, of_pool in enumerate(rows.of_pool):
            possible = solver.limits.within(pool, mask & of_pool, None)
            if possible and (best is None or rows.first(possible).price < best.price):
                best = rows.first(possible)
        if best is None:
            return Verdict(candidate, NO_PLACE, certain=certain)
        outcome = REPLACE if best.price < candidate.price and best.price != UNKNOWN_PRICE else NO_SAVING
        return Verdict(candidate, outcome, best.price, best.node_type.name, certain)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
