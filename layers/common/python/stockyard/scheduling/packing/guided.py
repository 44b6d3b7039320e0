"""Pods with rules between them, packed for price: the search for price proposes nodes, and the solver places by rules.

A packing that obeys all rules says in which domain each pod is. Pods of a class and domain are a shape of the search,
which may only use rows of that domain; hosts on which only so many pods of a kind may be have that as a resource. All
other rules the search does not know. The solver then places pods where the proposal has them, as far as the rules let
it, and all others as always. So what comes out obeys the rules, whatever was proposed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property

from stockyard.domain.values.frozen import dataclass
from stockyard.scheduling.packing.classes import Level, PodClass
from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.price import NANO, FreeProblem, Offer, Shape
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.price.packer import Packer
from stockyard.scheduling.packing.price.preferences import Bought
from stockyard.scheduling.packing.price.relaxation import Relaxation
from stockyard.scheduling.packing.solve import Domains, Solver
from stockyard.scheduling.packing.states import PlannedNode
from stockyard.scheduling.packing.topology import AntiAffinityRule, SpreadRule, Tally

HOSTS = 8
"""How many rules of hosts the search knows: those that hold for the most pods."""
FAR = 1.08
"""How far above a liquid's price a packing is when another one is looked for."""
STEPS, STEPS_A_POD = 40_000, 80
"""The budget of a proposal."""
LEAST_STEPS, STEPS_A_SHAPE, PLACING_A_POD = 4_000, 100, 20
"""What a proposal and its packing take at least."""
SMALLEST = (1 / 200, 1 / 50, 1 / 12)
"""Nodes that cost less than this part of the whole are not proposed; each makes a proposal of its own."""


@dataclass(frozen=True, slots=True)
class Part:
    """Pods of a class in a domain, on planned nodes. ``hosts`` are the rules of hosts, by number, that count them."""

    pod_class: PodClass
    domains: Domains
    mask: int
    hosts: frozenset[int]
    count: int


@dataclass(slots=True)
class Target:
    """A node that is proposed. ``counts`` are the pods that are still to come, by number of class and domains."""

    mask: int
    totals: tuple[int, ...]
    counts: Counter[tuple[int, Domains]] = field(default_factory=Counter)
    node: PlannedNode | None = None


