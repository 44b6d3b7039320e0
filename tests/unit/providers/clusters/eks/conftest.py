"""A cluster on EKS in a tenant's account in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest

from stockyard.domain.models.base import read
from stockyard.providers.clusters.eks.provider import EksClusterDriver, EksConfig
from stockyard.providers.clusters.eks.settings import EksSettings
from tests.harness.worlds.memory_kubernetes import MemoryKubernetes

CREATE = (
    "account",
    "network",
    "identity",
    "control_plane",
    "access",
    "node_groups",
    "addons",
    "storage",
    "objects",
)
DELETE = (
    "leftovers",
    "objects",
    "storage",
    "addons",
    "node_groups",
    "access",
    "control_plane",
    "identity",
    "network",
)
H100 = {
    "name": "h100",
    "role": "gpu",
    "instance_type": "p5.48xlarge",
    "accelerator_type": "nvidia-h100",
    "zones": ["us-east-1b"],
    "max_size": 4,
}
"""A group with GPUs."""
Run = Callable[[str], None]
"""Carries out the phases of a creation up to the one that it is given."""


def settings(**values: Any) -> dict[str, Any]:
    """Checked settings of a cluster, with the defaults."""
    return read(EksSettings, {"region_name": "us-east-1", **values}).normal()


def change(eks: Any, **values: Any) -> None:
    """Give the cluster other settings."""
    eks.cluster = replace(eks.cluster, settings=settings(**values))
    eks.ledger.cluster = eks.cluster


def subnets(eks: Any) -> list[dict[str, Any]]:
    """The subnets of the cluster's network, by their ranges."""
    listing = eks.tenant().client("ec2").describe_subnets()["Subnets"]
    return sorted((s for s in listing if not s["DefaultForAz"]), key=lambda s: s["CidrBlock"])


@pytest.fixture
def api() -> MemoryKubernetes:
    """The API of the cluster."""
    return MemoryKubernetes()


@pytest.fixture
def eks(yard: Any, api: MemoryKubernetes) -> Any:
    """The yard of other tests with this driver."""
    config = EksConfig("vantage", "https://api.example.test", "https://id.example.test/realms/s", 60)
    yard.provider = EksClusterDriver(config, boto3.Session, api.client)
    yard.cluster = replace(yard.cluster, settings=settings(), driver="eks", kubernetes_version="1.35")
    yard.ledger.cluster = yard.cluster
    return yard


@pytest.fixture
def run(eks: Any) -> Run:
    def up_to(last: str) -> None:
        for phase in CREATE[: CREATE.index(last) + 1]:
            facts = eks.ensure(phase).facts
            fields = {name: value for name, value in facts.items() if name in ("endpoint", "certificate_authority")}
            eks.cluster = replace(eks.cluster, **fields)

    return up_to
