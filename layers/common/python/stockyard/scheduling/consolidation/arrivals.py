"""Whether pods that move have a place however they come.

A packing fits pods together as a puzzle, but no scheduler follows it: pods come one by one as they are evicted, and
kube-scheduler puts each onto the node that has the largest share of its room left, or the smallest where a cluster is
set up to be filled. So small pods take a little everywhere, and a large one that the plan had a place for may find
none: a node is made for it, is in excess at once, and the next decision begins. Of the rules between pods those of one
host are played; of those of zones the packing has to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush
from random import Random

from stockyard.domain.nodes.node_types import CPU, MEMORY
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.consolidation.model import Fleet, RunningNode
from stockyard.scheduling.host_ports import PortTable
from stockyard.scheduling.packing.classes import PodClass
from stockyard.scheduling.packing.known import free_of, satisfies, volumes_of
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, PodGroup, PodTerm, Problem
from stockyard.scheduling.packing.plan import Plan
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.solve import Solver

SHUFFLES = 2
"""Orders of arrival that are tried besides that in which nodes are emptied."""
SPREADS, FILLS = 1, -1
"""What a scheduler prefers: nodes of which little is used, or those of which much is."""
_WORK = 10**9


class Arrivals:
    """Plays how the pods of nodes of one fleet come to the others. ``spent`` is the work in the packer's steps."""

    def __init__(self, fleet: Fleet) -> None:
        self.spent = len(fleet.nodes)
        pods: dict[Pod, int] = {}
        for running in fleet.nodes:
            for pod, count in running.pods:
                pods[pod] = pods.get(pod, 0) + count
        groups = tuple(PodGroup(pod, ("",) * count) for pod, count in pods.items())
        nodes = tuple(running.node for running in fleet.nodes)
        problem = Problem(groups, (), nodes, fleet.daemons)
        solver = Solver(problem, Meter(_WORK), split=False)
        self._resources, self._known, self._volumes = solver.resources, solver.known_nodes, volumes_of(problem)
        self._classes = {pod_class.pod: pod_class for pod_class in solver.classes}
        self._numbers = {entry.node.name: number for number, entry in enumerate(self._known.nodes)}
        self._totals = {node.name: self._total(node) for node in fleet.nodes}
        self._hosts = _HostRules(solver.ports)

    def fit(self, nodes: Sequence[RunningNode], plan: Plan) -> bool:
        """Whether all pods of the nodes have a place on the others and on those that come, in several orders."""
        going = {node.name for node in nodes}
        new = tuple(
            Node(
                f"new {number}",
                {**claim.labels, HOSTNAME: f"new {number}"},
                claim.row.room,
                claim.pool.taints,
                ports=claim.row.ports,
            )
            for number, claim in enumerate(plan.claims)
        )
        before = self._hosts.spent
        rooms: list[tuple[Node, list[int], list[int]]] = []
        for entry in self._known.nodes:
            if entry.node.name not in going:
                rooms.append((entry.node, list(entry.free), self._totals[entry.node.name]))
        for node in new:
            free = free_of(node, self._resources, self._volumes)
            rooms.append((node, free, free))
        fits = all(self._fits_in_order(order, rooms, style) for order, style in self._orders(nodes))
        self.spent += self._hosts.spent - before
        return fits

    def _total(self, running: RunningNode) -> list[int]:
        """Room of the node for pods: nearly all of it, as pods that stay with it are not told."""
        used = dict(running.node.free)
        for pod, count in running.pods:
            for name, amount in pod.requests:
                used[name] = used.get(name, 0) + amount * count
        return [used.get(name, 0) for name in self._resources]

    def _orders(self, nodes: Sequence[RunningNode]) -> Iterator[tuple[list[Pod], int]]:
        listed = [pod for node in nodes for pod, count in node.pods for _ in range(count)]
        yield listed, SPREADS
        yield listed, FILLS
        # A budget of pods may hold those back that are hard to place, until others have taken what is free.
        easy_first = sorted(listed, key=lambda pod: (self._hosts.is_alone(pod), self._classes[pod].requests))
        yield easy_first, SPREADS
        yield easy_first, FILLS
        chance = Random(len(listed))
        for _ in range(SHUFFLES):
            chance.shuffle(listed)
            yield listed, SPREADS

    def _fits_in_order(
        self, pods: Sequence[Pod], rooms: Sequence[tuple[Node, Sequence[int], Sequence[int]]], style: int
    ) -> bool:
        self.spent += len(rooms) + 2 * len(pods)
        requests = [self._classes[pod].requests for pod in dict.fromkeys(pods)]
        smallest = [min(amounts) for amounts in zip(*requests, strict=True)]
        free = [list(amounts) for _, amounts, _ in rooms]
        heap = [
            (style * self._used(amounts, rooms[number][2]), number)
            for number, amounts in enumerate(free)
            if all(map(int.__le__, smallest, amounts))
        ]
        heapify(heap)
        may: dict[tuple[PodClass, int], bool] = {}
        arrived: dict[int, list[Pod]] = {}
        for pod in pods:
            pod_class = self._classes[pod]
            passed: list[tuple[float, int]] = []
            chosen_room = -1
            while heap and chosen_room < 0:
                entry = heappop(heap)
                number = entry[1]
                if (
                    all(map(int.__le__, pod_class.requests, free[number]))
                    and self._may(pod_class, number, rooms, may)
                    and self._hosts.allow(pod, arrived.get(number, ()))
                ):
                    chosen_room = number
                else:
                    passed.append(entry)
            self.spent += len(passed)
            for entry in passed:
                heappush(heap, entry)
            if chosen_room < 0:
                return False
            free[chosen_room] = list(map(int.__sub__, free[chosen_room], pod_class.requests))
            arrived.setdefault(chosen_room, []).append(pod)
            if all(map(int.__le__, smallest, free[chosen_room])):
                heappush(heap, (style * self._used(free[chosen_room], rooms[chosen_room][2]), chosen_room))
        return True

    def _may(
        self,
        pod_class: PodClass,
        number: int,
        rooms: Sequence[tuple[Node, Sequence[int], Sequence[int]]],
        may: dict[tuple[PodClass, int], bool],
    ) -> bool:
        """Whether labels, taints and pods of the node let pods of the class onto it."""
        if (pod_class, number) not in may:
            level, node = pod_class.levels[-1], rooms[number][0]
            bit = self._numbers.get(node.name)
            fits = satisfies(level, node) if bit is None else bool(self._known.satisfying(level) >> bit & 1)
            may[pod_class, number] = fits and self._hosts.may_join(pod_class.pod, node)
        return may[pod_class, number]

    def _used(self, free: Sequence[int], total: Sequence[int]) -> float:
        """The share of cores and memory that is used, as kube-scheduler weighs it."""
        return sum(1 - free[number] / total[number] for number in self._weighed(total))

    def _weighed(self, total: Sequence[int]) -> Iterator[int]:
        for number, name in enumerate(self._resources):
            if name in (CPU, MEMORY) and total[number] > 0:
                yield number