@dataclass(frozen=True)
class RuledPart:
    """The planned nodes' pods of a finished packing, as the search for price takes them."""

    solver: Solver

    @property
    def suits(self) -> bool:
        """Whether the search and the solver want the same: the cheapest nodes of any pool, with a price each."""
        solver = self.solver
        is_priced = all(solver.rows.priced & node.state.mask for node in solver.planned)
        return is_priced and len({pool.weight for pool in solver.rows.pools}) <= 1

    @cached_property
    def _rules(self) -> dict[Tally, tuple[int, int]]:
        """The number of each rule of hosts that the search knows, and how many of its pods may be on a host."""
        most: dict[Tally, int] = {}
        pods: Counter[Tally] = Counter()
        for pod_class in self.solver.classes:
            own = {tally for tally, _ in pod_class.counted} if pod_class.levels[0].host_rules else set()
            for rule in pod_class.levels[0].host_rules:
                if isinstance(rule, SpreadRule | AntiAffinityRule) and rule.tally in own:
                    limit = rule.constraint.max_skew if isinstance(rule, SpreadRule) else 1
                    most[rule.tally] = min(limit, most.get(rule.tally, limit))
                    pods[rule.tally] += len(pod_class.names)
        return {tally: (number, most[tally]) for number, (tally, _) in enumerate(pods.most_common(HOSTS))}

    @cached_property
    def parts(self) -> list[Part]:
        """The pods on planned nodes, by class and domain."""
        solver = self.solver
        classes = {pod_class.number: pod_class for pod_class in solver.classes}
        counts: Counter[tuple[int, Domains]] = Counter()
        domains_of: dict[tuple[int, tuple[str, ...]], Domains] = {}
        for node in solver.planned:
            mask = node.state.mask
            for number, _ in node.pods:
                keys = classes[number].keys
                domains = domains_of.get((mask, keys))
                if domains is None:
                    domains = domains_of[mask, keys] = tuple([self._domain(key, mask) for key in keys])
                counts[number, domains] += 1
        parts = []
        for (number, domains), count in sorted(counts.items(), key=repr):
            pod_class = classes[number]
            mask = pod_class.levels[0].mask & solver.rows.priced
            for key, domain in zip(pod_class.keys, domains, strict=True):
                mask &= solver.rows.column(key).get(domain, 0)
            if mask & solver.rows.holding(solver.resources, pod_class.requests):
                parts.append(Part(pod_class, domains, mask, self._hosts(pod_class), count))
        return parts

    def _hosts(self, pod_class: PodClass) -> frozenset[int]:
        """The numbers of the rules of hosts that hold for the class."""
        rules = self._rules
        return frozenset([rules[rule.tally][0] for rule in pod_class.levels[0].host_rules if rule.tally in rules])

    def _domain(self, key: str, mask: int) -> object:
        column = self.solver.rows.column(key)
        return next((value for value, rows in column.items() if rows & mask == mask), None)

    @cached_property
    def offers(self) -> list[int]:
        """The rows that differ in type, price, or in who may use them: of equal ones the first."""
        rows, distinct = self.solver.rows, sorted({part.mask for part in self.parts})
        first: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(rows.rows):
            usable = tuple([mask >> number & 1 for mask in distinct])
            if any(usable):
                first.setdefault((row.pool, row.node_type.name, row.price, usable), number)
        return list(first.values())

    @property
    def far(self) -> bool:
        """Whether the nodes cost much more than a liquid, to which each row is open, would pay. It proves nothing."""
        solver = self.solver
        price = sum(node.state.row.price for node in solver.planned)
        demand = [sum(amounts) for amounts in zip(*(node.state.totals for node in solver.planned), strict=True)]
        if not demand or price <= FAR * self._liquid(demand, ()):
            return False
        most = [limit for _, limit in self._rules.values()]
        pods, alone = [0] * len(most), [0.0] * len(most)
        for pod_class in solver.classes:
            for number in self._hosts(pod_class):
                pods[number] += len(pod_class.names)
                rows = pod_class.levels[0].mask & solver.rows.holding(solver.resources, pod_class.requests)
                alone[number] += len(pod_class.names) / most[number] * (solver.rows.first(rows).price if rows else 0)
        return price > FAR * max(self._liquid([*demand, *pods], most), *alone, 0.0)

    def _liquid(self, demand: Sequence[int], most: Sequence[int]) -> float:
        """USD an hour for so much of each resource, and so many pods that hosts have room for ``most`` of."""
        solver, usable = self.solver, 0
        for pod_class in solver.classes:
            usable |= pod_class.levels[0].mask
        for node in solver.planned:
            usable |= node.state.mask
        usable &= solver.rows.priced
        cheapest = {id(row.room): row for row in reversed(list(solver.rows.each(usable)))}
        rooms: dict[tuple[int, ...], int] = {}
        for row in reversed(cheapest.values()):
            room = (*(max(0, row.room.get(name, 0)) for name in solver.resources), *most)
            rooms.setdefault(room, round(row.price * NANO))
        guide = Relaxation(list(rooms), list(rooms.values()), [1] * len(rooms), 1).solve([demand])
        return sum(value * amount for value, amount in zip(guide.values[0], demand, strict=True)) / NANO

    def _requests(self, part: Part) -> tuple[int, ...]:
        return (*part.pod_class.requests, *(int(number in part.hosts) for number in range(len(self._rules))))

    @cached_property
    def problem(self) -> FreeProblem:
        """The problem of the search for price."""
        solver, limits = self.solver, [most for _, most in self._rules.values()]
        masks = {
            mask: sum(1 << index for index, number in enumerate(self.offers) if mask >> number & 1)
            for mask in {part.mask for part in self.parts}
        }
        rows = [solver.rows.rows[number] for number in self.offers]
        return FreeProblem(
            tuple(Shape(self._requests(part), part.count, masks[part.mask]) for part in self.parts),
            tuple(
                Offer(
                    f"{row.pool}/{row.node_type.name}/{number}",
                    (*(max(0, row.room.get(name, 0)) for name in solver.resources), *limits),
                    round(row.price * NANO),
                )
                for number, row in zip(self.offers, rows, strict=True)
            ),
        )

    @property
    def effort(self) -> int:
        """About how many steps a proposal and its packing take."""
        return LEAST_STEPS + STEPS_A_SHAPE * len(self.parts) + PLACING_A_POD * sum(part.count for part in self.parts)

    def propose(self, share: float, meter: Meter) -> list[Target] | None:
        """Nodes that the search for price would buy, none of them cheaper than a share of the packing; None: no way."""
        if not self.parts:
            return None
        problem = self.problem
        total = sum(node.state.row.price for node in self.solver.planned) * NANO
        barred = sum(1 << index for index, offer in enumerate(problem.offers) if offer.price < total * share)
        shapes = tuple(replace(shape, offers=shape.offers & ~barred) for shape in problem.shapes)
        if not all(shape.offers for shape in shapes):
            return None
        pods = sum(shape.count for shape in shapes)
        own = Meter(min(meter.remaining, STEPS + STEPS_A_POD * pods))
        packer = Packer(replace(problem, shapes=shapes), own)
        (plan,) = packer.plans({number: shape.count for number, shape in enumerate(shapes)})
        meter.spent += own.spent
        return self._targets(plan.nodes)

    def _targets(self, nodes: Sequence[Bought]) -> list[Target]:
        targets = []
        for node in nodes:
            mask, totals = self.solver.rows.every, [0] * len(self.solver.resources)
            counts: Counter[tuple[int, Domains]] = Counter()
            for shape, count in node.counts.items():
                part = self.parts[shape]
                mask &= part.mask
                totals = [a + count * b for a, b in zip(totals, part.pod_class.requests, strict=True)]
                counts[part.pod_class.number, part.domains] += count
            mask &= self.solver.rows.of_pool[self.solver.rows.rows[self.offers[node.offer]].pool]
            targets.append(Target(mask, tuple(totals), counts))
        return targets


