"""kube-scheduler as a replay plays it: each pod by itself, in the order of its queue, onto the best node with room.

Required rules keep a pod from a node. Preferred ones only rank the nodes that are left: they never keep a pod waiting.
The weights are those of kube-scheduler's default profile: taints 3, affinity and spread 2, room 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from math import log

from stockyard.domain.nodes.node_types import CPU, MEMORY
from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.packing.classes import Level, PodClass
from stockyard.scheduling.packing.known import KnownNode, passes
from stockyard.scheduling.packing.model import (
    PREFER_NO_SCHEDULE,
    Node,
    Pod,
    PodGroup,
    PodTerm,
    Problem,
    Settings,
    Spread,
)
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.solve import Solver
from stockyard.scheduling.packing.topology import Domain, GuardRule, SpreadRule, fits

TAINTS, AFFINITY, SPREADING = 3.0, 2.0, 2.0
"""What a preferred rule weighs beside the room of a node."""
FULL = 100.0
FEWEST_SCORED, SHARE_SCORED, NODES_A_SHARE, LEAST_SHARE = 100, 50, 125, 5
"""Of many nodes with room kube-scheduler ranks a part: half of them, less one per cent for each 125 nodes, at least
five per cent, and at least a hundred."""
_WORK = 10**12


class _Filters(Solver):
    """Picture that the packer has of the nodes, their pods, and the rules of pods that wait. No node is made."""

    def domains(self, key: str, level: Level) -> Sequence[Domain]:
        """The domains of a label that count for a pod."""
        universe = level.universes.get(key)
        return self._universe(key, level) if universe is None else universe

    def bind(self, pod_class: PodClass, entry: KnownNode) -> None:
        """Count a pod where it is now."""
        self._count(pod_class, entry.node.name, entry.node.labels, partial(passes, entry.node))


class KubeScheduler:
    """Places pods onto the nodes of one moment. ``totals`` is what each node has for pods by its name; ``spent`` is the
    work in the packer's steps."""

    def __init__(self, nodes: Sequence[Node], totals: Mapping[str, Mapping[str, int]], pods: Iterable[Pod]) -> None:
        groups = tuple(PodGroup(pod, ("",)) for pod in dict.fromkeys(pods))
        self._meter = Meter(_WORK)
        self._solver = _Filters(Problem(groups, (), tuple(nodes), (), Settings()), self._meter, split=False)
        self._known = self._solver.known_nodes
        self._classes = {pod_class.pod: pod_class for pod_class in self._solver.classes}
        resources = self._solver.resources
        self._totals = [[totals[entry.node.name].get(name, 0) for name in resources] for entry in self._known.nodes]
        self._weighed = [number for number, name in enumerate(resources) if name in (CPU, MEMORY)]
        # The least that a pod asks for; what a pool says of PreferNoSchedule ranks nodes as well.
        self._levels = {item: replace(item.levels[-1], any_taint=True, universes={}) for item in self._solver.classes}
        self._plain = {item: self._is_plain(item) for item in self._solver.classes}
        self._refused: set[PodClass] = set()
        self._heap: list[tuple[float, int]] = []
        self._heap_of: PodClass | None = None
        self._start = 0

    @property
    def spent(self) -> int:
        """The work so far."""
        return self._meter.spent

    def place(self, pod: Pod) -> str | None:
        """The name of the node that the pod is bound to; None while no node takes it."""
        pod_class = self._classes[pod]
        if pod_class in self._refused:
            return None
        plain = self._plain[pod_class]
        number = self._of_heap(pod_class) if plain else self._best_of(pod_class, self._open(pod_class))
        if number is None:
            self._refused.add(pod_class)
            return None
        entry = self._known.nodes[number]
        self._known.take(number, pod_class.requests)
        entry.ports |= pod_class.ports.own
        self._solver.bind(pod_class, entry)
        if plain:
            self._push(pod_class, number)
        else:
            self._heap_of = None
        # One more pod may be what others want to be with.
        self._refused = {item for item in self._refused if self._plain[item]}
        return entry.node.name

    # --- filters ----------------------------------------------------------------------------------------------------

    def _is_plain(self, pod_class: PodClass) -> bool:
        """Whether nothing but room ranks the nodes that take it, and only room, labels and taints decide which do."""
        taints = (taint for entry in self._known.nodes for taint in entry.node.taints)
        soft = any(taint.effect == PREFER_NO_SCHEDULE for taint in taints)
        return pod_class.plain and not soft

    def _candidates(self, pod_class: PodClass) -> int:
        return self._known.candidates(pod_class.requests, self._levels[pod_class])

    def _open(self, pod_class: PodClass) -> list[int]:
        """The nodes that the pod may be bound to: enough of them, beginning where the last pod ended."""
        mask, level = self._candidates(pod_class), self._levels[pod_class]
        for key in level.rules:
            if key != HOSTNAME and mask:
                allowed = level.allowed(key, self._solver.domains(key, level))
                mask &= self._known.within([key], [allowed])
        count = len(self._known.nodes)
        share = max(LEAST_SHARE, SHARE_SCORED - count // NODES_A_SHARE)
        most = max(FEWEST_SCORED, count * share // 100)
        spreads = [rule for rule in level.host_rules if isinstance(rule, SpreadRule)]
        smallest = {rule: self._smallest(rule) for rule in spreads}
        numbers: list[int] = []
        for step in range(count if mask else 0):
            number = (self._start + step) % count
            if mask >> number & 1 and self._takes(pod_class, level, self._known.nodes[number], smallest):
                numbers.append(number)
                if len(numbers) == most:
                    self._start = (number + 1) % count
                    break
        self._meter.spent += 1 + len(numbers) + (count // 8 if mask else 0)
        return sorted(numbers)

    def _smallest(self, rule: SpreadRule) -> int:
        """The pods of the emptiest host that the spread counts: none where there are fewer hosts than it asks for."""
        hosts = [entry.node.name for entry in self._known.nodes if passes(entry.node, rule.where)]
        if rule.constraint.min_domains is not None and len(hosts) < rule.constraint.min_domains:
            return 0
        self._meter.spent += len(hosts) // 4
        return min((rule.tally.by_domain.get(host, 0) for host in hosts), default=0)

    def _takes(self, pod_class: PodClass, level: Level, entry: KnownNode, smallest: Mapping[SpreadRule, int]) -> bool:
        if pod_class.ports.refused & entry.ports:
            return False
        host = entry.node.name
        for rule in level.host_rules:
            if isinstance(rule, GuardRule):
                continue  # It is the planner's care; the scheduler knows of no such rule.
            if isinstance(rule, SpreadRule):
                count = rule.tally.by_domain.get(host, 0) + rule.own
                if count - smallest[rule] > rule.constraint.max_skew:
                    return False
            elif not rule.allows(host):
                return False
        return True

    # --- ranks ------------------------------------------------------------------------------------------------------

    def _of_heap(self, pod_class: PodClass) -> int | None:
        """The best node for the next of equal pods of which only room matters."""
        if self._heap_of is not pod_class:
            self._heap_of, self._heap = pod_class, []
            mask = self._candidates(pod_class)
            while mask:
                number = (mask & -mask).bit_length() - 1
                mask &= mask - 1
                self._heap.append((-self._room(pod_class, number), number))
            self._meter.spent += len(self._heap)
            heapify(self._heap)
        self._meter.spent += 1
        return heappop(self._heap)[1] if self._heap else None

    def _push(self, pod_class: PodClass, number: int) -> None:
        """The node has a rank for the next equal pod, if it takes one more."""
        if all(map(int.__le__, pod_class.requests, self._known.nodes[number].free)):
            heappush(self._heap, (-self._room(pod_class, number), number))

    def _best_of(self, pod_class: PodClass, numbers: Sequence[int]) -> int | None:
        if not numbers:
            return None
        scores = [self._room(pod_class, number) for number in numbers]
        for weight, values in self._preferred(pod_class.pod, [self._known.nodes[number].node for number in numbers]):
            least, most = min(values), max(values)
            if most > least:
                scores = [
                    score + weight * FULL * (value - least) / (most - least)
                    for score, value in zip(scores, values, strict=True)
                ]
        best = max(scores)
        return numbers[scores.index(best)]

    def _room(self, pod_class: PodClass, number: int) -> float:
        """Room that the node has left beside the pod, and its evenness, each from 0 to 100."""
        free, total = self._known.nodes[number].free, self._totals[number]
        shares = [
            (free[index] - pod_class.requests[index]) / total[index] for index in self._weighed if total[index] > 0
        ]
        if not shares:
            return 0.0
        return FULL * (sum(shares) / len(shares)) + FULL * (1 - (max(shares) - min(shares)) / 2)

    def _preferred(self, pod: Pod, nodes: Sequence[Node]) -> Iterable[tuple[float, list[float]]]:
        """Scores of the nodes by each preferred rule, the larger the better, and the rule's weight."""
        self._meter.spent += len(nodes)
        yield TAINTS, [-float(self._soft_taints(pod, node)) for node in nodes]
        if pod.preferences:
            yield AFFINITY, [float(self._preferences(pod, node)) for node in nodes]
        terms = [(1, term) for term in pod.affinity if term.weight]
        terms += [(-1, term) for term in pod.anti_affinity if term.weight]
        if terms:
            yield AFFINITY, [float(sum(sign * self._beside(term, node) for sign, term in terms)) for node in nodes]
        soft = [spread for spread in pod.spreads if not spread.hard]
        if soft:
            sizes = [len({entry.node.labels.get(each.key) for entry in self._known.nodes}) for each in soft]
            pairs = list(zip(soft, sizes, strict=True))
            yield SPREADING, [-sum(self._crowd(pod, each, node, size) for each, size in pairs) for node in nodes]

    @staticmethod
    def _soft_taints(pod: Pod, node: Node) -> int:
        return sum(taint.effect == PREFER_NO_SCHEDULE and not pod.tolerates((taint,)) for taint in node.taints)

    @staticmethod
    def _preferences(pod: Pod, node: Node) -> int:
        return sum(each.weight for each in pod.preferences if fits(each.requirements, node.labels))

    def _beside(self, term: PodTerm, node: Node) -> int:
        """Weighted number of pods in the node's domain that the term wants to be with, or does not."""
        domain = node.name if term.key == HOSTNAME else node.labels.get(term.key)
        return term.weight * self._solver.tallies.of_term(term).by_domain.get(domain, 0)

    def _crowd(self, pod: Pod, spread: Spread, node: Node, size: int) -> float:
        """Number of pods in the node's domain that the spread counts; more than anywhere where it has none."""
        domain = node.name if spread.key == HOSTNAME else node.labels.get(spread.key)
        tally = self._solver.tallies.of_spread(pod, spread)
        count = tally.total if domain is None else tally.by_domain.get(domain, 0)
        return count * log(size + 2) + spread.max_skew - 1
