"""Which properties a claim's node has: the claim's over its type's over its provider's, and of several values one."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.node_records import NodeClaim, Placement
from stockyard.domain.node_types import ANY, NodeKind, is_label_text, parse_property
from stockyard.domain.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_TYPE,
    OS,
    ZONE,
    Requirements,
    normal_key,
)

OURS = frozenset({NODE_TYPE, INSTANCE_TYPE, CAPACITY_TYPE, OS})
"""Properties that no document can change; capacity type and zone are those of the placement."""


def written(claim: NodeClaim, *below: Mapping[str, str]) -> dict[str, str]:
    """The texts of all properties but ours, by normal key: the claim's over ``below``, of which a later one wins."""
    found: dict[str, str] = {}
    for properties in (*below, claim.properties):
        found |= {normal_key(key): text for key, text in properties.items()}
    return {key: text for key, text in found.items() if key not in OURS}


def chosen(permitted: Mapping[str, tuple[str, ...]], claim: NodeClaim, before: Mapping[str, str]) -> dict[str, str]:
    """One value of each property: what was chosen ``before`` while it is permitted, else the first that the claim's
    requirements let through. A property without such a value is left out, as is ``*`` when the claim names none."""
    wanted = Requirements.of(claim.requirements)
    found: dict[str, str] = {}
    for key, values in permitted.items():
        requirement = wanted.get(key)
        if values != (ANY,):
            open_to = [value for value in values if requirement is None or requirement.has(value)]
        elif requirement is None or requirement.complement:
            open_to = [before[key]] if key in before and (requirement is None or requirement.has(before[key])) else []
        else:
            open_to = sorted(requirement.values)
        if open_to:
            found[key] = before[key] if before.get(key) in open_to else open_to[0]
    return found


def node_labels(kind: NodeKind | None, claim: NodeClaim, placement: Placement) -> dict[str, str]:
    """What the claim's node is labelled with, as it was launched; ``kind`` is its type as the source offers it."""
    permitted = dict(kind.properties) if kind is not None else {}
    for key, text in written(claim).items():
        if is_label_text(text):
            permitted[key] = parse_property(key, text)
    permitted[NODE_TYPE] = (placement.type,)
    permitted[CAPACITY_TYPE] = (placement.capacity_type,)
    permitted.pop(ZONE, None)
    # A claim may spell the names of types its own way; what Stockyard sets has the one spelling.
    labels = {**chosen(permitted, claim, {}), **{key: permitted[key][0] for key in OURS & permitted.keys()}}
    if len(placement.zones) == 1 and placement.zones != (ANY,):
        labels[ZONE] = placement.zones[0]
    # Two names joined by a dot may be longer than a label: a kubelet that is given one does not start.
    return {key: value for key, value in sorted(labels.items()) if is_label_text(value)}
