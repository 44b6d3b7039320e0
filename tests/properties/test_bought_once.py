"""Nothing is bought twice for the same pods, whatever a scheduler refuses and people do with nodes.

A cluster is played through passes of all kinds: over pools and disruption, schedulers, workflows, and reports of an
agent. People cordon, taint, shrink and delete nodes; nodes lose their readiness; a scheduler refuses pods for reasons
that nobody tells of. When people rest, buying ends: no claim is made any more, every pod that waits is named, and every
pod that a node would take has one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.pools import reconcile
from stockyard.operations.machines import attention
from stockyard.scheduling.packing.model import Pod
from tests.unit.operations.fleet.disruption.conftest import POOL, Pods, pod
from tests.unit.operations.fleet.pools.conftest import make_yard

ACTS, MINUTES_OF_REST, QUIET_MINUTES = 12, 100, 25
"""What was held for an hour after the last act, such as a decision to save that found no room, is tried again in the
rest, so the quiet begins later."""
SIZES = ("500m", "1", "2", "6")


@contextmanager
def played_cluster(chance: random.Random) -> Iterator[Pods]:
    """A cluster with a dynamic pool, whose pods are played."""
    pods = Pods(make_yard())
    after = chance.choice(("0s", "60s", "Never"))
    pods.yard.dynamic_pool(POOL, disruption={"consolidate_after": after, "budgets": []})
    with ExitStack() as patches:
        for module in (run, reconcile):
            patches.enter_context(patch.object(module, "workload_of", lambda *_: pods.workload()))
        patches.enter_context(patch.object(attention, "report_age", lambda *_: 0.0))
        yield pods


class People:
    """Acts of people and a scheduler, at random."""

    def __init__(self, pods: Pods, chance: random.Random) -> None:
        self.pods, self.chance = pods, chance
        self.stuck: set[Pod] = set()
        self.closed: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.number = 0
        pods.refuses = lambda each, node: each in self.stuck or node in self.closed

    def act(self) -> None:
        """One act of one kind."""
        kinds = (self.deploy, self.deploy, self.deploy_stuck, self.close, self.shrink, self.break_node, self.delete)
        act = self.chance.choice(kinds)
        act()
        self.counts[act.__name__] += 1

    def deploy(self) -> Pod:
        self.number += 1
        each = pod(self.chance.choice(SIZES), "512Mi", f"app-{self.number}")
        self.pods.waiting += [each] * self.chance.randint(1, 4)
        return each

    def deploy_stuck(self) -> None:
        """Pods that no node takes, and nobody says why."""
        self.stuck.add(self.deploy())

    def _node(self) -> str | None:
        names = sorted(claim.node_name for claim in self.pods.claims())
        return self.chance.choice(names) if names else None

    def _report(self, name: str | None, **facts: Any) -> None:
        if name is not None:
            self.pods.facts[name] = {**self.pods.facts.get(name, {}), **facts}
            self.closed.add(name)

    def close(self) -> None:
        """A cordon, or a taint."""
        taint = ("maintenance", "", "NoSchedule")
        self._report(self._node(), **self.chance.choice(({"unschedulable": True}, {"taints": (taint,)})))

    def shrink(self) -> None:
        """Less is free of the node than its type says."""
        self._report(self._node(), allocatable={"cpu": "100m", "memory": "1Gi", "pods": "110"})

    def break_node(self) -> None:
        self._report(self._node(), ready="Unknown", ready_since=self.pods.yard.nodes.services.now())

    def delete(self) -> None:
        name = self._node()
        if name is not None:
            self.pods.gone_names.add(name)
            self.pods.bind()


def play(seed: int) -> Counter[str]:
    """One cluster from its beginning until people have rested for more than an hour."""
    chance = random.Random(seed)
    with played_cluster(chance) as pods:
        people = People(pods, chance)
        for _ in range(ACTS):
            people.act()
            pods.run(chance.randint(1, 4))
        claim_counts = []
        for _ in range(MINUTES_OF_REST):
            pods.run(1)
            claim_counts.append(pods.yard.now(POOL).claims_made)
        assert claim_counts[-QUIET_MINUTES] == claim_counts[-1], f"seed {seed}: {claim_counts}"
        assert set(pods.waiting) <= people.stuck, f"seed {seed}: pods that a node would take wait"
        _, _, message = pods.yard.condition(pods.yard.current(), "PodsHaveRoom")
        named = sum(group.names[0] in message for group in pods.workload().pending)
        assert named >= min(3, len(pods.workload().pending)), f"seed {seed}: {message}"
        people.counts["claims"] += claim_counts[-1]
        people.counts["stuck"] += len(set(pods.waiting))
        return people.counts


def test_buying_ends_when_people_rest(soaking: bool, seed: int, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    clusters = 400 if soaking else 8
    for number in range(clusters):
        counts += play(seed * 1_000_000 + number)
    record_property("figure:bought_once", {**counts, "clusters": clusters, "seed": seed})
    assert counts["stuck"] > 0
