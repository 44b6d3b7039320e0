"""Limits of a pool that no node fits within: then the pool never gets one, and nobody would know why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.records import NODES, USD_HOUR
from stockyard.domain.values.quantities import milli, resource_text


@dataclass(frozen=True, slots=True)
class PricedType:
    """A node type that a pool may have, and the lowest price that is known for it in USD an hour."""

    node_type: NodeType
    usd_hour: float | None = None

    def use(self, limit: str) -> float:
        """How much one node uses of a limit: in thousandths, of money as well. No price that is known uses nothing."""
        if limit == NODES:
            return 1000
        if limit == USD_HOUR:
            return (self.usd_hour or 0) * 1000
        return self.node_type.capacity.get(limit, 0)


def too_small(limits: Mapping[str, str], types: Iterable[PricedType]) -> list[tuple[str, str]]:
    """The limits that are below what the smallest of ``types`` uses, each with the words for it.

    An empty name stands for all together: each lets a type through, but not the same one.
    """
    types = list(types)
    amounts = {name: milli(amount) for name, amount in limits.items()}
    if not types or any(all(kind.use(name) <= amount for name, amount in amounts.items()) for kind in types):
        return []
    faults: list[tuple[str, str]] = []
    for name, amount in amounts.items():
        smallest = min(types, key=lambda kind, name=name: kind.use(name))  # type: ignore[misc]
        if smallest.use(name) > amount:
            faults.append(
                (name, f"No node fits within it: {smallest.node_type.name} alone is {_text(name, smallest)}.")
            )
    return faults or [("", "No node fits within all limits together.")]


def _text(name: str, kind: PricedType) -> str:
    if name == NODES:
        return "one node"
    if name == USD_HOUR:
        return f"{kind.usd_hour or 0:g} USD an hour"
    return f"{resource_text(name, int(kind.use(name)))} of {name}"
