"""The published examples of head nodes: the one without a network of its own applies, and the other is refused by the
field that asks for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.nodes.manifests import provider_manifest
from stockyard.edge.http.yaml_body import parse
from stockyard.errors import InvalidInput
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.services import Services
from stockyard.ports import Create
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.provider import BcmNodes
from tests.harness.bcm.yard import HeadYard
from tests.harness.worlds.ports import memory_services, with_ports

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "examples" / "vcluster"
PLAIN, NETRIS = FOLDER / "nodeprovider-001.yaml", FOLDER / "nodeprovider-002.yaml"

pytestmark = pytest.mark.skipif(not PLAIN.exists(), reason="the published examples are not beside this repository")


@pytest.fixture
def services() -> Services:
    """A tenant with the account that the examples name."""
    services, yard = memory_services(MemoryRegistry()), HeadYard()
    account = replace(yard.account, attributes={**yard.account.attributes, "endpoint": "https://x.x.x.x:8081"})
    services.store.commit(Create(account))
    source = BcmNodes(BcmNodesConfig("https://api.example.test"), yard.access())
    return with_ports(services, node_sources={"bcm": source})


def apply(services: Services, path: Path) -> Any:
    documents = parse(path.read_bytes(), 32)
    return apply_manifests(services, read_desired(services, documents, "user:ann", admin=True), "user:ann", "req-1")


def test_the_example_without_netris_applies_and_is_shown_as_it_came(services: Services) -> None:
    (result,) = apply(services, PLAIN)
    assert result["action"] == "created"
    assert [entry["pointer"] for entry in result["warnings"]] == ["/0/spec/bcm/secretRef"], "nobody has listed it yet"
    (document,) = parse(PLAIN.read_bytes(), 32)
    assert provider_manifest(find_provider(services, "bcm-provider")) == document
    (again,) = apply(services, PLAIN)
    assert again["action"] == "unchanged"


def test_the_example_with_netris_is_refused_by_its_field(services: Services) -> None:
    with pytest.raises(InvalidInput) as caught:
        apply(services, NETRIS)
    field = "/0/spec/bcm/nodeTypes/0/properties/bcm.vcluster.com~1network-interface"
    assert [problem.pointer for problem in caught.value.errors] == [field]
