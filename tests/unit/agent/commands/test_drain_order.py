"""Draining: in which order pods go, what keeps them, and how each has its grace before the deadline."""

from __future__ import annotations

from datetime import timedelta

from agent.roles import NAMESPACE
from agent.stockyard_agent.transport import Exchange, HttpRequest, HttpResponse
from local.kubernetes.store import stamp
from tests.unit.agent.drains import CRITICAL, DISRUPTED, PROTECTED, counts, order, result, verbs
from tests.unit.agent.rig import START, Rig

# --- the order --------------------------------------------------------------------------------------------------------


def test_drain_goes_by_priority_and_daemons(rig: Rig) -> None:
    """As Karpenter: ordinary pods, DaemonSets, critical pods, critical DaemonSets; the agent behind its like."""
    order(rig)
    rig.add_pod("log", "a", owner="DaemonSet")
    rig.add_pod("web", "a")
    rig.add_pod("csi", "a", "kube-system", owner="DaemonSet", priority="system-node-critical")
    rig.add_pod("dns", "a", "kube-system", priority=CRITICAL)
    rig.add_pod("agent-1", "a", NAMESPACE, priority=CRITICAL)
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert rig.node("a")["spec"]["taints"] == [DISRUPTED], "so that no DaemonSet makes its pod anew"
    rig.until_ended(agent)
    assert [name for _, name in verbs(rig)] == ["web", "log", "dns", "agent-1", "csi"]


def test_drain_keeps_the_taints_of_others(rig: Rig) -> None:
    order(rig)
    rig.node("a")["spec"]["taints"] = [{"key": "x", "value": "y", "effect": "NoExecute"}]
    rig.rounds(rig.agent(), 2)
    assert rig.node("a")["spec"]["taints"] == [{"key": "x", "value": "y", "effect": "NoExecute"}, DISRUPTED]


def test_all_nodes_whose_drains_begin_are_closed_before_a_pod_is_evicted(rig: Rig) -> None:
    """The scheduler would put the first one's pods onto the next one, from where they had to move again."""
    order(rig)
    rig.add_pod("web", "a")
    for name in ("b", "c"):
        rig.add_node(name)
    for name, uid in (("b", None), ("c", "uid-of-another"), ("lost", None), ("?", None)):
        rig.platform.order(name, "drain", node=name, grace_seconds=None, deadline=None, uid=uid)
    cordoned: list[bool] = []

    def around(request: HttpRequest, deliver: Exchange) -> HttpResponse:
        if "/eviction" in request.url:
            cordoned.extend(rig.node(name)["spec"].get("unschedulable", False) for name in "abc")
        return deliver(request)

    rig.around = around
    rig.until_ended(rig.agent())
    assert cordoned == [True, True, False]
    ends = {name.removeprefix("cmd_"): result["status"] for name, result in rig.platform.results_by_id.items()}
    assert ends == {"d": "done", "b": "done", "c": "done", "lost": "done", "?": "failed"}


# --- what is not to be disrupted --------------------------------------------------------------------------------------


def test_drain_without_a_deadline_waits_for_pods_that_are_not_to_be_disrupted(rig: Rig) -> None:
    order(rig)
    job = rig.add_pod("job", "a", annotations=PROTECTED)
    rig.add_pod("web", "a")
    rig.add_pod("log", "a", owner="DaemonSet")
    agent = rig.agent()
    rig.rounds(agent, 20)
    rig.clock.later(7 * 86_400)
    rig.rounds(agent, 3)
    assert rig.pods("a") == ["job", "log"], "what comes later waits as well"
    assert result(rig)["data"]["held"] == ["web/job: karpenter.sh/do-not-disrupt"]
    assert "web/job: not to be disrupted" in result(rig)["message"]
    rig.kube.store.remove(job, {"gracePeriodSeconds": 0})
    rig.until_ended(agent)
    assert rig.pods("a") == []
    assert result(rig)["data"]["held"] == []


def test_drain_waits_for_a_protection_as_long_as_it_lasts(rig: Rig) -> None:
    order(rig)
    job = rig.add_pod("job", "a", annotations={"karpenter.sh/do-not-disrupt": "5m"})
    rig.kube.store.get(job)["status"]["startTime"] = stamp(START)
    agent = rig.agent()
    while rig.clock.now < START + timedelta(minutes=5):
        assert rig.pods("a") == ["job"]
        rig.rounds(agent, 1)
    rig.rounds(agent, 2)
    assert rig.pods("a") == []


def test_drain_says_which_budget_holds_which_pod(rig: Rig) -> None:
    order(rig)
    rig.add_pod("db", "a", labels={"app": "db"})
    rig.add_budget("db", {"app": "db"}, 1)
    rig.rounds(rig.agent(), 2)
    assert result(rig)["data"]["held"] == ["web/db: budget web/db"]


# --- the deadline -----------------------------------------------------------------------------------------------------


def test_each_pod_is_deleted_so_that_it_has_its_grace_before_the_deadline(rig: Rig) -> None:
    """Budgets and annotations hold until then, and not longer."""
    order(rig, seconds=300)
    rig.platform.interval = 5
    rig.add_pod("slow", "a", labels={"app": "db"}, grace=200)
    rig.add_pod("quick", "a", labels={"app": "db"}, grace=20)
    rig.add_pod("job", "a", annotations=PROTECTED, grace=60)
    rig.add_pod("dns", "a", "kube-system", priority=CRITICAL, grace=100)
    rig.add_budget("db", {"app": "db"}, 2)
    agent, ends = rig.agent(), {}
    while rig.clock.now < START + timedelta(seconds=300):
        before = rig.pods("a")
        moment = (rig.clock.now - START).total_seconds()
        rig.rounds(agent, 1)
        ends |= dict.fromkeys(set(before) - set(rig.pods("a")), moment)
    assert ends == {"slow": 100, "dns": 200, "job": 240, "quick": 280}
    rig.rounds(agent, 2)
    assert counts(rig) == {"evicted": 0, "deleted": 4, "left": 0}


def test_a_grace_that_is_longer_than_the_time_is_cut(rig: Rig) -> None:
    order(rig, seconds=120)
    web = rig.add_pod("web", "a", grace=3600)
    rig.rounds(rig.agent(), 1, kubelets=False)
    assert rig.kube.store.get(web)["metadata"]["deletionGracePeriodSeconds"] == 120
    assert [kind for kind, _ in verbs(rig)] == ["pods"]


def test_a_pod_that_its_kubelet_does_not_end_holds_no_drain_for_long(rig: Rig) -> None:
    order(rig)
    web = rig.add_pod("web", "a", grace=20)
    agent = rig.agent()
    while rig.clock.now < START + timedelta(seconds=80):
        assert rig.platform.commands
        rig.rounds(agent, 1, kubelets=False)
    rig.rounds(agent, 2, kubelets=False)
    assert result(rig)["status"] == "done"
    assert web in rig.kube.store.objects, "nobody kills it: the node goes"
