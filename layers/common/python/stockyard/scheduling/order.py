"""The order of offerings (cheapest first) and of claims (priority, then age)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class RankedOffering:
    """An offering of a node type, with the ``usd_hour`` and ``cost`` that it is ordered by."""

    node_type: NodeType
    capacity_type: str
    zones: tuple[str, ...]
    usd_hour: float | None
    cost: float


def ranked_offerings(node_types: Iterable[NodeType]) -> list[RankedOffering]:
    """The offerings of ``node_types`` that have a zone."""
    return [
        ranked(node_type, offering) for node_type in node_types for offering in node_type.offerings if offering.zones
    ]


def ranked(node_type: NodeType, offering: Offering) -> RankedOffering:
    """One offering with its price and cost."""
    return RankedOffering(
        node_type, offering.capacity_type, offering.zones, node_type.money(offering), node_type.rank(offering)
    )


def cheapest_first(rows: Iterable[RankedOffering], provider: str | None) -> list[RankedOffering]:
    """The order of choice: by ``cost`` within one provider, by price over all; ties by name, then capacity type.

    Over all providers, those of types that are owned come first, ordered by the type's cost whatever price its owner
    says, and offerings without a price come last, ordered by cost. Equal offerings keep their order.
    """
    return sorted(rows, key=_over_all if provider is None else _within)


def _within(row: RankedOffering) -> tuple[float, str, str]:
    return (row.cost, row.node_type.name, row.capacity_type)


def _over_all(row: RankedOffering) -> tuple[int, float, str, str]:
    if row.node_type.owned:
        return (0, row.node_type.cost, row.node_type.name, row.capacity_type)
    money = row.cost if row.usd_hour is None else row.usd_hour
    return (1 if row.usd_hour is not None else 2, money, row.node_type.name, row.capacity_type)


class Prioritized(Protocol):
    """The fields of a claim that decide the order."""

    @property
    def priority(self) -> int:
        """The higher priority is served first."""

    @property
    def created_at(self) -> str:
        """RFC 3339 in UTC with milliseconds. The older claim is served first."""

    @property
    def id(self) -> str:
        """Decides between claims that are otherwise equal."""


C = TypeVar("C", bound=Prioritized)


def by_priority_and_age(claims: Iterable[C]) -> Sequence[C]:
    """The claims in the order in which they are served: by priority, and older ones first among equals."""
    return sorted(claims, key=lambda claim: (-claim.priority, claim.created_at, claim.id))
