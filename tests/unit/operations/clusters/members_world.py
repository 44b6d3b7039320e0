"""A cluster whose control plane has members, with machines, etcd and a balancer that are played."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.clusters.snapshots import SETTING
from stockyard.domain.nodes.records import Placement
from stockyard.domain.pools.records import CONTROL_PLANE, ClusterClaim, NewPool, entry_id
from stockyard.domain.records import Cluster, Fact, NodeClaim
from stockyard.domain.values.requirements import ZONE
from stockyard.lifecycle.clusters.control_plane import quorum
from stockyard.lifecycle.nodes.machine_gone import is_lost, lose
from stockyard.lifecycle.pools.spread import SHORT
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.clusters.members.members import member_claims, node_of_member
from stockyard.operations.engine.ledger import lines_of
from stockyard.operations.machines.first_node import FIRST_NODE
from stockyard.operations.machines.member_plan import PLAN, member_fact
from stockyard.ports import CloudWork, Outcome, Put, Remove, Replace
from stockyard.ports.clusters import GONE, HEALTHY
from stockyard.ports.snapshots import Snapshot, SnapshotStore
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.clusters.balanced_world import USER, WEB, BalancedProvider, BalancedWorld
from tests.unit.operations.conftest import make_world

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@dataclass
class MembersProvider(BalancedProvider):
    """The balancer knows ``registered``; machines in ``ended_machines`` are gone, those in ``silent_machines`` run, and
    answer nobody."""

    tags_members = True

    zones: tuple[str, ...] = ZONES
    registered: set[str] = field(default_factory=set)
    ended_machines: set[str] = field(default_factory=set)
    silent_machines: set[str] = field(default_factory=set)
    released: bool = False
    stored: dict[str, str] = field(default_factory=dict)
    """Snapshots of etcd, with the minor of each."""
    readable: str = ""
    lack: str = ""
    """What keeps the members from their mark."""

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        if phase == "control_plane":
            work.ledger.intend("instance", "main", {"zone": self.zones[0]})
        outcome = super().ensure(phase, work)
        if phase == "control_plane":
            self.registered.add(outcome.facts["instance_id"])
        return outcome

    @property
    def balancer(self) -> Any:
        return self

    @property
    def snapshot_keeper(self) -> Any:
        return self

    def member_pool(self, cluster: Cluster) -> NewPool:
        return NewPool(name=CONTROL_PLANE, form=CONTROL_PLANE, provider_ref="yard")

    def member_zones(self, work: CloudWork) -> Sequence[str]:
        return self.zones

    def member_line(self) -> tuple[str, str]:
        return "instance", "machine"

    def targets(self, work: CloudWork, machine_ids: Sequence[str]) -> Mapping[str, str]:
        states = dict.fromkeys(self.registered.intersection(machine_ids), HEALTHY)
        states |= dict.fromkeys(self.silent_machines & states.keys(), "unhealthy")
        return {**states, **dict.fromkeys(self.ended_machines.intersection(machine_ids), GONE)}

    def admit(self, work: CloudWork, machine_id: str) -> None:
        self.registered.add(machine_id)

    def withdraw(self, work: CloudWork, machine_id: str) -> None:
        self.registered.discard(machine_id)

    def release_first(self, work: CloudWork) -> Outcome:
        self.released = True
        return Outcome(True)

    def tag_members(self, work: CloudWork, machine_ids: Sequence[str]) -> str:
        return self.lack if set(machine_ids) & self.registered else ""

    def snapshot_store(self, cluster: Cluster) -> SnapshotStore | None:
        return SnapshotStore("bucket", "us-east-1", f"{cluster.id}/", "") if cluster.settings.get(SETTING) else None

    def snapshots(self, work: CloudWork) -> Sequence[Snapshot]:
        return [Snapshot(name, 10, work.cluster.created_at) for name in sorted(self.stored, reverse=True)]

    def snapshot(self, work: CloudWork, snapshot_id: str) -> Snapshot | None:
        minor = self.stored.get(snapshot_id)
        return None if minor is None else Snapshot(snapshot_id, 10, work.cluster.created_at, minor)

    def remove_snapshots(self, work: CloudWork, ids: Collection[str]) -> None:
        for name in ids:
            self.stored.pop(name, None)

    def open_snapshot(self, work: CloudWork, snapshot_id: str) -> None:
        self.readable = snapshot_id

    def close_snapshots(self, work: CloudWork) -> None:
        self.readable = ""

    def kept_snapshots(self, cluster: Cluster) -> Sequence[str]:
        return ()

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
    zones_down: set[str] = field(default_factory=set)
    """Where nothing is to be had."""
    broken: bool = False
    """Whether etcd may have no quorum: members were lost on purpose."""
    restored_from: str = ""
    """The last snapshot that a member has begun from."""
    stillborn: int = 0
    """How many of the next members that are to begin from a snapshot do not come up."""

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
        assert self.broken or self.living() >= quorum(len(self.voters)), (self.voters, self.waits)

    def living(self) -> int:
        away = self.provider.ended_machines | self.provider.silent_machines
        dead = {node_of_member(claim) for claim in self.members() if claim.machine_id in away}
        return len(self.voters - dead)

    def _current(self, claim: NodeClaim) -> NodeClaim:
        current = self.world.services.store.get(NodeClaim, claim.id)
        assert current is not None
        return current

    def _play(self, claim: NodeClaim) -> None:
        services, node = self.world.services, node_of_member(claim)
        zones = [entry["values"][0] for entry in claim.requirements if entry["key"] == ZONE]
        if not claim.placement and self.zones_down.intersection(zones):
            current = self._current(claim)
            short = {"phase": "Pending", "reason": SHORT, "version": current.version + 1}
            services.store.commit(Replace(replace(current, **short)))
            return
        if not claim.placement:
            placement = Placement("p", "yard.t3", "on-demand", tuple(zones or self.provider.zones[:1]), 1.0, "")
            machine_id = claim.machine_id or self.provider.machine_for(claim)
            execution = f"{claim.operation_id}-{claim.attempt}"
            changed = replace(
                self._current(claim),
                placement=placement,
                machine_id=machine_id,
                phase="Available",
                execution=execution,
            )
            services.store.commit(Replace(replace(changed, version=changed.version + 1)))
            return
        plan = self._plan()
        away = self.provider.ended_machines | self.provider.silent_machines
        if claim.machine_id in away or plan.get("claim") != claim.id:
            return
        fact = services.store.get(Fact, member_fact(claim))
        if plan.get("restore") and not fact:
            if self.stillborn:
                self.stillborn -= 1
                self.provider.end(claim.machine_id)
                return
            assert self.provider.readable, "the machine's role may read the snapshot"
            assert plan["restore"]["key"].endswith(f"/{self.provider.readable}.tar.gz")
            self.restored_from, self.voters, self.broken = self.provider.readable, {node}, False
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

    def lose(self, *claims: NodeClaim) -> None:
        """End the machines of these claims, whatever that is for etcd."""
        self.broken = True
        self.provider.ended_machines |= {claim.machine_id for claim in claims}

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
        for claim in self.members():
            if claim.machine_id in self.provider.ended_machines and not is_lost(claim):
                self.miss(claim)

    def miss(self, claim: NodeClaim) -> None:
        """The sweep has seen that the machine is gone."""
        services = self.world.services
        changed, _ = lose(claim, services.now())
        services.store.commit(Replace(replace(changed, sequence=changed.sequence + 1)))

    def _removed(self, claim: NodeClaim) -> None:
        services = self.world.services
        if claim.control_plane and not claim.deleting:
            return
        self.provider.removed(claim.machine_id)
        lines = [line for line in lines_of(services, claim.id) if line.state != "gone"]
        services.store.commit(
            Remove(NodeClaim, claim.id),
            Remove(ClusterClaim, entry_id(self.id, claim.pool, claim.id)),
            Remove(Fact, member_fact(claim)),
            *(Replace(replace(line, state="gone", gone_at=services.now(), version=line.version + 1)) for line in lines),
        )


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
