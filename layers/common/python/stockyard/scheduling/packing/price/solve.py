"""From a problem to an answer: several packings, the cheapest of them that leaves out no more, and what is proven."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil

from stockyard.scheduling.packing.price.bounds import cover_bound
from stockyard.scheduling.packing.price.market import Market, Thresholds
from stockyard.scheduling.packing.price.model import Answer, Bin, Certificate, Counts, FreeProblem, Meter
from stockyard.scheduling.packing.price.packer import Packer, Plan
from stockyard.scheduling.packing.price.relaxation import Relaxation, certify
from stockyard.scheduling.packing.price.shapes_bound import shapes_bound
from stockyard.scheduling.packing.price.subsets import MOST_PODS

BASE_STEPS, STEPS_A_POD = 100_000, 80
"""The budget of a problem where none is given."""
FEW_PODS, FEW_PODS_STEPS = 600, 300_000
"""Up to so many pods the last nodes are a large part of the price, and most searches end by themselves: more steps."""
BOUND_STEPS, BOUND_PODS = 60_000, 600
"""What the bound by whole nodes may cost besides, and up to how many pods it is worth it."""

TIGHT = 1.002
"""Where the linear bound is nearer to the price than this, shapes are not looked at."""


def solve(problem: FreeProblem, steps: int | None = None) -> Answer:
    """The cheapest packing that is found within ``steps`` of work, its bound, and what stays without a node.

    The same problem and the same steps give the same answer, whatever the machine: nothing looks at a clock. A step
    takes one to two microseconds of CPython. The answer is never dearer than Karpenter's rule under the same wishes,
    and leaves out no pod that the rule places.
    """
    pods = {number: shape.count for number, shape in enumerate(problem.shapes)}
    if not pods:
        nothing = Certificate((), (), 1, Fraction(0), Fraction(0))
        return Answer((), (), 0, 0, 0, 0, "optimal", 0, nothing, 0)
    budget = usual_steps(sum(pods.values())) if steps is None else steps
    meter = Meter(budget)
    packer = Packer(problem, meter)
    anchor = packer.anchor(pods)
    plans = [
        plan
        for plan in packer.plans(pods)
        if all(plan.placed.get(shape, 0) >= count for shape, count in anchor.placed.items())
        and (len(plan.nodes) >= problem.preferences.least_nodes or len(plan.nodes) >= len(anchor.nodes))
    ]
    best = min([*plans, anchor], key=lambda plan: (-sum(plan.placed.values()), plan.price))
    market = packer.market(packer.barred)
    certificate = linear_bound(problem, market, best.placed, packer.barred)
    linear = ceil(certificate.bound)
    bound, kind = _largest_bound(problem, market, best, linear, packer.barred, meter)
    preferences = problem.preferences
    without = linear
    if preferences.largest:
        without = ceil(linear_bound(problem, packer.market(0), best.placed, 0).bound)
    return Answer(
        bins=_bins(problem, market, best, packer.barred),
        unplaced=tuple(
            (shape, count - best.placed.get(shape, 0))
            for shape, count in pods.items()
            if count > best.placed.get(shape, 0)
        ),
        price=best.price,
        greedy=anchor.price,
        linear=linear,
        bound=bound,
        kind=kind,
        without_preferences=without,
        certificate=certificate,
        steps=meter.spent,
    )


def usual_steps(pods: int) -> int:
    """The budget of a search for so many pods where none is given."""
    return BASE_STEPS + STEPS_A_POD * pods + (FEW_PODS_STEPS if pods <= FEW_PODS else 0)


def lower_bound(problem: FreeProblem) -> Certificate:
    """The linear bound of all pods of the problem, without a packing. Wishes and limits do not count."""
    packer = Packer(problem, Meter(0))
    pods = {number: shape.count for number, shape in enumerate(problem.shapes)}
    return linear_bound(problem, packer.market(0), pods, 0)


def linear_bound(problem: FreeProblem, market: Market, placed: Counts, barred: int) -> Certificate:
    """The linear bound of some pods, in the problem's own units, for every offer that is not ``barred``.

    Pods that no offer holds are in the spaces and cost nothing.
    """
    width, classes = len(market.units), max(market.classes) + 1
    demand = [[0] * width for _ in range(classes)]
    for shape, count in placed.items():
        if market.holders[shape]:
            for index, amount in enumerate(problem.shapes[shape].requests):
                demand[market.classes[shape]][index] += amount * count
    rooms = [problem.offers[number].room for number in market.offers]
    wanted_rooms = [list(row) for row in demand]
    if classes == 1:
        for space in problem.spaces:
            wanted_rooms[0] = [max(a - b, 0) for a, b in zip(wanted_rooms[0], space.room, strict=True)]
    guide = Relaxation(rooms, market.prices, market.admits, classes).solve(wanted_rooms)
    mask_of = {group: shape.offers for group, shape in zip(market.classes, problem.shapes, strict=True)}
    usable = [(number, offer) for number, offer in enumerate(problem.offers) if not barred >> number & 1]
    admits = [sum(1 << group for group in range(classes) if mask_of[group] >> number & 1) for number, _ in usable]
    return certify(guide.values, demand, [offer for _, offer in usable], admits, problem.spaces, market.classes)


def _largest_bound(
    problem: FreeProblem, market: Market, plan: Plan, linear: int, barred: int, meter: Meter
) -> tuple[int, str]:
    """The largest bound and its kind."""
    bought: Counts = {shape: count for shape, count in plan.placed.items() if market.holders[shape]}
    preferences = problem.preferences
    if plan.price <= linear:
        return linear, "linear"
    plain = not (problem.spaces or preferences.least_nodes or preferences.limited or market.scarce)
    if plain and sum(bought.values()) <= MOST_PODS:
        return plan.price, "optimal"
    bound, kind = linear, "linear"
    if plan.price > TIGHT * linear:
        by_shapes = shapes_bound(problem, market, bought, barred, meter)
        if by_shapes > bound:
            bound, kind = by_shapes, "shapes"
    if sum(bought.values()) > BOUND_PODS:
        return bound, kind
    free = [sum(amounts) for amounts in zip(*(space.room for space in problem.spaces), strict=True)]
    reduced = [-(-amount // unit) for amount, unit in zip(free or [0] * len(market.units), market.units, strict=True)]
    proven = cover_bound(market, bought, reduced, plan.price, meter, min(meter.limit, BOUND_STEPS))
    if proven is None or proven[0] <= bound:
        return bound, kind
    return proven[0], "optimal" if proven[1] else "cover"


def _bins(problem: FreeProblem, market: Market, plan: Plan, barred: int) -> tuple[Bin, ...]:
    """The nodes in order of price, dearest first, after the spaces that got pods."""
    thresholds = Thresholds([market.reduce(offer.room) for offer in problem.offers])
    ordered = sorted(range(len(problem.offers)), key=lambda n: (problem.offers[n].price, problem.offers[n].name))

    @cache  # Many nodes are alike.
    def by_money(mask: int) -> tuple[int, ...]:
        return tuple([number for number in ordered if mask >> number & 1])

    bins = [Bin(tuple(sorted(counts.items())), space=number) for number, counts in enumerate(plan.spaces) if counts]
    nodes = sorted(
        plan.nodes,
        key=lambda node: (
            -problem.offers[node.offer].price,
            problem.offers[node.offer].name,
            *sorted(node.counts.items()),
        ),
    )
    for node in nodes:
        mask = thresholds.holding(market.load(node.counts)) & ~barred & ~(1 << node.offer)
        for shape in node.counts:
            mask &= problem.shapes[shape].offers
        bins.append(Bin(tuple(sorted(node.counts.items())), node.offer, alternatives=by_money(mask)))
    return tuple(bins)
