"""Age of the picture of a cluster: what an agent says of its reports, and who wants to know it better for a while."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.observations import Observation
from stockyard.domain.models.pools.pending_pods import PendingPods
from stockyard.domain.records import Cluster, Fact
from stockyard.domain.values import times
from stockyard.operations.fleet.state import workload_of
from stockyard.operations.machines.attention import attend, oldest_report, report_age
from stockyard.operations.machines.observe import ATTENTIVE_SECONDS, REWRITE_SECONDS, AgentReply, observe
from stockyard.operations.machines.pending_pods import receive
from stockyard.ports import Replace
from tests.unit.agent.rig import Rig
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

QUIET, IDLE = 60, 300


class Agent:
    """The agent of an idle cluster. ``ahead`` is by how many seconds its clock is ahead of Stockyard's."""

    def __init__(self, nodes: Nodes, cluster: Cluster, ahead: float = 0) -> None:
        self.nodes, self.services, self.cluster, self.ahead = nodes, nodes.services, cluster, ahead
        self.sequence = self.reported = 0

    def moment(self, before: float = 0) -> str:
        return times.to_text(self.services.clock.now() + timedelta(seconds=self.ahead - before))

    def report(self) -> None:
        self.sequence += 1
        body = {"sequence": self.sequence, "observed_at": self.moment(), "agent_version": "1", "groups": {}}
        post = read(PendingPods, {**body, "pending": {}}).model_dump()
        self.reported = receive(self.services, self.cluster, post).sequence

    def post(self, true_before: float | None = 0) -> AgentReply:
        """Post. The last report is known to be true until so many seconds before."""
        self.sequence += 1
        pods = {"sequence": self.reported, "true_at": self.moment(true_before or 0)}
        body = {
            "sequence": self.sequence, "observed_at": self.moment(), "agent_version": "1", "kubernetes_version": "v1",
            "ca_hash": "sha256:" + "0" * 64, "nodes": [], "pods": None if true_before is None else pods,
        }  # fmt: skip
        observation: dict[str, Any] = read(Observation, body).model_dump()
        return observe(self.services, self.nodes.registry.in_hand, b"key", self.cluster, observation)

    @property
    def age(self) -> float | None:
        return report_age(self.services, self.cluster.id, self.services.clock.now())


@pytest.fixture
def agent(world: World) -> Agent:
    created = world.create("demo")
    cluster = replace(created, status="ready", version=created.version + 1)
    world.services.store.commit(Replace(cluster))
    return Agent(Nodes.of(world.registry, world.services, world.clock), cluster)


