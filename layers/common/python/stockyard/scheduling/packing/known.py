"""Nodes that are there: which of them have room, the right labels and taints, as bits in the order of preference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from stockyard.domain.nodes.node_types import ANY, CPU, MEMORY, PODS
from stockyard.scheduling.host_ports import PortTable
from stockyard.scheduling.packing.classes import Level
from stockyard.scheduling.packing.model import VOLUMES, Node, PlacedPod, Problem
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.rows import Rows
from stockyard.scheduling.packing.topology import Domain, NodeFilter, SpreadRule, fits
from stockyard.scheduling.table import mask_of

SEEN_A_STEP = 8
"""How many nodes are looked at for room in one step of work."""


@dataclass(slots=True, eq=False)
class KnownNode:
    """A node that is there, with what is left of it."""

    node: Node
    free: list[int]
    ports: int
    """The bits of the ports that its pods take."""
    pods: list[tuple[int, str]] = field(default_factory=list)
    """The number of the class, and the name of the pod."""


class KnownNodes:
    """The nodes that are there, those that are ready first, then by name; bit n is the n-th of them.

    What is free of a node is one integer as well, with a bit above each amount: a request that is subtracted from it
    takes such a bit where there is too little.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        resources: Sequence[str],
        meter: Meter,
        volumes: Mapping[str, int],
        ports: PortTable,
    ) -> None:
        """``volumes`` are the places for volumes, by resource, of a node without a limit."""
        ordered = sorted(nodes, key=lambda node: (not node.initialized, node.name))
        self._empty = [(node, free_of(node, resources, volumes), ports.of(node.ports).own) for node in ordered]
        """The nodes as they are before any pod comes; a list is replaced, and never changed."""
        self.nodes = [KnownNode(*parts) for parts in self._empty]
        self._meter = meter
        self._requests: tuple[int, ...] | None = None
        self._room = 0
        self._levels: dict[Level, int] = {}
        self._alike: dict[tuple[object, ...], int] = {}
        """The nodes that satisfy what levels ask of labels and taints, by what they ask."""
        self._known_alike: dict[tuple[object, ...], int] = {}
        """As ``_alike``, of all packings that share the nodes."""
        self._domains: dict[str, dict[Domain, int]] = {}
        columns = zip(*(known_node.free for known_node in self.nodes), strict=True)
        self._most = [max(0, *column) for column in columns]
        self.guard, self._shifts = 0, list[int]()
        for amount in self._most:
            self._shifts.append(self.guard.bit_length())
            self.guard |= 1 << self.guard.bit_length() + amount.bit_length()
        self.states = [
            self.guard | self.packed([max(0, amount) for amount in known_node.free]) for known_node in self.nodes
        ]
        self._empty_states = tuple(self.states)
        overdrawn = [number for number, known_node in enumerate(self.nodes) if min(known_node.free, default=0) < 0]
        self._usable = (1 << len(self.nodes)) - 1 & ~mask_of(overdrawn, len(self.nodes))

    def anew(self, meter: Meter) -> KnownNodes:
        """The nodes before any pod has come, for another packing of the same problem."""
        other = copy(self)
        other.nodes = [KnownNode(*parts) for parts in self._empty]
        other.states = list(self._empty_states)
        other._meter, other._requests, other._room = meter, None, 0
        other._levels, other._alike = {}, {}
        return other

    def candidates(self, requests: tuple[int, ...], level: Level) -> int:
        """The nodes with room for one more pod of this size that satisfy what the level asks of labels and taints."""
        if not self.nodes:
            return 0
        if requests != self._requests:
            self._requests = requests
            self._room = self._holding(requests)
        return self._room & self.satisfying(level)

    def satisfying(self, level: Level) -> int:
        """The nodes that satisfy what the level asks of labels and taints."""
        mask = self._levels.get(level)
        if mask is None:
            # Pods of many classes ask for the same.
            pod = level.pod
            memo_key = (level.terms, pod.volumes, pod.tolerations, pod.devices, level.any_taint)
            mask = self._alike.get(memo_key)
            if mask is None:
                self._meter.spent += len(self.nodes)
                mask = self._known_alike.get(memo_key)
            if mask is None:
                mask = self._mask([satisfies(level, known_node.node) for known_node in self.nodes])
                self._known_alike[memo_key] = mask
            self._alike[memo_key] = self._levels[level] = mask
        return mask

    def within(self, keys: Sequence[str], choices: Sequence[Iterable[Domain]]) -> int:
        """The nodes that are in one of the domains of each of these labels."""
        nodes = -1
        for key, domains in zip(keys, choices, strict=True):
            column, rows = self._column(key), 0
            for domain in domains:
                rows |= column.get(domain, 0)
            nodes &= rows
        return nodes

    def take(self, number: int, requests: tuple[int, ...]) -> None:
        """One more pod of this size is on the node."""
        known_node = self.nodes[number]
        known_node.free = list(map(int.__sub__, known_node.free, requests))
        self.states[number] -= self.packed(requests)
        if not self._holds(self.states[number], self.packed(requests)):
            self._room &= ~(1 << number)

    def _column(self, key: str) -> dict[Domain, int]:
        column = self._domains.get(key)
        if column is None:
            column = self._domains[key] = {}
            for number, known_node in enumerate(self.nodes):
                value = known_node.node.labels.get(key)
                column[value] = column.get(value, 0) | 1 << number
        return column

    def _mask(self, flags: Sequence[bool]) -> int:
        return mask_of((number for number, flag in enumerate(flags) if flag), len(flags))

    def packed(self, amounts: Sequence[int]) -> int:
        return sum([amount << shift for amount, shift in zip(amounts, self._shifts, strict=True)])

    def _holds(self, state: int, request: int) -> bool:
        return (state - request) & self.guard == self.guard

    def _holding(self, requests: tuple[int, ...]) -> int:
        """The nodes with room for one more pod of this size, and no resource of which more is taken than there is."""
        return self.roomy(requests) & self._usable

    def roomy(self, requests: tuple[int, ...]) -> int:
        """The nodes with room for one more pod of this size."""
        if not self.nodes or any(map(int.__gt__, requests, self._most)):
            return 0
        self._meter.spent += 1 + len(self.nodes) // SEEN_A_STEP
        request, guard = self.packed(requests), self.guard
        numbers = [number for number, state in enumerate(self.states) if (state - request) & guard == guard]
        return mask_of(numbers, len(self.nodes))


