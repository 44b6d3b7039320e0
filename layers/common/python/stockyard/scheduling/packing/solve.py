"""Places pods one after the other, by all rules: onto nodes that are there, into nodes that are planned, into new ones.

Pods of one size come one after the other, and planned nodes that are alike are looked at once (``states``). A pod goes
where it adds the least to the price; a new node is planned when that is cheaper or nothing else takes the pod.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product

from stockyard.domain.values.requirements import HOSTNAME
from stockyard.scheduling.host_ports import PortTable
from stockyard.scheduling.packing.classes import Level, PodClass, read_classes
from stockyard.scheduling.packing.known import KnownNodes, counted_pods, passes, resources_of, universe_of, volumes_of
from stockyard.scheduling.packing.limits import Limits
from stockyard.scheduling.packing.many import EPSILON, ManyPods
from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.rows import Row, Rows
from stockyard.scheduling.packing.states import PlannedNode, StateIndex, Step
from stockyard.scheduling.packing.topology import Domain, NodeFilter, SpreadRule, Tallies, Tally

MANY = 2
"""From so many equal pods on they are placed together."""
BUSY = 3
"""How many of the rules of hosts are part of a state: those that hold for the most pods."""
DOMAINS_A_STEP, MOST_MASKS = 4, 10_000
"""How many combinations of domains are looked at in one step of work, and of how many the rows are kept."""
LOOK_STEPS = 20_000
"""After so many steps it is asked whether the caller still waits: some hundredths of a second."""
Domains = tuple[Domain, ...]
"""A domain for each of the labels that matter for a class of pods."""


class Solver(ManyPods):
    """One packing of a problem. ``solve`` is called once: ``planned``, ``known_nodes`` and ``unplaced`` are its answer.

    ``earlier`` is another packing of the same pools and nodes: what it has read of them is not read again. Without
    steps left it ends, with a plan that obeys all rules.
    """

    def __init__(self, problem: Problem, meter: Meter, *, split: bool, earlier: Solver | None = None) -> None:
        self.problem, self.meter = problem, meter
        self.resources = resources_of(problem)
        volumes = volumes_of(problem)
        if earlier is None:
            waiting = [group.pod for group in problem.groups]
            self.rows = Rows(problem.pools, waiting, problem.daemons, problem.nodes, volumes)
            self.placed_pods = [(node, counted_pods(node.pods)) for node in problem.nodes if node.pods]
            self.ports = PortTable((pod.ports for pod in waiting), (node.ports for node in problem.nodes))
            meter.spent += self.ports.steps
        else:
            self.rows, self.placed_pods, self.ports = earlier.rows, earlier.placed_pods, earlier.ports
        self.tallies = Tallies()
        if earlier is not None and earlier.resources == self.resources and volumes_of(earlier.problem) == volumes:
            self.known_nodes = earlier.known_nodes.anew(meter)
        else:
            self.known_nodes = KnownNodes(problem.nodes, self.resources, meter, volumes, self.ports)
        held_terms = (pod.anti_affinity for _, pods in self.placed_pods for pod, _ in pods if pod.anti_affinity)
        for term in dict.fromkeys(chain.from_iterable(held_terms)):
            if not term.weight:
                self.tallies.of_holders(term)
        self.classes = read_classes(problem, self.rows, self.tallies, self.resources, self.ports)
        for node, pods in () if self.tallies.is_empty else self.placed_pods:
            for pod, count in pods:
                self.tallies.record(pod, count, node.labels, node.taints, node.name, HOSTNAME)
        self.limits = Limits(self.rows, problem.places)
        self.index = StateIndex(self.rows, self.resources, meter)
        self.planned: list[PlannedNode] = []
        self.unplaced: list[PodClass] = []
        self.refused: set[PodClass] = set()
        """Classes of which no pod finds a place beside what is placed by now."""
        self.order: list[str] = []
        """The pods in the order of their placement."""
        self._busy = self._busiest()
        self._split = split
        self.tempted = False
        """Whether a pod joined a node although a new one would have been cheaper at that moment."""
        self._min_values = [
            [
                (key, pod_class.min_values)
                for key, pod_class in pool.template.items()
                if pod_class.min_values is not None
            ]
            for pool in self.rows.pools
        ]

    def solve(self) -> None:
        """Place what can be placed. A class that found no place is tried again after others have changed the world."""
        queue = deque(pod_class for pod_class in self.classes if pod_class.waiting_pods)
        idle, look_at = 0, self.meter.spent + LOOK_STEPS
        while queue and idle < len(queue) and self.meter.remaining > 0:
            pod_class = queue.popleft()
            before, pods, meter = pod_class.placed, len(pod_class.names), self.meter
            while pod_class.placed < pods and meter.spent < meter.limit:
                if meter.spent >= look_at:
                    look_at = meter.spent + LOOK_STEPS
                    if meter.remaining <= 0:
                        break
                if not self._place_many(pod_class) and not self._place(pod_class):
                    break
            idle += 1
            if pod_class.placed > before:
                idle = 0
                self.refused.clear()
            if pod_class.waiting_pods:
                queue.append(pod_class)
                if self.meter.remaining > 0:
                    self.refused.add(pod_class)
        self.unplaced = list(queue)

    def _place_many(self, pod_class: PodClass) -> bool:
        """Put as many pods as one would put one by one: where nothing but room and labels matters to them."""
        if not pod_class.plain or len(pod_class.names) - pod_class.placed < MANY:
            return False
        return self.place_many(pod_class)

    # --- one pod ----------------------------------------------------------------------------------------------------

    def _place(self, pod_class: PodClass) -> bool:
        levels = pod_class.levels
        if self.problem.settings.preferred_nodes or len(levels) == 1:
            return any(self._place_at(pod_class, level) for level in levels)
        # No node is made for a preference while there is room.
        return (
            any(self._on_room(pod_class, level) for level in levels)
            or any(self._in_room(pod_class, number) for number in range(len(levels)))
            or self._in_best(pod_class, levels, None)
        )

    def _place_at(self, pod_class: PodClass, level: Level) -> bool:
        return self._on_room(pod_class, level) or any(
            self._in_planned(pod_class, level, domains, mask) or self._in_new(pod_class, level, domains, mask, None)
            for domains, mask in self._rooms(pod_class, level)
        )

    def _on_room(self, pod_class: PodClass, level: Level) -> bool:
        """Put the next pod onto a node that is there, if one has room."""
        candidates = self.known_nodes.candidates(pod_class.requests, level)
        return bool(candidates) and self._on_known(pod_class, level, candidates)

    def _in_room(self, pod_class: PodClass, number: int) -> bool:
        """Put the next pod onto a planned node, with the preferences of one of its levels. Where that would cost as
        much as a node that keeps more of them, it is that node."""
        better, level = pod_class.levels[:number], pod_class.levels[number]
        instead = partial(self._in_best, pod_class, better) if better else None
        rooms = self._rooms(pod_class, level)
        return any(self._in_planned(pod_class, level, domains, mask, instead) for domains, mask in rooms)

    def _in_best(self, pod_class: PodClass, levels: Sequence[Level], below: float | None) -> bool:
        """Put the next pod onto a new node that keeps as many of its preferences as possible."""
        return any(
            self._in_new(pod_class, level, domains, mask, below)
            for level in levels
            for domains, mask in self._rooms(pod_class, level)
        )

    def _rooms(self, pod_class: PodClass, level: Level) -> Iterator[tuple[Domains, int]]:
        """The domains in which the next pod may be, the emptiest first, and the rows in each of them."""
        for domains in self._domains(pod_class, level):
            if self.meter.spent >= self.meter.limit:
                return
            mask = level.masks.get(domains)
            if mask is None:
                mask = level.mask
                for key, domain in zip(pod_class.keys, domains, strict=True):
                    mask &= self.rows.column(key).get(domain, 0)
                if len(level.masks) < MOST_MASKS:
                    level.masks[domains] = mask
            if mask:
                yield domains, mask

    def _domains(self, pod_class: PodClass, level: Level) -> Iterator[Domains]:
        """The domains in which the next pod may be, one for each label of the class, the emptiest first."""
        for number, domains in enumerate(product(*self._choices(pod_class, level)), 1):
            if not number % DOMAINS_A_STEP:
                self.meter.spent += 1
                if self.meter.spent >= self.meter.limit:
                    return
            yield domains

    def _choices(self, pod_class: PodClass, level: Level) -> list[Sequence[Domain]]:
        """For each label of the class its domains in which the next pod may be, the emptiest first."""
        choices: list[Sequence[Domain]] = []
        for key in pod_class.keys:
            universe = level.universes.get(key)
            allowed = level.allowed(key, self._universe(key, level) if universe is None else universe)
            self.meter.spent += 2 + len(allowed) // 2
            tallies = [tally.by_domain for tally, _ in pod_class.counted if tally.key == key]
            if len(tallies) == 1:
                counts = tallies[0]
                allowed = sorted(allowed, key=lambda domain: counts.get(domain, 0))
            elif tallies:
                allowed = sorted(allowed, key=lambda domain: [counts.get(domain, 0) for counts in tallies])
            choices.append(allowed)
        return choices

    def _universe(self, key: str, level: Level) -> list[Domain]:
        return universe_of(level, key, self.rows, self.known_nodes, self.meter)

    # --- nodes that are there ---------------------------------------------------------------------------------------

    def _on_known(self, pod_class: PodClass, level: Level, candidates: int) -> bool:
        """Put the next pod onto the first of the nodes that are there which takes it."""
        if pod_class.keys:
            candidates &= self.known_nodes.within(pod_class.keys, self._choices(pod_class, level))
        while candidates:
            number = (candidates & -candidates).bit_length() - 1
            candidates &= candidates - 1
            known_node = self.known_nodes.nodes[number]
            node = known_node.node
            self.meter.spent += 1 + self.ports.steps_a_look
            if pod_class.ports.refused & known_node.ports or not level.allows_host(node.name):
                continue
            self.known_nodes.take(number, pod_class.requests)
            known_node.ports |= pod_class.ports.own
            self._take(pod_class, level, known_node.pods, node.name)
            self._count(pod_class, node.name, node.labels, partial(passes, node))
            return True
        return False

    # --- planned nodes ----------------------------------------------------------------------------------------------

    def _in_planned(
        self,
        pod_class: PodClass,
        level: Level,
        domains: Domains,
        mask: int,
        instead: Callable[[float], bool] | None = None,
    ) -> bool:
        """Put the next pod onto a planned node, or onto a new one where that is cheaper. ``instead`` may put it
        elsewhere for less than so much."""
        meter, refusing = self.meter, level.refusing
        for step in self.index.ranking(pod_class.requests, mask).steps():
            meter.spent += 1 + self.ports.steps_a_look
            if step.number in refusing:
                continue
            position = self._host(pod_class, level, step)
            if position is None:
                continue
            possible, row = step.possible, step.row
            if self.limits.binds(step.state.pool):
                possible = self.limits.within(step.state.pool, possible, step.state.row)
                if not possible:
                    continue
                row = self.rows.first(possible)
            if pod_class.filtered:
                possible = self._decided(pod_class, possible)
            if not self._enough_values(step.state.pool, possible):
                continue
            if instead is not None and step.added > EPSILON and instead(step.added + EPSILON):
                return True
            if step.added > EPSILON and self._is_cheaper(pod_class, mask, step.added):
                self.tempted = True
                if self._split and self._in_new(pod_class, level, domains, mask, step.added - EPSILON):
                    return True
            node = step.state.nodes.pop(position)
            state, totals = step.state, step.totals
            self._enter(pod_class, level, node, state.pool, possible, totals, state.ports, row, state.row, domains)
            return True
        return False

    def _is_cheaper(self, pod_class: PodClass, mask: int, added: float) -> bool:
        """Whether a node for the pod alone costs less than that."""
        price = self.index.ranking(pod_class.requests, mask).alone
        return price is not None and price < added - EPSILON

    def _host(self, pod_class: PodClass, level: Level, step: Step) -> int | None:
        """The place in the state's list of a node that the rules of hosts allow, the newest first."""
        state = step.state
        if pod_class.ports.refused & state.ports:
            return None
        nodes = state.nodes
        position = len(nodes) - 1
        if not level.host_rules:
            return position
        newest = nodes[position].name
        for rule in level.host_rules:
            if not rule.allows(newest):
                if rule.tally in self._busy:
                    level.refusing.add(step.number)
                    return None
                break
        else:
            return position
        for number in range(position - 1, -1, -1):
            if level.allows_host(nodes[number].name):
                self.meter.spent += position - number
                return number
        self.meter.spent += position
        return None

    def _in_new(self, pod_class: PodClass, level: Level, domains: Domains, mask: int, below: float | None) -> bool:
        """Put the next pod onto a new node, if there is one that costs less than ``below``."""
        name = f"planned-{len(self.planned) + 1}"
        if level.host_rules and not level.allows_host(name):
            return False
        possible = mask & self.rows.holding(self.resources, pod_class.requests)
        while possible:
            row = self.rows.first(possible)
            if below is not None and row.price >= below:
                return False
            of_pool = self.limits.within(row.pool, possible & self.rows.of_pool[row.pool], None)
            possible &= ~self.rows.of_pool[row.pool]
            if pod_class.filtered:
                of_pool = self._decided(pod_class, of_pool)
            if of_pool and self._enough_values(row.pool, of_pool):
                row = self.rows.first(of_pool)
                if below is not None and row.price >= below:
                    continue
                node = PlannedNode(name, None)  # type: ignore[arg-type]
                self.planned.append(node)
                self._enter(pod_class, level, node, row.pool, of_pool, pod_class.requests, 0, row, None, domains)
                return True
        return False

    def _take(self, pod_class: PodClass, level: Level, pods: list[tuple[int, str]], host: str) -> None:
        """The next pod is on the host."""
        self.meter.spent += 5 + self.ports.steps_a_look
        name = pod_class.next_name()
        pods.append((pod_class.number, name))
        self.order.append(name)
        for rule in level.host_rules:
            if isinstance(rule, SpreadRule) and rule.constraint.hard:
                rule.tally.guard(host, rule.constraint.max_skew)

    def _enter(
        self,
        pod_class: PodClass,
        level: Level,
        node: PlannedNode,
        pool: int,
        possible: int,
        totals: tuple[int, ...],
        ports: int,
        row: Row,
        before: Row | None,
        domains: Domains,
    ) -> None:
        if self.limits.binds(pool):
            self.limits.take(pool, row, before)
        self._take(pod_class, level, node.pods, node.name)
        if pod_class.counted or pod_class.held_tallies:
            labels = dict(zip(pod_class.keys, domains, strict=True))
            self._count(pod_class, node.name, labels, lambda where: bool(self.rows.counting(where) & possible))
        busy = tuple([(tally.by_domain.get(node.name, 0), tally.most.get(node.name)) for tally in self._busy])
        self.index.enter(node, pool, possible, totals, ports | pod_class.ports.own, busy, row)

    def _count(
        self, pod_class: PodClass, name: str, labels: Mapping[str, Domain], passes: Callable[[NodeFilter], bool]
    ) -> None:
        """Count a placed pod in its domains."""
        self.meter.spent += len(pod_class.counted)
        for tally, where in pod_class.counted:
            domain = name if tally.key == HOSTNAME else labels.get(tally.key)
            if domain is not None and (where.all or passes(where)):
                tally.add(domain)
        for tally in pod_class.held_tallies:
            domain = name if tally.key == HOSTNAME else labels.get(tally.key)
            if domain is not None:
                tally.add(domain)

    # --- rules of pools and hosts -----------------------------------------------------------------------------------

    def _decided(self, pod_class: PodClass, possible: int) -> int:
        """The rows that are like the first one for those who count the pod on some nodes only."""
        for _, where in pod_class.counted:
            if not where.all and possible:
                counting = self.rows.counting(where)
                first = possible & -possible
                possible &= counting if first & counting else ~counting
        return possible

    def _enough_values(self, pool: int, possible: int) -> bool:
        """Whether the node types that are left have as many values as ``minValues`` asks."""
        for key, least in self._min_values[pool]:
            self.meter.spent += 2 + len(self.rows.distinct(key)) // 8
            values = sum(1 for rows in self.rows.distinct(key).values() if rows & possible)
            if values < least:
                return False
        return True

    def _busiest(self) -> dict[Tally, None]:
        """The rules of hosts that hold for the most pods."""
        pods: Counter[Tally] = Counter()
        for pod_class in self.classes:
            for rule in pod_class.levels[0].host_rules:
                pods[rule.tally] += len(pod_class.names)
        return dict.fromkeys(tally for tally, _ in pods.most_common(BUSY))
