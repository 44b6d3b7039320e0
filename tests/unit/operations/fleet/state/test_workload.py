"""Reports of a cluster's agent about pods are kept whole, changed in steps, read by the packer, and wake the passes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stockyard.domain.records import Cluster, WorkloadPart, WorkloadReport
from stockyard.errors import BodyTooLarge, IllegalTransition, InvalidInput, StoreUnavailable, Throttled
from stockyard.operations.fleet.state import workload_of
from stockyard.operations.listing import every
from stockyard.operations.machines import pending_pods
from stockyard.operations.machines.pending_pods import Received, forgetting
from stockyard.ports import Put, Replace
from stockyard.scheduling.packing.model import term
from tests.unit.operations.fleet.pools.conftest import DB, GROUPS, PROXY, WEB, Agent, picture, template

SCHEMA = json.loads((Path(__file__).parents[5] / "docs/events/PendingPods.json").read_text(encoding="utf-8"))


def test_a_report_is_read_back_as_the_packer_takes_it(agent: Agent) -> None:
    assert workload_of(agent.services, agent.yard.cluster.id) is None
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
    groups = {**GROUPS, DB: template("2", volumes=[[zone]])}
    reply = agent.post(
        groups=groups,
        pending={DB: {"count": 3, "names": ["default/db-1"]}, WEB: {"count": 1}},
        running={"n1": {WEB: 2, PROXY: 1}, "n2": {}},
        daemon_sets={"kube-system/proxy": PROXY},
        omitted=7,
    )
    assert replace(reply, wake=None) == Received(1, False, agent.services.settings.agent_quiet_seconds, True)
    assert reply.wake is not None
    workload = picture(agent)
    web, db = workload.pending
    assert (web.id, web.count, web.names) == (WEB, 1, ())
    assert (db.id, db.count, db.names) == (DB, 3, ("default/db-1",))
    assert dict(db.pod.requests) == {"cpu": 2000, "pods": 1000}
    assert (db.pod.labels, db.pod.volumes) == ((("app", "web"),), (term([zone]),))
    proxy = workload.daemons["kube-system/proxy"]
    assert workload.running == {"n1": ((web.pod, 2), (proxy, 1)), "n2": ()}
    assert workload.daemons_running == {"n1": {"kube-system/proxy"}, "n2": frozenset()}
    assert (workload.sequence, workload.omitted, workload.unreadable) == (1, 7, {})


def test_changes_apply_to_the_report_that_was_answered(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}, DB: {"count": 2}}, running={"n1": {WEB: 1}})
    assert not agent.change(pending={WEB: {"count": 5}, DB: None}, groups={DB: None}, running={"n1": None}).resync
    workload = picture(agent)
    assert (agent.pending(), workload.running) == ({WEB: 5}, {})


@pytest.mark.parametrize("fields", [{"base": 7}, {"sequence": 1, "base": 1}, {"sequence": 1}])
def test_what_does_not_follow_the_last_report_changes_nothing(agent: Agent, fields: dict[str, Any]) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}})
    reply = agent.post(groups=GROUPS, pending={DB: {"count": 1}}, **fields)
    assert (reply.sequence, reply.resync) == (1, True)
    assert agent.pending() == {WEB: 1}


def test_changes_of_nothing_ask_for_all(agent: Agent) -> None:
    reply = agent.post(base=3, pending={WEB: {"count": 1}})
    assert (reply.sequence, reply.resync) == (0, True)
    assert workload_of(agent.services, agent.yard.cluster.id) is None


def test_an_agent_whose_clock_is_ahead_is_answered_a_number_that_the_next_one_passes(agent: Agent) -> None:
    agent.services.clock.now()
    ahead = agent.post(sequence=2**53 - 1, groups=GROUPS, pending={WEB: {"count": 1}})
    now = int(agent.services.clock.now().timestamp() * 1000)
    assert ahead.sequence == now + 60_000
    reply = agent.post(sequence=ahead.sequence + 1, base=ahead.sequence, pending={WEB: {"count": 2}})
    assert (reply.resync, reply.sequence > ahead.sequence, agent.pending()) == (False, True, {WEB: 2})


def test_more_pods_wake_the_passes_and_fewer_do_not(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 2}})
    (event,) = agent.wakes()
    jsonschema.Draft202012Validator(SCHEMA).validate(event)
    assert (event["tenant"], event["subject"], event["pods"]) == ("acme", agent.yard.cluster.id, 2)
    for quiet in ({}, {"pending": {WEB: {"count": 1}}}):
        assert not agent.change(**quiet).woken
    assert agent.change(pending={DB: {"count": 1}}).woken
    assert agent.change(pending={WEB: {"count": 2}}).woken
    assert [wake["pods"] for wake in agent.wakes()] == [2, 2, 3]
    # All of it once more is nothing new.
    assert not agent.post(groups=GROUPS, pending={WEB: {"count": 2}, DB: {"count": 1}}).woken


def test_pods_that_take_room_beside_those_that_wait_wake_the_passes(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 2}})
    assert agent.change(nominated={"n1": {DB: 1}}).woken
    assert not agent.change(nominated={"n1": None}, running={"n1": {DB: 1}}).woken, "it has the room that it had"
    assert agent.change(running={"n1": {DB: 2}}).woken
    assert agent.change(daemon_sets={"kube-system/proxy": PROXY}).woken
    assert agent.change(pending={WEB: None}).woken
    for quiet in ({"running": {"n1": {DB: 1}}}, {"nominated": {"n1": {DB: 1}}}, {"daemon_sets": {"a/b": PROXY}}):
        assert not agent.change(**quiet).woken, "nobody waits"


def test_passes_wake_when_the_pod_is_gone_that_is_named_for_those_that_wait(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 2, "names": ["default/web-1", "default/web-2"]}})
    other_pods = {"count": 2, "names": ["default/web-1", "default/web-3"]}
    assert not agent.change(pending={WEB: other_pods}).woken
    assert agent.change(pending={WEB: {"count": 2, "names": ["default/web-3", "default/web-4"]}}).woken


def test_the_last_pod_that_waited_wakes_the_passes_once(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 2}})
    assert agent.change(pending={WEB: None}).woken
    jsonschema.Draft202012Validator(SCHEMA).validate(agent.wakes()[-1])
    assert agent.wakes()[-1]["pods"] == 0
    assert not agent.change().woken


def test_a_report_without_news_leaves_the_parts_as_they_are(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 2}})
    before = list(every(agent.services.store, WorkloadPart))
    reply = agent.change()
    assert list(every(agent.services.store, WorkloadPart)) == before
    workload = picture(agent)
    assert (workload.sequence, agent.pending()) == (reply.sequence, {WEB: 2})


def test_nothing_that_waits_is_asked_for_less_often(agent: Agent) -> None:
    rules = agent.services.settings
    assert agent.post(groups=GROUPS).interval_seconds == rules.agent_idle_seconds
    assert agent.post(groups=GROUPS, pending={WEB: {"count": 1}}).interval_seconds == rules.agent_quiet_seconds


def test_reports_that_come_too_fast_are_refused(agent: Agent) -> None:
    agent.post()
    with pytest.raises(Throttled) as refusal:
        agent.post(wait=0.1)
    assert refusal.value.retry_after == 1


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"pending": {WEB: {"count": 1}}}, f"/pending/{WEB}"),
        ({"running": {"a/b": {WEB: 1}}}, "/running/a~1b"),
        ({"daemon_sets": {"a/b": WEB}}, "/daemon_sets/a~1b"),
        ({"groups": {f"{n:016x}": template() for n in range(5_001)}}, "/groups"),
    ],
)
def test_a_report_that_does_not_hold_together_is_refused(agent: Agent, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        agent.post(**fields)
    assert [problem.pointer for problem in refusal.value.errors] == [pointer]
    assert agent.services.store.get(WorkloadReport, agent.yard.cluster.id) is None


def test_reports_that_grow_too_large_together_are_refused(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}})
    monkeypatch.setattr(pending_pods, "MOST_BYTES", 100)
    with pytest.raises(BodyTooLarge):
        agent.change(pending={WEB: {"count": 2}})
    assert agent.pending() == {WEB: 1}


def test_pods_that_cannot_be_read_are_left_out_and_named(agent: Agent) -> None:
    odd = {WEB: template("much"), DB: template(), PROXY: template(volumes=[[{"key": "a", "operator": "Near"}]])}
    agent.post(
        groups=odd,
        pending={WEB: {"count": 1, "names": ["default/web-1"]}, DB: {"count": 1}},
        running={"n1": {PROXY: 1}},
    )
    workload = picture(agent)
    assert (agent.pending(), workload.running) == ({DB: 1}, {"n1": ()})
    assert workload.unreadable.keys() == {WEB, PROXY}
    assert "/spec/containers/0/resources/requests/cpu" in workload.unreadable[WEB]
    # It waits without a node that anybody would make, and is not silent.
    assert workload.unread == {"default/web-1": workload.unreadable[WEB]}
    assert workload.unread_text.startswith("default/web-1: no node is made for it, as it cannot be read: ")


def test_what_the_scheduler_says_is_kept_and_read_in_one_line(agent: Agent) -> None:
    waiting_pods = {"count": 1, "message": "Insufficient\x1b[31m\n cpu\u2028"}
    agent.post(groups=GROUPS, pending={WEB: waiting_pods, DB: {"count": 1}})
    by_id = {group.id: group for group in picture(agent).pending}
    assert (by_id[WEB].message, by_id[DB].message) == ("Insufficient [31m cpu", "")
    assert by_id[WEB].scheduler_text == " The cluster's scheduler says: Insufficient [31m cpu."
    assert by_id[DB].scheduler_text == ""
    # Another text is kept, and is no reason to look at the pools.
    answer = agent.change(pending={WEB: {**waiting_pods, "message": "node(s) were unschedulable"}})
    assert not answer.woken
    assert [group.message for group in picture(agent).pending if group.id == WEB] == ["node(s) were unschedulable"]


def test_pods_that_end_take_room_and_need_no_other_node(agent: Agent) -> None:
    """The controller of such pods has made others already, which wait or run elsewhere."""
    leaving = "0" * 15 + "5"
    groups = {**GROUPS, leaving: {**GROUPS[WEB], "ending": True}}
    agent.post(groups=groups, running={"n1": {WEB: 1, leaving: 2}})
    workload = picture(agent)
    assert [count for _, count in workload.reschedulable["n1"]] == [1]
    assert sorted(count for _, count in workload.running["n1"]) == [1, 2]


def test_pods_that_need_another_node_are_told_from_those_that_stay(agent: Agent) -> None:
    other = "0" * 15 + "4"
    groups = {**GROUPS, DB: template("2", deletion_cost=-7), other: template("1m", static=True)}
    agent.post(groups=groups, running={"n1": {WEB: 2, DB: 1, PROXY: 1, other: 1}, "n2": {PROXY: 1}})
    workload = picture(agent)
    assert [(count, pod.deletion_cost) for pod, count in workload.reschedulable["n1"]] == [(2, 0), (1, -7)]
    assert workload.reschedulable["n2"] == ()
    assert len(workload.running["n1"]) == 4


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_pods, "PART_BYTES", 60)


@pytest.mark.usefixtures("small_parts")
def test_a_larger_report_has_parts_of_which_a_smaller_one_reads_the_first(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}, DB: {"count": 2}})
    assert len(list(every(agent.services.store, WorkloadPart))) > 2
    assert agent.pending() == {WEB: 1, DB: 2}
    agent.post()
    assert agent.pending() == {}


@pytest.mark.usefixtures("small_parts")
def test_a_reader_never_mixes_two_reports(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another report comes between the reading of the first and the second part."""
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}, DB: {"count": 2}})
    store, news = agent.services.store, [{WEB: {"count": 10}, DB: {"count": 20}}]
    read_one = store.get

    def get(kind: Any, id: str) -> Any:
        if kind is WorkloadPart and id.endswith("/1") and news:
            agent.post(groups=GROUPS, pending=news.pop())
        return read_one(kind, id)

    monkeypatch.setattr(store, "get", get)
    assert agent.pending() == {WEB: 10, DB: 20}


