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
from tests.harness.memory_kubernetes import MemoryKubernetes

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


def settings(**values: Any) -> dict[str, Any]:
    """Checked settings of a cluster, with the defaults."""
    return read(EksSettings, {"region_name": "us-east-1", **values}).normal()


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
def run(eks: Any) -> Callable[[str], None]:
    """Carries out the phases of a creation up to one."""

    def up_to(last: str) -> None:
        for phase in CREATE[: CREATE.index(last) + 1]:
            facts = eks.ensure(phase).facts
            fields = {name: value for name, value in facts.items() if name in ("endpoint", "certificate_authority")}
            eks.cluster = replace(eks.cluster, **fields)

    return up_to
