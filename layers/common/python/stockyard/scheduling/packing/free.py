"""The free part of a problem: pods without rules between them, as the search for price takes them, and back.

Rules between pods only make a packing dearer, so the lower bound of all pods as if they were free holds for every plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from stockyard.domain.values.frozen import dataclass
from stockyard.scheduling.packing.classes import PodClass
from stockyard.scheduling.packing.limits import MONEY, NODES
from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.price import (
    NANO,
    Answer,
    Answers,
    Certificate,
    FreeProblem,
    Offer,
    Preferences,
    Shape,
    Space,
)
from stockyard.scheduling.packing.price.fits import by_fit
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.price.solve import usual_steps
from stockyard.scheduling.packing.price.subsets import MOST_PODS
from stockyard.scheduling.packing.solve import Solver
from stockyard.scheduling.packing.states import PlannedNode, State

LEAST_STEPS, SPACES_A_STEP = 30, 4
"""What the search takes for each shape of pods, besides a step for every so many nodes that are there."""
SEARCH_STEPS = 4_000
"""What it takes besides for more pods than those of which every split is tried."""
CLOSE = 0.015
"""A price is close to its bound when it is above it by no more than this part."""
MISLED = 1.05
"""By how much a bound rises where small nodes mislead."""
TRIES = 2
"""One of so many parts of the steps that remain goes to each form of a problem whose small nodes mislead."""
BY_SIZE = (2, 10, 4)
"""Into how many classes by size pods are put, one after the other."""
SMALLEST = (1 / 48, 1 / 24, 1 / 12, 1 / 6)
"""Nodes that cost less than this part of the whole are left out, one after the other."""


@dataclass(frozen=True)
class FreePart:
    """The pods of a problem as free ones. ``solver`` has read the problem and placed nothing yet."""

    solver: Solver

    @classmethod
    def of(cls, problem: Problem, earlier: Solver | None = None) -> FreePart:
        """The free part of a problem; ``earlier`` is another packing of it, if there is one."""
        return cls(Solver(problem, Meter(0), split=False, earlier=earlier))

    @cached_property
    def _answers(self) -> Answers:
        """Answers that the caller keeps, or those of this one problem."""
        return self.solver.problem.settings.answers or Answers()

    @property
    def whole(self) -> bool:
        """Whether there is nothing but free pods, so that an answer is a plan; and pools have few enough limits."""
        solver = self.solver
        limited = [remaining for remaining in solver.limits.remaining if remaining]
        return (
            bool(solver.classes and self.offers)
            and all(pod_class.plain for pod_class in solver.classes)
            and len({pool.weight for pool in solver.rows.pools}) <= 1
            and not any(requirement.min_values for pool in solver.rows.pools for requirement in pool.template.values())
            and (not limited or len(solver.rows.pools) == 1)
            and self._has_one_offer_of_limited_types
            and self._is_priced
        )

    @property
    def _has_one_offer_of_limited_types(self) -> bool:
        """Whether no two offers share the places of a type: the search counts those of each offer by itself."""
        names = [self.solver.rows.rows[number].node_type.name for number in self.offers]
        return all(names.count(name) < 2 for name in self.solver.limits.places)

    @property
    def _is_priced(self) -> bool:
        """Whether each class that can be placed can be so at a known price: then others need not be looked at."""
        levels = [pod_class.levels[-1] for pod_class in self.solver.classes]
        return all(mask or not level.mask for mask, level in zip(self.masks, levels, strict=True))

    @cached_property
    def masks(self) -> list[int]:
        """For each class the rows of a known price that it may use, preferences given up."""
        return [pod_class.levels[-1].mask & self.solver.rows.priced for pod_class in self.solver.classes]

    @cached_property
    def offers(self) -> list[int]:
        """The rows that differ in type, room, price, or in who may use them: of equal ones the first."""
        rows, distinct = self.solver.rows, sorted(set(self.masks))
        first: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(rows.rows):
            usable = tuple(mask >> number & 1 for mask in distinct)
            if any(usable):
                first.setdefault((row.pool, row.node_type.name, row.price, usable), number)
        return list(first.values())

    @cached_property
    def _able(self) -> dict[PodClass, int]:
        """For each class the nodes that are there and could take a pod of it before any other."""
        known_nodes = self.solver.known_nodes
        return {
            pod_class: known_nodes.roomy(pod_class.requests) & known_nodes.satisfying(pod_class.levels[-1])
            for pod_class in self.solver.classes
        }

    @cached_property
    def spaces(self) -> list[int]:
        """The numbers of the nodes that are there and could take a pod. What the others have left holds none, however
        much it is together: to count it would make the bound a smaller one, and each cluster's problem another one."""
        nodes = 0
        for able in self._able.values():
            nodes |= able
        return [number for number in range(len(self.solver.known_nodes.nodes)) if nodes >> number & 1]

    @cached_property
    def problem(self) -> FreeProblem:
        """The problem of the search for price."""
        solver = self.solver
        rows, resources = solver.rows, solver.resources
        shapes = []
        for pod_class, mask in zip(solver.classes, self.masks, strict=True):
            offers = sum(1 << index for index, number in enumerate(self.offers) if mask >> number & 1)
            spaces = sum(1 << index for index, number in enumerate(self.spaces) if self._able[pod_class] >> number & 1)
            shapes.append(Shape(pod_class.requests, len(pod_class.names), offers, spaces))
        limits = dict(solver.limits.remaining[0]) if len(rows.pools) == 1 else {}
        money, nodes = limits.pop(MONEY, None), limits.pop(NODES, None)
        names = (*resources, *(name for name in limits if name not in resources))

        def vector(amounts: dict[str, int]) -> tuple[int, ...]:
            return tuple([max(0, amounts.get(name, 0)) for name in names])

        wider = (0,) * (len(names) - len(resources))
        return FreeProblem(
            tuple(
                Shape((*requirement.requests, *wider), requirement.count, requirement.offers, requirement.spaces)
                for requirement in shapes
            ),
            tuple(
                Offer(
                    f"{rows.rows[number].pool}/{rows.rows[number].node_type.name}/{number}",
                    vector(dict(rows.rows[number].room)),
                    round(rows.rows[number].price * NANO),
                    solver.limits.places.get(rows.rows[number].node_type.name),
                    weight=vector(dict(rows.rows[number].node_type.capacity)),
                )
                for number in self.offers
            ),
            tuple(
                Space(known_node.node.name, (*(max(0, amount) for amount in known_node.free), *wider))
                for known_node in map(solver.known_nodes.nodes.__getitem__, self.spaces)
            ),
            Preferences(
                nodes=None if nodes is None else max(0, int(nodes // 1000)),
                money=None if money is None else max(0, int(money * NANO)),
                amounts=tuple(int(limits[name]) if name in limits else None for name in names),
            ),
        )

    @cached_property
    def certificate(self) -> Certificate | None:
        """The proof of what all pods cost at least, a class of the proof for each of the solver's; None when nothing
        is known."""
        if not self.solver.classes or not self.offers or not self._is_priced:
            return None
        return self._answers.lower_bound(self.problem)

    @cached_property
    def bound(self) -> float:
        """Lower bound of the cost of all pods in USD an hour, if all of them have a place; 0 when nothing is known."""
        return float(self.certificate.bound) / NANO if self.certificate is not None else 0.0

    @property
    def effort(self) -> int:
        """About how many steps the search takes at least, however few it is given: of few pods it tries every split."""
        pods = sum(len(pod_class.names) for pod_class in self.solver.classes)
        splits = 3**pods // 2 if pods <= MOST_PODS else SEARCH_STEPS
        spaces = len(self.solver.known_nodes.nodes) // SPACES_A_STEP
        return len(self.solver.classes) * (LEAST_STEPS + spaces) + splits

    def answer(self, meter: Meter) -> Answer:
        """The best that the search finds. It is made again while the meter has the steps for it.

        Where small nodes are cheapest for what they hold, most pods fit into none of them, or much of each is left
        over. So while the price is well above the bound, the search is also made with pods in classes by size, and
        then without the smallest nodes.
        """
        forms, tries = [self.problem], 1
        if self._sizes_matter:
            forms = [form for classes in BY_SIZE if (form := by_fit(self.problem, classes))] + forms
            tries = TRIES
        best = proven = first = self._search(forms.pop(0), meter, tries)
        for problem, holds in self._forms(forms, first.price):
            if best.price <= (1 + CLOSE) * proven.bound or not best.bins or self.effort >= meter.remaining:
                break
            answer = self._search(problem, meter, tries)
            if holds and answer.unplaced == first.unplaced:
                proven = max(proven, answer, key=lambda each: each.bound)
            if sum(dict(answer.unplaced).values()) <= sum(dict(best.unplaced).values()) and answer.price < best.price:
                best = answer
        kind = "optimal" if best.price == proven.bound else proven.kind
        return replace(
            best,
            bound=proven.bound,
            kind=kind,
            linear=proven.linear,
            certificate=proven.certificate,
            greedy=first.greedy,
            without_preferences=first.without_preferences,
        )

    @property
    def _sizes_matter(self) -> bool:
        """Whether small nodes mislead a liquid: it costs more where it is in classes by size."""
        by_size = by_fit(self.problem, max(BY_SIZE))
        least = self._answers.lower_bound
        return by_size is not None and least(by_size).bound > MISLED * least(self.problem).bound

    def _forms(self, forms: Iterable[FreeProblem], price: int) -> Iterator[tuple[FreeProblem, bool]]:
        """The problem in other forms with valid answers for it, each with a mark whether the form's bound is valid
        too."""
        yield from ((form, True) for form in forms)
        for share in SMALLEST:
            barred = sum(1 << index for index, offer in enumerate(self.problem.offers) if offer.price < price * share)
            shapes = tuple(replace(shape, offers=shape.offers & ~barred) for shape in self.problem.shapes)
            if any(shape.offers for shape in shapes):
                yield replace(self.problem, shapes=shapes), False

    def _search(self, problem: FreeProblem, meter: Meter, tries: int) -> Answer:
        """The search for one form, with the steps that leave some for so many tries."""
        pods = sum(shape.count for shape in problem.shapes)
        answer = self._answers.solve(problem, min(meter.remaining // tries, usual_steps(pods)))
        meter.spent += answer.steps
        return answer

    def place(self, answer: Answer) -> Solver:
        """The solver with the answer carried out."""
        solver = self.solver
        for node_of_answer in answer.bins:
            pods = [(solver.classes[shape], count) for shape, count in node_of_answer.counts]
            if node_of_answer.space is not None:
                known_node = solver.known_nodes.nodes[self.spaces[node_of_answer.space]]
                _put(solver, pods, known_node.pods)
                continue
            mask, totals = solver.rows.every, [0] * len(solver.resources)
            for pod_class, count in pods:
                mask &= pod_class.levels[-1].mask
                totals = [total + count * amount for total, amount in zip(totals, pod_class.requests, strict=True)]
            mask &= solver.rows.holding(solver.resources, totals)
            offer = solver.rows.rows[self.offers[node_of_answer.offer or 0]]
            mask &= solver.rows.of_pool[offer.pool]
            # Cheaper ones that are limited may have no place left: the answer knows how many there are.
            row = offer if solver.limits.places else solver.rows.first(mask)
            solver.limits.take(row.pool, row, None)
            state = State(len(solver.planned), row.pool, mask, tuple(totals), 0, (), row)
            node = PlannedNode(f"planned-{len(solver.planned) + 1}", state)
            solver.planned.append(node)
            _put(solver, pods, node.pods)
        solver.unplaced = [pod_class for pod_class in solver.classes if pod_class.waiting]
        return solver


def _put(solver: Solver, pods: list[tuple[PodClass, int]], onto: list[tuple[int, str]]) -> None:
    for pod_class, count in pods:
        names = [pod_class.next_name() for _ in range(count)]
        onto += [(pod_class.number, name) for name in names]
        solver.order += names
