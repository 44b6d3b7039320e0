"""Documents of providers and claims, whatever form they came in, and the manifests that records are shown as.

What is normal is written in docs/objects.md: a manifest that is read, stored and shown again differs in that alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import RESOURCES_UNKNOWN, block_of, declared, provider_state
from stockyard.domain.nodes.node_types import BUILT_IN
from stockyard.domain.nodes.records import NodeClaim, NodeProvider
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.requirements import IN, NODE_POOL, NODE_TYPE

NAMESPACE = "stockyard.dev/namespace"
"""The label that keeps a manifest's namespace. It never says whose something is."""
CLUSTER = "stockyard.dev/cluster"
"""The label by which a claim of Karpenter's form names its cluster."""
PROVIDER = "vcluster.loft.sh/provider-platform"
"""The label by which a claim of Karpenter's form names its provider."""

KARPENTER_CONDITIONS = {"Provisioned": "Launched", "Joined": "Registered"}
"""The conditions of a claim that Karpenter knows under another name."""
OWN, VCLUSTER, KARPENTER = "stockyard/v1", "management.loft.sh/v1", "karpenter.sh/v1"

FieldPath = tuple[str | int, ...]
Warnings = list[tuple[FieldPath, str]]


@dataclass(frozen=True, slots=True)
class ProviderDocument:
    """A node provider that is asked for. ``block`` is the part of ``spec`` that its kind names."""

    name: str
    kind: str
    block: dict[str, Any]
    display_name: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    price_per_cost_unit: float | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def provider_warnings(provider: NodeProvider, block: FieldPath, properties: FieldPath) -> Warnings:
    """Warnings about a provider, with the paths of its block and its properties before each pointer."""
    warnings: Warnings = [((*properties, key), _SET) for key in provider.properties if key in BUILT_IN]
    types = declared(provider)
    if not provider_kinds.kind(provider.kind).built:
        warnings.append((block, provider_state(provider.kind)[2]))
    elif provider_kinds.kind(provider.kind).discovers:
        globs = block_of(provider).get("instanceTypes", ["*"])
        for index, node_type in enumerate(types):
            if not any(fnmatchcase(node_type.name, glob) for glob in globs):
                warnings.append(((*block, "nodeTypes", index, "name"), "instanceTypes leaves this type out."))
    elif not types:
        warnings.append((block, "The provider has no node types, so no claim can be placed on it."))
    for index, node_type in enumerate(types):
        here = (*block, "nodeTypes", index)
        warnings += [((*here, "properties", key), _SET) for key in node_type.properties if key in BUILT_IN]
        if node_type.reason == RESOURCES_UNKNOWN:
            warnings.append((here, node_type.message))
    return warnings


_SET = "Stockyard sets this property itself; what is written here is not used."


def provider_manifest(provider: NodeProvider) -> dict[str, Any]:
    """The provider as a manifest: of ``management.loft.sh/v1`` where that can say it, else of ours."""
    spec = _without_empty({"displayName": provider.display_name, "properties": provider.properties})
    if provider.price_per_cost_unit is not None:
        spec["pricePerCostUnit"] = provider.price_per_cost_unit
    own = provider_kinds.kind(provider.kind).own or provider.price_per_cost_unit is not None
    return {
        "apiVersion": OWN if own else VCLUSTER,
        "kind": "NodeProvider",
        "metadata": _metadata(provider.name, provider.labels, provider.annotations),
        "spec": {**spec, **provider.spec},
    }


def claim_manifest(claim: NodeClaim) -> dict[str, Any]:
    """The claim as a manifest of the form that it came in."""
    version, spec = {"vcluster": (VCLUSTER, _vcluster), "karpenter": (KARPENTER, _karpenter)}.get(
        claim.form, (OWN, _own)
    )
    return {
        "apiVersion": version,
        "kind": "NodeClaim",
        "metadata": _metadata(claim.name, claim.labels, claim.annotations),
        "spec": spec(claim),
        **({"status": _karpenter_status(claim)} if version == KARPENTER else {}),
    }


