"""Claims that name a zone by its id get a node there, and the node says the id of its zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stockyard.domain.records import NodeEnvironment, NodeProvider
from stockyard.operations.fleet.explain import explain_claim
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.node_claims.test_images import AMD, Imaged, cluster_of, scheduled, settled
from tests.unit.operations.nodes import Nodes

KEY = "topology.lab/zone-id"
TYPE = {**AMD, "zones": ["za", "zb"]}


class Named(Imaged):
    """Knows the ids of its zones once the cluster's environment is there."""

    zone_id_label = KEY

    def zone_ids(self, provider: NodeProvider, environment: NodeEnvironment | None) -> Mapping[str, str]:
        return {"za": "id-1", "zb": "id-2"} if environment is not None and environment.outputs else {}


@pytest.fixture
def nodes(world: World) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": Named(world.registry.store)})
    nodes.provider("lab", TYPE)
    world.create()
    world.drive(cluster_of(nodes), "provision_cluster")
    return nodes


def asks(*ids: str, operator: str = "In") -> dict[str, Any]:
    return {"requirements": ({"key": KEY, "operator": operator, "values": list(ids)},)}


def test_a_node_stands_where_its_claim_says_and_tells_the_id(nodes: Nodes) -> None:
    cluster = cluster_of(nodes)
    plain = settled(nodes, nodes.claim("plain", cluster_ref=cluster.id, **asks("id-1")))
    second = settled(nodes, nodes.claim("second", cluster_ref=cluster.id, **asks("id-2")))
    assert second.placement is not None
    assert (second.placement.zones, second.node_labels[KEY]) == (("zb",), "id-2")
    assert plain.phase == second.phase == "Available"
    lost = settled(nodes, nodes.claim("lost", cluster_ref=cluster.id, **asks("id-9")))
    assert (lost.phase, lost.placement) == ("Pending", None)
    assert scheduled(lost)
    assert {each["rule"] for each in explain_claim(nodes.services, lost.id)["candidates"]} == {"Offering"}
