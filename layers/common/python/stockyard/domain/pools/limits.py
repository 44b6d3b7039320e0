"""Limits of a pool that hold nothing, and limits that no node fits within: then the pool never gets one, and nobody
would know why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from stockyard.domain.month_budgets import USD_MONTH
from stockyard.domain.nodes.node_types import CPU, MEMORY, PODS, STORAGE, NodeType, is_extended
from stockyard.domain.pools.records import NODES, USD_HOUR
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.quantities import milli, resource_text
from stockyard.domain.values.spelling import closest

USUAL_NAMES = (NODES, USD_HOUR, USD_MONTH, CPU, MEMORY, PODS, STORAGE)
"""Names of limits that hold whatever node types there are."""
_LEAST_LETTERS = 3
"""Of a part of a name that stands for the whole one."""


@dataclass(frozen=True, slots=True)
class PricedType:
    """A node type that a pool may have, and the lowest price that is known for it in USD an hour; None: none is."""

    node_type: NodeType
    usd_hour: float | None = None

    def use(self, limit: str) -> float:
        """Amount of a limit that one node uses: in thousandths, of money as well. What has no known price fits within
        no limit in money."""
        if limit == NODES:
            return 1000
        if limit == USD_HOUR:
            return inf if self.usd_hour is None else self.usd_hour * 1000
        return self.node_type.capacity.get(limit, 0)


def unknown_limits(names: Iterable[str], resources: Iterable[str]) -> list[tuple[str, str]]:
    """The names of limits that limit nothing, each with the words for it; ``resources`` are those of all node types.

    A name with a domain is an extended resource, whose node types may come later: it is left alone unless it is spelt
    much like one that is there.
    """
    known_names = {*USUAL_NAMES, *resources}
    faults: list[tuple[str, str]] = []
    for name in names:
        if name in known_names or not is_extended(name):
            continue
        likely = _likely_name(name, known_names)
        if likely:
            faults.append((name, f"no node type has {name}; did you mean {likely}?"))
        elif "/" not in name:
            usual = ", ".join(USUAL_NAMES[:-1])
            faults.append((name, f"no node type has {name}; a limit is {usual} or another resource of nodes"))
    return faults


def _likely_name(name: str, known_names: Iterable[str]) -> str:
    """The name that was probably meant: spelt alike, or a beginning or last part of it, as ``gpu`` and ``usd`` are."""
    listed = sorted(known_names)
    likely = closest(name, listed)
    if likely or len(name) < _LEAST_LETTERS or "/" in name:
        return likely
    parts = (each for each in listed if each.startswith(name) or each.rpartition("/")[2] == name)
    return next(parts, "")


def too_small(limits: Mapping[str, str], types: Iterable[PricedType]) -> list[tuple[str, str]]:
    """The limits that are below what the smallest of ``types`` uses, each with the words for it.

    An empty name stands for all together: each lets a type through, but not the same one.
    """
    types = list(types)
    if USD_HOUR in limits:
        # No node without a known price is made below a limit in money.
        types = [kind for kind in types if kind.usd_hour is not None] or types
    # What a month has room for changes with each hour: whoever buys looks at it.
    amounts = {name: milli(amount) for name, amount in limits.items() if name != USD_MONTH}
    if not types or any(all(kind.use(name) <= amount for name, amount in amounts.items()) for kind in types):
        return []
    faults: list[tuple[str, str]] = []
    for name, amount in amounts.items():
        smallest = min(types, key=lambda kind, name=name: kind.use(name))  # type: ignore[misc]
        if smallest.use(name) > amount:
            faults.append((name, f"No node fits within it: {_text(name, smallest)}."))
    return faults or [("", "No node fits within all limits together.")]


def _text(name: str, kind: PricedType) -> str:
    alone = f"{kind.node_type.name} alone is"
    if name == NODES:
        return f"{alone} one node"
    if name == USD_HOUR:
        unknown = "the price of no type is known"
        return unknown if kind.usd_hour is None else f"{alone} {kind.usd_hour:g} USD an hour"
    return f"{alone} {resource_text(name, int(kind.use(name)))} of {name}"
