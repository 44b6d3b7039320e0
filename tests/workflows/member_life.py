"""A control plane's members in one story, from a ready cluster to the end of its deletion, with at most one fault, and
perhaps a machine that dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from stockyard.domain.pools.records import ClusterClaim, Pool
from stockyard.domain.records import Fact, NodeClaim, Operation, Resource
from stockyard.errors import IllegalTransition, StockyardError
from stockyard.lifecycle.change_phases import CHANGES
from stockyard.lifecycle.phases import DEGRADED
from stockyard.operations.clusters.changes.repaves import renew_certificates, start_repave
from stockyard.operations.clusters.changes.resume import resume_cluster
from stockyard.operations.clusters.healing.completion import complete_members
from stockyard.operations.clusters.members.members import node_of_member
from stockyard.operations.clusters.removal.delete import delete_cluster
from stockyard.operations.listing import every
from stockyard.operations.sweep.records import sweep_cluster
from tests.harness.checkpoint import Checkpoint
from tests.unit.operations.clusters.balanced_world import CHANGE, UPGRADE, USER, BalancedWorld
from tests.unit.operations.clusters.members_world import MembersWorld, members_world
from tests.workflows.table_faults import Faults, FaultyStore

PATIENCE = 8
TYPES = {"control_plane_instance_type": "m5.xlarge", "control_plane_instance_types": ["m5.xlarge"]}
CALLS = ("targets", "admit", "withdraw", "release_first")
"""What the driver does for members, besides its phases."""


@dataclass(frozen=True)
class Story:
    """Story of a control plane of ``before`` members, which becomes one of ``after``."""

    before: int
    after: int
    ask: Callable[[MembersWorld], object] = lambda _: None
    completed: bool = True
    """Whether it has all its members when the story begins."""
    dead: int = 0
    """How many of them are dead then."""
    replaces: bool = False
    """Whether none of the members of before is there at the end."""
    document: str = CHANGE


def _patch(document: Mapping[str, Any]) -> Callable[[MembersWorld], object]:
    return lambda members: members.patch(document)


def _size(size: int) -> Callable[[MembersWorld], object]:
    return _patch({"settings": {"control_plane_size": size}})


def _upgrade(members: MembersWorld) -> None:
    members.patch({"kubernetes_version": "1.35"})


def _renew(members: MembersWorld) -> None:
    renew_certificates(members.world.services, members.id, USER, "r")


def _repave(members: MembersWorld) -> None:
    start_repave(members.world.services, members.id, USER, "r")


def _complete(members: MembersWorld) -> None:
    complete_members(members.world.services, members.id)


STORIES: Mapping[str, Story] = {
    "3 are made": Story(3, 3, completed=False),
    "5 are made": Story(5, 5, completed=False),
    "1 grows to 3": Story(1, 3, _size(3)),
    "3 grow to 5": Story(3, 5, _size(5)),
    "1 grows to 5": Story(1, 5, _size(5)),
    "1 of 3 is replaced": Story(3, 3, _complete, dead=1),
    "2 of 5 are replaced": Story(5, 5, _complete, dead=2),
    "another type": Story(3, 3, _patch({"settings": TYPES}), replaces=True),
    "another type of 1": Story(1, 1, _patch({"settings": TYPES}), replaces=True),
    "renewed": Story(3, 3, _renew, replaces=True),
    "repaved": Story(3, 3, _repave, replaces=True),
    "upgraded": Story(3, 3, _upgrade, replaces=True, document=UPGRADE),
}


@dataclass(frozen=True)
class Death:
    """The machine of a member dies after so many waits, if etcd bears that. ``victim`` says which one."""

    waits: int
    victim: int


@cache
def _beginning(size: int, *, completed: bool) -> tuple[MembersWorld, Checkpoint]:
    members = members_world(size)
    if completed and size > 1:
        assert members.drive() == "changed"
    members.world.clock.advance(60)
    return members, members.world.checkpoint(members)


@dataclass
class MemberLife:
    """``claim_ids`` are the claims of members that were ever made."""

    story: Story
    faults: Faults = field(default_factory=Faults)
    death: Death | None = None
    members: MembersWorld = field(init=False)
    before: set[str] = field(default_factory=set)
    claim_ids: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def run(self) -> list[str]:
        """Faults of this life."""
        story = self.story
        self.members = self._begin()
        self.before = self.claim_ids = {claim.id for claim in self.members.members()}
        for victim in self.members.members()[: story.dead]:
            self.members.provider.end(victim.machine_id)
        self.members.notice()
        if self.death is not None:
            self.members.dying, self.members.victim = [self.members.waits + self.death.waits], self.death.victim
            self.members.spares_joining = False
        try:
            self._change()
            return [*self.wrong, *self._at_the_end(), *self._after_deletion()]
        except AssertionError as judged:
            return [*self.wrong, f"the quorum was given up: {judged}"]

    def _begin(self) -> MembersWorld:
        members, checkpoint = _beginning(self.story.before, completed=self.story.completed)
        checkpoint.restore()
        return members

    # --- the change ---------------------------------------------------------------------------------------------------

    def _change(self) -> None:
        members, story = self.members, self.story
        if story.document == UPGRADE:
            members.serves("v1.35.4")
        plain, meanwhile = members.world.services, members.meanwhile
        members.world.services = replace(plain, store=FaultyStore(plain.store, self.faults))
        for name in ("ensure", *CALLS):
            self._pass(name)

        def pass_by() -> None:
            with suppress(StockyardError):
                meanwhile()
            self._count()

        members.meanwhile = pass_by
        self._ask()
        for _ in range(PATIENCE):
            self._go_on()
        self.faults.site = -1
        members.world.services = plain
        for _ in range(2):
            pass_by()
            self._go_on()
        for _ in range(3):  # a machine that died just now is missed, and replaced
            self._go_on()

    def _pass(self, name: str) -> None:
        call = getattr(self.members.provider, name)

        def faulty(*arguments: Any) -> Any:
            point = str(arguments[0]) if name == "ensure" else name
            return self.faults.around(point, lambda: call(*arguments))

        setattr(self.members.provider, name, faulty)

    def _ask(self) -> None:
        """Send the request until it is answered; who finds an operation at work has begun it."""
        before = len(self._operations())
        for _ in range(PATIENCE):
            try:
                self.story.ask(self.members)
            except IllegalTransition:
                return
            except StockyardError:
                if len(self._operations()) > before:
                    return
                continue
            return

    def _go_on(self) -> None:
        """A workflow goes on, a person resumes what has failed, and the sweep begins what is missing."""
        members = self.members
        services = members.world.services
        operation = members.operation
        if operation.status == "running":
            upgrades = operation.kind == "upgrade_cluster"
            with suppress(StockyardError):
                members.drive(UPGRADE if upgrades else CHANGE)
        if members.operation.status == "failed":
            self._mend()
            with suppress(StockyardError):
                resume_cluster(services, members.id, USER)
        with suppress(StockyardError):
            members.notice()
            sweep_cluster(services, members.cluster)
            complete_members(services, members.id)

    def _mend(self) -> None:
        """Remove the cause of a failure, as a person does."""

    def _count(self) -> None:
        """One after the other: never is there more than one member more than wanted, and none is made twice."""
        members = self.members
        claims = members.members()
        self.claim_ids = self.claim_ids | {claim.id for claim in claims}
        alive = [claim for claim in claims if claim.machine_id not in members.provider.ended_machines]
        if len(alive) > self.story.after + 1:
            self.wrong.append(f"{len(alive)} members where {self.story.after} are wanted")

    def _operations(self) -> Sequence[Operation]:
        operations = every(self.members.world.services.store, Operation)
        return [operation for operation in operations if operation.kind in CHANGES]

    # --- the judge ----------------------------------------------------------------------------------------------------

    def _at_the_end(self) -> Iterator[str]:
        members, story, cluster = self.members, self.story, self.members.cluster
        claims, dead = members.members(), members.provider.ended_machines
        operations = self._operations()
        if {operation.status for operation in operations} != {"succeeded"}:
            yield f"operations: {[(each.kind, each.status, each.error) for each in operations]}"
        if cluster.status != "ready" or cluster.phase is not None or members.condition(DEGRADED) == "True":
            yield f"the cluster is {cluster.status} at {cluster.phase}: {cluster.conditions}"
        if len(claims) != story.after or any(claim.machine_id in dead or claim.deleting for claim in claims):
            yield f"members: {[(claim.name, claim.machine_id in dead, claim.deleting) for claim in claims]}"
        if members.voters != {node_of_member(claim) for claim in claims}:
            yield f"voters of etcd: {members.voters}"
        if members.provider.balanced() != {claim.machine_id for claim in claims}:
            yield f"the balancer has {members.provider.balanced()}"
        counts = Counter(members.zones())
        if max(counts.values()) - min(counts[zone] for zone in members.provider.zones[: story.after]) > 1:
            yield f"zones: {counts}"
        if story.replaces and self.before & {claim.id for claim in claims}:
            yield "members of before are still there"
        if story.document == UPGRADE and cluster.kubernetes_version != "1.35":
            yield f"the record has {cluster.kubernetes_version}"

    def _after_deletion(self) -> Iterator[str]:
        members, store = self.members, self.members.world.services.store
        # etcd ends with the cluster.
        members.meanwhile = lambda: BalancedWorld.meanwhile(members)
        delete_cluster(members.world.services, members.id, USER)
        members.drive("delete")
        if members.provider.things:
            yield f"left in the cloud: {members.provider.things}"
        for kind in (NodeClaim, ClusterClaim, Pool, Fact):
            names = [record.id for record in every(store, kind)]
            if names:
                yield f"left: {kind.__name__} {names}"
        lines = [line.id for line in every(store, Resource) if line.state != "gone"]
        if lines:
            yield f"on the ledger: {lines}"
