"""Executions of the release before go on with today's handlers (law 14): its documents are kept beside this test.

They are played whole, from their first state to their last, where all goes well and where it does not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stockyard.errors import StockyardError, VendorRefused
from stockyard.lifecycle.phases import PROCEDURES
from stockyard.lifecycle.procedure import Procedure
from stockyard.operations.clusters.delete import delete_cluster
from stockyard.operations.clusters.resume import resume_cluster
from stockyard.operations.node_claims.power import power_claim
from tests.harness import walk
from tests.unit.operations.conftest import World, make_world
from tests.unit.operations.nodes import Nodes

DOCUMENTS = Path(__file__).parent / "release_before"
STARTED: Mapping[str, str] = {
    "provision": "provision_cluster",
    "delete": "delete_cluster",
    "provision_node": "provision_node",
    "delete_node": "delete_node",
    "power_node": "power_node",
}
"""How the outbox calls a workflow -> the document of the release before."""
EARLIER = [procedure for procedure in PROCEDURES.values() if procedure.workflow in STARTED]
"""The procedures that the release before had."""


def before(name: str) -> str:
    """The text of a document of the release before."""
    path = DOCUMENTS / f"{STARTED.get(name, name)}.asl.json"
    return walk.document(next(iter(PROCEDURES.values())), path.read_text(encoding="utf-8"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(walk.Walk, "text_of", lambda _, name: before(name))
    return make_world()


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def tasks(procedure: Procedure) -> list[dict[str, Any]]:
    """The payloads of a document's calls."""
    states = json.loads(before(procedure.workflow))["States"].values()
    return [state["Parameters"]["Payload"] for state in states if state["Type"] == "Task"]


@pytest.mark.parametrize("procedure", EARLIER, ids=lambda procedure: procedure.kind)
def test_every_call_of_the_release_before_is_understood(procedure: Procedure) -> None:
    for payload in tasks(procedure):
        assert f"{procedure.subject}_id.$" in payload
        assert payload["action"] in {"run", "await", "compensate", "fail", "block"}
        assert payload.get("phase", procedure.names[0]) in procedure.names


def test_a_cluster_lives_by_the_documents_before(world: World) -> None:
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "ready"
    assert world.cluster(cluster).status == "ready"
    deleting = delete_cluster(world.services, cluster.id, "user:ann")
    assert world.drive(deleting, "delete_cluster") == "gone"
    assert not world.provider.things


def test_a_cluster_that_failed_goes_on_by_the_document_before(world: World) -> None:
    world.provider.faults["network"] = [VendorRefused("no such thing")]
    cluster = world.create()
    assert world.drive(cluster, "provision_cluster") == "not_deployed"
    resumed = resume_cluster(world.services, cluster.id, "user:ann")
    assert world.drive(resumed, "provision_cluster") == "ready"
    world.provider.faults["remove network"] = [VendorRefused("in use")]
    deleting = delete_cluster(world.services, cluster.id, "user:ann")
    assert world.drive(deleting, "delete_cluster") == "blocked"
    assert world.cluster(cluster).remaining


@pytest.mark.parametrize(
    ("phase", "error", "last"),
    [("", None, "available"), ("register", VendorRefused("no"), "not_provisioned")],
)
def test_a_node_lives_by_the_documents_before(
    nodes: Nodes, phase: str, error: StockyardError | None, last: str
) -> None:
    nodes.provider("lab", {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}})
    claim = nodes.claim("a")
    nodes.schedule()
    if error is not None:
        nodes.errors[phase] = [error]
    assert nodes.relay() == [last]
    if error is None:
        power_claim(nodes.services, claim.id, "Off", "user:ann")
        assert nodes.relay() == ["switched"]
        nodes.errors["power"] = [VendorRefused("no")]
        power_claim(nodes.services, claim.id, "On", "user:ann")
        assert nodes.relay() == ["not_switched"]
        nodes.errors["terminate"] = [VendorRefused("no")]
        nodes.delete(claim)
        assert nodes.relay() == ["blocked"]
    else:
        nodes.delete(claim)
        assert nodes.relay() == ["gone"]
