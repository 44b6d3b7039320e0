"""Bound of the size of a packing problem: its memory is bounded before the packer begins."""

from __future__ import annotations

from stockyard.scheduling.packing.model import Problem
from stockyard.scheduling.packing.rows import most_rows

MOST_ROWS = 300_000
"""Ways to make a node (pool, node type, capacity type, zone, open labels) that one problem may have."""
MOST_OVERHEADS = 300_000
"""DaemonSets times node types: for each of these it is asked whether it takes room."""
MOST_BITS = 10**8
"""Ways times different pods: the packer keeps a bit for each, several times."""


def excess(problem: Problem) -> str | None:
    """Reason why the problem takes too much memory, in words; None if it does not. Labels that are open multiply the
    ways."""
    types = sum(len(pool.node_types) for pool in problem.pools)
    if types * len(problem.daemons) > MOST_OVERHEADS:
        return f"{len(problem.daemons)} DaemonSets on nodes of {types} types are too many"
    count = most_rows(problem.pools, (*(group.pod for group in problem.groups), *problem.daemons))
    if count <= MOST_ROWS and count * len(problem.groups) <= MOST_BITS:
        return None
    text = f"{len(problem.groups)} different pods leave or name so many values of labels that there are {count} ways"
    return f"{text} to make a node, too many"
