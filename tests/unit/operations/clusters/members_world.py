"""A cluster whose control plane has members, with machines, etcd and a balancer that are played."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.node_records import Placement
from stockyard.domain.pool_records import CONTROL_PLANE, ClusterClaim, NewPool, entry_id
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.requirements import ZONE
from stockyard.lifecycle.control_plane import quorum
from stockyard.lifecycle.loss import is_lost, lose
from stockyard.operations.clusters.create import create_cluster
from stockyard.operations.clusters.members import member_claims, node_of_member
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.machines.first_node import FIRST_NODE
from stockyard.operations.machines.member_plan import PLAN, member_fact
from stockyard.ports import CloudWork, Outcome, Put, Remove, Replace
from stockyard.ports.clusters import GONE, HEALTHY
from tests.harness.ports import with_ports
from tests.unit.operations.clusters.balanced_world import USER, WEB, BalancedProvider, BalancedWorld
from tests.unit.operations.conftest import make_world

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@dataclass
class MembersProvider(BalancedProvider):
    """The balancer knows ``registered``; machines in ``ended_machines`` are gone."""

    zones: tuple[str, ...] = ZONES
    registered: set[str] = field(default_factory=set)
    ended_machines: set[str] = field(default_factory=set)
    released: bool = False

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        if phase == "control_plane":
            work.ledger.intend("instance", "main", {"zone": self.zones[0]})
        outcome = super().ensure(phase, work)
        if phase == "control_plane":
            self.registered.add(outcome.facts["instance_id"])
        return outcome

    def member_pool(self, cluster: Cluster) -> NewPool:
        return NewPool(name=CONTROL_PLANE, form=CONTROL_PLANE, provider_ref="yard")

    def member_zones(self, work: CloudWork) -> Sequence[str]:
        return self.zones

    def member_line(self) -> tuple[str, str]:
        return "instance", "machine"

    def targets(self, work: CloudWork, machine_ids: Sequence[str]) -> Mapping[str, str]:
        states = dict.fromkeys(self.registered.intersection(machine_ids), HEALTHY)
        return {**states, **dict.fromkeys(self.ended_machines.intersection(machine_ids), GONE)}

    def admit(self, work: CloudWork, machine_id: str) -> None:
        self.registered.add(machine_id)

    def withdraw(self, work: CloudWork, machine_id: str) -> None:
        self.registered.discard(machine_id)

    def release_first(self, work: CloudWork) -> Outcome:
        self.released = True
        return Outcome(True)

    def machine_for(self, claim: NodeClaim) -> str:
        """The machine that is made for a claim."""
        return f"i-{claim.name}"

    def end(self, machine_id: str) -> None:
        """The machine dies."""
        self.ended_machines.add(machine_id)

    def removed(self, machine_id: str) -> None:
        """The machine went with its claim."""
        self.things.pop(machine_id, None)

    def balanced(self) -> set[str]:
        """The living machines that the balancer knows."""
        return self.registered - self.ended_machines


@dataclass
class MembersWorld(BalancedWorld):
    """``voters`` are etcd's, by node; at every wait they are a quorum, or a test fails."""

    provider: MembersProvider
    voters: set[str] = field(default_factory=set)
    dying: list[int] = field(default_factory=list)
    """After how many waits a member's machine dies, if etcd bears it."""
    victim: int = -1
    """Which of those that may die does: the youngest is -1."""
    spares_joining: bool = True
    """Whether a machine that has not joined yet lives on."""
    waits: int = 0

    def members(self) -> list[NodeClaim]:
        return member_claims(self.world.services, self.id)

    def zones(self) -> list[str]:
        return sorted(claim.placement.zones[0] for claim in self.members() if claim.placement)

    def meanwhile(self) -> None:
        """Machines boot, join, take others out of etcd, and go; some die."""
        super().meanwhile()
        self.waits += 1
        for claim in self.members():
            self._play(claim)
            self._judge()
        if self.dying and self.waits >= self.dying[0]:
            self.dying.pop(0)
            self._die()
            self._judge()

    def _judge(self) -> None:
        assert self.living() >= quorum(len(self.voters)), (self.voters, self.waits)

    def living(self) -> int:
        dead = {node_of_member(claim) for claim in self.members() if claim.machine_id in self.provider.ended_machines}
        return len(self.voters - dead)

    def _play(self, claim: NodeClaim) -> None:
        services, node = self.world.services, node_of_member(claim)
        zones = [entry["values"][0] for entry in claim.requirements if entry["key"] == ZONE]
        if not claim.placement:
            placement = Placement("p", "yard.t3", "on-demand", tuple(zones or self.provider.zones[:1]), 1.0, "")
            machine_id = claim.machine_id or self.provider.machine_for(claim)
            execution = f"{claim.operation_id}-{claim.attempt}"
            changed = replace(
                services.store.get(NodeClaim, claim.id),
                placement=placement,
                machine_id=machine_id,
                phase="Available",
                execution=execution,
            )
            services.store.commit(Replace(replace(changed, version=changed.version + 1)))
            return
        plan = self._plan()
        if claim.machine_id in self.provider.ended_machines or plan.get("claim") != claim.id:
            return
        fact = services.store.get(Fact, member_fact(claim))
        report = json.loads(fact.value) if fact else {"removed": []}
        removals = [*plan["remove_before"], *(plan["remove_after"] if fact else ())]
        self.voters -= set(removals)
        if not fact:
            if self.living() < len(self.voters):
                return  # etcd takes nobody while it cannot reach one of its voters
            self.voters.add(node)
        report |= {"state": "joined", "machine": claim.machine_id, "removed": sorted({*report["removed"], *removals})}
        services.store.commit(Put(Fact(member_fact(claim), json.dumps(report), services.now())))

    def _plan(self) -> dict[str, Any]:
        fact = self.world.services.store.get(Fact, f"{self.id}/{PLAN}")
        plan: dict[str, Any] = json.loads(fact.value) if fact else {}
        return plan

    def _die(self) -> None:
        """The machine of a member that etcd can do without."""
        spare = self.living() - 1 >= quorum(len(self.voters))
        alive = [
            claim
            for claim in self.members()
            if claim.machine_id and claim.machine_id not in self.provider.ended_machines
        ]
        victims = [claim for claim in alive if self._may_die(claim, spare=spare)]
        if victims:
            self.provider.end(victims[self.victim % len(victims)].machine_id)

    def _may_die(self, claim: NodeClaim, *, spare: bool) -> bool:
        return spare if node_of_member(claim) in self.voters else not self.spares_joining

    def notice(self) -> None:
        """The sweep has seen which machines are gone."""
        services = self.world.services
        for claim in self.members():
            if claim.machine_id in self.provider.ended_machines and not is_lost(claim):
                changed, _ = lose(claim, services.now())
                services.store.commit(Replace(replace(changed, sequence=changed.sequence + 1)))

    def _removed(self, claim: NodeClaim) -> None:
        services = self.world.services
        if claim.control_plane and not claim.deleting:
            return
        lines = [line for line in lines_of(services, claim.id) if line.state != "gone"]
        services.store.commit(
            Remove(NodeClaim, claim.id),
            Remove(ClusterClaim, entry_id(self.id, claim.pool, claim.id)),
            Remove(Fact, member_fact(claim)),
            *(Replace(replace(line, state="gone", gone_at=services.now(), version=line.version + 1)) for line in lines),
        )
        self.provider.removed(claim.machine_id)


def members_world(size: int = 1, driver: MembersProvider | None = None, **settings: Any) -> MembersWorld:
    """A cluster that has just become ready, with a control plane that is to have so many members."""
    world, provider = make_world(), driver or MembersProvider()
    world.provider = provider
    world.services = with_ports(
        world.services, cluster_drivers={"ec2": provider}, driver_names={("aws", "k8s"): ("ec2",)}
    )
    settings = {"autoscaler_node_groups": [dict(WEB)], "control_plane_size": size, **settings}
    new_cluster = replace(world.new_cluster(settings=settings), kubernetes_version="1.34")
    members = MembersWorld(world, provider)
    members.id = create_cluster(world.services, new_cluster, USER)[0].id
    assert world.drive(members.cluster, "provision") == "ready"
    first = f"ip-{members.id[-4:].lower()}"
    world.services.store.commit(Put(Fact(f"{members.id}/{FIRST_NODE}", first, world.services.now())))
    members.voters.add(first)
    return members
