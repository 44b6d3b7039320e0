"""A tenant's nodes to which manifests are applied."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.records import Cluster
from stockyard.ports import Finding, PriceList
from stockyard.providers.clusters.eks import validation
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.managed_world import ManagedProvider, ManagedWorld
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes


@pytest.fixture
def nodes(world: World) -> Nodes:
    world.create("demo")
    return Nodes.of(world.registry, world.services, world.clock)


@pytest.fixture
def alone(world: World) -> Nodes:
    """A tenant without a cluster: a Karpenter's claims are of none then."""
    return Nodes.of(world.registry, world.services, world.clock)


class CatalogueProvider(ManagedProvider):
    """Provider that checks versions and types by the catalogue, as the driver does."""

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        return list(validation.findings(cluster, prices))


@pytest.fixture
def eks(world: World) -> ManagedWorld:
    provider = CatalogueProvider()
    world.clock.moment = datetime(2026, 11, 25, tzinfo=UTC)
    world.services = with_ports(
        world.services,
        cluster_drivers={"eks": provider, "memory": world.provider},
        driver_names={("aws", "k8s"): ("memory", "eks")},
        prices=Ec2PriceList(world.registry.platform()),
    )
    world.provider = provider
    return ManagedWorld(world, provider)
