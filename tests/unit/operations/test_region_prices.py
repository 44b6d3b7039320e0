"""Whoever first names a region has its prices fetched: an account, a cluster or a node provider, in plans too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.records import NodeProvider
from stockyard.operations.cloud_accounts.accounts import change_account, register_account
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.node_providers import providers
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

ROLE = "arn:aws:iam::222222222222:role/stockyard"


@dataclass
class MemoryRequests:
    """Requests for prices, and waits for them."""

    calls: list[tuple[str, str]] = field(default_factory=list)

    def request(self, region: str) -> None:
        self.calls.append(("request", region))

    def wait(self, region: str) -> None:
        self.calls.append(("wait", region))


class RegionalNodes(SimulatedNodes):
    """A source whose types come from the offers of a region."""

    def sheet(self, provider: NodeProvider) -> str:
        return str(provider.spec[provider.kind]["location"])


@pytest.fixture
def requests() -> MemoryRequests:
    return MemoryRequests()


def test_an_account_has_them_fetched_and_does_not_wait(world: World, requests: MemoryRequests) -> None:
    services = with_ports(world.services, price_requests=requests)
    assert services.store.next_number("cloud-account") == 1
    attributes: dict[str, Any] = {"role_arn": ROLE, "region": "eu-west-1"}
    document: dict[str, Any] = {"name": "a", "description": "", "attributes": attributes, "tags": {}, "actor": "ann"}
    account = register_account(services, provider="aws", **document)
    change_account(services, account.id, 1, {"attributes": {**attributes, "region": "eu-west-3"}}, "ann", "req")
    assert requests.calls == [("request", "eu-west-1"), ("request", "eu-west-3")]


def test_a_cluster_waits_for_them_in_its_plan_and_when_it_is_made(world: World, requests: MemoryRequests) -> None:
    services = with_ports(world.services, price_requests=requests)
    new_cluster = world.new_cluster(settings={"region_name": "us-west-2"})
    plan_creation(services, new_cluster)
    assert requests.calls == [("wait", "us-west-2")]
    create_cluster(services, new_cluster, "ann")
    assert requests.calls == [("wait", "us-west-2")] * 2


def test_a_provider_waits_for_them_but_for_one_that_its_cluster_has_made(
    world: World, requests: MemoryRequests
) -> None:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    source = RegionalNodes(world.registry.store)
    services = with_ports(nodes.services, price_requests=requests, node_sources={"simulated": source})
    block = {"location": "eu-north-1", "nodeTypes": [{"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}]}
    document = ProviderDocument("lab", "simulated", block)
    providers.plan_creation(services, document)
    assert requests.calls == [("wait", "eu-north-1")]
    provider = providers.create_provider(services, document, "ann")
    providers.change_provider(
        services, provider.id, 1, {"spec": {"simulated": {**block, "location": "eu-south-1"}}}, "a", "r"
    )
    assert requests.calls[1:] == [("wait", "eu-north-1"), ("wait", "eu-south-1")]
    providers.create_provider(services, replace(document, name="ours"), "ann", implicit=True)
    assert len(requests.calls) == 3