def matched(claim: NodeClaim) -> tuple[dict[str, Any], ...]:
    """The requirements that a node type has to fulfil: of a claim of Karpenter's without those that name where it came
    from, its pool and its node class, which Karpenter adds to all that it sends."""
    if claim.form != "karpenter":
        return claim.requirements
    node_class = (claim.document.get("spec") or {}).get("nodeClassRef") or {}
    own_keys = {NODE_POOL, f"{node_class.get('group')}/{str(node_class.get('kind')).lower()}"}
    return tuple(requirement for requirement in claim.requirements if requirement.get("key") not in own_keys)


def is_planned(claim: NodeClaim) -> bool:
    """Whether the claim is that of a planned node: it lists the types that the plan left open, and is bound to what the
    plan has priced, in order of money, whatever its provider calls cheap."""
    return bool(claim.pool) and any(
        entry.get("key") == NODE_TYPE
        and entry.get("operator") == IN
        and all(str(name).startswith(f"{claim.provider_ref}.") for name in entry.get("values", ()))
        for entry in claim.requirements
    )


def asked_requirements(claim: NodeClaim) -> tuple[dict[str, Any], ...]:
    """The requirements as they came: without the one that a named node type was turned into."""
    spec = claim.document.get("spec") or {}
    last = claim.requirements[-1] if claim.requirements else {}
    named = "typeRef" in spec or "type" in spec
    return claim.requirements[:-1] if named and last.get("key") == NODE_TYPE else claim.requirements


def _metadata(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    own_labels = {key: value for key, value in labels.items() if key != NAMESPACE}
    return {
        "name": name,
        **_without_empty({"namespace": labels.get(NAMESPACE), "labels": own_labels, "annotations": dict(annotations)}),
    }


def _own(claim: NodeClaim) -> dict[str, Any]:
    spec = _without_empty(
        {
            "cluster": claim.cluster_ref,
            "provider": claim.provider_ref,
            "type": claim.type_ref,
            "priority": claim.priority,
            "keepFailed": claim.keep_failed,
            "terminationGracePeriod": claim.termination_grace_period,
            "displayName": claim.display_name,
            "resources": claim.resources,
            **_common(claim),
            "power": "" if claim.power == "On" else claim.power,
        }
    )
    return {**spec, **(claim.document.get("spec") or {})}


def _vcluster(claim: NodeClaim) -> dict[str, Any]:
    document_spec = dict(claim.document.get("spec") or {})
    spec = _without_empty(
        {
            "displayName": claim.display_name,
            "vClusterRef": claim.cluster_ref,
            "providerRef": claim.provider_ref,
            "typeRef": claim.type_ref,
            "desiredCapacity": claim.resources,
            **_common(claim),
        }
    )
    power = {} if claim.power == "On" else {"power": {"state": claim.power}}
    return {**spec, **power, **document_spec}


def _karpenter(claim: NodeClaim) -> dict[str, Any]:
    common = _common(claim)
    spec = _without_empty({name: common[name] for name in ("requirements", "taints", "startupTaints")})
    requests = {"resources": {"requests": dict(claim.resources)}} if claim.resources else {}
    return {**spec, **requests, **(claim.document.get("spec") or {})}


def _karpenter_status(claim: NodeClaim) -> dict[str, Any]:
    """The claim's state under Karpenter's names: ``nodeName``, and the conditions that Karpenter's own claims have.

    ``Initialized`` has no time of its own: it follows from the claim's phase.
    """
    own = {condition.type: condition for condition in claim.conditions}
    conditions = [
        {
            "type": name,
            "status": own[own_type].status,
            "reason": own[own_type].reason,
            "message": own[own_type].message,
            "lastTransitionTime": own[own_type].last_transition_time,
        }
        for own_type, name in KARPENTER_CONDITIONS.items()
        if own_type in own
    ]
    initialized = {"Available": "True", "Failed": "False"}.get(claim.phase, "Unknown")
    reason = "Initialized" if initialized == "True" else claim.reason or "Pending"
    conditions.append({"type": "Initialized", "status": initialized, "reason": reason, "message": claim.message})
    return {"conditions": conditions, **({"nodeName": claim.node_name} if claim.node_name else {})}


def _common(claim: NodeClaim) -> dict[str, Any]:
    return {
        "requirements": list(asked_requirements(claim)),
        "properties": claim.properties,
        "taints": list(claim.taints),
        "startupTaints": list(claim.startup_taints),
        "kubeletArgs": claim.kubelet_args,
    }


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value}
