"""The answer of a packing: nodes to make with their still-possible types, pods by node, and what is left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_TYPE, ZONE
from stockyard.scheduling.packing.classes import PodClass
from stockyard.scheduling.packing.free import FreePart
from stockyard.scheduling.packing.guided import SMALLEST, GuidedSolver, RuledPart
from stockyard.scheduling.packing.many import EPSILON
from stockyard.scheduling.packing.model import VOLUMES, Pod, PodGroup, Pool, Problem
from stockyard.scheduling.packing.price import NANO
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.reasons import GANG, Reason, reasons
from stockyard.scheduling.packing.rows import Row, Rows
from stockyard.scheduling.packing.solve import Solver
from stockyard.scheduling.packing.states import PlannedNode

AGAIN = 2
"""The second way takes about so many times the steps of the first; it is not begun where they are not there."""
PATIENT_STEPS = 300_000
"""So many steps a packing takes whatever the clock says: about a second of one core that does nothing else. With them
some hundred pods have their whole plan on a machine of any speed."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Pods that go onto a node that is there."""

    node: str
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A node to make. ``row`` is the way that the plan has priced, the first of those that are still possible."""

    name: str
    pool: Pool
    pods: tuple[str, ...]
    requests: Mapping[str, int]
    row: Row
    mask: int
    _all: Rows

    @property
    def rows(self) -> Sequence[Row]:
        """The ways that are still possible, in order of price."""
        return list(self._all.each(self.mask))

    @property
    def price(self) -> float:
        """Weight of the node in the plan: USD an hour, and next to nothing for what is owned."""
        return self.row.price

    @property
    def usd_hour(self) -> float:
        """Price in money; ``UNKNOWN_PRICE`` where it is not known."""
        return self.row.usd_hour

    @property
    def own_usd_hour(self) -> float | None:
        """Price that the owner of an owned machine says, 0 where it says none; None for a rented one."""
        return self.row.own_usd_hour if self.row.node_type.owned else None

    @property
    def node_types(self) -> Sequence[NodeType]:
        """The node types that are still possible, each at its cheapest."""
        return list({row.node_type.name: row.node_type for row in self.rows}.values())

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the node as it is planned."""
        row = self.row
        labels = {key: values[0] for key, values in row.node_type.properties.items() if values and values != (ANY,)}
        labels |= {key: value for key, value in row.values.items() if isinstance(value, str)}
        for key, requirement in self.pool.template.items():
            if not requirement.complement and requirement.values and key not in labels:
                labels[key] = min(requirement.values)
        for key, value in row.values.items():
            if value is None:
                labels.pop(key, None)
        names = {NODE_TYPE: row.node_type.name, INSTANCE_TYPE: labels.get(INSTANCE_TYPE, row.node_type.name)}
        return {**labels, **names, ZONE: row.zone, CAPACITY_TYPE: row.capacity_type}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Equal pods that found no place, and why not, pool by pool."""

    pods: tuple[str, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Place of each pod. ``usd_hour`` is what the new nodes cost, ``price`` what the plan was made small by."""

    placements: tuple[Placement, ...]
    claims: tuple[Claim, ...]
    left_out: tuple[LeftOut, ...]
    order: tuple[str, ...]
    """The pods in an order in which the scheduler may place them one by one."""
    bound: float | None = None
    """What every packing of these pods costs at least, in USD an hour; None where that is not known. It is known when
    all pods have a place and none has rules of spread, affinity, ports or preferences."""
    steps: int = 0
    """The work that it took, in the unit of ``Settings.steps``."""

    @property
    def price(self) -> float:
        """Weight of all new nodes: USD an hour of those that are rented."""
        return sum(claim.price for claim in self.claims)

    @property
    def usd_hour(self) -> float:
        """Price of all new nodes in money."""
        return sum(claim.usd_hour for claim in self.claims)

    @property
    def gap(self) -> float | None:
        """Ratio by which the price is above the bound: 0.01 is one per cent. None where no bound is known."""
        return self.price / self.bound - 1 if self.bound else None


def grouped(pods: Iterable[tuple[str, Pod]]) -> tuple[PodGroup, ...]:
    """Equal pods as one group each, in the order in which they first come. Pods are given with their names."""
    names: defaultdict[Pod, list[str]] = defaultdict(list)
    by_identity: dict[int, list[str]] = {}
    for name, pod in pods:
        listed_names = by_identity.get(id(pod))
        if listed_names is None:
            listed_names = by_identity[id(pod)] = names[pod]
        listed_names.append(name)
    return tuple(PodGroup(pod, tuple(listed)) for pod, listed in names.items())


