"""A machine joins a real agent's cluster and leaves it: the agent's own code, its posts read by the API's own model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from local.kube_api import Denied, node
from local.kube_store import Key
from local.memory import MemoryProver
from stockyard.domain.models.base import read
from stockyard.domain.models.observations import Observation
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.errors import Forbidden, NotFound, RequestInProgress, Unauthorized
from stockyard.operations.delete_cluster import delete_cluster
from stockyard.operations.every import every
from stockyard.operations.join_machine import Invitation, join_machine
from stockyard.operations.observe_cluster import Asked, observe
from stockyard.ports import MachineIdentity
from stockyard.ports.nodes import Machine, NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.unit.agent.rig import CLUSTER as RIG_CLUSTER
from tests.unit.agent.rig import Rig
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

KEY = b"the installation's key"
PROOF = {"method": "POST", "url": "https://sts.test/machine", "headers": {}}


class Silent(SimulatedNodes):
    """Machines whose vendor cannot tell whether their node has joined: the agent has to."""

    def look(self, work: NodeWork) -> Machine:
        return replace(super().look(work), node_name="", refresh=None)


@dataclass
class Yard:
    """A ready cluster with an agent, whose posts reach the control plane, and a claim's machine."""

    nodes: Nodes
    rig: Rig
    cluster: Cluster
    agent: Any
    boots: bool = True
    asked: Asked | None = None

    @classmethod
    def of(cls, world: World) -> Yard:
        nodes = Nodes.of(world.registry, world.services, world.clock)
        cluster = world.create()
        assert world.drive(cluster, "provision_cluster") == "ready"
        account = nodes.services.store.get(type(_account(nodes)), "1")
        assert account is not None
        role = f"vantage-{cluster.client_id}-node-role"
        prover = MemoryProver()
        nodes.services = replace(nodes.services, sources={"simulated": Silent(world.registry.store)}, prover=prover)
        rig = Rig()
        rig.clock.now = nodes.clock.now()
        yard = cls(nodes, rig, world.cluster(cluster), None)
        rig.platform.answer = yard.answer  # type: ignore[method-assign]
        yard.agent = rig.agent()
        nodes.meanwhile = yard.meanwhile
        yard.prove = lambda machine, role=role: prover.known.update(  # type: ignore[attr-defined]
            {
                PROOF["url"]: MachineIdentity(
                    "222222222222", f"arn:aws:sts::222222222222:assumed-role/{role}/{machine}", "x"
                )
            }
        )
        return yard

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if path.endswith("/token"):
            return 200, {"access_token": "t", "expires_in": 300, "token_type": "Bearer"}, {}
        assert path == f"/v1/clusters/{RIG_CLUSTER}/observations"
        raw = gzip.decompress(body) if headers["content-type"] == "application/gzip" else body
        seen = read(Observation, json.loads(raw)).model_dump()
        cluster = self.nodes.services.store.get(Cluster, self.cluster.id)
        assert cluster is not None
        self.asked = observe(self.nodes.services, self.nodes.registry.in_hand, KEY, cluster, seen)
        commands = [command.document() for command in self.asked.commands]
        return 200, {"commands": commands, "interval_seconds": self.asked.interval_seconds}, {}

    def meanwhile(self) -> None:
        """A round of the agent, and what the machine does."""
        self.rig.clock.now = self.nodes.clock.now()
        self.rig.rounds(self.agent, 1)
        for claim in every(self.nodes.services.store, NodeClaim):
            if self.boots and claim.machine_id and not claim.deleting and not claim.node_name:
                self.boot(claim)

    def boot(self, claim: NodeClaim) -> Invitation | None:
        """The machine asks how to join, and joins when it is told."""
        self.prove(claim.machine_id)  # type: ignore[attr-defined]
        try:
            given = join_machine(self.nodes.services, KEY, claim.id, PROOF)
        except RequestInProgress:
            return None
        if Key("", "nodes", "", given.node_name) not in self.rig.kube.store.objects:
            self.rig.kube.join(given.token, self.node(given))
        return given

    def node(self, given: Invitation) -> dict[str, Any]:
        """What the machine registers as."""
        return node(given.node_name, claim=given.labels["stockyard.dev/claim"])


