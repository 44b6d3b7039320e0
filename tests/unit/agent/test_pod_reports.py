"""The reports of pods: when they are posted, what they follow, and what happens when something fails."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agent.stockyard_agent import pod_reports
from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from local.kubernetes.api import Fault
from local.kubernetes.store import Key
from tests.unit.agent.rig import Rig


def test_pods_are_told_at_the_start_and_when_they_come_and_go(rig: Rig) -> None:
    rig.add_pod("db", "a")
    first = rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports)
    pods = rig.platform.pods
    assert (pods.pending, pods.running) == ([(1, ["web/web-1"])], {"a": 1})
    rig.add_waiting("web-2")
    rig.steps(reports, 2)
    assert pods.pending == [(2, ["web/web-1", "web/web-2"])]
    rig.bind(first, "a")
    rig.steps(reports, 2)
    assert (pods.pending, pods.running) == ([(1, ["web/web-2"])], {"a": 2})
    rig.kube.store.remove(first, {})
    rig.steps(reports, 12)
    assert pods.running == {"a": 1}
    assert [post["base"] is None for post in pods.posts] == [True, False, False, False]
    assert [line for line in rig.logs if "pods" in line] == []


def test_a_crowd_is_told_once_it_is_complete(rig: Rig) -> None:
    reports = rig.reports()
    rig.steps(reports)
    for number in range(5):
        rig.add_waiting(f"web-{number}")
        rig.steps(reports)
        assert len(rig.platform.pods.posts) == 1
    rig.steps(reports)
    assert rig.platform.pods.pending == [(5, [f"web/web-{number}" for number in range(5)])]
    assert len(rig.platform.pods.posts) == 2


def test_a_pod_behind_which_nothing_comes_is_told_at_once(rig: Rig) -> None:
    def quiet(request: HttpRequest, deliver: Any) -> HttpResponse:
        answer: HttpResponse = deliver(request)
        return replace(answer, cut="watch=true" in request.url and "/api/v1/pods?" in request.url)

    reports = rig.reports()
    rig.steps(reports, 2)
    rig.around = quiet
    rig.add_waiting("web-1")
    rig.steps(reports)
    assert rig.platform.pods.pending == [(1, ["web/web-1"])]
    rig.add_waiting("web-2")
    for _ in range(3):
        seconds = reports.step()
        rig.clock.later(seconds or 0.3)
    assert rig.platform.pods.pending == [(2, ["web/web-1", "web/web-2"])]
    gaps = [b - a for a, b in pairwise(post["sequence"] for post in rig.platform.pods.posts)]
    assert min(gaps) >= 1000, "not more often than once a second"


def test_a_crowd_without_end_is_told_after_ten_seconds(rig: Rig) -> None:
    reports = rig.reports()
    rig.steps(reports)
    for number in range(15):
        rig.add_waiting(f"web-{number}")
        rig.steps(reports)
    (counted,) = [sum(waiting["count"] for waiting in post["pending"].values()) for post in rig.platform.pods.posts[1:]]
    assert counted == 11


def test_what_runs_is_told_later_and_sooner_while_others_wait(rig: Rig) -> None:
    reports = rig.reports()
    rig.steps(reports)
    rig.add_pod("db-1", "a")
    rig.steps(reports, 30)
    assert len(rig.platform.pods.posts) == 1
    rig.steps(reports, 35)
    assert (len(rig.platform.pods.posts), rig.platform.pods.running) == (2, {"a": 1})
    rig.add_waiting("web-1")
    rig.steps(reports, 2)
    rig.add_pod("db-2", "a")
    rig.steps(reports, 11)
    assert (len(rig.platform.pods.posts), rig.platform.pods.running) == (4, {"a": 2})


def test_pods_that_only_move_are_told_as_often_as_stockyard_asks(rig: Rig) -> None:
    rig.add_node("a")
    reports = rig.reports()
    rig.platform.pods.interval = 20
    for number in range(61):
        rig.add_pod(f"web-{number}", "a")
        rig.steps(reports)
    posts = rig.platform.pods.posts
    assert len(posts) == 4
    assert all(not post["pending"] and post["base"] is not None for post in posts[1:])


def test_nothing_new_is_told_each_hour(rig: Rig) -> None:
    """Each report is paid for, and Stockyard has forgotten nothing."""
    reports = rig.reports()
    rig.platform.pods.interval = 20
    rig.steps(reports, 30)
    assert len(rig.platform.pods.posts) == 1
    rig.clock.later(3600)
    rig.steps(reports, 30)
    assert len(rig.platform.pods.posts) == 2
    assert rig.platform.pods.posts[1]["base"] is not None


def test_pods_that_wait_anew_are_told_to_the_loop_when_stockyard_knows_of_them(rig: Rig) -> None:
    posts: list[int] = []
    reports = rig.reports(waiting=lambda: posts.append(len(rig.platform.pods.posts)))
    rig.steps(reports, 3)
    key = rig.add_waiting("web-1")
    rig.steps(reports, 3)
    assert posts == [2]
    rig.kube.store.remove(key, {})
    rig.steps(reports, 3)
    assert (posts, len(rig.platform.pods.posts)) == ([2], 3)


def test_changes_of_no_importance_are_not_told(rig: Rig) -> None:
    key = rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports)
    pod = json.loads(json.dumps(rig.kube.store.get(key)))
    pod["status"]["conditions"][0]["message"] = "0/4 nodes are available: 4 Insufficient cpu."
    rig.kube.store.replace(key, pod)
    rig.steps(reports, 5)
    assert len(rig.platform.pods.posts) == 1


def test_another_reason_of_the_scheduler_is_told_after_a_while(rig: Rig) -> None:
    key = rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports)
    assert [waiting["message"] for waiting in rig.platform.pods.posts[0]["pending"].values()] == ["Insufficient cpu"]
    pod = json.loads(json.dumps(rig.kube.store.get(key)))
    text = "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu."
    pod["status"]["conditions"][0]["message"] = text
    rig.kube.store.replace(key, pod)
    rig.steps(reports, 5)
    assert len(rig.platform.pods.posts) == 1
    rig.steps(reports, 30)
    _, post = rig.platform.pods.posts
    assert [waiting["message"] for waiting in post["pending"].values()] == [
        "Insufficient cpu; node(s) were unschedulable"
    ]
    assert post["groups"] == {}


def test_a_pod_that_is_nominated_and_bound_later_is_told_while_others_wait(rig: Rig) -> None:
    rig.add_node("a")
    first = rig.add_waiting("web-1")
    rig.add_waiting("web-2")
    reports = rig.reports()
    rig.steps(reports)
    pods = rig.platform.pods
    rig.nominate(first, "a")
    rig.steps(reports, 2)
    assert (pods.nominated, pods.pending) == ({"a": 1}, [(1, ["web/web-2"])])
    rig.bind(first, "a")
    rig.steps(reports, 12)
    assert (pods.nominated, pods.running) == ({}, {"a": 1})


# --- Stockyard --------------------------------------------------------------------------------------------------------


def test_all_is_told_when_stockyard_asks_for_it(rig: Rig) -> None:
    rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports)
    pods = rig.platform.pods
    pods.pod_state, pods.sequence = {}, 5  # restored from a backup
    rig.add_waiting("web-2")
    rig.steps(reports, 2)
    assert pods.pending == [(2, ["web/web-1", "web/web-2"])]
    assert [post["base"] is None for post in pods.posts] == [True, False, True]


def test_an_agent_whose_clock_is_behind_goes_on_above_what_was_told(rig: Rig) -> None:
    rig.platform.pods.sequence = 2**52
    reports = rig.reports()
    rig.steps(reports)
    assert [post["sequence"] > 2**52 for post in rig.platform.pods.posts] == [False, True]


def test_stockyard_that_always_asks_for_all_is_not_flooded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"sequence": 0, "resync": True, "interval_seconds": 10}
    monkeypatch.setattr(rig.platform.pods, "take", lambda post: rig.platform.pods.posts.append(post) or answer)
    reports = rig.reports()
    assert reports.step() == 1.5
    assert reports.step() == 3.0
    assert len(rig.platform.pods.posts) == 4


@pytest.mark.parametrize(("status", "pause"), [(429, 30.0), (404, 1.5), (409, 1.5), (422, 1.5), (503, 1.5)])
def test_a_refused_report_comes_again_as_a_whole(rig: Rig, status: int, pause: float) -> None:
    rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports)
    rig.add_waiting("web-2")
    rig.steps(reports)
    rig.platform.pods.refusals.append((status, {"retry-after": "30"} if status == 429 else {}))
    wait = reports.step()
    assert wait == pause
    rig.clock.later(wait)
    rig.steps(reports)
    assert rig.platform.pods.pending == [(2, ["web/web-1", "web/web-2"])]
    assert rig.platform.pods.posts[-1]["base"] is None


def test_an_older_stockyard_is_told_what_it_can_read(rig: Rig) -> None:
    """An older Stockyard refuses members that it does not know (422). An hour later it may be a newer one."""
    rig.add_node("a")
    rig.nominate(rig.add_waiting("web-1"), "a")
    rig.add_waiting("web-2")
    reports = rig.reports()
    rig.platform.pods.refusals.append((422, {}))
    rig.clock.later(reports.step())
    rig.steps(reports)
    (post,) = rig.platform.pods.posts
    assert "nominated" not in post
    assert post["nodes"]["a"].keys().isdisjoint({"uid", "labels", "taints", "allocatable"})
    assert rig.platform.pods.pending == [(1, ["web/web-2"])]
    rig.clock.later(3600)
    rig.steps(reports)
    assert rig.platform.pods.posts[-1]["base"] is None
    assert rig.platform.pods.nominated == {"a": 1}
    assert rig.platform.pods.pod_state["nodes"]["a"]["taints"] == []


def test_failures_back_off_up_to_five_minutes(rig: Rig) -> None:
    rig.kube.faults.append(Fault("list", "pods", 503, times=12))
    reports = rig.reports()
    waits = [reports.step() for _ in range(12)]
    assert waits[:3] == [1.5, 3.0, 6.0]
    assert waits[-1] == 225.0


def test_daemon_sets_and_volumes_that_cannot_be_read_hold_the_report_back(rig: Rig) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    rig.add_waiting("web-1", volumes=[claim])
    for resource in ("daemonsets", "persistentvolumeclaims", "persistentvolumes", "storageclasses"):
        rig.kube.faults.append(Fault("list", resource, 503))
    reports = rig.reports()
    for _ in range(4):
        rig.clock.later(reports.step())
        assert rig.platform.pods.posts == []
    rig.steps(reports)
    assert len(rig.platform.pods.posts) == 1


def test_a_pod_whose_claim_is_missing_is_told_as_soon_as_it_is_there(rig: Rig) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    rig.add_waiting("web-1", volumes=[claim])
    reports = rig.reports()
    rig.steps(reports, 3)
    assert (len(rig.platform.pods.posts), rig.platform.pods.pending) == (1, [])
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    meta = {"name": "data", "namespace": "web"}
    rig.kube.install(
        [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "pv"},
                "spec": {"nodeAffinity": affinity},
            },
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": "pv"}},
        ]
    )
    rig.steps(reports, 10)
    assert rig.platform.pods.pending == [(1, ["web/web-1"])]
    assert rig.platform.pods.templates()[0]["volumes"] == [[{"key": "zone", "operator": "In", "values": ["a"]}]]


def test_classes_of_storage_say_where_a_new_volume_can_be(rig: Rig) -> None:
    topology = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "web"}}
    rig.kube.install(
        [
            {**about, "metadata": {"name": "gp", "annotations": default}, "allowedTopologies": [topology]},
            {**claim, "spec": {}},
        ]
    )
    rig.add_waiting("web-1", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    rig.steps(rig.reports())
    (template,) = rig.platform.pods.templates()
    assert template["volumes"] == [[{"key": "zone", "operator": "In", "values": ["a", "b"]}]]


def test_daemon_sets_are_told_and_those_on_their_way_out_are_not(rig: Rig) -> None:
    spec = {"template": {"metadata": {"labels": {"app": "cni"}}, "spec": {"hostNetwork": True}}}
    for name in ("cni", "old"):
        meta = {"name": name, "namespace": "kube-system", "finalizers": ["foregroundDeletion"]}
        rig.kube.install([{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}])
    rig.kube.store.remove(Key("apps", "daemonsets", "kube-system", "old"), {})
    rig.steps(rig.reports())
    assert rig.platform.pods.pod_state["daemon_sets"].keys() == {"kube-system/cni"}


def test_a_daemon_set_that_came_with_pods_is_told_with_them(rig: Rig) -> None:
    """The group takes its part of the node for these pods."""
    reports = rig.reports()
    rig.steps(reports)
    meta = {"name": "cni", "namespace": "kube-system"}
    rig.kube.install([{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": {"template": {}}}])
    rig.add_waiting("web-1")
    moments = []
    for _ in range(6):
        rig.steps(reports, 1)
        moments.append((bool(rig.platform.pods.pending), bool(rig.platform.pods.pod_state.get("daemon_sets"))))
    assert (True, True) in moments
    assert (True, False) not in moments


# --- size -------------------------------------------------------------------------------------------------------------


def test_changes_that_are_too_large_are_told_as_a_whole(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [rig.add_waiting(f"a-{n}", nodeSelector={"a": str(n)}) for n in range(10)]
    reports = rig.reports()
    rig.steps(reports)
    for key in first:
        rig.kube.store.remove(key, {})
    for number in range(10):
        rig.add_waiting(f"b-{number}", nodeSelector={"b": str(number)})
    size = len(json.dumps(rig.platform.pods.posts[0], separators=(",", ":")))
    monkeypatch.setattr(pod_reports, "LIMIT", size + 100)
    rig.steps(reports, 2)
    assert rig.platform.pods.posts[-1]["base"] is None
    assert len(rig.platform.pods.pending) == 10


def test_a_picture_that_is_too_large_is_not_posted_and_named(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_reports, "LIMIT", 100)
    rig.add_waiting("web-1")
    reports = rig.reports()
    rig.steps(reports)
    assert rig.platform.pods.posts == []
    assert "1 different pods make" in rig.logs[-1]


def test_run_ends_when_told(rig: Rig) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 3

    rig.reports().run(pause)
    assert pauses == [1.0] * 3
