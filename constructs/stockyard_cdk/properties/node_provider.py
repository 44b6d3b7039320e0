"""Typed properties of a NodeProvider, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict


class NodeProviderProperties(TypedDict, total=False):
    """Properties of a NodeProvider."""

    name: str
    """The name of the provider, unique in the tenant. It cannot be changed."""
    kind: Required[
        Literal["ec2", "cudo", "eks", "configMap", "simulated", "terraform", "kubeVirt", "bcm", "metal3", "clusterAPI"]
    ]
    """The kind of node provider, which says what `spec` holds."""
    display_name: str
    """A name for people; it need not be unique."""
    properties: Mapping[str, str]
    """Properties of all its node types, and settings of the provider itself."""
    price_per_cost_unit: float | None
    """USD an hour of one unit of cost, by which its node types compare with those of others."""
    spec: Required[Mapping[str, Any]]
    """The block of its kind, with the names that a manifest has."""
    labels: Mapping[str, str]
    """Labels of Kubernetes: keys with an optional DNS prefix, values of at most 63 characters."""
    annotations: Mapping[str, str]
    """Annotations of Kubernetes, at most 32 KiB together."""
