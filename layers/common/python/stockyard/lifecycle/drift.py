"""Whether a node is still what its claim would get now: pure functions of the provider's document and the claim.

A fingerprint is taken at launch and again when the provider has changed. It has a part for each of the type, the
template and the properties; what tells nodes apart by price or number only is in none of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from typing import Any

from stockyard.domain.conditions import Condition, with_condition
from stockyard.domain.declared_types import DeclaredType, block_of, declared_type, written_zone
from stockyard.domain.node_properties import chosen, written
from stockyard.domain.node_types import ANY, ON_DEMAND, is_label_text, parse_property, read_resources
from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.domain.requirements import ZONE
from stockyard.lifecycle.change import Happening
from stockyard.lifecycle.node_phases import NOT_DRIFTED

TYPE, TEMPLATE, PROPERTIES = "TypeChanged", "TemplateChanged", "PropertiesChanged"
REASONS = (TYPE, TEMPLATE, PROPERTIES)
"""In the order of a fingerprint's parts; the first that differs is the condition's reason."""
AS_LAUNCHED, AS_LAUNCHED_TEXT = "AsLaunched", "Type, template and properties are as launched."
_NAMES = {TYPE: "type", TEMPLATE: "template", PROPERTIES: "properties"}
_RULES = "1"
"""Of what a fingerprint is made. One of other rules is not compared."""
_DIGITS = 16

_NOT_OF_THE_TEMPLATE = frozenset(
    {
        "nodeTypes",
        "deploy",
        "secretRef",
        "nodeEnvironmentTemplate",
        "launchSeconds",
        "joinSeconds",
        "allocationStrategy",
        "capacityTypes",
        "instanceTypes",
    }
)
"""Fields of a provider's block that do not change what a machine of it is, or that are compared as the type."""
_NOT_OF_THE_TYPES_TEMPLATE = frozenset(
    {
        "name",
        "displayName",
        "metadata",
        "properties",
        "resources",
        "overhead",
        "cost",
        "zone",
        "zones",
        "usdPerHour",
        "spotUsdPerHour",
        "maxCapacity",
        "nodes",
        "nodeGroups",
        "bareMetalHosts",
    }
)
"""The same of the entry of a node type: which of several equal machines it may be, what it costs, what is shown."""


def fingerprint(provider: NodeProvider, claim: NodeClaim, placement: Placement, *, launched: bool = False) -> str:
    """What the provider's document makes of the claim's node. ``launched``: now, so that its way is on offer."""
    name = placement.type.removeprefix(f"{provider.name}.")
    one = declared_type(provider, name)
    parts = (
        _type(provider, placement, one, launched=launched),
        _template(provider, name),
        _properties(provider, claim, one),
    )
    return ":".join((_RULES, *(_hash(part) for part in parts)))


def differences(before: str, now: str) -> tuple[str, ...]:
    """The reasons by which two fingerprints differ; none when one of them is of other rules or not there."""
    first, second = before.split(":"), now.split(":")
    if len(first) != len(REASONS) + 1 or len(first) != len(second) or first[0] != second[0]:
        return ()
    return tuple(reason for reason, one, other in zip(REASONS, first[1:], second[1:], strict=True) if one != other)


def note_drift(claim: NodeClaim, changed: Sequence[str], now: str) -> tuple[NodeClaim, Happening] | None:
    """Say by what the node differs from its launch, or that it does not any more; None when that was said before."""
    if changed:
        names = ", ".join(_NAMES[one] for one in changed)
        status, reason, message = "False", changed[0], f"Changed since the launch: {names}."
    else:
        status, reason, message = "True", AS_LAUNCHED, AS_LAUNCHED_TEXT
    said = next((one for one in claim.conditions if one.type == NOT_DRIFTED), None)
    if said is not None and (said.status, said.reason, said.message) == (status, reason, message):
        return None
    condition = Condition(NOT_DRIFTED, status, reason, message, now)
    told = replace(
        claim, conditions=with_condition(claim.conditions, condition), updated_at=now, version=claim.version + 1
    )
    return told, Happening("NodeClaim", claim.phase, claim.phase, "Drifted" if changed else AS_LAUNCHED, message)


def _hash(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _type(provider: NodeProvider, placement: Placement, one: DeclaredType | None, *, launched: bool) -> dict[str, Any]:
    return {
        "name": placement.type,
        "resources": read_resources(one.resources) if one and one.resources else {},
        "overhead": read_resources(one.overhead, pods=None) if one else {},
        "offered": launched or _offered(provider, placement, one),
    }


def _offered(provider: NodeProvider, placement: Placement, one: DeclaredType | None) -> bool:
    """Whether the node's type, capacity type and zone could still be had."""
    zone = placement.zones[0] if len(placement.zones) == 1 else ANY
    if provider.kind != "ec2":
        if one is None or one.offerings is None:
            return one is not None
        return any(way.capacity_type == placement.capacity_type and _within(zone, way.zones) for way in one.offerings)
    block = block_of(provider)
    name = placement.type.removeprefix(f"{provider.name}.")
    globs = "|".join(translate(glob) for glob in block.get("instanceTypes") or (ANY,))
    text = written_zone(one.properties if one else {}, provider.properties) or ANY
    return (
        re.match(globs, name) is not None
        and placement.capacity_type in (block.get("capacityTypes") or (ON_DEMAND,))
        and _within(zone, parse_property(ZONE, text))
    )


def _within(zone: str, zones: Sequence[str]) -> bool:
    return zone == ANY or ANY in zones or zone in zones


def _template(provider: NodeProvider, name: str) -> dict[str, Any]:
    block = block_of(provider)
    entry: Mapping[str, Any] = next((one for one in block.get("nodeTypes") or () if one.get("name") == name), {})
    found = {key: value for key, value in block.items() if key not in _NOT_OF_THE_TEMPLATE}
    found |= {key: value for key, value in entry.items() if key not in _NOT_OF_THE_TYPES_TEMPLATE}
    return {key: value for key, value in found.items() if value not in (None, "", [], {})}


def _properties(provider: NodeProvider, claim: NodeClaim, one: DeclaredType | None) -> dict[str, str]:
    """The properties with the values that the node has while they are permitted; texts that are no labels whole."""
    texts = written(claim, provider.properties, one.properties if one else {})
    texts.pop(ZONE, None)  # compared as the type's
    permitted = {key: parse_property(key, text) for key, text in texts.items() if is_label_text(text)}
    return {**texts, **chosen(permitted, claim, claim.node_labels)}
