"""Pauses of a cluster's agent, and the writes of its posts: an idle cluster costs next to nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from stockyard.domain.pools.workload_records import WorkloadReport
from stockyard.domain.records import Cluster, Fact
from stockyard.operations.machines.observe import (
    ATTENTIVE_SECONDS,
    EXPECTANT_SECONDS,
    REWRITE_SECONDS,
    observe,
    silence_seconds,
)
from stockyard.ports import Create, Replace
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

BUSY, QUIET, IDLE = 10, 60, 300


@dataclass
class Agent:
    """Posts of the agent of a ready cluster."""

    nodes: Nodes
    cluster: Cluster
    sequence: int = 0

    def post(self, *, status: str = "ready", nodes: Any = (), late: int = 0) -> int:
        """Post, and return the seconds to the next one. ``late``: how many posts it was overtaken by."""
        self.sequence += 1
        observation = {
            "sequence": self.sequence - late, "observed_at": self.nodes.services.now(), "agent_version": "1",
            "kubernetes_version": "v1", "nodes": list(nodes), "ca_hash": "sha256:" + "0" * 64, "results": [],
        }  # fmt: skip
        cluster = replace(self.cluster, status=status)
        reply = observe(self.nodes.services, self.nodes.registry.in_hand, b"key", cluster, observation)
        return reply.interval_seconds

    def fact(self) -> Fact:
        fact = self.nodes.services.store.get(Fact, f"{self.cluster.id}/observed")
        assert fact is not None
        return fact


@pytest.fixture
def agent(world: World) -> Agent:
    created = world.create("demo")
    cluster = replace(created, status="ready", version=created.version + 1)
    world.services.store.commit(Replace(cluster))
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}})
    return Agent(nodes, cluster)


def test_agent_comes_less_often_an_hour_after_the_last_claim(agent: Agent) -> None:
    clock = agent.nodes.clock
    assert agent.post(status="deploying") == BUSY
    assert agent.post() == QUIET
    clock.advance(ATTENTIVE_SECONDS + 1)
    assert agent.post() == IDLE
    claim = agent.nodes.claim("worker", cluster_ref="demo")
    agent.nodes.schedule()
    assert agent.post() == BUSY
    agent.nodes.delete(claim)
    agent.nodes.relay()
    clock.advance(ATTENTIVE_SECONDS - 10)
    assert agent.post() == QUIET
    clock.advance(11)
    assert agent.post() == IDLE


def test_agent_comes_often_while_claims_for_pods_are_expected(agent: Agent) -> None:
    services = agent.nodes.services
    agent.post()
    agent.nodes.clock.advance(ATTENTIVE_SECONDS + 1)
    now = services.now()
    services.store.commit(Create(WorkloadReport(agent.cluster.id, 1, now, now, 1, 0, woken_at=now)))
    assert agent.post() == BUSY
    agent.nodes.clock.advance(EXPECTANT_SECONDS + 1)
    assert agent.post() == IDLE


def test_agent_of_a_cluster_with_spot_nodes_hears_of_warnings_in_time(agent: Agent) -> None:
    agent.post()
    agent.nodes.clock.advance(ATTENTIVE_SECONDS + 1)
    assert agent.post(nodes=[{"name": "n1", "labels": {"karpenter.sh/capacity-type": "spot"}}]) == 20


def test_an_idle_cluster_is_written_when_something_changes_or_the_record_is_old(agent: Agent) -> None:
    agent.post()
    first = agent.fact()
    agent.nodes.clock.advance(IDLE)
    agent.post()
    assert agent.fact() == first
    agent.post(nodes=[{"name": "n1", "labels": {}}])
    changed = agent.fact()
    assert changed != first
    agent.post(nodes=[], late=1)
    assert agent.fact() == changed, "a late post changes nothing"
    agent.nodes.clock.advance(REWRITE_SECONDS)
    agent.post(nodes=[{"name": "n1", "labels": {}}])
    assert agent.fact() != changed


def test_an_idle_agent_does_not_count_as_gone(agent: Agent) -> None:
    """Pauses of an agent vary by a tenth: what it is asked meanwhile waits for it."""
    assert silence_seconds(agent.nodes.services) > 1.1 * IDLE + 60
