"""Node types of a place whose images nobody has looked for: which of them pods get in a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stockyard.domain.nodes.node_types import ANY, NodeType
from stockyard.domain.values.requirements import CAPACITY_TYPE, ZONE
from stockyard.scheduling.packing.model import Pod, Term
from stockyard.scheduling.table import NAME_KEYS

_OF_OFFERINGS = (ZONE, CAPACITY_TYPE)


def only_served(pods: Iterable[Pod], likely: Sequence[NodeType], unlikely: Sequence[NodeType]) -> frozenset[str]:
    """The names of ``unlikely`` types that fit a pod which fits none of the ``likely`` ones: such a pod asks for them.

    Labels that a type does not tell fit all; what depends on zones and on other pods is left to the packer.
    """
    names: set[str] = set()
    for pod in dict.fromkeys(pods):
        if not any(_fits(pod, node_type) for node_type in likely):
            names.update(node_type.name for node_type in unlikely if _fits(pod, node_type))
    return frozenset(names)


def _fits(pod: Pod, node_type: NodeType) -> bool:
    if any(node_type.allocatable.get(name, 0) < amount for name, amount in pod.requests):
        return False
    return any(_allows(term, node_type) for term in pod.terms)


def _allows(term: Term, node_type: NodeType) -> bool:
    for key, requirement in term:
        values = node_type.properties.get(key)
        if values is None or key in _OF_OFFERINGS or ANY in values:
            continue
        if key in NAME_KEYS:
            # A type has one name in several spellings.
            spellings = {*values, node_type.name, node_type.name.partition(".")[2]}
            allowed = (all if requirement.complement else any)(map(requirement.has, spellings))
        else:
            allowed = any(map(requirement.has, values))
        if not allowed:
            return False
    return True
