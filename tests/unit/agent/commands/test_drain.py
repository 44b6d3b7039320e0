"""Draining: whom it evicts, in which order, what holds it, and what the deadline changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent.roles import NAMESPACE
from agent.stockyard_agent.commands.drain import LAST_GRACE
from agent.stockyard_agent.commands.inbox import ROUND_SECONDS
from agent.stockyard_agent.observation import timestamp
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import Fault
from local.kubernetes.store import Key
from tests.unit.agent.drains import CRITICAL, DISRUPTED, MIRROR, counts, order, result, verbs
from tests.unit.agent.rig import START, Rig


def test_drain_of_empty_node_cordons_and_ends_in_one_round(rig: Rig) -> None:
    order(rig)
    rig.rounds(rig.agent(), 2)
    assert rig.node("a")["spec"] == {"unschedulable": True, "taints": [DISRUPTED]}
    assert (result(rig)["status"], result(rig)["data"]) == ("done", {"evicted": 0, "deleted": 0, "left": 0, "held": []})


def test_drain_evicts_ordinary_then_critical_pods_and_agent_last(rig: Rig) -> None:
    order(rig)
    rig.add_pod("dns", "a", "kube-system", priority=CRITICAL)
    rig.add_pod("agent-1", "a", NAMESPACE, priority=CRITICAL)
    rig.add_pod("volumes", "a", "zone-system", priority="system-node-critical")
    for name in ("web-1", "web-2"):
        rig.add_pod(name, "a")
    rig.add_pod("bare", "a", owner="")
    rig.add_pod("cni", "a", "kube-system", owner="DaemonSet", everywhere=True)
    rig.add_pod("etcd", "a", "kube-system", owner="Node", annotations=MIRROR, priority="system-node-critical")
    rig.add_pod("job-1", "a", phase="Succeeded")
    rig.add_pod("job-2", "a", phase="Failed")
    rig.add_pod("elsewhere", "b")
    rig.until_ended(rig.agent())
    assert counts(rig) == {"evicted": 6, "deleted": 0, "left": 0}
    assert [name for _, name in verbs(rig)] == ["bare", "web-1", "web-2", "dns", "volumes", "agent-1"]
    assert {kind for kind, _ in verbs(rig)} == {"pods/eviction"}
    assert rig.pods("a") == ["cni", "etcd", "job-1", "job-2"]
    assert rig.pods("b") == ["elsewhere"]


def test_drain_waits_for_terminating_pods_before_next_step(rig: Rig) -> None:
    order(rig, grace_seconds=7)
    web = rig.add_pod("web", "a")
    rig.add_pod("dns", "a", "kube-system", priority=CRITICAL)
    agent = rig.agent()
    rig.rounds(agent, 3, kubelets=False)
    assert verbs(rig) == [("pods/eviction", "web")], "an ending pod is neither evicted again nor overtaken"
    assert rig.kube.store.get(web)["metadata"]["deletionGracePeriodSeconds"] == 7
    assert result(rig)["status"] == "running"
    assert counts(rig) == {"evicted": 1, "deleted": 0, "left": 2}
    assert "1 are ending, 0 held back, 1 come later" in result(rig)["message"]
    rig.until_ended(agent)
    assert rig.pods("a") == []


def test_drain_waits_for_disruption_budget(rig: Rig) -> None:
    order(rig)
    for name in ("db-1", "db-2"):
        rig.add_pod(name, "a", labels={"app": "db"})
    rig.add_pod("web", "a")
    budget = rig.add_budget("db", {"app": "db"}, 2)
    agent = rig.agent()
    rig.rounds(agent, 4)
    assert rig.pods("a") == ["db-1", "db-2"], "what the budget does not cover has left"
    assert result(rig)["status"] == "running"
    assert "2 held back" in result(rig)["message"]
    assert "web/db-1: The disruption budget db needs 2 healthy pods and has 2 currently" in result(rig)["message"]
    rig.kube.store.get(budget)["spec"]["minAvailable"] = 1
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["db-2"], "one at a time, as the budget says"
    rig.add_pod("db-3", "b", labels={"app": "db"})
    rig.until_ended(agent)
    assert counts(rig) == {"evicted": 3, "deleted": 0, "left": 0}


def test_drain_waits_when_two_budgets_cover_a_pod(rig: Rig) -> None:
    order(rig)
    rig.add_pod("db", "a", labels={"app": "db"})
    rig.add_pod("web", "a")
    for name in ("one", "two"):
        rig.add_budget(name, {"app": "db"}, 0)
    agent = rig.agent()
    rig.rounds(agent, 3)
    assert rig.pods("a") == ["db"]
    assert "more than one PodDisruptionBudget" in result(rig)["message"]
    del rig.kube.store.objects[Key("policy", "poddisruptionbudgets", "web", "two")]
    rig.until_ended(agent)
    assert result(rig)["status"] == "done"


def test_drain_past_deadline_deletes_pods_despite_budget(rig: Rig) -> None:
    order(rig, seconds=40, grace_seconds=5)
    rig.add_pod("db", "a", labels={"app": "db"})
    rig.add_pod("dns", "a", "kube-system", priority=CRITICAL)
    rig.add_pod("cni", "a", "kube-system", owner="DaemonSet", everywhere=True)
    rig.add_budget("db", {"app": "db"}, 1)
    agent = rig.agent()
    while rig.clock.now < START + timedelta(seconds=40):
        assert rig.pods("a") == ["cni", "db", "dns"]
        rig.rounds(agent, 1)
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["cni"]
    rig.until_ended(agent)
    assert counts(rig) == {"evicted": 0, "deleted": 2, "left": 0}


def test_drain_waits_for_dead_kubelet_until_deadline_only(rig: Rig) -> None:
    order(rig, seconds=60)
    web = rig.add_pod("web", "a", grace=20)
    agent = rig.agent()
    while rig.clock.now < START + timedelta(seconds=60):
        rig.rounds(agent, 1, kubelets=False)
        assert web in rig.kube.store.objects
    rig.rounds(agent, 1, kubelets=False)
    assert web not in rig.kube.store.objects, "its grace was over, its kubelet said nothing"
    rig.rounds(agent, 2, kubelets=False)
    assert result(rig)["status"] == "done"


@pytest.mark.parametrize(("grace", "granted"), [(20, 20), (LAST_GRACE, LAST_GRACE), (300, LAST_GRACE)])
def test_drain_past_deadline_respects_grace_period_up_to_a_bound(rig: Rig, grace: int, granted: int) -> None:
    order(rig, seconds=0)
    web = rig.add_pod("web", "a", grace=grace)
    agent = rig.agent()
    rig.rounds(agent, 1, kubelets=False)
    assert rig.kube.store.get(web)["metadata"]["deletionGracePeriodSeconds"] == granted
    while rig.clock.now < START + timedelta(seconds=granted):
        assert web in rig.kube.store.objects
        rig.rounds(agent, 1, kubelets=False)
    rig.rounds(agent, 1, kubelets=False)
    assert web not in rig.kube.store.objects
    assert rig.clock.now < START + timedelta(seconds=granted + 60)


def test_a_deadline_that_is_set_later_shortens_the_grace_of_pods_that_are_ending(rig: Rig) -> None:
    order(rig)
    web = rig.add_pod("web", "a", grace=300)
    agent = rig.agent()
    rig.rounds(agent, 3, kubelets=False)
    assert rig.kube.store.get(web)["metadata"]["deletionGracePeriodSeconds"] == 300
    rig.platform.commands["cmd_d"]["deadline"] = timestamp(rig.clock.now)
    rig.rounds(agent, 1, kubelets=False)
    assert rig.kube.store.get(web)["metadata"]["deletionGracePeriodSeconds"] == LAST_GRACE
    rig.until_ended(agent)
    assert rig.clock.now < START + timedelta(seconds=150)
    assert counts(rig) == {"evicted": 1, "deleted": 0, "left": 0}


def test_drain_names_the_finalizers_that_keep_a_pod_and_leaves_it_behind(rig: Rig) -> None:
    order(rig, seconds=0)
    web = rig.add_pod("web", "a", grace=10)
    rig.kube.store.get(web)["metadata"]["finalizers"] = ["example.com/kept"]
    agent = rig.agent()
    rig.rounds(agent, 4)
    assert result(rig)["status"] == "running"
    assert "web/web: kept by its finalizers example.com/kept" in result(rig)["message"]
    assert result(rig)["data"]["held"] == ["web/web: its finalizers example.com/kept"]
    assert counts(rig) == {"evicted": 0, "deleted": 1, "left": 1}, "it is counted once"
    rig.until_ended(agent)
    assert web in rig.kube.store.objects
    assert "1 that do not end are left behind" in result(rig)["message"]
    assert rig.clock.now < START + timedelta(seconds=10 + 60 + 45)


@pytest.mark.parametrize("deadline", [None, 0], ids=["evictions", "deletions"])
def test_drain_leaves_the_rest_to_the_next_round_when_the_api_is_slow(rig: Rig, deadline: float | None) -> None:
    """A join token of another command waits no longer than a round."""
    order(rig, seconds=deadline)
    for number in range(60):
        rig.add_pod(f"p{number}", "a")

    def slow(request: Any, deliver: Any) -> Any:
        if request.method != "GET":
            rig.clock.later(1)
        return deliver(request)

    rig.around = slow
    agent, began = rig.agent(), rig.clock.now
    agent.round()
    assert rig.clock.now - began <= timedelta(seconds=ROUND_SECONDS + 3)
    rig.around = None
    rig.until_ended(agent)
    assert result(rig)["data"]["evicted" if deadline is None else "deleted"] == 60


def test_drain_ends_when_node_disappears(rig: Rig) -> None:
    order(rig)
    rig.add_pod("db", "a", labels={"app": "db"})
    rig.add_budget("db", {"app": "db"}, 1)
    agent = rig.agent()
    rig.rounds(agent, 2)
    del rig.kube.store.objects[Key("", "nodes", "", "a")]
    rig.rounds(agent, 2)
    assert (result(rig)["status"], result(rig)["message"]) == ("done", "There is no node a.")


def test_drain_ignores_node_with_other_uid(rig: Rig) -> None:
    order(rig, uid="uid-of-another")
    rig.add_pod("web", "a")
    rig.until_ended(rig.agent())
    assert rig.pods("a") == ["web"]
    assert rig.node("a")["spec"] == {}


def test_drain_does_not_evict_replacement_pod_of_same_name(rig: Rig) -> None:
    order(rig)
    web = rig.add_pod("db-0", "a", owner="StatefulSet")

    def around(request: Any, deliver: Any) -> Any:
        if request.url.endswith("/eviction"):
            rig.around = None
            del rig.kube.store.objects[web]
            rig.add_pod("db-0", "b", owner="StatefulSet")
        return deliver(request)

    rig.around = around
    rig.until_ended(rig.agent())
    assert rig.pods("b") == ["db-0"]
    assert counts(rig) == {"evicted": 0, "deleted": 0, "left": 0}


@pytest.mark.parametrize("deadline", [None, 0])
def test_drain_ignores_pod_that_disappears(rig: Rig, deadline: float | None) -> None:
    order(rig, seconds=deadline)
    for name in ("one", "two"):
        rig.add_pod(name, "a")
    for resource in ("pods", "pods/eviction"):
        rig.kube.faults.append(Fault("delete" if resource == "pods" else "create", resource, 404))
    rig.until_ended(rig.agent())
    assert result(rig)["status"] == "done"


def test_drain_stops_round_when_api_is_busy(rig: Rig) -> None:
    order(rig)
    for name in ("one", "two", "three"):
        rig.add_pod(name, "a")
    rig.kube.faults.append(Fault("create", "pods/eviction", 429, message="too many requests"))
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert len([call for call in rig.kube.calls if call.action.resource == "pods/eviction"]) == 1
    rig.until_ended(agent)
    assert result(rig)["data"]["evicted"] == 3


def test_drain_waits_for_terminating_namespace(rig: Rig) -> None:
    order(rig)
    web = rig.add_pod("web", "a")
    rig.kube.terminating.add("web")
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert result(rig)["status"] == "running"
    assert "being terminated" in result(rig)["message"]
    del rig.kube.store.objects[web]
    rig.until_ended(agent)


@pytest.mark.parametrize("deadline", [None, 0])
def test_drain_fails_without_rights_and_says_why(rig: Rig, deadline: float | None) -> None:
    order(rig, seconds=deadline)
    rig.add_pod("web", "a")
    role = rig.kube.store.get(Key("rbac.authorization.k8s.io", "clusterroles", "", "stockyard-agent"))
    role["rules"] = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb in ("get", "list", "patch")]}
        for rule in role["rules"]
    ]
    rig.until_ended(rig.agent())
    assert result(rig)["status"] == "failed"
    assert f'cannot {"create" if deadline is None else "delete"} resource "pods' in result(rig)["message"]


def test_drain_retries_refused_deletions(rig: Rig) -> None:
    order(rig, seconds=0)
    rig.add_pod("web", "a")
    rig.kube.faults.append(Fault("delete", "pods", 503, times=2, message="etcd has no leader"))
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert "etcd has no leader" in result(rig)["message"]
    rig.until_ended(agent)
    assert counts(rig) == {"evicted": 0, "deleted": 1, "left": 0}


def test_drain_reads_pods_in_pages(rig: Rig) -> None:
    order(rig)
    for number in range(600):
        rig.add_pod(f"p{number}", "a")
    rig.until_ended(rig.agent())
    assert counts(rig) == {"evicted": 600, "deleted": 0, "left": 0}


def test_simulated_kubelet_ends_pods_after_grace_period(rig: Rig) -> None:
    rig.add_node("a")
    web = rig.add_pod("web", "a", grace=30)
    kube_pods.delete(rig.kube.store, web, {})
    assert kube_pods.reap(rig.kube.store) == 0
    rig.clock.later(31)
    assert kube_pods.reap(rig.kube.store, nodes_down=frozenset({"a"})) == 0
    assert kube_pods.reap(rig.kube.store) == 1
