"""Facts that reports need of a cluster beside pods, on the simulated API and a real one: nominations, volumes,
DaemonSets, namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from agent.stockyard_agent.cluster import csi, daemon_sets, namespaces
from agent.stockyard_agent.cluster.volumes import CLASSES, VOLUMES, Volumes
from agent.stockyard_agent.kubernetes import Kubernetes
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import MERGE
from local.kubernetes.real.client import Refused
from tests.kubernetes.rigs import WEB, ContractRig, RealRig, until
from tests.unit.agent.rig import KUBE

CLAIMS, RANGES = "/api/v1/namespaces/web/persistentvolumeclaims", "/api/v1/namespaces/web/limitranges"
DAEMONS, SPACES = "/apis/apps/v1/namespaces/web/daemonsets", "/api/v1/namespaces"
EBS = "ebs.csi.aws.com"


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """A real cluster is the same in all tests."""
    name = "real_rig" if "real_rig" in request.fixturenames else "rig"
    rig: ContractRig = request.getfixturevalue(name)
    yield
    made_paths = (
        f"{DAEMONS}/log",
        f"{RANGES}/all",
        f"{CLAIMS}/data",
        f"{CLASSES}/slow",
        f"{csi.CSI_NODES}/a",
        f"{VOLUMES}/pv",
    )
    for path in made_paths if isinstance(rig, RealRig) else ():
        with suppress(Refused):
            rig.administer("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            rig.administer("DELETE", path)


def kube_of(rig: ContractRig) -> Kubernetes:
    """The API as the agent's account."""
    return Kubernetes(KUBE, rig.exchange, lambda: rig.account)


def test_a_nominated_pod_keeps_its_room(rig: ContractRig) -> None:
    """One that no scheduler looks at here, so that the nomination stays."""
    rig.add_node("a")
    rig.put_waiting("web-1", schedulerName="example.test/other")
    path = f"{WEB}/web-1/status" if isinstance(rig, RealRig) else f"{WEB}/web-1"
    rig.administer("PATCH", path, {"status": {"nominatedNodeName": "a"}}, MERGE)
    rig.steps(rig.reports())
    assert rig.platform.pods.nominated == {"a": 1}
    assert not any("web/web-1" in names for _, names in rig.platform.pods.pending)


def test_a_pod_whose_volume_is_being_made_keeps_its_room(real_rig: RealRig) -> None:
    """As kube-scheduler itself says it: no driver is there, so it waits for the volume."""
    real_rig.add_node("a")
    real_rig.administer("PATCH", "/api/v1/nodes/a", {"spec": {"taints": None}}, MERGE)
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "slow"}}
    late = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "example.test/slow"}
    real_rig.administer("POST", CLASSES, {**about, **late})
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "web"}}
    size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    real_rig.administer("POST", CLAIMS, {**claim, "spec": {**size, "storageClassName": "slow"}})
    document = kube_pods.waiting("db-0", cpu="1", owner="")
    document["spec"] |= {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "automountServiceAccountToken": False,
    }
    document["spec"]["containers"][0]["image"] = "none"
    real_rig.administer("POST", WEB, document)
    until(lambda: real_rig.administer("GET", f"{WEB}/db-0")["status"].get("nominatedNodeName") == "a")
    real_rig.steps(real_rig.reports())
    pods = real_rig.platform.pods
    assert pods.nominated == {"a": 1}
    (group,) = pods.pod_state["nominated"]["a"]
    assert pods.pod_state["groups"][group]["attachments"] == {"example.test/slow": 1}
    assert not any("web/db-0" in names for _, names in pods.pending)


def test_what_nodes_take_of_volumes_is_read(rig: ContractRig) -> None:
    drivers = [
        {"name": EBS, "nodeID": "i-1", "topologyKeys": [], "allocatable": {"count": 25}},
        {"name": "efs.csi.aws.com", "nodeID": "i-1", "topologyKeys": []},
    ]
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "a"}}
    rig.administer("POST", csi.CSI_NODES, {**about, "spec": {"drivers": drivers}})
    assert csi.limits(kube_of(rig))["a"] == {EBS: 25}


