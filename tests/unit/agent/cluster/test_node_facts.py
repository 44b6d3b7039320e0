"""Facts of nodes by which Stockyard can decide which may go: readiness, protection, budgets, moves of pods."""

from __future__ import annotations

import copy
import json
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from agent.stockyard_agent import pod_reports
from agent.stockyard_agent.cluster import node_facts
from agent.stockyard_agent.cluster.pod_rules import deletion_cost, has_to_leave, is_protected, protected_for, selects
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import Fault
from local.kubernetes.store import Key, stamp
from tests.unit.agent.rig import START, Rig

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
TAINT = "karpenter.sh/disrupted"


def facts_told(rig: Rig, name: str = "a") -> dict[str, Any]:
    """The facts of a node as Stockyard knows them."""
    facts: dict[str, Any] = rig.platform.pods.pod_state["nodes"][name]
    return facts


def protected(rig: Rig, name: str, value: str, *, started: float | None = 0, on: str = "a", **more: Any) -> Key:
    """A pod with the annotation that started so many seconds before now."""
    key = rig.add_pod(name, on, annotations={DO_NOT_DISRUPT: value}, **more)
    if started is not None:
        rig.kube.store.get(key)["status"]["startTime"] = stamp(rig.clock.now - timedelta(seconds=started))
    return key


def change(rig: Rig, key: Key, **members: Any) -> None:
    """Change members of an object, each given as ``part__name``."""
    document = copy.deepcopy(rig.kube.store.get(key))
    for path, value in members.items():
        part, name = path.split("__")
        document.setdefault(part, {})[name] = value
    rig.kube.store.replace(key, document)


def test_a_node_is_told_as_the_cluster_has_it(rig: Rig) -> None:
    rig.add_node("a", unschedulable=True)
    since = stamp(START - timedelta(minutes=3))
    change(
        rig,
        Key("", "nodes", "", "a"),
        metadata__annotations={DO_NOT_DISRUPT: "true"},
        status__conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": since}],
        status__allocatable={"cpu": "1930m", "memory": "3Gi", "pods": "17"},
        spec__taints=[
            {"key": "b", "effect": "NoExecute", "timeAdded": since}, {"key": "a", "value": "x", "effect": "NoSchedule"},
        ],
    )  # fmt: skip
    rig.add_node("b")
    rig.steps(rig.reports())
    assert facts_told(rig) == {
        "ready": "False", "ready_since": since, "created_at": stamp(START), "unschedulable": True,
        "do_not_disrupt": True, "pod_event_at": None, "uid": rig.node("a")["metadata"]["uid"],
        "labels": {"kubernetes.io/hostname": "a", "kubernetes.io/os": "linux"},
        "allocatable": {"cpu": "1930m", "memory": "3Gi", "pods": "17"},
        "taints": [
            {"key": "a", "value": "x", "effect": "NoSchedule"}, {"key": "b", "value": "", "effect": "NoExecute"},
        ],
    }  # fmt: skip
    assert (facts_told(rig, "b")["ready"], facts_told(rig, "b")["do_not_disrupt"]) == ("True", False)
    assert rig.platform.pods.pod_state["budgets"] == {}


# --- protected pods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("true", float("inf")), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("+90s", 90), ("500ms", 0.5),
        ("", 0), ("false", 0), ("True", 0), ("30", 0), ("-5m", 0), ("0s", 0), ("1d", 0), ("5m later", 0),
        ("9" * 40 + "h", 1e9),
    ],
)  # fmt: skip
def test_values_of_the_annotation(value: str, seconds: float) -> None:
    assert protected_for(value) == seconds


def test_a_duration_protects_from_the_start_of_the_pod() -> None:
    began = stamp(START - timedelta(minutes=10))
    assert is_protected("11m", began, START)
    assert not is_protected("10m", began, START)
    assert is_protected("true", began, START)
    assert is_protected("1m", "", START), "it has not started"
    assert not is_protected("false", "", START)


