"""Services with ports in memory, and services in which a test replaces ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from local.testing.memory_store import MemoryRegistry
from stockyard.operations.services import Factories, Services
from stockyard.settings import Settings
from tests.harness.worlds.memory import (
    FixedClock,
    MemoryAttestor,
    MemoryDeployer,
    MemoryIdentity,
    MemoryObjects,
    MemorySecrets,
    MemoryTelemetry,
    MemoryWorkflows,
)

P = TypeVar("P")


def constant(value: Any) -> Callable[[], Any]:
    """A factory that always answers ``value``."""
    return lambda: value


def partial_port(stand_in: Callable[..., P], *arguments: object) -> P:
    """Make a stand-in whose class leaves methods of its port out: nothing calls them in the test."""
    return stand_in(*arguments)


def with_ports(services: Services, **ports: Any) -> Services:
    """``services`` with these ports instead of its own."""
    factories: dict[str, Any] = {name: constant(port) for name, port in ports.items()}
    return replace(services, factories=replace(services.factories, **factories))


def memory_services(registry: MemoryRegistry, clock: FixedClock | None = None, **ports: Any) -> Services:
    """Services of the tenant ``acme``. Ports that are not in ``ports`` are empty and in memory."""
    memory: dict[str, Any] = {
        "identity": MemoryIdentity(),
        "secrets": MemorySecrets(),
        "workflows": MemoryWorkflows(),
        "telemetry": MemoryTelemetry(),
        "deployer": MemoryDeployer(),
        "attestor": MemoryAttestor(),
        "clouds": {},
        "cluster_drivers": {},
        "driver_names": {},
        "prices": None,
        "installation": "inst-1",
        "node_sources": {},
        "unavailable_offerings": None,
        "token_key": b"the installation's key",
    }
    # Many a story begins with the oldest minor that a cluster may have.
    settings = Settings(
        "t", issuer="https://id.example/realms/stockyard", api_url="https://api.example", ended_minors=True
    )
    factories: dict[str, Any] = {name: constant(port) for name, port in {**memory, **ports}.items()}
    factories["objects_of"] = MemoryObjects()
    return Services(registry.store("acme"), clock or FixedClock(), settings, Factories(**factories))
