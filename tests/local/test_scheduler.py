"""The scheduler of simulated clusters: which pods get a node, which volumes they get, and what the others are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.kubernetes.api import KubeApi, node
from local.kubernetes.pods import pod, waiting
from local.kubernetes.real.client import Client, Refused
from local.kubernetes.scheduler import schedule
from local.kubernetes.simulated import ADMINISTRATOR, SimulatedCluster
from local.kubernetes.store import Key, KubeStore, Object

PODS = "/api/v1/namespaces/default/pods"
TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}


@pytest.fixture
def api() -> KubeApi:
    """A cluster with one node of 4 processors and 16 GiB."""
    api = KubeApi()
    api.install([node("node-1")])
    return api


@pytest.fixture
def store(api: KubeApi) -> KubeStore:
    return api.store


def put(store: KubeStore, name: str, **more: Any) -> Key:
    key = Key("", "pods", "default", name)
    document = waiting(name, **more)
    document["status"] = {"phase": "Pending"}
    store.create(key, document)
    return key


def change(store: KubeStore, **spec: Any) -> None:
    key = Key("", "nodes", "", "node-1")
    document = store.get(key)
    store.replace(key, {**document, "spec": {**document["spec"], **spec}})


def refusal(store: KubeStore, key: Key) -> str:
    """Reason why the pod is not scheduled; empty when it is, or when nobody has said anything."""
    conditions = store.get(key)["status"].get("conditions", ())
    return next((str(each["message"]) for each in conditions if each.get("reason") == "Unschedulable"), "")


def on(store: KubeStore, key: Key) -> tuple[str, str]:
    document: Object = store.get(key)
    return document["status"]["phase"], document["spec"].get("nodeName", "")


def test_a_pod_that_was_applied_has_no_status_and_is_scheduled_too(store: KubeStore) -> None:
    key = Key("", "pods", "default", "applied")
    store.create(key, {name: part for name, part in waiting("applied").items() if name != "status"})
    schedule(store)
    assert on(store, key) == ("Running", "node-1")


def test_pods_run_while_there_is_room_and_the_next_runs_on_a_node_that_joins(store: KubeStore) -> None:
    keys = [put(store, f"web-{number}", cpu="1500m") for number in range(3)]
    assert schedule(store) == 2
    assert [on(store, key) for key in keys] == [("Running", "node-1")] * 2 + [("Pending", "")]
    assert refusal(store, keys[2]) == "0/1 nodes are available: 1 Insufficient cpu."
    version = store.get(keys[2])["metadata"]["resourceVersion"]
    assert schedule(store) == 0
    assert store.get(keys[2])["metadata"]["resourceVersion"] == version, "no news, no change to be watched"
    store.create(Key("", "nodes", "", "node-2"), node("node-2"))
    assert schedule(store) == 1
    assert on(store, keys[2]) == ("Running", "node-2")


def test_pods_that_have_ended_take_no_room(store: KubeStore) -> None:
    store.create(Key("", "pods", "default", "job"), {**pod("job", "node-1", phase="Succeeded"), "spec": {
        "nodeName": "node-1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}],
    }})  # fmt: skip
    key = put(store, "web", cpu="4")
    assert schedule(store) == 1
    assert on(store, key) == ("Running", "node-1")


@pytest.mark.parametrize(
    ("spec", "change_of_node", "message"),
    [
        ({}, {"unschedulable": True}, "1 node(s) were unschedulable"),
        ({}, {"taints": [TAINT]}, "1 node(s) had untolerated taint {dedicated: batch}"),
        ({"nodeSelector": {"zone": "a"}}, {}, "1 node(s) didn't match Pod's node affinity/selector"),
        ({"cpu": "5"}, {}, "1 Insufficient cpu"),
    ],
)
def test_a_pod_that_no_node_may_take_is_told_why(
    store: KubeStore, spec: dict[str, Any], change_of_node: dict[str, Any], message: str
) -> None:
    change(store, **change_of_node)
    key = put(store, "web", **spec)
    assert schedule(store) == 0
    assert refusal(store, key) == f"0/1 nodes are available: {message}."


def test_a_node_takes_no_more_pods_than_it_says(store: KubeStore) -> None:
    full = node("node-1")
    full["status"]["allocatable"] = {"cpu": "4", "memory": "16Gi", "pods": "1"}
    store.replace(Key("", "nodes", "", "node-1"), full)
    keys = [put(store, f"web-{number}") for number in range(2)]
    assert schedule(store) == 1
    assert refusal(store, keys[1]) == "0/1 nodes are available: 1 Too many pods."


def test_a_tolerated_taint_keeps_no_pod_out(store: KubeStore) -> None:
    change(store, taints=[TAINT])
    key = put(store, "web", tolerations=[{"key": "dedicated", "operator": "Equal", "value": "batch"}])
    assert schedule(store) == 1
    assert on(store, key) == ("Running", "node-1")


def test_a_node_whose_machine_is_off_takes_no_pod(store: KubeStore) -> None:
    key = put(store, "web")
    assert schedule(store, frozenset({"node-1"})) == 0
    assert refusal(store, key) == (
        "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }."
    )
    everywhere = put(store, "daemon", tolerations=[{"operator": "Exists"}])
    assert schedule(store, frozenset({"node-1"})) == 0, "its kubelet starts nothing"
    assert on(store, everywhere) == ("Pending", "")


def test_a_gated_pod_stays_as_it_is(store: KubeStore) -> None:
    key = put(store, "web", schedulingGates=[{"name": "wait"}])
    before = dict(store.get(key))
    assert schedule(store) == 0
    assert store.get(key) == before


def test_a_pod_that_claims_devices_is_told_that_there_are_none(store: KubeStore) -> None:
    key = put(store, "web", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    assert schedule(store) == 0
    assert refusal(store, key) == "0/1 nodes are available: 1 cannot allocate all claims."


def put_storage(store: KubeStore) -> None:
    """A class of late volumes, one claim of it, and one slot for volumes on the node, which is in zone a."""
    storage = "storage.k8s.io"
    kind = {"provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}
    store.create(Key(storage, "storageclasses", "", "fast"), {"metadata": {}, **kind})
    for name in ("data", "more"):
        claim = {"metadata": {}, "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}
        store.create(Key("", "persistentvolumeclaims", "default", name), claim)
    drivers = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 1}}]
    store.create(Key(storage, "csinodes", "", "node-1"), {"metadata": {}, "spec": {"drivers": drivers}})
    first = store.get(Key("", "nodes", "", "node-1"))
    labels = {**first["metadata"]["labels"], "topology.kubernetes.io/zone": "a"}
    store.replace(Key("", "nodes", "", "node-1"), {**first, "metadata": {**first["metadata"], "labels": labels}})


def test_a_late_volume_is_made_where_its_pod_is_and_takes_a_slot(store: KubeStore) -> None:
    put_storage(store)

    def volumes(claim: str) -> list[dict[str, Any]]:
        return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]

    first, second = put(store, "db-1", volumes=volumes("data")), put(store, "db-2", volumes=volumes("more"))
    missing = put(store, "db-3", volumes=volumes("other"))
    assert schedule(store) == 1
    assert on(store, first) == ("Running", "node-1")
    assert refusal(store, second) == "0/1 nodes are available: 1 node(s) exceed max volume count."
    assert refusal(store, missing) == '0/1 nodes are available: 1 persistentvolumeclaim "other" not found.'
    claim = store.get(Key("", "persistentvolumeclaims", "default", "data"))
    assert claim["status"]["phase"] == "Bound"
    volume = store.get(Key("", "persistentvolumes", "", claim["spec"]["volumeName"]))
    expressions = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"]
    assert expressions == [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]


def test_pods_of_higher_priority_push_others_out_and_have_their_room(store: KubeStore) -> None:
    value = {"metadata": {}, "value": 1000}
    store.create(Key("scheduling.k8s.io", "priorityclasses", "", "high"), value)
    low = put(store, "low", cpu="3")
    assert schedule(store) == 1
    high, third = put(store, "z-high", cpu="3", priorityClassName="high"), put(store, "third", cpu="2")
    assert schedule(store) == 0
    assert "deletionTimestamp" in store.get(low)["metadata"]
    assert store.get(high)["status"]["nominatedNodeName"] == "node-1"
    store.remove(low, {})
    assert schedule(store) == 1
    assert on(store, high) == ("Running", "node-1")
    assert on(store, third) == ("Pending", "")


def test_the_administrators_kubeconfig_makes_pods_that_run(tmp_path: Path) -> None:
    text = "kind: ClusterConfiguration\ncontrolPlaneEndpoint: nlb.example.test:6443\nkubernetesVersion: v1.34.0\n"
    (tmp_path / "kubeadm.yaml").write_text(text)
    cluster = SimulatedCluster.initialized(tmp_path, "ip-10-0-0-5", tmp_path / "agents.log")
    cluster.start()
    try:
        client = Client.of_kubeconfig(tmp_path / "kubernetes" / ADMINISTRATOR)
        created = client.call(
            "POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {}}
        )
        assert created["status"] == {"phase": "Pending"}
        cluster.apply([node("node-1")])
        cluster.work()
        assert client.call("GET", f"{PODS}/web")["status"]["phase"] == "Running"
        stranger = Client(f"https://{client.address}", client._context, "guessed")
        with pytest.raises(Refused, match="401"):
            stranger.call("GET", PODS)
    finally:
        cluster.stop()