def test_protected_pods_are_counted_and_the_one_that_lasts_longest_is_first(rig: Rig) -> None:
    rig.add_node("a")
    for number, minutes in enumerate((10, 40, 20, 30)):
        protected(rig, f"job-{number}", f"{minutes}m")
    protected(rig, "old", "50m", started=1800)
    protected(rig, "odd", "soon")
    rig.add_pod("plain", "a")
    rig.add_node("b")
    protected(rig, "cni", "true", on="b", owner="DaemonSet")
    protected(rig, "new", "5m", started=None, on="b")
    ending = protected(rig, "ending", "true", on="b")
    change(rig, ending, metadata__deletionTimestamp=stamp(START))
    rig.steps(rig.reports())
    job = {"name": "web/job-1", "value": "40m", "started_at": stamp(START)}
    assert (facts_told(rig)["protected"]["count"], facts_told(rig)["protected"]["pods"][0]) == (6, job)
    assert [pod["name"] for pod in facts_told(rig)["protected"]["pods"]] == ["web/job-1", "web/job-3", "web/old"]
    assert facts_told(rig, "b")["protected"]["count"] == 2
    assert facts_told(rig, "b")["protected"]["pods"][0]["started_at"] is None


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_budgets_are_told_with_their_pods_and_what_they_allow(rig: Rig) -> None:
    for name in "ab":
        rig.add_node(name)
    for number, node in enumerate("aab"):
        rig.add_pod(f"db-{number}", node, labels={"app": "db", "tier": "x"})
    rig.add_pod("web", "a", labels={"app": "web"})
    rig.add_pod("other", "a", "elsewhere", labels={"app": "db"})
    rig.add_budget("db", {"app": "db"}, 2)
    rig.add_budget("unused", {"app": "none"}, 0)
    rig.steps(rig.reports())
    assert facts_told(rig)["budgets"] == {"web/db": 2}
    assert facts_told(rig, "b")["budgets"] == {"web/db": 1}
    assert rig.platform.pods.pod_state["budgets"] == {"web/db": 1}
    assert "doubly_guarded" not in facts_told(rig)


def test_pods_under_two_budgets_are_counted(rig: Rig) -> None:
    rig.add_node("a")
    rig.add_pod("db", "a", labels={"app": "db", "tier": "x"})
    rig.add_pod("cache", "a", labels={"tier": "x"})
    for name, labels in (("db", {"app": "db"}), ("tier", {"tier": "x"})):
        rig.add_budget(name, labels, 0)
    rig.steps(rig.reports())
    assert (facts_told(rig)["budgets"], facts_told(rig)["doubly_guarded"]) == ({"web/db": 1, "web/tier": 2}, 1)


def test_what_a_drain_does_not_evict_is_under_no_budget(rig: Rig) -> None:
    rig.add_node("a")
    labels = {"app": "db"}
    rig.add_budget("db", labels, 0)
    everything = {"tolerations": [{"operator": "Exists"}]}
    for name, pod, spec in (
        ("static", kube_pods.pod("static", "a", owner="Node", labels=labels), {}),
        ("cni", kube_pods.pod("cni", "a", owner="DaemonSet", labels=labels), everything),
    ):
        pod["spec"] |= spec
        rig.kube.store.create(Key("", "pods", "web", name), pod)
    ending = rig.add_pod("ending", "a", labels=labels)
    change(rig, ending, metadata__deletionTimestamp=stamp(START))
    rig.add_pod("daemon", "a", owner="DaemonSet", labels=labels)
    rig.steps(rig.reports())
    assert facts_told(rig)["budgets"] == {"web/db": 1}


def test_a_budget_that_spares_ready_pods_alone_does_not_hold_others(rig: Rig) -> None:
    rig.add_node("a")
    for name, phase in (("well", "Running"), ("ill", "Pending")):
        rig.add_pod(name, "a", labels={"app": "db"}, phase=phase)
    budget = rig.add_budget("db", {"app": "db"}, 1)
    change(rig, budget, spec__unhealthyPodEvictionPolicy="AlwaysAllow")
    rig.steps(rig.reports())
    assert facts_told(rig)["budgets"] == {"web/db": 1}