@pytest.mark.usefixtures("small_parts")
def test_parts_that_never_fit_are_no_answer(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}})
    store, name = agent.services.store, f"{agent.yard.cluster.id}/1"
    part = store.get(WorkloadPart, name)
    assert part is not None
    store.commit(Put(replace(part, content=part.content - 1)))
    with pytest.raises(StoreUnavailable):
        workload_of(agent.services, agent.yard.cluster.id)
    # The agent is asked for all, and that puts it right.
    assert agent.change(pending={WEB: {"count": 2}}).resync
    assert not agent.post(groups=GROUPS, pending={WEB: {"count": 2}}).resync
    assert agent.pending() == {WEB: 2}


def test_of_two_reports_at_once_the_second_is_told_to_begin_again(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}})
    store, rivals = agent.services.store, [{WEB: {"count": 9}}]
    commit = store.commit

    def slow(*writes: Any) -> None:
        if rivals:
            agent.post(groups=GROUPS, pending=rivals.pop())
            agent.yard.nodes.clock.advance(1)
        commit(*writes)

    monkeypatch.setattr(store, "commit", slow)
    assert agent.change(pending={WEB: {"count": 2}}).resync
    assert agent.pending() == {WEB: 9}


def test_nothing_is_kept_for_a_cluster_that_has_begun_to_go(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = agent.yard.current()
    agent.services.store.commit(Replace(replace(cluster, version=cluster.version + 1, status="deleting")))
    monkeypatch.setattr(agent.yard, "current", lambda: cluster)
    with pytest.raises(IllegalTransition):
        agent.post(groups=GROUPS, pending={WEB: {"count": 1}})
    assert agent.services.store.get(WorkloadReport, cluster.id) is None


@pytest.mark.usefixtures("small_parts")
def test_all_of_it_goes_with_the_cluster(agent: Agent) -> None:
    agent.post(groups=GROUPS, pending={WEB: {"count": 1}})
    cluster: Cluster = agent.yard.current()
    agent.services.store.commit(*forgetting(cluster.id))
    assert not list(every(agent.services.store, WorkloadPart))
    assert workload_of(agent.services, cluster.id) is None
