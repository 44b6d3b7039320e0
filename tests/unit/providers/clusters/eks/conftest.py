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
def eks(yard: Any) -> Any:
    """The yard of other tests with this driver. ``eks.run`` carries out the phases up to one."""
    config = EksConfig("vantage", "https://api.example.test", "https://id.example.test/realms/s", 60)
    yard.provider = EksClusterDriver(config, boto3.Session)
    yard.cluster = replace(yard.cluster, settings=settings(), driver="eks", kubernetes_version="1.35")
    yard.ledger.cluster = yard.cluster
    return yard


@pytest.fixture
def run(eks: Any) -> Callable[[str], None]:
    """Carries out the phases of a creation up to one."""

    def up_to(last: str) -> None:
        for phase in CREATE[: CREATE.index(last) + 1]:
            eks.ensure(phase)

    return up_to
