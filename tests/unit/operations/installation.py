"""Several tenants and the platform, in one table in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import NodeProvider
from stockyard.operations.node_providers.providers import create_provider
from stockyard.operations.scheduler.wake import Scheduler
from stockyard.operations.services import Services
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
LIMITED_TO_ONE: dict[str, Any] = {**SMALL, "maxCapacity": 1}


@dataclass(frozen=True)
class Installation:
    """Two tenants and the platform, by name."""

    nodes: Nodes

    def services(self, tenant: str) -> Services:
        base, registry = self.nodes.services, self.nodes.registry
        if tenant == PLATFORM:
            return replace(base, store=registry.platform(), services_of=self.services)
        return replace(base, store=registry.store(tenant))

    def of(self, tenant: str) -> Nodes:
        return replace(self.nodes, services=self.services(tenant))

    def share(self, name: str = "lab", *types: dict[str, Any], **more: Any) -> NodeProvider:
        document = ProviderDocument(name, "simulated", {"nodeTypes": list(types or (LIMITED_TO_ONE,))}, **more)
        return create_provider(self.services(PLATFORM), document, "user:root")

    def scheduler(self) -> Scheduler:
        return Scheduler(self.nodes.registry, self.services)

    def woken(self, *roomier: str) -> int:
        return self.scheduler().woken([], self.nodes.clock.advance(0.001), roomier)["bound"]

    def schedule(self) -> None:
        self.scheduler().overdue(self.nodes.clock.advance(0.001))