def test_a_budget_that_its_controller_has_not_counted_allows_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.add_node("a")
    rig.add_pod("db", "a", labels={"app": "db"})
    change(rig, rig.add_budget("db", {"app": "db"}, 0), metadata__generation=2)
    stale = {"observedGeneration": 1, "disruptionsAllowed": 1}
    monkeypatch.setattr(kube_pods, "budget_status", lambda *_: stale)
    rig.steps(rig.reports())
    assert rig.platform.pods.pod_state["budgets"] == {"web/db": 0}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False), ({}, True), ({"matchLabels": {"a": "1"}}, True), ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)  # fmt: skip
def test_selectors_of_budgets(selector: Any, expected: bool) -> None:
    assert selects(selector, {"a": "1"}) is expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (None, True), ({"operator": "Exists"}, False), ({"key": TAINT, "operator": "Exists"}, False),
        ({"key": TAINT}, False), ({"key": TAINT, "value": "x"}, True), ({"key": "other", "operator": "Exists"}, True),
        ({"key": TAINT, "operator": "Exists", "effect": "NoExecute"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
    ],
)  # fmt: skip
def test_pods_that_tolerate_a_disrupted_node_stay(toleration: Any, expected: bool) -> None:
    pod = kube_pods.pod("p", "a", owner="DaemonSet")
    pod["spec"]["tolerations"] = [toleration] if toleration else []
    assert has_to_leave(pod) is expected


@pytest.mark.parametrize(("text", "cost"), [("", 0), ("-5", -5), ("100", 100), ("1.5", 0), ("many", 0)])
def test_costs_of_deletions(text: str, cost: int) -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": text}
    assert deletion_cost(kube_pods.pod("p", "a", annotations=annotations)) == cost


# --- when pods moved --------------------------------------------------------------------------------------------------


def test_pods_that_come_and_leave_are_events_of_their_node(rig: Rig) -> None:
    rig.platform.pods.interval = 1
    rig.add_node("a")
    first = rig.add_pod("web", "a")
    bound = stamp(START - timedelta(hours=1))
    change(rig, first, status__startTime=bound)
    reports = rig.reports()
    rig.steps(reports)
    assert facts_told(rig)["pod_event_at"] == bound, "an agent that was just started knows who is there"
    rig.clock.later(100)
    rig.add_pod("cni", "a", owner="DaemonSet")
    rig.steps(reports, 3)
    assert facts_told(rig)["pod_event_at"] == bound, "DaemonSets are on each node"
    moment = stamp(rig.clock.now)
    change(rig, first, metadata__deletionTimestamp=stamp(rig.clock.now + timedelta(seconds=30)))
    rig.steps(reports, 3)
    assert facts_told(rig)["pod_event_at"] == moment
    rig.clock.later(30)
    gone_at = stamp(rig.clock.now)
    rig.kube.store.remove(first, {})
    rig.steps(reports, 3)
    assert facts_told(rig)["pod_event_at"] == gone_at


def test_a_busy_node_makes_no_report_of_its_own(rig: Rig) -> None:
    rig.add_node("a")
    reports = rig.reports()
    for number in range(61):
        rig.add_pod(f"web-{number}", "a")
        rig.steps(reports)
    assert len(rig.platform.pods.posts) == 2, "as often as pods that move are told"


# --- what changes without a pod ---------------------------------------------------------------------------------------


def test_a_change_of_a_budget_is_told_soon(rig: Rig) -> None:
    rig.add_node("a")
    rig.add_pod("db", "a", labels={"app": "db"})
    budget = rig.add_budget("db", {"app": "db"}, 1)
    reports = rig.reports()
    rig.steps(reports, 2)
    rig.kube.store.get(budget)["spec"]["minAvailable"] = 0
    rig.steps(reports, 70)
    assert rig.platform.pods.pod_state["budgets"] == {"web/db": 1}
    assert len(rig.platform.pods.posts) == 2
    rig.steps(reports, 70)
    assert len(rig.platform.pods.posts) == 2