def _account(nodes: Nodes) -> Any:
    from stockyard.domain.records import CloudAccount

    return nodes.services.store.get(CloudAccount, "1")


@pytest.fixture
def yard(world: World) -> Yard:
    found = Yard.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
    found.nodes.provider("lab", small, block={"cloudAccount": 1})
    return found


def test_a_machine_joins_by_the_agent_and_is_drained_before_it_goes(yard: Yard) -> None:
    nodes, rig = yard.nodes, yard.rig
    claim = nodes.claim("worker", cluster_ref="demo", taints=({"key": "a", "value": "b", "effect": "NoSchedule"},))
    nodes.schedule()
    assert nodes.relay() == ["available"]
    there = nodes.now(claim)
    assert (there.phase, there.node_name) == ("Available", "worker")
    assert rig.node("worker")["metadata"]["labels"]["stockyard.dev/claim"] == claim.id
    rig.add_pod("web-1", "worker")
    yard.meanwhile()
    assert yard.asked == Asked((), nodes.services.rules.agent_quiet_seconds)
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]
    assert rig.pods("worker") == []
    assert Key("", "nodes", "", "worker") not in rig.kube.store.objects
    assert nodes.nothing_left()
    assert [fact for fact in every(nodes.services.store, Fact) if fact.id.startswith(claim.id)] == []


def test_the_token_is_nowhere_in_the_records_or_logs(yard: Yard) -> None:
    yard.boots = False
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    _until_registering(yard, claim)
    yard.meanwhile()
    yard.meanwhile()
    given = yard.boot(nodes.now(claim))
    assert given is not None
    secret = given.token.partition(".")[2]
    kept = json.dumps(list(nodes.registry.table.items()), default=str)
    assert secret not in kept
    assert secret not in "".join(yard.rig.logs)
    assert secret not in repr(given)
    assert yard.asked is not None
    assert secret not in repr(yard.asked)


def _until_registering(yard: Yard, claim: NodeClaim) -> None:
    bound = yard.nodes.now(claim)
    given = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    assert yard.nodes.run("provision_node", given, most=6).startswith("still at register")


def test_only_the_recorded_machine_is_told_how_to_join(yard: Yard) -> None:
    yard.boots = False
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    with pytest.raises(Unauthorized, match="not accepted"):
        join_machine(nodes.services, KEY, claim.id, PROOF)
    yard.prove("i-stranger")  # type: ignore[attr-defined]
    with pytest.raises(Unauthorized, match="not recorded"):
        join_machine(nodes.services, KEY, claim.id, PROOF)
    _until_registering(yard, claim)
    with pytest.raises(Unauthorized, match="not recorded"):
        join_machine(nodes.services, KEY, claim.id, PROOF)
    machine = nodes.now(claim).machine_id
    nodes.services.prover.known[PROOF["url"]] = MachineIdentity(  # type: ignore[attr-defined]
        "222222222222", f"arn:aws:sts::222222222222:assumed-role/another-role/{machine}", "x"
    )
    with pytest.raises(Unauthorized, match="not signed by a machine"):
        join_machine(nodes.services, KEY, claim.id, PROOF)
    yard.prove(machine)  # type: ignore[attr-defined]
    with pytest.raises(RequestInProgress):
        join_machine(nodes.services, KEY, claim.id, PROOF)
    with pytest.raises(NotFound):
        join_machine(nodes.services, KEY, "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV", PROOF)
    yard.meanwhile()
    yard.meanwhile()
    first = yard.boot(nodes.now(claim))
    assert first is not None
    assert first.endpoint == yard.cluster.endpoint != ""
    assert join_machine(nodes.services, KEY, claim.id, PROOF) == first, "an answer may be lost"
    with pytest.raises(Denied):
        yard.rig.kube.join(first.token[:-1] + "0", node("stranger"))
    assert join_machine(nodes.services, b"another key", claim.id, PROOF).token != first.token


