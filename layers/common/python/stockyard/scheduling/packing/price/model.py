"""Problems of packing for price, and their answers: whole numbers only.

A problem has a fixed order of resources (cpu first, memory second, then pods and any other). Each vector has a number
for each of them, in any unit, as long as requests and rooms use the same one. Prices are nano-dollars an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from fractions import Fraction

from stockyard.domain.values.frozen import dataclass

Vector = tuple[int, ...]
"""An amount of each resource."""
Counts = dict[int, int]
"""How many pods of each shape, by the shape's number; no zeros."""
EVERY = -1
"""The mask that has every bit."""
NANO = 10**9
"""Nano-dollars in a dollar."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Equal pods: what one of them requests, and how many there are.

    Bit n of ``offers`` says that they may be on nodes of offer n of the problem, and bit n of ``spaces`` that they may
    be in space n.
    """

    requests: Vector
    count: int
    offers: int = EVERY
    spaces: int = EVERY


@dataclass(frozen=True, slots=True)
class Offer:
    """A kind of node that can be bought: a node type in a place, of a capacity type, by a pool.

    ``room`` is what pods can have of it, after daemon sets. ``weight`` is what it counts against
    ``Preferences.amounts``, ``room`` if it is empty. There are no more than ``limit`` of it.
    """

    name: str
    room: Vector
    price: int
    limit: int | None = None
    weight: Vector = ()


@dataclass(frozen=True, slots=True)
class Space:
    """The free room of a node that is there already: it costs nothing."""

    name: str
    room: Vector


@dataclass(frozen=True, slots=True)
class Preferences:
    """Preferences for the nodes together, and for each of them.

    ``largest`` is the most room that a node may have of each resource (None: any), ``least_nodes`` a preference for at
    least so many nodes. ``nodes``, ``money`` and ``amounts`` are limits that hold whatever stays without a node.
    """

    largest: tuple[int | None, ...] = ()
    least_nodes: int = 0
    nodes: int | None = None
    money: int | None = None
    amounts: tuple[int | None, ...] = ()

    @property
    def limited(self) -> bool:
        """Whether anything is limited, so that pods may stay without a node."""
        return self.nodes is not None or self.money is not None or any(most is not None for most in self.amounts)


@dataclass(frozen=True, slots=True)
class FreeProblem:
    """Pods that care for nothing but room and the offers they may use. Raises ``ValueError`` that names the field."""

    shapes: tuple[Shape, ...]
    offers: tuple[Offer, ...]
    spaces: tuple[Space, ...] = ()
    preferences: Preferences = field(default_factory=Preferences)

    def __post_init__(self) -> None:
        widths = {len(shape.requests) for shape in self.shapes} | {len(offer.room) for offer in self.offers}
        widths |= {len(space.room) for space in self.spaces} | {len(offer.weight) for offer in self.offers} - {0}
        if len(widths) > 1 or 0 in widths:
            raise ValueError("requests, room, weight: each has a number for each resource, and there is a resource")
        for shape in self.shapes:
            if shape.count < 1 or min(shape.requests) < 0 or not any(shape.requests):
                raise ValueError("shapes: a shape has pods, and they request something and nothing below zero")
        if any(offer.price < 0 or (offer.limit or 0) < 0 for offer in self.offers):
            raise ValueError("offers: neither a price nor a limit is below zero")
        if len({offer.name for offer in self.offers}) < len(self.offers):
            raise ValueError("offers: two have the same name")
        if self.preferences.least_nodes < 0:
            raise ValueError("least_nodes: it is not below zero")


@dataclass(frozen=True, slots=True)
class Bin:
    """A node of the answer and what is in it.

    ``offer`` is its offer, None for a ``space``. ``alternatives`` are the other offers that could carry the same pods,
    in order of price; with wishes, those that keep them.
    """

    counts: tuple[tuple[int, int], ...]
    offer: int | None = None
    space: int | None = None
    alternatives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof of a linear bound, for anybody to check with exact numbers.

    ``values`` is for each class of shapes the value of a unit of each resource, in ``1 / scale`` nano-dollars an hour;
    ``classes`` says which class a shape belongs to. No offer's room is worth more than ``worst`` times its price,
    each unit taken at the value of the dearest class of which it can hold a shape. So the pods, less what the spaces
    could carry of them, cost at least their value divided by ``worst``.
    """

    classes: tuple[int, ...]
    values: tuple[Vector, ...]
    scale: int
    worst: Fraction
    bound: Fraction


@dataclass(frozen=True, slots=True)
class Answer:
    """The cheapest packing that was found and what is known of it. Money is nano-dollars an hour.

    ``unplaced`` counts pods by shape, and the bounds are those of the pods that have a place. ``bound`` is the largest
    of the bounds, ``kind`` says which: ``linear``, ``shapes``, ``cover`` or ``optimal`` (nothing is cheaper).
    ``without_preferences`` is the linear bound as if there were no ``largest`` and no ``least_nodes``.
    """

    bins: tuple[Bin, ...]
    unplaced: tuple[tuple[int, int], ...]
    price: int
    greedy: int
    linear: int
    bound: int
    kind: str
    without_preferences: int
    certificate: Certificate
    steps: int

    @property
    def gap(self) -> float:
        """Ratio by which the price is above the bound: 0.01 is one per cent."""
        return self.price / self.bound - 1 if self.bound else 0.0


class Meter:
    """Counts steps of work against a budget. A step takes one to two microseconds of CPython.

    ``expired`` says that the caller waits no longer: then no step remains. It is asked between pieces of work.
    """

    __slots__ = ("expired", "limit", "spent")

    def __init__(self, limit: int, expired: Callable[[], bool] | None = None) -> None:
        self.limit = limit
        self.expired = expired
        self.spent = 0

    @property
    def remaining(self) -> int:
        """Steps that may still be spent."""
        if self.expired is not None and self.expired():
            self.limit = min(self.limit, self.spent)
        return self.limit - self.spent


def joined(*counts: Counts) -> Counts:
    """The pods of several nodes together."""
    total: Counts = {}
    for pods in counts:
        for shape, count in pods.items():
            total[shape] = total.get(shape, 0) + count
    return total


def less(pods: Counts, placed: Counts) -> Counts:
    """``pods`` without those that are placed."""
    remaining = {shape: count - placed.get(shape, 0) for shape, count in pods.items()}
    return {shape: count for shape, count in remaining.items() if count > 0}
