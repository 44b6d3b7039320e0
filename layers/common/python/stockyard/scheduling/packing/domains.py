"""The domains of a label in which a pod may be, and those that its rules of spread count."""

from __future__ import annotations

from collections.abc import Iterable

from stockyard.domain.node_types import ANY
from stockyard.scheduling.packing.classes import Level
from stockyard.scheduling.packing.known import KnownNodes, counts_for, passes
from stockyard.scheduling.packing.price.model import Meter
from stockyard.scheduling.packing.rows import Rows
from stockyard.scheduling.packing.topology import Domain, NodeFilter, SpreadRule


def universe_of(level: Level, key: str, rows: Rows, known: KnownNodes, meter: Meter) -> list[Domain]:
    """The domains that the pod may use, of nodes that are there and of those that pools can make. The level keeps them.

    None is the last of them, for nodes without the label, where the pod does not need it.
    """
    column = rows.column(key)
    universe = {value for value, mask in column.items() if mask & level.domain_mask}
    meter.spent += len(known.nodes) + len(column)
    for known_node in known.nodes:
        value = known_node.node.labels.get(key)
        if value not in universe and counts_for(level, known_node.node):
            universe.add(value)
    lacking = None in universe and not level.needs(key)
    level.universes[key] = listed = [*_in_order(universe), *([None] if lacking else [])]
    for rule in level.rules.get(key, ()):
        if isinstance(rule, SpreadRule) and rule.where != NodeFilter(level.pod.terms, None):
            rule.universe = _counted(rule.where, key, rows, known, meter)
    return listed


def _counted(where: NodeFilter, key: str, rows: Rows, known: KnownNodes, meter: Meter) -> list[Domain]:
    """The domains that a rule counts by its policies, which may be others than those that the pod may use."""
    counting, column = rows.counting(where), rows.column(key)
    meter.spent += len(known.nodes) + len(column)
    nodes = (known_node.node for known_node in known.nodes)
    domains = {node.labels.get(key) for node in nodes if passes(node, where)}
    return _in_order(domains.union(value for value, mask in column.items() if mask & counting))


def _in_order(domains: Iterable[Domain]) -> list[Domain]:
    """The domains of nodes that have the label. One that is not known yet (``*``) is one of the others, if there are
    any."""
    known = set(domains) - {None}
    return sorted(known - {ANY} or known, key=str)