def test_budgets_are_listed_twice_in_an_interval_at_most(rig: Rig) -> None:
    rig.add_node("a")
    reports = rig.reports()
    rig.steps(reports, 121)
    counts = Counter((call.action.verb, call.action.resource) for call in rig.kube.calls)
    assert counts["list", "poddisruptionbudgets"] == 5
    assert counts["list", "nodes"] == 1


def test_stockyard_may_ask_for_what_moves_sooner(rig: Rig) -> None:
    rig.platform.pods.interval = 300
    rig.platform.pods_interval = 30
    rig.add_node("a")
    reports = rig.reports()
    agent = rig.agent(reports=reports)
    rig.steps(reports)
    agent.round()
    rig.add_pod("web", "a")
    rig.steps(reports, 35)
    assert len(rig.platform.pods.posts) == 2
    rig.platform.pods_interval = None
    agent.round()
    rig.add_pod("web-2", "a")
    rig.steps(reports, 100)
    assert len(rig.platform.pods.posts) == 2


# --- how far the reports are ------------------------------------------------------------------------------------------


def test_posts_say_until_when_the_last_report_is_known_to_be_true(rig: Rig) -> None:
    rig.platform.pods.interval = rig.platform.interval = 300
    rig.add_node("a")
    reports = rig.reports()
    agent = rig.agent(reports=reports)

    def state() -> tuple[int, float]:
        """The sequence of the last report, and for how many seconds before the post it is known to be true."""
        agent.round()
        pods = rig.platform.posts[-1]["pods"]
        return pods["sequence"], (rig.clock.now - datetime.fromisoformat(pods["true_at"])).total_seconds()

    agent.round()
    assert rig.platform.posts[-1]["pods"] is None
    rig.steps(reports)
    first = rig.platform.pods.sequence
    assert state() == (first, 1)
    rig.steps(reports, 200)
    assert state() == (first, 53), "nodes and budgets were looked at then, the pods just now"
    rig.add_pod("web", "a")
    rig.steps(reports, 60)
    assert state() == (first, 113), "the pod is told later"
    rig.steps(reports, 60)
    second = rig.platform.pods.sequence
    assert state() == (second, 21)
    rig.kube.faults.append(Fault("watch", "pods", 503, times=99))
    rig.steps(reports, 5)
    age = state()[1]
    rig.clock.later(100)
    assert state() == (second, age + 100), "nothing is heard of pods"


# --- what cannot be told ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["MOST_NODES", "MOST_BUDGETS"])
def test_too_many_to_tell_is_not_told(rig: Rig, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_facts, limit, 1)
    for name in "ab":
        rig.add_node(name)
        rig.add_pod(f"pod-{name}", name, labels={"app": name})
        rig.add_budget(name, {"app": name}, 0)
    rig.steps(rig.reports())
    assert rig.platform.pods.pod_state.keys().isdisjoint({"nodes", "budgets"})
    assert rig.platform.pods.running == {"a": 1, "b": 1}


def test_facts_that_do_not_fit_are_left_out_before_pods_are(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.add_waiting("web")
    reports = rig.reports()
    rig.steps(reports)
    size = len(json.dumps(rig.platform.pods.posts[0], separators=(",", ":")))
    for number in range(20):
        rig.add_node(f"n{number}")
    monkeypatch.setattr(pod_reports, "LIMIT", size + 500)
    rig.steps(rig.reports())
    assert rig.platform.pods.posts[-1]["nodes"] is None
    assert rig.platform.pods.pending == [(1, ["web/web"])]
    assert any("are not told" in line for line in rig.logs)


def test_an_agent_that_may_not_read_budgets_tells_of_no_node(rig: Rig) -> None:
    """One that was upgraded under the roles of an older one."""
    role = next(role for key, role in rig.kube.store.objects.items() if key.resource == "clusterroles")
    role["rules"] = [rule for rule in role["rules"] if rule["apiGroups"] != ["policy"]]
    rig.add_node("a")
    reports = rig.reports()
    rig.add_pod("web", "a")
    rig.steps(reports, 70)
    assert rig.platform.pods.posts[-1]["nodes"] is None
    assert rig.platform.pods.running == {"a": 1}
    assert len([line for line in rig.logs if "are not told" in line]) == 1
