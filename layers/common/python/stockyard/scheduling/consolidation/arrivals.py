"""Whether pods that move have a place however they come.

A packing fits pods together as a puzzle, but no scheduler follows it: pods come one by one as they are evicted, and
kube-scheduler puts each onto the node that has the largest share of its room left. So small pods take a little
everywhere, and a large one that the plan had a place for may find none: a node is made for it, is in excess at once,
and the next decision begins. Rules between pods are left out here; the packing obeys them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from random import Random

from stockyard.domain.node_types import CPU, MEMORY
from stockyard.domain.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import Fleet, RunningNode
from stockyard.scheduling.packing.classes import PodClass
from stockyard.scheduling.packing.known import satisfies
from stockyard.scheduling.packing.model import Node, Pod, PodGroup, Problem
from stockyard.scheduling.packing.plan import Plan
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.solve import Solver

SHUFFLES = 2
"""Orders of arrival that are tried besides that in which nodes are emptied."""
_WORK = 10**9


class Arrivals:
    """Plays how the pods of nodes of one fleet come to the others."""

    def __init__(self, fleet: Fleet) -> None:
        pods = dict.fromkeys(pod for node in fleet.nodes for pod, _ in node.pods)
        groups = tuple(PodGroup(pod, ("",)) for pod in pods)
        nodes = tuple(running.node for running in fleet.nodes)
        solver = Solver(Problem(groups, (), nodes, fleet.daemons), Meter(_WORK), split=False)
        self._resources, self._known = solver.resources, solver.known
        self._classes = {pod_class.pod: pod_class for pod_class in solver.classes}
        self._numbers = {entry.node.name: number for number, entry in enumerate(self._known.nodes)}
        self._totals = {node.name: self._total(node) for node in fleet.nodes}

    def fit(self, nodes: Sequence[RunningNode], plan: Plan) -> bool:
        """Whether all pods of the nodes have a place on the others and on those that come, in several orders."""
        going = {node.name for node in nodes}
        new = tuple(
            Node(f"new {number}", {**claim.labels, HOSTNAME: f"new {number}"}, claim.row.room, claim.pool.taints)
            for number, claim in enumerate(plan.claims)
        )
        rooms: list[tuple[Node, list[int], list[int]]] = []
        for entry in self._known.nodes:
            if entry.node.name not in going:
                rooms.append((entry.node, list(entry.free), self._totals[entry.node.name]))
        for node in new:
            free = [node.free.get(name, 0) for name in self._resources]
            rooms.append((node, free, free))
        return all(self._places(order, rooms) for order in self._orders(nodes))

    def _total(self, running: RunningNode) -> list[int]:
        """What the node has for pods: nearly all of it, as those that stay with it are not told."""
        used = dict(running.node.free)
        for pod, count in running.pods:
            for name, amount in pod.requests:
                used[name] = used.get(name, 0) + amount * count
        return [used.get(name, 0) for name in self._resources]

    def _orders(self, nodes: Sequence[RunningNode]) -> Iterator[list[Pod]]:
        listed = [pod for node in nodes for pod, count in node.pods for _ in range(count)]
        yield listed
        chance = Random(len(listed))
        for _ in range(SHUFFLES):
            chance.shuffle(listed)
            yield listed

    def _places(self, pods: Sequence[Pod], rooms: Sequence[tuple[Node, Sequence[int], Sequence[int]]]) -> bool:
        free = [list(amounts) for _, amounts, _ in rooms]
        heap = [(self._used(free[number], total), number) for number, (_, _, total) in enumerate(rooms)]
        heapify(heap)
        may: dict[tuple[PodClass, int], bool] = {}
        for pod in pods:
            pod_class = self._classes[pod]
            passed: list[tuple[float, int]] = []
            place = -1
            while heap and place < 0:
                entry = heappop(heap)
                number = entry[1]
                if self._may(pod_class, number, rooms, may) and all(
                    amount <= room for amount, room in zip(pod_class.requests, free[number], strict=True)
                ):
                    place = number
                else:
                    passed.append(entry)
            for entry in passed:
                heappush(heap, entry)
            if place < 0:
                return False
            free[place] = list(map(int.__sub__, free[place], pod_class.requests))
            heappush(heap, (self._used(free[place], rooms[place][2]), place))
        return True

    def _may(
        self,
        pod_class: PodClass,
        number: int,
        rooms: Sequence[tuple[Node, Sequence[int], Sequence[int]]],
        may: dict[tuple[PodClass, int], bool],
    ) -> bool:
        """Whether labels and taints of the node let pods of the class onto it."""
        level, node = pod_class.levels[-1], rooms[number][0]
        bit = self._numbers.get(node.name)
        if bit is not None:
            return bool(self._known.satisfying(level) >> bit & 1)
        if (pod_class, number) not in may:
            may[pod_class, number] = satisfies(level, node)
        return may[pod_class, number]

    def _used(self, free: Sequence[int], total: Sequence[int]) -> float:
        """The share of cores and memory that is used, as kube-scheduler weighs it."""
        return sum(1 - free[number] / total[number] for number in self._weighed(total))

    def _weighed(self, total: Sequence[int]) -> Iterator[int]:
        for number, name in enumerate(self._resources):
            if name in (CPU, MEMORY) and total[number] > 0:
                yield number
