"""A machine joins a cluster that the real agent serves, and leaves it. The API's own model reads the agent's posts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from local.kubernetes.api import StatusError, node
from local.kubernetes.store import Key
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import Observation
from stockyard.domain.records import Cluster, Fact, NodeClaim, NodeProvider, Placement
from stockyard.errors import Forbidden, NotFound, RequestInProgress, Unauthorized
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from stockyard.operations.machines.join import JoinConfiguration, join_machine
from stockyard.operations.machines.observe import AgentReply, observe
from stockyard.ports import MachineIdentity
from stockyard.ports.node_work import Machine, NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.memory import MemoryAttestor
from tests.harness.worlds.ports import with_ports
from tests.unit.agent.rig import CLUSTER as RIG_CLUSTER
from tests.unit.agent.rig import Rig
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

KEY = b"the installation's key"
PROOF = {"method": "POST", "url": "https://sts.test/machine", "headers": {}}


class Silent(SimulatedNodes):
    """Machines of a vendor without knowledge of joined nodes, so that the agent has to report the join."""

    def look(self, work: NodeWork) -> Machine:
        return replace(super().look(work), node_name="", refresh=None)


@dataclass
class Yard:
    """A ready cluster with an agent whose posts reach the control plane, and the machine of a claim."""

    nodes: Nodes
    rig: Rig
    cluster: Cluster
    agent: Any
    boots: bool = True
    reply: AgentReply | None = None

    @classmethod
    def of(cls, world: World) -> Yard:
        nodes = Nodes.of(world.registry, world.services, world.clock)
        cluster = world.create()
        assert world.drive(cluster, "provision_cluster") == "ready"
        account = nodes.services.store.get(type(_account(nodes)), "1")
        assert account is not None
        role = f"vantage-{cluster.client_id}-node-role"
        attestor = MemoryAttestor()
        nodes.services = with_ports(
            nodes.services, node_sources={"simulated": Silent(world.registry.store)}, attestor=attestor
        )
        rig = Rig()
        rig.clock.now = nodes.clock.now()
        yard = cls(nodes, rig, world.cluster(cluster), None)
        rig.platform.answer = yard.answer
        yard.agent = rig.agent()
        nodes.meanwhile = yard.meanwhile
        yard.prove = lambda machine, role=role: attestor.identities.update(  # type: ignore[attr-defined]
            {PROOF["url"]: MachineIdentity("222222222222", role, machine)}
        )
        return yard

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if path.endswith("/token"):
            return 200, {"access_token": "t", "expires_in": 300, "token_type": "Bearer"}, {}
        assert path == f"/v1/clusters/{RIG_CLUSTER}/observations"
        raw = gzip.decompress(body) if headers["content-type"] == "application/gzip" else body
        observation = read(Observation, json.loads(raw)).model_dump()
        cluster = self.nodes.services.store.get(Cluster, self.cluster.id)
        assert cluster is not None
        self.reply = observe(self.nodes.services, self.nodes.registry.in_hand, KEY, cluster, observation)
        commands = [command.document() for command in self.reply.commands]
        return 200, {"commands": commands, "interval_seconds": self.reply.interval_seconds}, {}

    def meanwhile(self) -> None:
        """One round of the agent; after it, machines that have not joined boot."""
        self.rig.clock.now = self.nodes.clock.now()
        self.rig.rounds(self.agent, 1)
        for claim in every(self.nodes.services.store, NodeClaim):
            if self.boots and claim.machine_id and not claim.deleting and not claim.node_name:
                self.boot(claim)

    def boot(self, claim: NodeClaim) -> JoinConfiguration | None:
        """The machine asks for its join configuration, and joins if it gets one."""
        self.prove(claim.machine_id)  # type: ignore[attr-defined]
        try:
            configuration = join_machine(self.nodes.services, KEY, claim.id, PROOF)
        except RequestInProgress:
            return None
        if Key("", "nodes", "", configuration.node_name) not in self.rig.kube.store.objects:
            self.rig.join(self.agent, configuration.token, self.node(configuration))
        return configuration

    def node(self, configuration: JoinConfiguration) -> dict[str, Any]:
        """The node object that the machine registers."""
        return node(configuration.node_name, claim=configuration.labels["stockyard.dev/claim"])


def _account(nodes: Nodes) -> Any:
    from stockyard.domain.records import CloudAccount

    return nodes.services.store.get(CloudAccount, "1")


@pytest.fixture
def yard(world: World) -> Yard:
    yard = Yard.of(world)
    small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
    yard.nodes.provider("lab", small, block={"cloudAccount": 1})
    return yard


def test_machine_joins_and_is_drained_before_deletion(yard: Yard) -> None:
    nodes, rig = yard.nodes, yard.rig
    claim = nodes.claim("worker", cluster_ref="demo", taints=({"key": "a", "value": "b", "effect": "NoSchedule"},))
    nodes.schedule()
    assert nodes.relay() == ["available"]
    there = nodes.now(claim)
    assert (there.phase, there.node_name) == ("Available", "worker")
    assert rig.node("worker")["metadata"]["labels"]["stockyard.dev/claim"] == claim.id
    rig.add_pod("web-1", "worker")
    yard.meanwhile()
    assert yard.reply == AgentReply((), nodes.services.settings.agent_quiet_seconds)
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]
    assert rig.pods("worker") == []
    assert Key("", "nodes", "", "worker") not in rig.kube.store.objects
    assert nodes.nothing_left()
    assert [fact for fact in every(nodes.services.store, Fact) if fact.id.startswith(claim.id)] == []


def test_a_node_of_another_name_is_not_taken_for_the_claims(yard: Yard) -> None:
    """Whoever may label nodes may write the label of a claim on any of them."""
    nodes, rig = yard.nodes, yard.rig
    yard.boots = False
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    rig.add_node("foreign", claim=claim.id)
    _until_registering(yard, claim)
    yard.meanwhile()
    yard.meanwhile()
    assert nodes.now(claim).node_name == ""
    yard.boots = True
    assert nodes.relay() == ["available"]
    assert nodes.now(claim).node_name == "worker"


def test_node_leaves_the_cluster_when_its_drain_never_ends(yard: Yard) -> None:
    """A pod that a finalizer keeps holds the drain up, but neither the machine nor the Node object stays."""
    nodes, rig = yard.nodes, yard.rig
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    assert nodes.relay() == ["available"]
    pod = rig.add_pod("web-1", "worker")
    rig.kube.store.get(pod)["metadata"]["finalizers"] = ["example.com/held"]
    nodes.delete(claim)
    assert nodes.relay() == ["gone"]
    assert pod in rig.kube.store.objects
    assert Key("", "nodes", "", "worker") not in rig.kube.store.objects
    assert nodes.nothing_left()
    assert [fact for fact in every(nodes.services.store, Fact) if fact.id.startswith(claim.id)] == []


def test_join_token_is_neither_stored_nor_logged(yard: Yard) -> None:
    yard.boots = False
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    _until_registering(yard, claim)
    yard.meanwhile()
    yard.meanwhile()
    configuration = yard.boot(nodes.now(claim))
    assert configuration is not None
    secret = configuration.token.partition(".")[2]
    table = json.dumps(list(nodes.registry.table.items()), default=str)
    assert secret not in table
    assert secret not in "".join(yard.rig.logs)
    assert secret not in repr(configuration)
    assert yard.reply is not None
    assert secret not in repr(yard.reply)


def _until_registering(yard: Yard, claim: NodeClaim) -> None:
    bound = yard.nodes.now(claim)
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id, "attempt": bound.attempt}
    assert yard.nodes.run("provision_node", payload, most=2).startswith("still at register")


def test_join_requires_recorded_and_attested_machine(yard: Yard) -> None:
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
    nodes.services.attestor.identities[PROOF["url"]] = MachineIdentity(  # type: ignore[attr-defined]
        "222222222222", "another-role", machine
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
    with pytest.raises(StatusError):
        yard.rig.join(yard.agent, first.token[:-1] + "0", node("worker"))
    with pytest.raises(StatusError, match="the token is for the node worker"):
        yard.rig.join(yard.agent, first.token, node("stranger"))
    assert join_machine(nodes.services, b"another key", claim.id, PROOF).token != first.token


class Reserving(Silent):
    """Machines of a vendor that knows what its types keep from pods."""

    def kubelet_args(self, provider: NodeProvider, placement: Placement) -> Mapping[str, str]:
        return {"kube-reserved": f"cpu={provider.name}", "max-pods": placement.type}


def test_a_kubelet_is_told_what_its_type_reserves_unless_the_claim_says_otherwise(yard: Yard, world: World) -> None:
    yard.boots = False
    nodes = yard.nodes
    nodes.services = with_ports(nodes.services, node_sources={"simulated": Reserving(world.registry.store)})
    claim = nodes.claim("worker", cluster_ref="demo", kubelet_args={"max-pods": "30", "v": "2"})
    nodes.schedule()
    _until_registering(yard, claim)
    yard.meanwhile()
    yard.meanwhile()
    configuration = yard.boot(nodes.now(claim))
    assert configuration is not None
    assert configuration.kubelet_args == {"kube-reserved": "cpu=lab", "max-pods": "30", "v": "2"}


def test_join_is_refused_after_node_has_joined(yard: Yard) -> None:
    claim = yard.nodes.claim("worker", cluster_ref="demo")
    yard.nodes.schedule()
    yard.nodes.relay()
    yard.prove(yard.nodes.now(claim).machine_id)  # type: ignore[attr-defined]
    with pytest.raises(Forbidden):
        join_machine(yard.nodes.services, KEY, claim.id, PROOF)


def test_silent_agent_delays_deletion_for_limited_time(yard: Yard) -> None:
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


def test_late_post_changes_nothing(yard: Yard) -> None:
    yard.boots = False
    nodes = yard.nodes
    claim = nodes.claim("worker", cluster_ref="demo")
    nodes.schedule()
    _until_registering(yard, claim)
    yard.meanwhile()
    assert yard.reply is not None
    assert yard.reply.interval_seconds == nodes.services.settings.agent_busy_seconds
    (command,) = yard.reply.commands
    post = {
        "sequence": 1, "observed_at": "2026-01-01T00:00:00Z", "agent_version": "1", "kubernetes_version": "v1",
        "nodes": [], "ca_hash": "sha256:" + "0" * 64,
        "results": [{"id": command.id, "status": "done", "message": "", "data": {}}],
    }  # fmt: skip
    late = observe(nodes.services, nodes.registry.in_hand, KEY, yard.cluster, read(Observation, post).model_dump())
    assert [command.id for command in late.commands] == [command.id]
    yard.prove(nodes.now(claim).machine_id)  # type: ignore[attr-defined]
    with pytest.raises(RequestInProgress):
        join_machine(nodes.services, KEY, claim.id, PROOF)


def test_deleted_cluster_leaves_no_agent_facts(yard: Yard, world: World) -> None:
    yard.meanwhile()
    assert [fact.id for fact in every(yard.nodes.services.store, Fact) if fact.id.startswith(yard.cluster.id)]
    delete_cluster(yard.nodes.services, yard.cluster.id, "user:ann")
    assert world.drive(world.cluster(yard.cluster), "delete_cluster") == "gone"
    assert [fact.id for fact in every(yard.nodes.services.store, Fact) if fact.id.startswith(yard.cluster.id)] == []


def test_cluster_being_created_has_short_interval(yard: Yard) -> None:
    store = yard.nodes.services.store
    cluster = replace(yard.cluster, status="preparing")
    observation = {
        "sequence": 1, "observed_at": "2026-01-01T00:00:00Z", "agent_version": "1", "kubernetes_version": "v1",
        "nodes": [], "ca_hash": "sha256:" + "0" * 64, "results": [],
    }  # fmt: skip
    reply = observe(yard.nodes.services, yard.nodes.registry.in_hand, KEY, cluster, observation)
    assert reply == AgentReply((), yard.nodes.services.settings.agent_busy_seconds)
    assert store.get(Fact, f"{cluster.id}/observed") is not None


def test_nodes_of_deleted_cluster_are_not_drained(yard: Yard, world: World) -> None:
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