def pack(problem: Problem) -> Plan:
    """The packing of a problem: of the ways that are tried the one that leaves out the fewest pods, then the cheapest.

    The first way lets a pod join a planned node whenever it can. Where a new node would have been cheaper at that
    moment, the second way plans it. Pods without rules between them are packed by the search for price as well.
    Ways are tried until the steps of the settings are used up, or, after ``PATIENT_STEPS``, until the caller waits no
    longer. If the first way does not end before, pods are left out.
    """
    meter = _meter(problem, problem.settings.budget(sum(len(group.names) for group in problem.groups)))
    problem, solver, apart = _with_whole_gangs(problem, meter)
    if solver.tempted and problem.settings.split and AGAIN * meter.spent <= meter.remaining:
        part = _meter(problem, meter.remaining // 2, meter.spent)
        solver = min(solver, _solved(problem, part, split=True, earlier=solver), key=_quality)
        meter.spent += part.spent
    bound = None
    if problem.settings.split and all(pod_class.plain for pod_class in solver.classes):
        solver, bound = _for_price(problem, solver, meter)
    elif problem.settings.split:
        solver = _guided(problem, solver, meter)
    return Plan(
        tuple(
            Placement(known_node.node.name, tuple(name for _, name in known_node.pods))
            for known_node in solver.known_nodes.nodes
            if known_node.pods
        ),
        tuple(_claim(solver, planned) for planned in solver.planned),
        (*apart, *(LeftOut(pod_class.waiting, reasons(solver, pod_class)) for pod_class in solver.unplaced)),
        tuple(solver.order),
        None if solver.unplaced or apart else bound,
        meter.spent,
    )


def _for_price(problem: Problem, solver: Solver, meter: Meter) -> tuple[Solver, float | None]:
    """The cheaper one of a packing and of what the search for price finds, and what every packing costs at least."""
    free = FreePart.of(problem, solver)
    if not free.whole:
        return solver, None
    if _quality(solver) <= (0, free.bound + EPSILON) or free.effort >= meter.remaining:
        return solver, free.bound
    answer = free.answer(meter)
    return min(solver, free.place(answer), key=_quality), answer.bound / NANO


def _guided(problem: Problem, solver: Solver, meter: Meter) -> Solver:
    """The cheapest of a packing and of those that proposals of the search for price lead to."""
    ruled = RuledPart(solver)
    if not ruled.suits or not ruled.far:
        return solver
    best = solver
    for share in SMALLEST:
        targets = ruled.propose(share, meter) if ruled.effort < meter.remaining else None
        if targets is None:
            break
        guided = GuidedSolver(problem, meter, targets, solver)
        guided.solve()
        if best is not solver and _quality(guided) > _quality(best):
            break
        best = min(best, guided, key=_quality)
    return best


def _with_whole_gangs(problem: Problem, meter: Meter) -> tuple[Problem, Solver, tuple[LeftOut, ...]]:
    """The problem without the gangs of which not every pod finds a place, its packing, and those gangs with the reason.

    Where steps run out while gangs are in parts, what has a place by then is packed anew with the steps that remain.
    """
    apart: list[LeftOut] = []
    exhausted = False
    while True:
        gangs = any(group.pod.gang for group in problem.groups)
        part = _meter(problem, max(meter.remaining // 2, 1) if gangs else meter.remaining, meter.spent)
        solver = _solved(problem, part, split=False)
        meter.spent += part.spent
        broken = {pod_class.pod.gang: pod_class for pod_class in solver.unplaced if pod_class.pod.gang}
        if not broken:
            return problem, solver, tuple(apart)
        if exhausted:
            broken |= {item.pod.gang: item for item in solver.classes if item.pod.gang and item.pod.gang not in broken}
        exhausted = exhausted or part.remaining <= 0
        groups = []
        for group, pod_class in zip(problem.groups, sorted(solver.classes, key=_number), strict=True):
            names = group.names
            if group.pod.gang in broken:
                short = broken[group.pod.gang]
                apart.append(LeftOut(names, (_of_gang(short), *reasons(solver, short))))
                continue
            if exhausted and pod_class.waiting:
                apart.append(LeftOut(pod_class.waiting, reasons(solver, pod_class)))
                names = names[: pod_class.placed]
            if names:
                groups.append(PodGroup(group.pod, names))
        problem = replace(problem, groups=tuple(groups))


def _meter(problem: Problem, limit: int, earlier: int = 0) -> Meter:
    """A budget that looks at the caller's clock once ``PATIENT_STEPS`` are spent, ``earlier`` ones included."""
    meter, expired = Meter(limit), problem.settings.expired
    if expired is not None:
        meter.expired = lambda: earlier + meter.spent >= PATIENT_STEPS and expired()
    return meter


def _of_gang(short: PodClass) -> Reason:
    """Reason why no pod of a gang is placed."""
    gang = short.pod.gang
    first = next(iter(short.waiting or short.names))
    return Reason("", GANG, gang, f"Of gang {gang} {first} has no place, so none of it is placed.")


def _number(pod_class: PodClass) -> int:
    return pod_class.number


def _solved(problem: Problem, meter: Meter, *, split: bool, earlier: Solver | None = None) -> Solver:
    solver = Solver(problem, meter, split=split, earlier=earlier)
    solver.solve()
    return solver


def _quality(solver: Solver) -> tuple[int, float]:
    """The smaller, the better. A gang in parts is worse than all."""
    broken = any(pod_class.pod.gang for pod_class in solver.unplaced)
    return (2**31 if broken else 0) + sum(len(pod_class.waiting) for pod_class in solver.unplaced), sum(
        planned.state.row.price for planned in solver.planned
    )


def _claim(solver: Solver, planned: PlannedNode) -> Claim:
    state = planned.state
    return Claim(
        planned.name,
        solver.rows.pools[state.pool],
        tuple(name for _, name in planned.pods),
        {
            name: total
            for name, total in zip(solver.resources, state.totals, strict=True)
            if not name.startswith(VOLUMES)
        },
        state.row,
        state.mask,
        solver.rows,
    )
