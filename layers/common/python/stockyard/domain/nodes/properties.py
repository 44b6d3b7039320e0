"""Properties of a claim's node: the claim's over its type's over its provider's, and of several values one."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.nodes.node_types import ANY, BUILT_IN, NodeType, is_label_text, parse_property
from stockyard.domain.nodes.records import NodeClaim, Placement
from stockyard.domain.values.requirements import CAPACITY_TYPE, NODE_TYPE, ZONE, Requirements, normal_key

ALLOCATION_STRATEGY = "allocation_strategy"
ROOT_DISK = "root_disk_gib"
VARIABLES = frozenset({ALLOCATION_STRATEGY, ROOT_DISK})
"""Properties that only a provider reads: no labels of nodes."""


def written(claim: NodeClaim, *below: Mapping[str, str]) -> dict[str, str]:
    """The texts of all properties but ours, by normal key: the claim's over ``below``, of which a later one wins."""
    properties_by_key: dict[str, str] = {}
    for properties in (*below, claim.properties):
        properties_by_key |= {normal_key(key): text for key, text in properties.items()}
    return {key: text for key, text in properties_by_key.items() if key not in BUILT_IN}


def select_values(
    permitted: Mapping[str, tuple[str, ...]], claim: NodeClaim, before: Mapping[str, str]
) -> dict[str, str]:
    """One value of each property: what was chosen ``before`` while it is permitted, else the first that the claim's
    requirements let through. A property without such a value is left out, as is ``*`` when the claim names none."""
    requirements = Requirements.of(claim.requirements)
    selected: dict[str, str] = {}
    for key, values in permitted.items():
        requirement = requirements.get(key)
        if values != (ANY,):
            open_to = [value for value in values if requirement is None or requirement.has(value)]
        elif requirement is None or requirement.complement:
            open_to = [before[key]] if key in before and (requirement is None or requirement.has(before[key])) else []
        else:
            open_to = sorted(requirement.values)
        if open_to:
            selected[key] = before[key] if before.get(key) in open_to else open_to[0]
    return selected


def node_labels(node_type: NodeType | None, claim: NodeClaim, placement: Placement) -> dict[str, str]:
    """Labels of the claim's node, as it was launched; ``node_type`` is its type as the source offers it."""
    permitted = dict(node_type.properties) if node_type is not None else {}
    for key, text in written(claim).items():
        if is_label_text(text) and key not in VARIABLES:
            permitted[key] = parse_property(key, text)
    permitted[NODE_TYPE] = (placement.type,)
    permitted[CAPACITY_TYPE] = (placement.capacity_type,)
    permitted.pop(ZONE, None)
    # A claim may spell the names of types its own way; what Stockyard sets has the one spelling.
    labels = {**select_values(permitted, claim, {}), **{key: permitted[key][0] for key in BUILT_IN & permitted.keys()}}
    if len(placement.zones) == 1 and placement.zones != (ANY,):
        labels[ZONE] = placement.zones[0]
    # Two names joined by a dot may be longer than a label: a kubelet that is given one does not start.
    return {key: value for key, value in sorted(labels.items()) if is_label_text(value)}