def test_a_node_that_has_joined_gives_no_more_tokens(yard: Yard) -> None:
    claim = yard.nodes.claim("worker", cluster_ref="demo")
    yard.nodes.schedule()
    yard.nodes.relay()
    yard.prove(yard.nodes.now(claim).machine_id)  # type: ignore[attr-defined]
    with pytest.raises(Forbidden):
        join_machine(yard.nodes.services, KEY, claim.id, PROOF)


def test_a_silent_agent_holds_nothing_up_for_ever(yard: Yard) -> None:
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    assert nodes.relay() == ["available"]
    nodes.meanwhile = lambda: None
    nodes.delete(claim)
    before = nodes.clock.now()
    assert nodes.relay() == ["gone"]
    assert (nodes.clock.now() - before).total_seconds() < 1800
    assert nodes.nothing_left()


def test_a_post_that_comes_late_changes_nothing(yard: Yard) -> None:
    yard.boots = False
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    _until_registering(yard, claim)
    yard.meanwhile()
    assert yard.asked is not None
    assert yard.asked.interval_seconds == nodes.services.rules.agent_busy_seconds
    (command,) = yard.asked.commands
    post = {
        "sequence": 1, "observed_at": "2026-01-01T00:00:00Z", "agent_version": "1", "kubernetes_version": "v1",
        "nodes": [], "ca_hash": "sha256:" + "0" * 64,
        "results": [{"id": command.id, "status": "done", "message": "", "data": {}}],
    }  # fmt: skip
    late = observe(nodes.services, nodes.registry.in_hand, KEY, yard.cluster, read(Observation, post).model_dump())
    assert [one.id for one in late.commands] == [command.id]
    yard.prove(nodes.now(claim).machine_id)  # type: ignore[attr-defined]
    with pytest.raises(RequestInProgress):
        join_machine(nodes.services, KEY, claim.id, PROOF)


def test_a_cluster_that_is_gone_leaves_no_fact_of_its_agent(yard: Yard, world: World) -> None:
    yard.meanwhile()
    assert [fact.id for fact in every(yard.nodes.services.store, Fact) if fact.id.startswith(yard.cluster.id)]
    delete_cluster(yard.nodes.services, yard.cluster.id, "user:ann")
    assert world.drive(world.cluster(yard.cluster), "delete_cluster") == "gone"
    assert [fact.id for fact in every(yard.nodes.services.store, Fact) if fact.id.startswith(yard.cluster.id)] == []


def test_a_cluster_that_is_being_made_is_heard_and_asks_often(yard: Yard) -> None:
    store = yard.nodes.services.store
    cluster = replace(yard.cluster, status="preparing")
    seen = {
        "sequence": 1, "observed_at": "2026-01-01T00:00:00Z", "agent_version": "1", "kubernetes_version": "v1",
        "nodes": [], "ca_hash": "sha256:" + "0" * 64, "results": [],
    }  # fmt: skip
    asked = observe(yard.nodes.services, yard.nodes.registry.in_hand, KEY, cluster, seen)
    assert asked == Asked((), yard.nodes.services.rules.agent_busy_seconds)
    assert store.get(Fact, f"{cluster.id}/observed") is not None


def test_nodes_of_a_cluster_that_goes_are_not_drained(yard: Yard, world: World) -> None:
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    assert nodes.relay() == ["available"]
    delete_cluster(nodes.services, yard.cluster.id, "user:ann")
    nodes.meanwhile = lambda: None
    nodes.delete(claim)
    before = nodes.clock.now()
    assert nodes.relay() == ["gone"]
    assert (nodes.clock.now() - before).total_seconds() < 60
