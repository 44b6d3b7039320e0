"""The reports of pods: the simulated API and a real one tell the agent the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agent.stockyard_agent.cluster.pods import LIVE, PATH
from agent.stockyard_agent.cluster.volumes import CLASSES, VOLUMES
from agent.stockyard_agent.kubernetes import Kubernetes, Refused
from agent.stockyard_agent.pod_reports import PodReports
from local.kubernetes.api import MERGE
from tests.kubernetes.rigs import BUDGETS, WEB, ContractRig
from tests.unit.agent.rig import KUBE

CLAIMS = "/api/v1/namespaces/web/persistentvolumeclaims"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DAEMONS = "/apis/apps/v1/namespaces/web/daemonsets"
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}


def wait_for(rig: ContractRig, reports: PodReports, expected: Mapping[str, Any], most: int = 15) -> None:
    """Steps until Stockyard knows that; a real scheduler takes a moment."""
    for _ in range(most):
        rig.steps(reports)
        if known_of(rig) == expected:
            return
    assert known_of(rig) == expected


def known_of(rig: ContractRig) -> Mapping[str, Any]:
    """Names of the pods of the namespace ``web`` that wait, and how many run on the node ``a``."""
    pods = rig.platform.pods
    names = [name for _, names in pods.pending for name in names if name.startswith("web/")]
    return {"waiting": sorted(names), "running": pods.running.get("a", 0)}


def test_pods_that_come_wait_run_and_finish_are_told(rig: ContractRig) -> None:
    rig.add_node("a")
    rig.put("db", "a")
    reports = rig.reports()
    wait_for(rig, reports, {"waiting": [], "running": 1})
    rig.put_waiting("web-1")
    rig.put_waiting("web-2")
    wait_for(rig, reports, {"waiting": ["web/web-1", "web/web-2"], "running": 1})
    (count, _), *_ = [group for group in rig.platform.pods.pending if "web/web-1" in group[1]]
    assert count == 2, "both are one group"
    # One is bound by somebody else, one finishes.
    path = rig.put("web-3", "a")
    rig.administer("DELETE", f"{WEB}/web-1", {"gracePeriodSeconds": 0})
    wait_for(rig, reports, {"waiting": ["web/web-2"], "running": 2}, 25)
    rig.finish(path)
    wait_for(rig, reports, {"waiting": ["web/web-2"], "running": 1}, 25)
    assert [post["base"] for post in rig.platform.pods.posts].count(None) == 1
    assert [line for line in rig.logs if "Reports of pods" in line] == []


def test_a_gated_pod_is_not_told_until_its_gate_opens(rig: ContractRig) -> None:
    reports = rig.reports()
    rig.steps(reports)
    rig.put_waiting("web-1", schedulingGates=[{"name": "example.test/wait"}])
    rig.steps(reports, 3)
    assert known_of(rig)["waiting"] == []
    rig.open_gate("web-1")
    wait_for(rig, reports, {"waiting": ["web/web-1"], "running": 0})


def test_the_watch_goes_on_after_the_server_has_ended_and_come_back(rig: ContractRig) -> None:
    """A server that was started again does not know what changed before."""
    reports = rig.reports()
    first = rig.put_waiting("web-1")
    wait_for(rig, reports, {"waiting": ["web/web-1"], "running": 0})
    rig.restart()
    rig.administer("DELETE", first, {"gracePeriodSeconds": 0})
    rig.put_waiting("web-2")
    wait_for(rig, reports, {"waiting": ["web/web-2"], "running": 0}, 25)
    kube = Kubernetes(KUBE, rig.exchange, lambda: rig.account)
    with pytest.raises(Refused) as refusal:
        list(kube.watch(PATH, {"fieldSelector": LIVE, "resourceVersion": "1"}, 1))
    assert refusal.value.status == 410


def test_facts_of_nodes_are_told(rig: ContractRig) -> None:
    """Facts that keep a node: its own annotation, protected pods, and budgets with what they allow now."""
    rig.add_node("a")
    rig.put("db-1", "a", labels={"app": "db"})
    rig.put("db-2", "a", labels={"app": "db"})
    rig.put("job", "a", annotations={DO_NOT_DISRUPT: "true"})
    rig.put("static", "a", owner="Node", labels={"app": "db"})
    rig.budget("db", {"app": "db"}, 2)
    rig.administer("PATCH", "/api/v1/nodes/a", {"metadata": {"annotations": {DO_NOT_DISRUPT: "true"}}}, MERGE)
    reports = rig.reports()
    rig.steps(reports)
    pods = rig.platform.pods
    facts = pods.pod_state["nodes"]["a"]
    assert (facts["do_not_disrupt"], facts["ready"], facts["unschedulable"]) == (True, "True", False)
    assert (facts["protected"]["count"], facts["protected"]["pods"][0]["name"]) == (1, "web/job")
    assert facts["budgets"] == {"web/db": 2}
    assert pods.pod_state["budgets"] == {"web/db": 1}, "three are healthy, the static one too"
    assert facts["created_at"] == rig.node("a")["metadata"]["creationTimestamp"]
    assert facts["pod_event_at"] is not None
    rig.administer("DELETE", f"{BUDGETS}/db")
    rig.administer("PATCH", f"{WEB}/job", {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}}, MERGE)
    rig.clock.later(60)
    rig.steps(reports, 2)
    facts = pods.pod_state["nodes"]["a"]
    assert ("budgets" in facts, "protected" in facts, pods.pod_state["budgets"]) == (False, False, {})


@pytest.fixture
def stored(rig: ContractRig) -> Iterator[ContractRig]:
    """A volume in a zone and its claim, a class of storage and a claim that waits for its pod, and a DaemonSet."""
    expression = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}
    size = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    volume = {
        **size,
        "nodeAffinity": {"required": expression},
        "local": {"path": "/x"},
        "storageClassName": "pods-none",
    }
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    topologies = [{"matchLabelExpressions": [{"key": ZONE["key"], "values": ["a", "b"]}]}]
    late = {"provisioner": "example.test/none", "volumeBindingMode": "WaitForFirstConsumer"}
    meta, labels = {"name": "pods-late"}, {"app": "cni"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    documents: list[tuple[str, dict[str, Any]]] = [
        (VOLUMES, {"kind": "PersistentVolume", "metadata": {"name": "pods-local"}, "spec": volume}),
        (CLASSES, {"kind": "StorageClass", "metadata": meta, "allowedTopologies": topologies, **late}),
        (DAEMONS, {"kind": "DaemonSet", "metadata": {"name": "cni"},
                   "spec": {"selector": {"matchLabels": labels}, "template": template}}),
    ]  # fmt: skip
    for name, more in {
        "local": {"volumeName": "pods-local", "storageClassName": "pods-none"},
        "late": {"storageClassName": "pods-late"},
    }.items():
        claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {**wish, **more}}
        documents.append((CLAIMS, claim))
    for path, document in documents:
        parts = path.split("/")
        version = parts[2] if parts[1] == "api" else f"{parts[2]}/{parts[3]}"
        rig.administer("POST", path, {"apiVersion": version, **document})
    yield rig
    for path, document in reversed(documents):
        full = f"{path}/{document['metadata']['name']}"
        # Kubernetes keeps volumes and claims while pods use them.
        rig.administer("PATCH", full, {"metadata": {"finalizers": None}}, MERGE)
        rig.administer("DELETE", full)


def test_places_of_volumes_and_daemon_sets_are_read_with_the_agents_rights(stored: ContractRig) -> None:
    for name in ("local", "late"):
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        stored.put_waiting(f"of-{name}", volumes=[claim])
    wait_for(stored, stored.reports(), {"waiting": ["web/of-late", "web/of-local"], "running": 0}, 25)
    picture = stored.platform.pods.pod_state
    places = {
        waiting["names"][0]: picture["groups"][group].get("volumes") for group, waiting in picture["pending"].items()
    }
    assert places["web/of-local"] == [[ZONE]]
    assert places["web/of-late"] == [[{**ZONE, "values": ["a", "b"]}]]
    daemon = picture["groups"][picture["daemon_sets"]["web/cni"]]
    assert {toleration["key"] for toleration in daemon["spec"]["tolerations"]} >= {"node.kubernetes.io/not-ready"}
