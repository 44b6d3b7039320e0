"""A DaemonSet's pod is as large as those that run, and where none runs, as LimitRanges will make it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from agent.stockyard_agent.cluster.daemon_sets import FIRST_SECONDS, MOST_SECONDS, DaemonSet, NewestPods, limited
from agent.stockyard_agent.cluster.pods import KnownPod
from local.kubernetes import pods as kube_pods
from local.kubernetes.store import Key, stamp
from tests.unit.agent.rig import Rig

GENERATION = "deprecated.daemonset.template.generation"
OWNER = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log", "uid": "o", "controller": True}]


def containers(cpu: str = "", **more: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "x", **({"resources": {"requests": {"cpu": cpu}}} if cpu else {}), **more}]


def daemon_set(rig: Rig, generation: str = "", **spec: Any) -> None:
    created_at = stamp(rig.clock.now - timedelta(hours=1))
    meta: dict[str, Any] = {"name": "log", "namespace": "web", "creationTimestamp": created_at}
    meta |= {"annotations": {GENERATION: generation}} if generation else {}
    about = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta}
    rig.kube.install([{**about, "spec": {"template": {"metadata": {"labels": {"app": "log"}}, "spec": spec}}}])


def running(rig: Rig, name: str, cpu: str, *, age: int = 0, generation: str = "", **more: Any) -> None:
    document = kube_pods.pod(name, "a", owner="DaemonSet")
    document["metadata"] |= {"ownerReferences": OWNER, "creationTimestamp": stamp(rig.clock.now - timedelta(0, age))}
    document["metadata"]["labels"] = {"pod-template-generation": generation} if generation else {}
    document["spec"] |= {"containers": containers(cpu), **more}
    rig.kube.store.create(Key("", "pods", "web", name), document)


def told_spec(rig: Rig) -> dict[str, Any]:
    """The specification of what the DaemonSet makes, as it is told."""
    rig.add_node("a")
    rig.steps(rig.reports())
    pod_state = rig.platform.pods.pod_state
    spec: dict[str, Any] = pod_state["groups"][pod_state["daemon_sets"]["web/log"]]["spec"]
    return spec


def cpu_of(spec: dict[str, Any]) -> list[str]:
    return [container["resources"]["requests"]["cpu"] for container in spec.get("containers", ())]


def test_the_newest_pod_says_what_is_taken_and_the_template_where(rig: Rig) -> None:
    daemon_set(rig, nodeSelector={"disk": "ssd"}, containers=containers("100m"))
    running(rig, "log-1", "2", age=60)
    port = [{"containerPort": 80, "hostPort": 8080}]
    running(rig, "log-2", "1", containers=containers("1", ports=port), nodeSelector={"other": "x"})
    spec = told_spec(rig)
    assert cpu_of(spec) == ["1"]
    assert spec["containers"][0]["ports"] == [{"hostPort": 8080}]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"} in spec[
        "tolerations"
    ]


def test_pods_of_an_earlier_template_say_nothing(rig: Rig) -> None:
    daemon_set(rig, "2", containers=containers("100m"))
    running(rig, "log-1", "2", generation="1")
    assert cpu_of(told_spec(rig)) == ["100m"]


def test_pods_of_the_template_of_now_count_alone(rig: Rig) -> None:
    daemon_set(rig, "2", containers=containers("100m"))
    running(rig, "log-1", "1", age=60, generation="2")
    running(rig, "log-2", "2", generation="1")
    assert cpu_of(told_spec(rig)) == ["1"]


def test_pods_that_are_older_than_their_set_say_nothing(rig: Rig) -> None:
    daemon_set(rig, "1", containers=containers("100m"))
    running(rig, "log-1", "2", age=7200, generation="1")
    assert cpu_of(told_spec(rig)) == ["100m"], "a set of that name that is gone has made it"


SET = DaemonSet("web/log", "web", (), {}, "1", {}, "2026-01-01T00:00:00Z")


def pod_of_set(name: str, created_at: str, **more: Any) -> KnownPod:
    labels = (("pod-template-generation", "1"),)
    fields: dict[str, Any] = {"part": "{}", **more}
    return KnownPod("web", name, labels, fields.pop("part"), "a", False, (), "web/log", created_at=created_at, **fields)


OLD, NEW = (pod_of_set(f"log-{minute}", f"2026-01-01T00:0{minute}:00Z") for minute in (1, 2))


def gone_pod(newest: NewestPods, pods: list[KnownPod], now: float, daemon: DaemonSet = SET) -> KnownPod | None:
    (daemon,) = newest.with_gone_pods([daemon], pods, now)
    return daemon.gone_pod


def test_the_newest_pod_is_remembered_for_a_while_when_it_goes() -> None:
    newest = NewestPods()
    assert gone_pod(newest, [OLD, NEW], 0) is None
    assert gone_pod(newest, [OLD, replace(NEW, ending=True)], 5) == NEW
    assert gone_pod(newest, [], FIRST_SECONDS - 1) == NEW
    assert gone_pod(newest, [OLD], FIRST_SECONDS) is None


def test_a_size_that_comes_again_is_remembered_twice_as_long() -> None:
    newest, now, spans = NewestPods(), 0.0, []
    for minute in range(3, 9):
        large = pod_of_set(f"log-{minute}", f"2026-01-01T00:0{minute}:00Z", part='{"containers": []}')
        assert gone_pod(newest, [OLD, large], now) is None
        began = now
        while gone_pod(newest, [OLD], now + 60) is not None:
            now += 60
        spans.append(now + 60 - began)
        now += 120
    assert spans == [min(FIRST_SECONDS * 2**times, MOST_SECONDS) for times in range(6)]


def test_another_pod_template_or_set_makes_it_forgotten() -> None:
    newer = pod_of_set("log-3", "2026-01-01T00:03:00Z")
    changed_sets = [replace(SET, spec={"nodeSelector": {}}), replace(SET, generation="2")]
    changed_sets.append(replace(SET, created_at="2026-01-01T00:01:30Z"))
    for pods, daemon in [([OLD, newer], SET), *(([OLD], daemon) for daemon in changed_sets)]:
        newest = NewestPods()
        gone_pod(newest, [NEW], 0)
        assert gone_pod(newest, pods, 1, daemon) is None
        assert gone_pod(newest, [OLD], 2) == (newer if newer in pods else None)


def test_a_limit_range_completes_the_template_where_no_pod_runs(rig: Rig) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "1"}, "default": {"cpu": "2", "memory": "1Gi"}}]
    about = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all", "namespace": "web"}}
    rig.kube.install([{**about, "spec": {"limits": [*limits, {"type": "Pod", "max": {"cpu": "9"}}]}}])
    daemon_set(rig, containers=containers())
    (container,) = told_spec(rig)["containers"]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_a_limit_range_fills_what_is_not_said() -> None:
    quantities = {"cpu": "1", "memory": "1Gi"}
    own_spec = {
        "containers": containers("2"),
        "initContainers": [{"name": "i", "resources": {"limits": {"memory": "2Gi"}}}],
    }
    spec = limited(own_spec, quantities)
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "2", "memory": "1Gi"}}
    assert spec["initContainers"][0]["resources"] == {"limits": {"memory": "2Gi"}, "requests": {"cpu": "1"}}
    whole = {**own_spec, "resources": {"requests": {"cpu": "3"}}}
    assert limited(whole, quantities) == whole, "the pod itself says it"


def test_limit_ranges_are_not_read_where_every_set_has_a_pod(rig: Rig) -> None:
    daemon_set(rig, containers=containers("100m"))
    running(rig, "log-1", "2")
    assert cpu_of(told_spec(rig)) == ["2"]
    assert not any(call.action.resource == "limitranges" for call in rig.kube.calls)
