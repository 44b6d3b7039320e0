"""Defaults of a node where nobody asks for anything else: on demand, and of amd64.

One function, ``defaults_of``, decides it for every kind of request: claims, pools, groups, plans and simulations. Spot
may be taken back at any moment, and an image may be for amd64 alone, so both come only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, NodeType, Offering
from stockyard.domain.values.requirements import (
    ARCH,
    CAPACITY_TYPE,
    EXISTS,
    INSTANCE_TYPE,
    NODE_TYPE,
    NOT_IN,
    Requirement,
    Requirements,
)

AMD64 = "amd64"
DEFAULTS: Mapping[str, str] = {CAPACITY_TYPE: ON_DEMAND, ARCH: AMD64}
"""By label the value that nodes have where nobody asks by the label."""
NO_ARCHITECTURE = "none"
"""No machine has this architecture: who excludes it alone takes every one, and types that tell none."""
_WRITTEN_OUT: Mapping[str, Mapping[str, Any]] = {
    CAPACITY_TYPE: {"key": CAPACITY_TYPE, "operator": EXISTS},
    ARCH: {"key": ARCH, "operator": NOT_IN, "values": [NO_ARCHITECTURE]},
}


def asked_keys(requirements: Mapping[str, Requirement]) -> frozenset[str]:
    """Keys of ``DEFAULTS`` by which requirements ask. Who lists node types by name means each of them, whatever its
    architecture."""
    keys = {key for key in DEFAULTS if key in requirements}
    if any(key in requirements and _lists(requirements[key]) for key in (NODE_TYPE, INSTANCE_TYPE)):
        keys.add(ARCH)
    return frozenset(keys)


def defaults_of(requirements: Mapping[str, Requirement], *, bids: bool = False) -> Mapping[str, str]:
    """Entries of ``DEFAULTS`` that hold for requirements. ``bids``: a bid is made for spot, which asks for it."""
    keys = asked_keys(requirements)
    return {key: value for key, value in DEFAULTS.items() if key not in keys and not (bids and key == CAPACITY_TYPE)}


def unasked(defaults: Mapping[str, str], node_type: NodeType, offering: Offering) -> frozenset[str]:
    """The keys of ``defaults`` by which an offering is something else. A type that tells no architecture fits."""
    own = {CAPACITY_TYPE: (offering.capacity_type,), ARCH: node_type.properties.get(ARCH, ())}
    return frozenset(key for key, value in defaults.items() if own[key] and not {value, ANY} & set(own[key]))


def written_out(entries: Iterable[Mapping[str, Any]], *, bids: bool = False) -> tuple[dict[str, Any], ...]:
    """The requirements of a record that was written before there were defaults, with what it left open said: each
    capacity type, and each architecture."""
    listed = tuple(dict(entry) for entry in entries)
    try:
        defaults = defaults_of(Requirements.of(listed), bids=bids)
    except ValueError:
        return listed  # Whoever reads the record says why it cannot be read.
    return (*listed, *(dict(_WRITTEN_OUT[key]) for key in defaults))


def _lists(requirement: Requirement) -> bool:
    return bool(requirement.values) and not requirement.complement
