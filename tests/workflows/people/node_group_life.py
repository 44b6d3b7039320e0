"""The life of a node group's claims in which somebody acts on a node at one step, with at most one fault.

Each node has a pod; one that has to leave its node waits until another one is there. Passes over pools and disruption
come each minute, also while a workflow waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from stockyard.domain.records import Operation
from stockyard.errors import StockyardError
from stockyard.lifecycle.pools.pool import PODS_HAVE_ROOM, POOLS_READY
from stockyard.operations.fleet.disruption.disruptor import Disruptor
from stockyard.operations.fleet.pools import conditions
from stockyard.operations.listing import every
from stockyard.ports import Replace
from tests.harness.sweeping import Reaper
from tests.harness.worlds.node_group_story import Story
from tests.workflows.faulty_cloud import FaultInjection
from tests.workflows.node_group_life import POOL, NodeGroupLife
from tests.workflows.people.on_nodes import PUSHING, ActOnNode

MINUTES, HOURS = 45, 6
"""How many minutes may pass until all is as it has to be: an act lasts for twenty, and nodes that were made meanwhile
leave later. What was refused for good is tried again by the sweep of the hours after that."""
REST_MINUTES = 3
"""Minutes in which nothing is asked for."""
MINUTE = timedelta(minutes=1)


class PeopleNodeGroupLife(NodeGroupLife):
    """``act`` is on a node at the step ``at_step``."""

    def __init__(
        self, injection: FaultInjection | None = None, *, act: str = "", at_step: int = 0, size: int = 0, least: int = 0
    ) -> None:
        super().__init__(injection, size=size, least=least)
        self.act, self.at_step = act, at_step
        self.pods = max(size, least)
        self.with_pods: set[str] = set()
        """The nodes with a pod."""
        self.looked_at: datetime | None = None
        """When the last passes were."""
        self.seen: dict[str, tuple[str, str]] = {}
        """The uid of each node, and when it was seen first."""
        self.machines_of: dict[str, str] = {}
        self.sites_at: list[int] = []
        """How many writes and calls there were before each step."""
        self.giving_back = False
        self.texts: list[str] = []

    def run(self) -> None:
        """From the first look at the pool to the end of its deletion."""
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            super().run()
        finally:
            logging.disable(level)

    # --- the life -----------------------------------------------------------------------------------------------------

    def _grow(self, story: Story) -> None:
        _end_creation(story)
        self.people = ActOnNode(self.act, self.at_step, story.yard.nodes.clock)
        story.facts_of = self.people.observed
        story.yard.nodes.before_phase = lambda point: self._before(story, point)
        story.yard.nodes.meanwhile = lambda: self._meanwhile(story)
        self._until(story, lambda: self._settled(story))
        for _ in range(REST_MINUTES):
            story.yard.nodes.clock.advance(60)
            self._round(story)
        if self.people.node:
            self._until(story, lambda: not self.people.lasts and self._settled(story))

    def _give_back(self, story: Story) -> None:
        self.giving_back = True
        super()._give_back(story)
        self._round(story)

    def _until(self, story: Story, reached: Callable[[], bool]) -> None:
        services = story.yard.nodes.services
        for number in range(MINUTES + HOURS):
            self._round(story)
            if reached():
                return
            story.yard.nodes.clock.advance(60)
            if number >= MINUTES:
                story.yard.nodes.hours(1)
                self._again("sweep", Reaper(story.yard.nodes.registry, story.yard.nodes.clock, lambda _: services).run)
        claims = [(claim.phase, claim.reason, claim.message) for claim in story.yard.claims(POOL)]
        conditions_now = [(each.type, each.status, each.message) for each in story.yard.current().conditions]
        self.texts.append(f"hangs: {len(self.with_pods)} of {self.pods} pods have a node; {claims} {conditions_now}")

    def _round(self, story: Story) -> None:
        self._step(story)
        self._agent(story)
        self._passes(story)
        self._again("schedule", story.yard.nodes.schedule)
        self._again("workflow", story.yard.nodes.relay)
        self._agent(story)
        self._watch(story)

    def _before(self, story: Story, point: str) -> None:
        self._in(point)
        self._step(story)

    def _meanwhile(self, story: Story) -> None:
        self._step(story)
        self._agent(story)
        self._passes(story)
        self._watch(story)

    def _passes(self, story: Story) -> None:
        """Run the passes of the minute's schedule."""
        nodes = story.yard.nodes
        now = nodes.clock.now()
        if self.looked_at is not None and now < self.looked_at + MINUTE:
            return
        self.looked_at = now
        self._again("disruption", lambda: Disruptor(nodes.registry, lambda _: nodes.services).due(now))
        self._again("pool", story.yard.look)

    def _agent(self, story: Story) -> None:
        """The cluster's scheduler places, and the agent posts and reports; who is asked again says the same again."""
        present = {node["name"]: node for node in story.nodes()}
        for name, node in present.items():
            self._see(story, name, node["uid"])
        self.with_pods = {name for name in self.with_pods if name in present and name not in story.drained}
        for name in present:
            if len(self.with_pods) < self.pods and self.people.is_open(name) and name not in story.drained:
                self.with_pods.add(name)
        own_facts = {
            name: {key: node[key] for key in ("uid", "labels", "allocatable")} | {"created_at": self.seen[name][1]}
            for name, node in present.items()
        }
        empty, waiting = present.keys() - self.with_pods, self.pods - len(self.with_pods)
        before, self.injection.point = self.injection.point, "agent"
        try:
            self._again("agent", story.post)
            services, cluster = story.yard.nodes.services, story.yard.current()
            story.reports = self.people.report(services, cluster, own_facts, empty, waiting)
        except StockyardError:
            return
        finally:
            self.injection.point = before

    def _see(self, story: Story, name: str, uid: str) -> None:
        """A machine may get the name of one that is gone."""
        if self.seen.get(name, (uid, ""))[0] != uid:
            self.people.forget(name)
            for names in (self.with_pods, story.drained):
                names.discard(name)
            self.machines_of.pop(name, None)
            del self.seen[name]
        self.seen.setdefault(name, (uid, story.yard.nodes.services.now()))

    def _step(self, story: Story) -> None:
        machines = {node["name"]: node["provider_id"].rpartition("/")[2] for node in story.nodes()}
        before = self.people.node
        self.people.step(machines)
        self.sites_at += [len(self.injection.sites)] * (self.people.steps - len(self.sites_at))
        if self.people.node and not before:
            story.away |= {machines[name] for name in self.people.gone_names}
            if self.act in PUSHING:
                self.with_pods.discard(self.people.node)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _settled(self, story: Story) -> bool:
        """All pods have a node, all machines a claim and a Node, and the cluster says so."""
        claims, machines = story.yard.claims(POOL), story.groups.machines()
        names = {node["name"] for node in story.nodes()}
        conditions_now = [conditions.of(story.yard.current(), kind) for kind in (POOLS_READY, PODS_HAVE_ROOM)]
        return (
            len(self.with_pods) == self.pods
            and {claim.phase for claim in claims} == {"Available"}
            and not any(claim.deleting or claim.host_name not in names for claim in claims)
            and sorted(claim.machine_id for claim in claims) == sorted(machines)
            and story.unclaimed() == "{}"
            and all(condition is not None and condition.status == "True" for condition in conditions_now)
        )

    def _watch(self, story: Story) -> None:
        """No machine ends before its node is drained, and no node with a pod leaves for nothing."""
        machines = story.groups.machines()
        # Of each pod that waits and of each node that somebody has deleted there may be one more.
        if len(machines) > self.pods + 1:
            self._say(f"{len(machines)} machines run for {self.pods} pods")
        for claim in story.yard.claims(POOL):
            if claim.phase == "Available":
                self.machines_of[claim.host_name] = claim.machine_id
            if claim.deleting and not self.giving_back and claim.host_name in self.with_pods - self.people.gone_names:
                self._say(f"{claim.host_name} leaves with its pod")
        for name, machine in self.machines_of.items():
            if machine not in machines and name not in story.drained | self.people.gone_names:
                self._say(f"the machine of {name} ended with pods on it")

    def _say(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)

    def _wrong(self, story: Story, group: str) -> list[str]:
        # How many there are in the end depends on the act: all pods had a node, and all machines a claim.
        self.phases, self.machine_count = ["Available"] * self.pods, self.pods
        store = story.yard.nodes.registry.store("acme")
        running = [each.kind for each in every(store, Operation) if each.status == "running"]
        return [
            *self.texts,
            *super()._wrong(story, group),
            *(f"still running: {kind}" for kind in running),
        ]


def _end_creation(story: Story) -> None:
    """The cluster is ready, so its creation is over: no sweep has to end it."""
    store = story.yard.nodes.registry.store("acme")
    for operation in every(store, Operation):
        store.commit(Replace(replace(operation, status="succeeded", version=operation.version + 1)))