def satisfies(level: Level, node: Node) -> bool:
    """Whether a pod may be on the node, as far as labels, taints and devices go."""
    return (
        not level.pod.devices
        and fits_labels(level, node)
        and level.pod.tolerates(node.taints, preferred=not level.any_taint)
    )


def counts_for(level: Level, node: Node) -> bool:
    """Whether spread counts the node's domains for a pod: they are those of nodes that it requires, not prefers."""
    return any(fits(term, node.labels) for term in level.pod.terms)


def fits_labels(level: Level, node: Node) -> bool:
    """Whether the node's labels satisfy one of the alternatives that the pod asks for, and one of its volumes'."""
    volumes = level.pod.volumes
    return any(fits(term, node.labels) for term in level.terms) and (
        not volumes or any(fits(term, node.labels) for term in volumes)
    )


def passes(node: Node, where: NodeFilter) -> bool:
    """Whether the pods of the node count."""
    return where.passes(node.labels, node.taints)


def resources_of(problem: Problem) -> tuple[str, ...]:
    """The resources that some pod asks for, those that decide most often first; see ``volumes_of`` for the last."""
    names = {name for group in problem.groups for name, amount in group.pod.requests if amount > 0}
    first = [name for name in (CPU, MEMORY, PODS) if name in names]
    return (*first, *sorted(names - set(first)), *volumes_of(problem))


def volumes_of(problem: Problem) -> dict[str, int]:
    """Places for volumes as resources, for each CSI driver whose volumes some pod has and some node limits: as many as
    all pods together need, in thousandths. So many has a node whose limit nobody knows."""
    needed: Counter[str] = Counter()
    for group in problem.groups:
        for driver, count in group.pod.attachments:
            needed[driver] += count * len(group.names) * 1000
    limited = {driver for node in problem.nodes for driver in node.attachable} if needed else set()
    return {VOLUMES + driver: amount for driver, amount in sorted(needed.items()) if amount and driver in limited}


def free_of(node: Node, resources: Sequence[str], volumes: Mapping[str, int]) -> list[int]:
    """Free amount of each resource on a node; ``volumes`` are the places of a node that limits none."""
    free = [node.free.get(name, 0) for name in resources]
    for index, name in enumerate(resources):
        if name in volumes:
            driver = name.removeprefix(VOLUMES)
            free[index] = 1000 * node.attachable[driver] if driver in node.attachable else volumes[name]
    return free


def counted_pods(pods: Sequence[PlacedPod]) -> list[tuple[PlacedPod, int]]:
    """Pods of a node, and how often each comes in a row."""
    entries: list[tuple[PlacedPod, int]] = []
    last, count = None, 0
    for pod in pods:
        # Equal pods share one object: comparing them in full would take longer than it saves.
        if pod is last:
            count += 1
            continue
        if last is not None:
            entries.append((last, count))
        last, count = pod, 1
    if last is not None:
        entries.append((last, count))
    return entries


def universe_of(level: Level, key: str, rows: Rows, known_nodes: KnownNodes, meter: Meter) -> list[Domain]:
    """The domains for the pod, of present nodes and of nodes that pools can make. The level keeps them.

    None is the last of them, for nodes without the label, where the pod does not need it.
    """
    column = rows.column(key)
    universe = {value for value, mask in column.items() if mask & level.domain_mask}
    meter.spent += len(known_nodes.nodes) + len(column)
    for known_node in known_nodes.nodes:
        value = known_node.node.labels.get(key)
        if value not in universe and counts_for(level, known_node.node):
            universe.add(value)
    lacking = None in universe and not level.needs(key)
    level.universes[key] = listed = [*_in_order(universe), *([None] if lacking else [])]
    for rule in level.rules.get(key, ()):
        if isinstance(rule, SpreadRule) and rule.where != NodeFilter(level.pod.terms, None):
            rule.universe = _counted(rule.where, key, rows, known_nodes, meter)
    return listed


def _counted(where: NodeFilter, key: str, rows: Rows, known_nodes: KnownNodes, meter: Meter) -> list[Domain]:
    """The domains that a rule counts by its policies; they may differ from the domains for the pod."""
    counting, column = rows.counting(where), rows.column(key)
    meter.spent += len(known_nodes.nodes) + len(column)
    nodes = (known_node.node for known_node in known_nodes.nodes)
    domains = {node.labels.get(key) for node in nodes if passes(node, where)}
    return _in_order(domains.union(value for value, mask in column.items() if mask & counting))


def _in_order(domains: Iterable[Domain]) -> list[Domain]:
    """The domains of nodes that have the label. One that is not known yet (``*``) is one of the others, if there are
    any."""
    known_domains = set(domains) - {None}
    return sorted(known_domains - {ANY} or known_domains, key=str)
