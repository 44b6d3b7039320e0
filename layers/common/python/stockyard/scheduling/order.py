"""Orders: of the ways to get a node, cheapest first, and of claims, fair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from stockyard.domain.node_types import NodeKind, Offering


@dataclass(frozen=True, slots=True)
class Row:
    """One way to get a node: an offering of a kind. ``usd_hour`` and ``cost`` are what it is ordered by."""

    kind: NodeKind
    capacity_type: str
    zones: tuple[str, ...]
    usd_hour: float | None
    cost: float


def rows_of(kinds: Iterable[NodeKind]) -> list[Row]:
    """Every way to get a node of ``kinds``. An offering without a zone is none."""
    return [row_of(kind, offering) for kind in kinds for offering in kind.offerings if offering.zones]


def row_of(kind: NodeKind, offering: Offering) -> Row:
    """One offering with what orders it."""
    return Row(kind, offering.capacity_type, offering.zones, kind.money(offering), kind.rank(offering))


def cheapest_first(rows: Iterable[Row], provider: str | None) -> list[Row]:
    """The order of choice: by ``cost`` within one provider, by money over all; ties by name, then capacity type.

    Over all providers, what has no money price comes last, by cost. Equal offerings of a kind keep their order.
    """
    return sorted(rows, key=_over_all if provider is None else _within)


def _within(row: Row) -> tuple[float, str, str]:
    return (row.cost, row.kind.name, row.capacity_type)


def _over_all(row: Row) -> tuple[bool, float, str, str]:
    money = row.cost if row.usd_hour is None else row.usd_hour
    return (row.usd_hour is None, money, row.kind.name, row.capacity_type)


class Claimed(Protocol):
    """What puts one claim before another."""

    @property
    def priority(self) -> int:
        """The higher goes first."""

    @property
    def created_at(self) -> str:
        """RFC 3339 in UTC, milliseconds; the earlier goes first."""

    @property
    def id(self) -> str:
        """Decides between equals."""


C = TypeVar("C", bound=Claimed)


def fair(claims: Iterable[C]) -> Sequence[C]:
    """The claims in the order in which they are served: by priority, the older first within one."""
    return sorted(claims, key=lambda claim: (-claim.priority, claim.created_at, claim.id))