class _HostRules:
    """Pairs of pods that may not be on one host: by what they require of each other there, and by the ports that they
    take. Pairs are compared when they first meet; ``spent`` is the work of that in the packer's steps."""

    def __init__(self, ports: PortTable) -> None:
        self.spent = 0
        self._ports = ports
        self._placed: dict[tuple[Pod, PlacedPod], bool] = {}
        self._pairs: dict[tuple[Pod, Pod], bool] = {}

    def allow(self, pod: Pod, there: Collection[Pod]) -> bool:
        """Whether the pod may come to these, which came before it."""
        self.spent += len(there)
        return not any(self._excludes(pod, other) for other in there)

    def is_alone(self, pod: Pod) -> bool:
        """Whether no two pods like it may be on one host."""
        return self._excludes(pod, pod)

    def may_join(self, pod: Pod, node: Node) -> bool:
        """Whether the pod may be beside what runs on the node."""
        self.spent += 1 + len(node.pods)
        if self._ports.conflict(pod.ports, node.ports):
            return False
        return not any(self._refuses(pod, placed) for placed in node.pods)

    def _excludes(self, pod: Pod, other: Pod) -> bool:
        memo_key = (pod, other)
        if memo_key not in self._pairs:
            self.spent += 1
            placed = PlacedPod(other.namespace, other.labels, other.anti_affinity)
            self._pairs[memo_key] = self._ports.conflict(pod.ports, other.ports) or self._refuses(pod, placed)
        return self._pairs[memo_key]

    def _refuses(self, pod: Pod, placed: PlacedPod) -> bool:
        memo_key = (pod, placed)
        if memo_key not in self._placed:
            self.spent += len(pod.anti_affinity) + len(placed.anti_affinity)
            own = PlacedPod(pod.namespace, pod.labels, pod.anti_affinity)
            self._placed[memo_key] = _selects(own, placed) or _selects(placed, own)
        return self._placed[memo_key]


def _own_terms(pod: PlacedPod) -> Sequence[PodTerm]:
    return [term for term in pod.anti_affinity if term.key == HOSTNAME and not term.weight]


def _selects(pod: PlacedPod, other: PlacedPod) -> bool:
    """Whether the pod requires not to be on one host with the other."""
    return any(
        (term.namespaces is None or other.namespace in term.namespaces) and term.selector.matches(dict(other.labels))
        for term in _own_terms(pod)
    )
