"""Whether a node is still what its claim would get now: pure functions of the provider's document and the claim.

A fingerprint is taken at launch and again when the provider has changed. It has a part for each of the type, the
template and the properties; what tells nodes apart by price or number only is in none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.declared_types import DeclaredType, block_of, declared_type
from stockyard.domain.nodes.node_types import is_label_text, parse_property, read_resources
from stockyard.domain.nodes.properties import select_values, written
from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.domain.values.conditions import Condition, with_condition
from stockyard.domain.values.requirements import ZONE
from stockyard.domain.values.states import Truth
from stockyard.lifecycle.change import Transition
from stockyard.lifecycle.nodes import pool_drift
from stockyard.lifecycle.nodes.node_phases import NOT_DRIFTED

TYPE, TEMPLATE, PROPERTIES = "TypeChanged", "TemplateChanged", "PropertiesChanged"
REASONS = (TYPE, TEMPLATE, PROPERTIES)
"""In the order of a fingerprint's parts."""
MACHINE = "MachineChanged"
"""Said by a source that was asked, see ``ports.nodes.Compares``; not of the document."""
MOVED = "TemplateMoved"
"""The same of a node whose template stands in a place that has moved, see ``ports.nodes.FollowsTemplates``."""
ASKED_REASONS = (MOVED, MACHINE)
ALL_REASONS = (*REASONS, *ASKED_REASONS, *pool_drift.REASONS)
"""The first by which a node differs is its condition's reason."""
AS_LAUNCHED, AS_LAUNCHED_TEXT = "AsLaunched", "Type, template and properties are as launched."
_NAMES = {
    TYPE: "type",
    TEMPLATE: "template",
    PROPERTIES: "properties",
    MOVED: "where the template stands",
    MACHINE: "what the provider would make",
    pool_drift.NODE_POOL: "the pool's template",
    pool_drift.REQUIREMENTS: "the pool's requirements",
    pool_drift.CLUSTER: "the cluster's version or image",
}
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
        "machineTypes",
        "sizes",
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


def fingerprint(provider: NodeProvider, claim: NodeClaim, placement: Placement, *, offered: bool) -> str:
    """Fingerprint of the claim's node, as the provider's document makes it. ``offered``: it could be had so now."""
    name = placement.type.removeprefix(f"{provider.name}.")
    node_type = declared_type(provider, name)
    parts = (
        _type(placement, node_type, offered=offered),
        _template(provider, name),
        _properties(provider, claim, node_type),
    )
    return ":".join((_RULES, *(_hash(part) for part in parts)))


def differences(before: str, now: str) -> tuple[str, ...]:
    """The reasons by which two fingerprints differ; none when one of them is of other rules or not there."""
    first, second = before.split(":"), now.split(":")
    if len(first) != len(REASONS) + 1 or len(first) != len(second) or first[0] != second[0]:
        return ()
    return tuple(
        reason
        for reason, hash_before, hash_now in zip(REASONS, first[1:], second[1:], strict=True)
        if hash_before != hash_now
    )


def note_drift(
    claim: NodeClaim, changed: Sequence[str], now: str, compared: Sequence[str] = REASONS
) -> tuple[NodeClaim, Transition] | None:
    """State the difference between the node and its launch, or that there is none any more; None when that was said
    before.

    ``compared`` are the reasons that were looked at, of which those in ``changed`` hold; others stay as they are.
    """
    current = next((condition for condition in claim.conditions if condition.type == NOT_DRIFTED), None)
    before = claim.drift_reasons
    if not before and current is not None and current.status == "False":
        before = (current.reason,)  # the claim was written before there were other reasons than those of its provider
    stays = [reason for reason in before if reason not in compared]
    reasons = tuple(reason for reason in ALL_REASONS if reason in (*changed, *stays))
    status: Truth = "False" if reasons else "True"
    reason, message = AS_LAUNCHED, AS_LAUNCHED_TEXT
    if reasons:
        names = ", ".join(_NAMES[reason] for reason in reasons)
        is_of_vendor = any(reason in ASKED_REASONS for reason in reasons)
        words = f" {claim.machine_drift}" if is_of_vendor and claim.machine_drift else ""
        reason, message = reasons[0], f"Changed since the launch: {names}.{words}"
    is_shown = current is not None and (current.status, current.reason, current.message) == (status, reason, message)
    if is_shown and before == reasons:
        return None
    condition = Condition(NOT_DRIFTED, status, reason, message, now)
    noted_claim = replace(
        claim,
        conditions=with_condition(claim.conditions, condition),
        drift_reasons=reasons,
        updated_at=now,
        version=claim.version + 1,
    )
    return noted_claim, Transition(
        "NodeClaim", claim.phase, claim.phase, "Drifted" if reasons else AS_LAUNCHED, message
    )


def _hash(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _type(placement: Placement, node_type: DeclaredType | None, *, offered: bool) -> dict[str, Any]:
    return {
        "name": placement.type,
        "resources": read_resources(node_type.resources) if node_type and node_type.resources else {},
        "overhead": read_resources(node_type.overhead, pods=None) if node_type else {},
        "offered": offered,
    }


def still_declared(provider: NodeProvider, placement: Placement) -> bool:
    """Whether the provider's document still has the node's type, with its capacity type and zone."""
    entry = declared_type(provider, placement.type.removeprefix(f"{provider.name}."))
    if entry is None or entry.offerings is None:
        return entry is not None
    return any(
        offering.capacity_type == placement.capacity_type and placement.may_be_in(offering.zones)
        for offering in entry.offerings
    )


def _template(provider: NodeProvider, name: str) -> dict[str, Any]:
    block = block_of(provider)
    entry: Mapping[str, Any] = next(
        (type_entry for type_entry in block.get("nodeTypes") or () if type_entry.get("name") == name), {}
    )
    template = {key: value for key, value in block.items() if key not in _NOT_OF_THE_TEMPLATE}
    template |= {key: value for key, value in entry.items() if key not in _NOT_OF_THE_TYPES_TEMPLATE}
    return {key: value for key, value in template.items() if value not in (None, "", [], {})}


def _properties(provider: NodeProvider, claim: NodeClaim, node_type: DeclaredType | None) -> dict[str, str]:
    """The properties with the values that the node has while they are permitted; texts that are no labels whole."""
    texts = written(claim, provider.properties, node_type.properties if node_type else {})
    texts.pop(ZONE, None)  # compared as the type's
    permitted = {key: parse_property(key, text) for key, text in texts.items() if is_label_text(text)}
    return {**texts, **select_values(permitted, claim, claim.node_labels)}


def is_drifted(claim: NodeClaim) -> bool:
    """Whether the claim is not as it would be made now."""
    return bool(drifted_since(claim))


def drifted_since(claim: NodeClaim) -> str:
    """Since when; empty for a claim that has not drifted."""
    return next(
        (part.last_transition_time for part in claim.conditions if part.type == NOT_DRIFTED and part.status == "False"),
        "",
    )
