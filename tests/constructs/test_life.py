"""Life of resources of a stack: made, changed, replaced, rolled back, deleted, by the runner and the product's API."""

from __future__ import annotations

from typing import Any

import pytest

from local.cloudformation import StackFailed
from tests.harness.stacks.rig import Rig, rig, template

CLUSTER = {
    "cluster_type": "k8s",
    "description": "Made by a stack",
    "cloud_account_id": 1,
    "settings": {"key_pair": "my-key", "region_name": "us-east-1"},
    "tags": {"team": "platform"},
}


def cluster(**changes: Any) -> dict[str, Any]:
    return template(Cluster=("Cluster", {**CLUSTER, **changes}))


def test_a_cluster_is_made_and_deleted_with_its_stack() -> None:
    with rig() as region:
        before = region.product.things()
        stack = region.runner.create("platform", cluster())
        living = stack.resources["Cluster"]
        (name,) = region.product.things()["Cluster"]
        assert living.data["Name"] == name
        assert name.startswith("platform-cluster-")
        assert living.data["Endpoint"] == "nlb.example"
        assert living.data["CertificateAuthority"] == "Q0E="
        assert living.data["ClientId"].startswith(name[:20])
        assert living.data["Status"] == "ready"
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before
        assert region.requests == [("Create", "Cluster"), ("Delete", "Cluster")]


__all__ = ["Rig", "StackFailed", "pytest"]
