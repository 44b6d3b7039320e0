"""A world whose driver makes tokens, with one ready cluster."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stockyard.domain.records import Cluster
from stockyard.errors import VendorError
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Put
from stockyard.ports.clusters import ClusterToken
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, World

AUTHORITY = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
ENDPOINT = "https://0123.gr7.example.test"


class MintingProvider(MemoryProvider):
    """A driver whose clusters are admitted to by tokens; each is another one."""

    @property
    def minter(self) -> Any:
        return self

    def __init__(self) -> None:
        super().__init__()
        self.mints: list[tuple[CloudWork, str]] = []
        self.error: VendorError | None = None

    def mint(self, work: CloudWork, role: str) -> ClusterToken:
        self.mints.append((work, role))
        if self.error is not None:
            raise self.error
        return ClusterToken(f"token-{role}-{len(self.mints)}", work.now + timedelta(minutes=14))

    def secret_name(self, cluster: Cluster) -> str:
        return f"{cluster.name}-kubeconfig-1a2b3"


class Minting:
    """A world with one ready cluster whose driver mints tokens."""

    def __init__(self, world: World) -> None:
        self.world, self.driver = world, MintingProvider()
        self.services: Services = with_ports(world.services, cluster_drivers={"memory": self.driver})
        self.cluster = self.change(world.create(), status="ready", endpoint=ENDPOINT, certificate_authority=AUTHORITY)

    def change(self, cluster: Cluster, **fields: Any) -> Cluster:
        changed = replace(cluster, **fields)
        self.services.store.commit(Put(changed))
        return changed

    def items(self) -> list[Any]:
        return list(self.world.registry.table.items())
