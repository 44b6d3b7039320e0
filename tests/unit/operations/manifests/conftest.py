"""A tenant's nodes to which manifests are applied."""

from __future__ import annotations

import pytest

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