def test_claims_say_their_driver_and_the_node_that_the_scheduler_has_selected(rig: ContractRig) -> None:
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "slow"}}
    late = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "kubernetes.io/aws-ebs"}
    rig.administer("POST", CLASSES, {**about, **late})
    note = {"volume.kubernetes.io/selected-node": "a"}
    meta = {"name": "data", "namespace": "web", "annotations": note}
    size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    rig.administer("POST", CLAIMS, {**claim, "spec": {**size, "storageClassName": "slow"}})
    volumes = Volumes.read(kube_of(rig))
    assert volumes.handles_of("web", ["data"]) == {(EBS, "web/data")}
    assert volumes.selected_node("web", ["data"]) == "a"
    assert not volumes.knows("web/data")


def test_volumes_say_their_driver(rig: ContractRig) -> None:
    source = {"csi": {"driver": EBS, "volumeHandle": "vol-1"}, "capacity": {"storage": "1Gi"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}}
    rig.administer("POST", VOLUMES, {**volume, "spec": {**source, "accessModes": ["ReadWriteOnce"]}})
    assert Volumes.read(kube_of(rig)).handles["pv"] == (EBS, "vol-1")


def test_labels_of_namespaces_are_read(rig: ContractRig) -> None:
    rig.administer("PATCH", f"{SPACES}/web", {"metadata": {"labels": {"team": "web"}}}, MERGE)
    assert namespaces.labels_of_namespaces(kube_of(rig))["web"]["team"] == "web"


def test_limit_ranges_say_what_containers_request(rig: ContractRig) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "1"}, "default": {"cpu": "2", "memory": "1Gi"}}]
    about = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all", "namespace": "web"}}
    rig.administer("POST", RANGES, {**about, "spec": {"limits": limits}})
    assert daemon_sets.defaults(kube_of(rig))["web"] == {"cpu": "1", "memory": "1Gi"}


def test_a_pod_of_a_daemon_set_is_as_admission_makes_it(real_rig: RealRig) -> None:
    """A LimitRange makes the pod larger, and the pod's label names its template: so do Kubernetes' own controllers."""
    limits = [{"type": "Container", "defaultRequest": {"cpu": "300m"}}]
    about: dict[str, Any] = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all", "namespace": "web"}}
    real_rig.administer("POST", RANGES, {**about, "spec": {"limits": limits}})
    real_rig.add_node("a")
    labels = {"matchLabels": {"app": "log"}}
    template = {"metadata": {"labels": labels["matchLabels"]}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "log", "namespace": "web"}}
    real_rig.administer("POST", DAEMONS, {**daemon, "spec": {"selector": labels, "template": template}})

    def sizes() -> list[str]:
        real_rig.clock.later(20)
        reports = real_rig.reports()
        real_rig.steps(reports)
        picture = real_rig.platform.pods.pod_state
        (spec,) = [
            picture["groups"][group]["spec"] for name, group in picture["daemon_sets"].items() if name == "web/log"
        ]
        return [container["resources"]["requests"]["cpu"] for container in spec["containers"]]

    assert sizes() == ["300m"], "before there is a pod, and beside it"
    until(lambda: any(item["metadata"].get("labels", {}).get("app") == "log" for item in pods_of(real_rig)))
    (pod,) = [item for item in pods_of(real_rig) if item["metadata"].get("labels", {}).get("app") == "log"]
    (log_daemon,) = [daemon for daemon in daemon_sets.daemon_sets(kube_of(real_rig)) if daemon.name == "web/log"]
    assert pod["metadata"]["labels"][daemon_sets.GENERATION] == log_daemon.generation == "1"
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "300m"}
    assert sizes() == ["300m"]


def pods_of(rig: RealRig) -> list[Any]:
    items: list[Any] = rig.administer("GET", WEB)["items"]
    return items
