"""The life of a node group's claim with at most one fault: the group makes machines, or has some already, nodes join,
and the pool is given back. The account in memory behaves as EKS and EC2 Auto Scaling do. Time is virtual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from unittest.mock import patch

from stockyard.domain.records import Counter, MachineHold
from stockyard.errors import VendorThrottled, VendorTimeout
from stockyard.operations.fleet.pools import pools
from stockyard.operations.listing import every
from stockyard.providers.clouds.aws.calls import Calls
from tests.harness.sweeping import Reaper
from tests.harness.worlds.node_group_story import Story, node_group_story
from tests.workflows.cudo_life import FaultyCommits
from tests.workflows.faulty_cloud import Died, FaultInjection, Site

T = TypeVar("T")
READS = ("describe_", "list_")
DEATHS, ANSWERS = ("before", "after"), ("lost", "throttled")
POOL = "workers"


def is_read(site: Site) -> bool:
    """Whether the call changes nothing."""
    return site.name.partition(".")[2].startswith(READS)


def faults_of(site: Site) -> tuple[str, ...]:
    """The faults possible at a site. A read can only have a bad answer; at a change the worker can also die."""
    if site.name == "commit":
        return DEATHS
    return ANSWERS if is_read(site) else (*DEATHS, *ANSWERS)


@contextmanager
def faulty_calls(injection: FaultInjection) -> Iterator[None]:
    """The product's calls to AWS, where the number ``injection.site`` of all that happens fails."""
    real = Calls.call

    def call(calls: Calls, service: str, operation: str, **parameters: Any) -> Any:
        at_site = len(injection.sites) == injection.site
        injection.sites.append(Site(injection.point, f"{service}.{operation}"))
        if not at_site:
            return real(calls, service, operation, **parameters)
        injection.fired = True
        if injection.fault == "before":
            raise Died("before the call")
        if injection.fault == "throttled":
            raise VendorThrottled("slow down")
        answer = real(calls, service, operation, **parameters)
        if injection.fault == "after":
            raise Died("after the call")
        if injection.fault == "lost":
            raise VendorTimeout("no answer")
        return answer

    with patch.object(Calls, "call", call):
        yield


class NodeGroupLife:
    """``size``: how many machines the group has before any claim is made. ``least``: what the pool never goes below.
    Its group may have no machine."""

    def __init__(self, injection: FaultInjection | None = None, *, size: int = 0, least: int = 0) -> None:
        self.injection, self.size, self.least = injection or FaultInjection(), size, least
        self.phases: list[str] = []
        """The claims' phases when the nodes have joined."""
        self.machine_count = 0
        self.faults: list[str] = []

    def run(self) -> None:
        """From the first look at the pool to the end of its deletion."""
        with node_group_story() as story, faulty_calls(self.injection):
            nodes = story.yard.nodes
            group = story.pool(POOL, least=self.least, size=self.size, group_least=0)
            store: Any = FaultyCommits(nodes.registry.store("acme"), self.injection)
            nodes.services = replace(nodes.services, store=store)
            nodes.before_phase, nodes.meanwhile = self._in, lambda: self._again("agent", story.post)
            self._grow(story)
            self.phases = sorted(claim.phase for claim in story.claims(POOL))
            self.machine_count = len(story.groups.machines())
            self._give_back(story)
            self.faults = self._wrong(story, group)

    def _grow(self, story: Story) -> None:
        for _ in range(8):
            self._round(story)
            claims = story.claims(POOL)
            if claims and {claim.phase for claim in claims} == {"Available"} and story.unclaimed() == "{}":
                return
            story.yard.nodes.clock.advance(60)

    def _give_back(self, story: Story) -> None:
        services = story.yard.nodes.services
        pool = pools.find_pool(services, story.yard.current(), POOL)
        # As an operation does it whose settings have the group no more.
        self._again("pool", lambda: pools.give_back_pool(services, pool, "user:ann"))
        for _ in range(8):
            self._round(story)
            if not story.yard.claims(POOL):
                return
            story.yard.nodes.hours(1)
            self._again("sweep", Reaper(story.yard.nodes.registry, story.yard.nodes.clock, lambda _: services).run)

    def _round(self, story: Story) -> None:
        nodes = story.yard.nodes
        steps: list[tuple[str, Callable[[], object]]] = [
            ("agent", story.post),
            ("pool", story.yard.look),
            ("schedule", nodes.schedule),
            ("workflow", nodes.relay),
        ]
        for point, step in steps:
            self._again(point, step)

    def _in(self, point: str) -> None:
        self.injection.point = point

    def _again(self, point: str, work: Callable[[], T]) -> T:
        """Repeats ``work`` while the worker dies or a vendor is slow, as a caller or a stream does."""
        before = self.injection.point
        for _ in range(4):
            self.injection.point = point
            try:
                return work()
            except (Died, VendorThrottled, VendorTimeout):
                continue
            finally:
                self.injection.point = before
        raise AssertionError(f"{point} never succeeds")

    def _wrong(self, story: Story, group: str) -> list[str]:
        store = story.yard.nodes.registry.store("acme")
        left_over = {
            "claims": [claim.id for claim in story.yard.claims(POOL)],
            "holds": [hold.id for hold in every(store, MachineHold)],
            "machines": story.groups.machines(),
            "counters": [c.id for c in every(store, Counter, "quota/nodeclaims") if c.value],
        }
        faults = [f"{name} are left: {items}" for name, items in left_over.items() if items]
        if story.groups.size(group):
            faults.append(f"the group has the desired size {story.groups.size(group)}")
        expected = max(self.size, self.least)
        if (self.phases, self.machine_count) != (["Available"] * expected, expected):
            faults.append(f"{self.machine_count} machines, and claims that are {self.phases}")
        return faults
