"""Documents of the resources that the tests declare."""

from __future__ import annotations

from typing import Any

from tests.harness.stacks.rig import template

CLUSTER = {
    "cluster_type": "k8s",
    "description": "Made by a stack",
    "cloud_account_id": 1,
    "settings": {"key_pair": "my-key", "region_name": "us-east-1"},
    "tags": {"team": "platform"},
}
LAB = {"kind": "simulated", "spec": {"nodeTypes": [{"name": "small", "resources": {"cpu": "4", "memory": "16Gi"}}]}}
PROFILE = {
    "name": "base",
    "version": "1.0.0",
    "description": "Of all",
    "packs": [{"layer": "k8s", "name": "kubernetes", "tag": "1.34"}],
}
ACCOUNT = {
    "provider": "aws",
    "name": "second",
    "attributes": {"role_arn": "arn:aws:iam::333333333333:role/stockyard"},
    "tags": {"team": "platform"},
}


def cluster(**changes: Any) -> dict[str, Any]:
    """A template of one cluster."""
    return template(Cluster=("Cluster", {**CLUSTER, **changes}))


def joined(text: str, **references: tuple[str, str]) -> dict[str, Any]:
    """A document in which ``<name>`` stands for the attribute of a resource, as the CDK writes it."""
    parts: list[Any] = [text]
    for name, (logical, attribute) in references.items():
        split: list[Any] = []
        for part in parts:
            before, mark, after = part.partition(f"<{name}>") if isinstance(part, str) else (part, "", "")
            split += [before, {"Fn::GetAtt": [logical, attribute]}, after] if mark else [part]
        parts = split
    return {"Fn::Join": ["", parts]}


def yard(nodes: int = 1, *, lab: dict[str, Any] | None = None, pool: str = "workers", **changes: Any) -> dict[str, Any]:
    """A template of a provider, a cluster and a pool that names both."""
    text = f'{{"name": "{pool}", "cluster": "<cluster>", "provider": "<lab>", "quantity": {nodes}}}'
    return template(
        Lab=("NodeProvider", {**LAB, **(lab or {})}),
        Cluster=("Cluster", {**CLUSTER, **changes}),
        Workers=("NodePool", joined(text, cluster=("Cluster", "Name"), lab=("Lab", "Name"))),
    )
