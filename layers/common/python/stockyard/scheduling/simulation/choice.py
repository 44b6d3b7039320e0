"""The node types of a pool that a replay has to know: those than which no other is both larger and cheaper.

A cloud sells some hundred types, and each packing reads all of them. A trace has hundreds of packings, so types are
left out that no packing for price would take: where another one has at least as much of everything, costs no more
wherever the first is sold, and looks the same to every pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, NodeType
from stockyard.scheduling.packing.limits import NODES
from stockyard.scheduling.packing.model import Pod, Pool
from stockyard.scheduling.packing.rows import named_labels
from stockyard.scheduling.table import NAME_KEYS


def narrowed(pool: Pool, pods: Iterable[Pod], limited: Collection[str] = ()) -> Pool:
    """The pool without the types that nothing would be made of. ``limited`` are types that can be used up.

    It stays as it is where a smaller type can be needed, or the number of types counts: below a limit of resources,
    with ``minValues``, and with spot, which is replaced only where the choice is wide.
    """
    keys = named_labels(pods)
    if set(pool.limits) - {NODES} or any(key in keys for key in NAME_KEYS):
        return pool
    if any(requirement.min_values for requirement in pool.requirements.values()):
        return pool
    if any(offering.capacity_type != ON_DEMAND for node_type in pool.node_types for offering in node_type.offerings):
        return pool
    needed: list[NodeType] = []
    for node_type in sorted(pool.node_types, key=lambda item: (_least(item), item.name)):
        if not any(_replaces(other, node_type, keys) for other in needed if other.name not in limited):
            needed.append(node_type)
    names = {node_type.name for node_type in needed}
    return replace(pool, node_types=tuple(item for item in pool.node_types if item.name in names))


def _least(node_type: NodeType) -> float:
    return min(_prices(node_type).values(), default=0.0)


def _prices(node_type: NodeType) -> dict[str, float]:
    """The weight by zone, see ``NodeType.weight``; a type of unknown price weighs more than all."""
    prices: dict[str, float] = {}
    for offering in node_type.offerings:
        weight = node_type.weight(offering)
        for zone in offering.zones:
            prices[zone] = min(prices.get(zone, float("inf")), float("inf") if weight is None else weight)
    return prices


def _replaces(other: NodeType, node_type: NodeType, keys: Iterable[str]) -> bool:
    """Whether ``other`` does for every pod what the type does, for no more money."""
    if any(other.allocatable.get(name, 0) < amount for name, amount in node_type.allocatable.items()):
        return False
    if other.extended() != node_type.extended():
        return False
    if any(other.properties.get(key) != node_type.properties.get(key) for key in keys):
        return False
    prices = _prices(other)
    return all(prices.get(zone, prices.get(ANY, float("inf"))) <= price for zone, price in _prices(node_type).items())
