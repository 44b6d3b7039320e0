"""A node as its cluster reports it: taints, labels, allocatable and volume slots of its Node object. Pure.

While a node is not initialized, taints that its start takes away are left out, and what its Node object does not show
yet is what the claim and the catalogue promise: Karpenter reads nodes in the same way (``StateNode``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from stockyard.domain.nodes.node_types import read_resources
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import NodeClaim
from stockyard.domain.values.quantities import milli
from stockyard.lifecycle.nodes.node_commands import UNINITIALIZED
from stockyard.scheduling.packing.model import NO_EXECUTE, NO_SCHEDULE, Pod, Taint

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""The taint of a cordoned node. A pod that tolerates it may be bound to the node."""
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_OF_THE_START = frozenset(
    (key, effect) for key in (NOT_READY, UNREACHABLE, UNINITIALIZED) for effect in (NO_SCHEDULE, NO_EXECUTE)
)
"""Taints that every node may have while it starts, by key and effect."""


def taints_of(claim: NodeClaim, facts: NodeFacts | None, *, initialized: bool) -> tuple[Taint, ...]:
    """The taints that keep pods from the node. An agent that tells of none is an older one: then the claim's count."""
    if facts is None or facts.taints is None:
        taints = [Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in claim.taints]
    elif initialized:
        taints = [Taint(*taint) for taint in facts.taints]
    else:
        passing = _OF_THE_START | {(taint["key"], taint["effect"]) for taint in claim.startup_taints}
        taints = [Taint(*taint) for taint in facts.taints if (taint[0], taint[2]) not in passing]
    if facts is not None and facts.unschedulable and all(taint.key != UNSCHEDULABLE for taint in taints):
        taints.append(Taint(UNSCHEDULABLE))
    return tuple(taints)


class Quantities:
    """Reads the allocatable resources of Node objects; nodes of one type have equal ones, which are read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[tuple[str, str], ...], Mapping[str, int]] = {}

    def of(self, allocatable: Mapping[str, str]) -> Mapping[str, int]:
        """Thousandths of a unit by resource. Of a quantity that cannot be read there is nothing."""
        key = tuple(allocatable.items())
        amounts = self._read.get(key)
        if amounts is None:
            amounts = self._read[key] = _amounts(allocatable)
        return amounts


def _amounts(allocatable: Mapping[str, str]) -> Mapping[str, int]:
    amounts: dict[str, int] = {}
    for name, quantity in allocatable.items():
        with suppress(ValueError):
            amounts[name] = milli(quantity)
    return read_resources({}) | amounts


def attachable_of(facts: NodeFacts | None, nominated: Iterable[tuple[Pod, int]]) -> dict[str, int]:
    """Number of further volumes of each CSI driver with a limit that the node takes, after those of ``nominated``
    pods."""
    if facts is None or not facts.volume_limits:
        return {}
    slots = {driver: most - facts.volumes.get(driver, 0) for driver, most in facts.volume_limits.items()}
    for pod, count in nominated:
        for driver, volumes in pod.attachments:
            if driver in slots:
                slots[driver] -= volumes * count
    return {driver: max(0, free) for driver, free in slots.items()}
