"""A project in the simulated Cudo with an account, and what a cluster has there for its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import httpx

from local.cudo.api import SimulatedCudo
from local.cudo.stock import Offered
from stockyard.domain.records import CloudAccount
from stockyard.domain.values.ids import account_secret
from stockyard.providers.clouds.cudo import marks
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.names import NETWORK, NODE, name
from stockyard.providers.clouds.cudo.values import Rule
from tests.harness.worlds.memory import FixedClock, MemorySecrets

KEY, PROJECT, DALLAS = "cudo-api-key-0123456789", "acme-project", "us-dallas-1"
NUMBER = "2"
"""Of the account."""
VCPUS, MEMORY_GIB = 2, 8
"""The one size that a provider of ``spec`` offers."""


class CudoYard:
    """``machine_types`` are sold in Dallas, the first the cheapest; without any, all that the simulated Cudo has."""

    def __init__(self, *machine_types: str, clock: FixedClock | None = None, machine_seconds: float = 30.0) -> None:
        self.clock = clock or FixedClock()
        self.cudo = SimulatedCudo({KEY: PROJECT}, self.clock.now, machine_seconds=machine_seconds)
        if machine_types:
            self.cudo.stock = tuple(
                Offered(kind, DALLAS, "", Decimal(0), Decimal("0.02") * number)
                for number, kind in enumerate(machine_types, 1)
            )
        self.secrets = MemorySecrets()
        self.secrets.put(account_secret("acme", NUMBER, "api_key"), KEY)
        attributes = {"project_id": PROJECT, "data_center_id": DALLAS}
        self.account = CloudAccount(
            NUMBER, "cudo", "gpus", "", attributes, "ext", "verified", "", "t", "t", secrets=("api_key",)
        )
        self.project = self.cudo.projects[PROJECT]

    def access(self, transport: httpx.BaseTransport | None = None) -> Access:
        """The way of drivers and sources to the project."""
        return Access(lambda: self.secrets, transport=transport or self.cudo.transport())

    def client(self) -> Cudo:
        """A client of the project."""
        return self.access().client("acme", self.account)

    def spec(self, **block: Any) -> dict[str, Any]:
        """The document of a provider that offers one size in Dallas."""
        sizes = [{"vcpus": VCPUS, "memoryGib": MEMORY_GIB}]
        return {"cudo": {"cloudAccount": int(NUMBER), "dataCenter": DALLAS, "sizes": sizes, **block}}

    def type_name(self, machine_type: str) -> str:
        """The bare name of that machine type in the one size."""
        return f"{machine_type}-{VCPUS}x{MEMORY_GIB}"

    def cluster_network(self, client_id: str, cluster_id: str = "clu_1", data_center: str = DALLAS) -> None:
        """Make the parts of a cluster's driver that its nodes need: the network and the security group of nodes."""
        client = self.client()
        own_marks = marks.text(marks.marks("inst", "acme", cluster_id, 1))
        client.put_security_group(name("vantage", client_id, NODE), data_center, own_marks, [Rule("22", "10.0.0.0/8")])
        client.create_network(name("vantage", client_id, NETWORK), data_center, "10.160.0.0/22")
        self.clock.advance(60)

    def run_out(self, machine_types: Iterable[str]) -> None:
        """There is no room for these machine types, and room for all others."""
        out = set(machine_types)
        for offered in self.cudo.stock:
            offered.free.vcpus = 0 if offered.name in out else 96

    def machines(self) -> list[str]:
        """The ids of machines that nobody has ended."""
        self.client().vms()  # lets those be ended that have expired
        return sorted(vm_id for vm_id, machine in self.project.machines.items() if machine.gone_at is None)
