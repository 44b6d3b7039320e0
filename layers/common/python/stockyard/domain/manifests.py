"""Documents of providers and claims, whatever form they came in, and the manifests that records are shown as.

What is normal is written in docs/objects.md: a manifest that is read, stored and shown again differs in that alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stockyard.domain.declared_types import FIXED, RESOURCES_UNKNOWN, declared
from stockyard.domain.node_records import NodeClaim, NodeProvider
from stockyard.domain.requirements import NODE_TYPE

NAMESPACE = "stockyard.dev/namespace"
"""The label that keeps a manifest's namespace. It never says whose something is."""
CLUSTER = "stockyard.dev/cluster"
"""The label by which a claim of Karpenter's form names its cluster."""
NODE_POOL = "karpenter.sh/nodepool"
PROVIDER = "vcluster.loft.sh/provider-platform"
"""The label by which a claim of Karpenter's form names its provider."""

OWN, VCLUSTER, KARPENTER = "stockyard/v1", "management.loft.sh/v1", "karpenter.sh/v1"
OWN_KINDS = frozenset({"ec2", "simulated"})
"""Kinds of providers that only our own manifests have."""

Place = tuple[str | int, ...]
Warnings = list[tuple[Place, str]]


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


@dataclass(frozen=True, slots=True)
class ClaimDocument:
    """A claim that a manifest asks for. ``document`` is what only its form has; ``strict``: references must exist."""

    name: str
    cluster_ref: str = ""
    provider_ref: str = ""
    type_ref: str = ""
    requirements: tuple[dict[str, Any], ...] = ()
    resources: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, Any], ...] = ()
    startup_taints: tuple[dict[str, Any], ...] = ()
    kubelet_args: dict[str, str] = field(default_factory=dict)
    power: str | None = None
    """None where the manifest does not say it: then it stays as it is."""
    priority: int = 0
    display_name: str = ""
    form: str = "stockyard"
    document: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    strict: bool = True


def provider_warnings(provider: NodeProvider, block: Place, properties: Place) -> Warnings:
    """What is odd about a provider, with the places of its block and its properties before each pointer."""
    found: Warnings = [((*properties, key), _SET) for key in provider.properties if key in FIXED]
    types = declared(provider)
    if provider.kind == "ec2":
        globs = provider.spec["ec2"].get("instanceTypes", ["*"])
        for place, one in enumerate(types):
            if not any(fnmatchcase(one.name, glob) for glob in globs):
                found.append(((*block, "nodeTypes", place, "name"), "instanceTypes leaves this type out."))
    elif not types:
        found.append((block, "The provider has no node types, so no claim can be placed on it."))
    for place, one in enumerate(types):
        here = (*block, "nodeTypes", place)
        found += [((*here, "properties", key), _SET) for key in one.properties if key in FIXED]
        if one.reason == RESOURCES_UNKNOWN:
            found.append((here, one.message))
    return found


_SET = "Stockyard sets this property itself; what is written here is not used."


def provider_manifest(provider: NodeProvider) -> dict[str, Any]:
    """The provider as a manifest: of ``management.loft.sh/v1`` where that can say it, else of ours."""
    spec = _said({"displayName": provider.display_name, "properties": provider.properties})
    if provider.price_per_cost_unit is not None:
        spec["pricePerCostUnit"] = provider.price_per_cost_unit
    own = provider.kind in OWN_KINDS or provider.price_per_cost_unit is not None
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
    }


def matched(claim: NodeClaim) -> tuple[dict[str, Any], ...]:
    """The requirements that a node type has to fulfil: of a claim of Karpenter's without those that name where it came
    from, its pool and its node class, which Karpenter adds to all that it sends."""
    if claim.form != "karpenter":
        return claim.requirements
    node_class = (claim.document.get("spec") or {}).get("nodeClassRef") or {}
    origin = {NODE_POOL, f"{node_class.get('group')}/{str(node_class.get('kind')).lower()}"}
    return tuple(one for one in claim.requirements if one.get("key") not in origin)


def asked_requirements(claim: NodeClaim) -> tuple[dict[str, Any], ...]:
    """The requirements as they came: without the one that a named node type was turned into."""
    kept = claim.document.get("spec") or {}
    last = claim.requirements[-1] if claim.requirements else {}
    named = "typeRef" in kept or "type" in kept
    return claim.requirements[:-1] if named and last.get("key") == NODE_TYPE else claim.requirements


def _metadata(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    shown = {key: value for key, value in labels.items() if key != NAMESPACE}
    return {
        "name": name,
        **_said({"namespace": labels.get(NAMESPACE), "labels": shown, "annotations": dict(annotations)}),
    }


def _own(claim: NodeClaim) -> dict[str, Any]:
    spec = _said(
        {
            "cluster": claim.cluster_ref,
            "provider": claim.provider_ref,
            "type": claim.type_ref,
            "priority": claim.priority,
            "displayName": claim.display_name,
            "resources": claim.resources,
            **_common(claim),
            "power": "" if claim.power == "On" else claim.power,
        }
    )
    return {**spec, **(claim.document.get("spec") or {})}


def _vcluster(claim: NodeClaim) -> dict[str, Any]:
    kept = dict(claim.document.get("spec") or {})
    spec = _said(
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
    return {**spec, **power, **kept}


def _karpenter(claim: NodeClaim) -> dict[str, Any]:
    common = _common(claim)
    spec = _said({name: common[name] for name in ("requirements", "taints", "startupTaints")})
    requests = {"resources": {"requests": dict(claim.resources)}} if claim.resources else {}
    return {**spec, **requests, **(claim.document.get("spec") or {})}


def _common(claim: NodeClaim) -> dict[str, Any]:
    return {
        "requirements": list(asked_requirements(claim)),
        "properties": claim.properties,
        "taints": list(claim.taints),
        "startupTaints": list(claim.startup_taints),
        "kubeletArgs": claim.kubelet_args,
    }


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value}
