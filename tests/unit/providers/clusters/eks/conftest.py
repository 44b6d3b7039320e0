"""A cluster on EKS in a tenant's account in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest

from stockyard.domain.models.base import read
from stockyard.errors import VendorError
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


class MemoryApi:
    """A cluster's API: objects by kind, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.token: Callable[[], str] = lambda: ""
        self.error: VendorError | None = None

    def made_for(self, server: str, authority: str, token: Callable[[], str]) -> Any:
        """The client of the cluster at that address."""
        self.asked.append((server, authority))
        self.token = token
        return self

    def apply(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.error is not None:
            raise self.error
        meta = document["metadata"]
        self.objects[document["kind"], meta.get("namespace", ""), meta["name"]] = document
        return document

    def list(self, _api_version: str, kind: str) -> list[Mapping[str, Any]]:
        if self.error is not None:
            raise self.error
        return [document for key, document in self.objects.items() if key[0] == kind]

    def delete(self, _api_version: str, kind: str, name: str, namespace: str = "") -> None:
        self.objects.pop((kind, namespace, name), None)

    def close(self) -> None:
        pass


@pytest.fixture
def api() -> MemoryApi:
    """The API of the cluster."""
    return MemoryApi()


@pytest.fixture
def eks(yard: Any, api: MemoryApi) -> Any:
    """The yard of other tests with this driver."""
    config = EksConfig("vantage", "https://api.example.test", "https://id.example.test/realms/s", 60)
    yard.provider = EksClusterDriver(config, boto3.Session, api.made_for)
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
