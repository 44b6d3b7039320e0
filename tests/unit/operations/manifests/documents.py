"""Manifests of a simulated provider and of claims, and what applying them to a tenant's nodes does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import InvalidInput
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from tests.unit.operations.nodes import Nodes

VC, KA, OWN = "management.loft.sh/v1", "karpenter.sh/v1", "stockyard/v1"
SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}


def manifest(version: str, kind: str, name: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def lab(*types: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return manifest(OWN, "NodeProvider", "lab", {**spec, "simulated": {"nodeTypes": list(types or (SMALL,))}})


def claim(name: str = "one", **spec: Any) -> dict[str, Any]:
    return manifest(OWN, "NodeClaim", name, {"cluster": "demo", **spec})


def foreign(**spec: Any) -> dict[str, Any]:
    return manifest(VC, "NodeClaim", "one", {"vClusterRef": "v", "providerRef": "p", **spec}, namespace="p-x")


def apply(nodes: Nodes, *documents: Mapping[str, Any], admin: bool = True) -> list[dict[str, Any]]:
    desired = read_desired(nodes.services, documents, "user:ann", admin=admin)
    return apply_manifests(nodes.services, desired, "user:ann", "req-1")


def actions(results: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(result["name"], result["action"]) for result in results]


def faults(nodes: Nodes, *documents: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_desired(nodes.services, documents, "user:ann", admin=True)
    return {error.pointer: error.detail for error in refused.value.errors}


def count(nodes: Nodes) -> tuple[int, int]:
    store = nodes.services.store
    return len(store.list(NodeProvider).items), len(store.list(NodeClaim).items)