class GuidedSolver(Solver):
    """Places pods on the nodes of a proposal as far as the rules let it, and then all others as always."""

    def __init__(self, problem: Problem, meter: Meter, targets: Sequence[Target], earlier: Solver) -> None:
        super().__init__(problem, meter, split=True, earlier=earlier)
        self._targets: dict[tuple[int, Domains], list[Target]] = {}
        for target in targets:
            for counted_key in target.counts:
                self._targets.setdefault(counted_key, []).append(target)

    def solve(self) -> None:
        """Place what can be placed."""
        for pod_class in self.classes:
            while pod_class.waiting_pods and self.meter.remaining > 0 and self._follow(pod_class, pod_class.levels[0]):
                pass
        super().solve()

    def _follow(self, pod_class: PodClass, level: Level) -> bool:
        """Put the next pod where the proposal has one of its class, unless a node that is there takes it."""
        candidates = self.known_nodes.candidates(pod_class.requests, level)
        if candidates and self._on_known(pod_class, level, candidates):
            return True
        for domains in self._domains(pod_class, level):
            targets = self._targets.get((pod_class.number, domains), [])
            while targets and not targets[-1].counts[pod_class.number, domains]:
                targets.pop()
            for target in reversed(targets):
                self.meter.spent += 2
                if target.counts[pod_class.number, domains] and self._join(pod_class, level, domains, target):
                    target.counts[pod_class.number, domains] -= 1
                    return True
        return False

    def _join(self, pod_class: PodClass, level: Level, domains: Domains, target: Target) -> bool:
        """Put the next pod onto a proposed node, if all rules allow it there."""
        node = target.node
        name = node.name if node else f"planned-{len(self.planned) + 1}"
        if not level.allows_host(name):
            return False
        mask, totals = target.mask & level.mask, pod_class.requests
        for key, domain in zip(pod_class.keys, domains, strict=True):
            mask &= self.rows.column(key).get(domain, 0)
        if node:
            mask &= node.state.mask
            totals = tuple(map(int.__add__, node.state.totals, totals))
        mask &= self.rows.holding(self.resources, totals)
        if not mask:
            return False
        before = node.state.row if node else None
        pool = self.rows.first(mask).pool
        if self.limits.binds(pool):
            mask = self.limits.within(pool, mask, before)
        if pod_class.filtered:
            mask = self._decided(pod_class, mask)
        ports = node.state.ports if node else 0
        if not mask or not self._enough_values(pool, mask) or pod_class.ports.refused & ports:
            return False
        if node is None:
            node = target.node = PlannedNode(name, None)  # type: ignore[arg-type]
            self.planned.append(node)
        else:
            node.state.nodes.remove(node)
        self._enter(pod_class, level, node, pool, mask, totals, ports, self.rows.first(mask), before, domains)
        return True