def test_an_attended_cluster_is_heard_of_often_and_each_post_is_kept(agent: Agent) -> None:
    agent.report()
    agent.post()
    agent.nodes.clock.advance(ATTENTIVE_SECONDS)
    reply = agent.post()
    assert (reply.interval_seconds, reply.pods_interval_seconds) == (IDLE, None)
    attend(agent.services, agent.cluster.id, 600)
    for _ in range(9):
        agent.nodes.clock.advance(QUIET)
        reply = agent.post()
        assert (reply.interval_seconds, reply.pods_interval_seconds) == (QUIET, QUIET // 2)
        assert agent.age == 0
    agent.nodes.clock.advance(QUIET)
    reply = agent.post()
    assert (reply.interval_seconds, reply.pods_interval_seconds) == (IDLE, None)
    agent.nodes.clock.advance(QUIET)
    agent.post()
    assert agent.age == QUIET * 2, "it is idle again: a post that says the same is not written"


def test_a_rolling_change_keeps_the_agent_at_its_quick_pace(agent: Agent) -> None:
    agent.report()
    agent.post()
    agent.nodes.clock.advance(ATTENTIVE_SECONDS)
    attend(agent.services, agent.cluster.id, 600)
    standing = agent.cluster
    for phase, paces in (("version_skew", (10, 10)), ("pools", (10, 10)), ("profile", (QUIET, QUIET // 2))):
        agent.cluster = replace(standing, phase=phase)
        reply = agent.post()
        assert (reply.interval_seconds, reply.pods_interval_seconds) == paces, phase
    agent.cluster = replace(standing, phase="pools")
    agent.nodes.clock.advance(600)
    assert agent.post().interval_seconds == IDLE, "nothing attends it any more"


def test_attention_is_written_anew_when_half_of_it_is_over(agent: Agent) -> None:
    def attended() -> str:
        attend(agent.services, agent.cluster.id, 600)
        fact = agent.services.store.get(Fact, f"{agent.cluster.id}/observed-attended")
        assert fact is not None
        return fact.value

    first = attended()
    agent.nodes.clock.advance(299)
    assert attended() == first
    agent.nodes.clock.advance(1)
    assert attended() > first


def test_nobody_attends_a_cluster_that_is_not_there(agent: Agent) -> None:
    attend(agent.services, "clu_0", 600)
    assert agent.services.store.get(Fact, "clu_0/observed-attended") is None


@pytest.mark.parametrize("ahead", [0, 40, -40])
def test_the_age_of_a_picture_is_by_our_clock(agent: Agent, ahead: float) -> None:
    agent.ahead = ahead
    assert agent.age is None
    agent.report()
    assert agent.age is None, "whether it is one that says how far it is, nobody knows"
    agent.post(true_before=5)
    assert agent.age == (5 if ahead < 0 else 0), "its last report is from now"
    agent.nodes.clock.advance(30)
    agent.post(true_before=7)
    agent.nodes.clock.advance(REWRITE_SECONDS)
    agent.post(true_before=50)
    assert agent.age == 50
    agent.nodes.clock.advance(20)
    assert agent.age == 70, "a silent agent's picture grows old"


def test_a_report_that_came_after_the_post_counts_by_itself(agent: Agent) -> None:
    agent.report()
    agent.post(true_before=0)
    agent.nodes.clock.advance(100)
    assert agent.age == 100
    agent.report()
    assert agent.age == 0


def test_an_agent_that_does_not_say_how_far_it_is_leaves_the_age_unknown(agent: Agent) -> None:
    agent.report()
    agent.post(true_before=None)
    assert agent.age is None


def age_at(rig: Rig) -> float:
    """Age that ``report_age`` finds in the last post and the last report of an agent."""
    state, report = rig.platform.posts[-1]["pods"], rig.platform.pods.posts[-1]
    true_at = report["observed_at"]
    if state["sequence"] == rig.platform.pods.sequence:
        true_at = max(true_at, state["true_at"])
    return (rig.clock.now - times.from_text(true_at)).total_seconds()


@pytest.mark.parametrize("moving", [False, True], ids=["calm", "pods move"])
@pytest.mark.parametrize("quiet", [1, 2, 5, 10, 13, 30, 60])
def test_the_agent_itself_keeps_an_attended_cluster_known_well_enough(quiet: int, moving: bool) -> None:
    """However short a stage makes the interval: an agent looks at nodes no more often for it."""
    rig, posted_at, oldest = Rig(), 0.0, 0.0
    rig.platform.interval, rig.platform.pods_interval = quiet, quiet // 2
    rig.add_node("a")
    reports = rig.reports()
    agent = rig.agent(reports=reports)
    for second in range(3 * QUIET):
        if moving and second % 5 == 0:
            rig.add_pod(f"web-{second}", "a")
        rig.steps(reports)
        if rig.clock.monotonic() >= posted_at:
            posted_at = rig.clock.monotonic() + agent.round() * 1.1
        if second > QUIET + 1:
            oldest = max(oldest, age_at(rig))
    assert quiet / 2 <= oldest <= oldest_report(quiet)


def test_a_report_for_which_its_agent_vouches_is_true_until_then(agent: Agent) -> None:
    agent.report()
    reported_at = agent.moment()
    agent.nodes.clock.advance(60)
    before = workload_of(agent.services, agent.cluster.id)
    agent.post(5)
    after = workload_of(agent.services, agent.cluster.id)
    assert before is not None
    assert after is not None
    assert (before.true_at, after.true_at) == (reported_at, agent.moment(5))
