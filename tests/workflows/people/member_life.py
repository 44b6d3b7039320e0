"""A control plane's members on EC2 in one story in which somebody acts on the node of a member at one step.

The cluster's agent tells of all nodes at each wait, and members are looked at each minute. A kubelet that dies takes
its API server along where etcd can bear it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from stockyard.errors import StockyardError
from stockyard.lifecycle.clusters.control_plane import quorum
from stockyard.lifecycle.clusters.member_health import ALL_HEALTHY
from stockyard.operations.clusters.healing import health as member_health
from stockyard.operations.clusters.healing.health import attend_members
from stockyard.operations.clusters.members.members import node_of_member
from stockyard.operations.fleet.pools.pools import claims_of
from tests.workflows.ec2_member_life import Ec2MemberLife
from tests.workflows.people.acts import NOT_READY, READY_AGAIN
from tests.workflows.people.on_nodes import ActOnNode

REST_MINUTES = 36
"""Minutes in which nothing is asked for: an act lasts for twenty, a member is replaced after ten."""
YOUNG = 5.0
"""Seconds; how old the agent's picture is."""


@dataclass
class PeopleMemberLife(Ec2MemberLife):
    """``act`` is on a member's node at the step ``at_step``; a step is a wait, or a minute of the rest."""

    act: str = field(default="", kw_only=True)
    at_step: int = field(default=0, kw_only=True)
    people: ActOnNode = field(init=False)
    agent_services: Any = field(init=False, default=None)
    silent: str = ""
    """The machine that answers nobody because of the act."""
    sites_at: list[tuple[int, int]] = field(default_factory=list)
    """Before each step: how many writes and calls of the driver, and how many calls to AWS, there were."""
    sites_of_change: int = 0
    """How many writes and calls of the driver there were before the rest, in which none goes wrong."""

    def run(self) -> list[str]:
        """Faults of this life."""
        with patch.object(member_health, "report_age", lambda *_: YOUNG):
            return super().run()

    def _change(self) -> None:
        members = self.members
        self.people = ActOnNode(self.act, self.at_step, members.world.clock)
        self.agent_services = members.world.services
        members.provider.silent_machines.clear()
        super()._change()
        self.sites_of_change = len(self.faults.points)
        for _ in range(REST_MINUTES):
            members.world.clock.advance(60)
            members.meanwhile()
            self._go_on()

    def _go_on(self) -> None:
        super()._go_on()
        with suppress(StockyardError):
            attend_members(self.members.world.services, self.members.id)

    def _count(self) -> None:
        super()._count()
        self._step()

    def _step(self) -> None:
        members, people = self.members, self.people
        nodes = {node_of_member(claim): claim for claim in members.members()}
        before = people.steps
        people.step([name for name in nodes if name in members.voters])
        self.sites_at += [(len(self.faults.points), len(self.account.tap.calls))] * (people.steps - before)
        if people.lasts and not self.silent and self.act in (NOT_READY, READY_AGAIN) and people.node in nodes:
            self._silence(nodes[people.node].machine_id)
        if not people.lasts:
            members.provider.silent_machines.discard(self.silent)
        present = {claim.host_name or claim.node_name or claim.name for claim in self._claims()} | nodes.keys()
        now = self.agent_services.now()
        facts = {name: {"created_at": now, "labels": {}} for name in present - people.gone_names}
        with suppress(StockyardError):  # Nobody reports twice in the same second.
            people.report(self.agent_services, members.cluster, facts)

    def _silence(self, machine_id: str) -> None:
        members = self.members
        if machine_id and members.living() - 1 >= quorum(len(members.voters)):
            self.silent = machine_id
            members.provider.silent_machines.add(machine_id)

    def _claims(self) -> list[Any]:
        return [claim for claim in claims_of(self.agent_services, self.members.id) if claim.phase == "Available"]

    def _at_the_end(self) -> Iterator[str]:
        yield from super()._at_the_end()
        if self.members.condition(ALL_HEALTHY) not in ("True", None):
            yield f"members are not healthy: {self.members.cluster.conditions}"
