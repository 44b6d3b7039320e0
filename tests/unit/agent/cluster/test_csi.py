"""Volumes on a node and its limit, the driver that attaches them, and the volumes of waiting pods."""

from __future__ import annotations

from typing import Any

import pytest

from agent.stockyard_agent.cluster import csi
from local.kubernetes.store import Key
from tests.unit.agent.rig import Rig

EBS, EFS = "ebs.csi.aws.com", "efs.csi.aws.com"


def claim_of(name: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def storage(rig: Rig, name: str, source: dict[str, Any] | None = None, **spec: Any) -> None:
    """A claim, and its volume where there is a source."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "web"}}
    if source is not None:
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": source}
        rig.kube.install([volume, {**claim, "spec": {"volumeName": f"pv-{name}", **spec}}])
    else:
        rig.kube.install([{**claim, "spec": spec}])


def storage_class(rig: Rig, name: str, provisioner: str) -> None:
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}
    rig.kube.install([{**about, "metadata": {"name": name}, "provisioner": provisioner}])


def csi_node(rig: Rig, name: str, **counts: int | None) -> None:
    drivers = [
        {"name": driver, "nodeID": name, **({"allocatable": {"count": count}} if count is not None else {})}
        for driver, count in counts.items()
    ]
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}
    rig.kube.install([{**about, "spec": {"drivers": drivers}}])


def test_volumes_of_a_node_are_told_by_driver_with_its_limits(rig: Rig) -> None:
    """Each volume once, however many pods have it; what no driver serves does not count."""
    for node in "ab":
        rig.add_node(node)
    csi_node(rig, "a", **{EBS: 25, EFS: None})
    storage(rig, "one", {"csi": {"driver": EBS, "volumeHandle": "vol-1"}})
    storage(rig, "old", {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-2"}})
    storage(rig, "shared", {"csi": {"driver": EFS, "volumeHandle": "fs-1"}})
    storage(rig, "nfs", {"nfs": {"server": "nfs.test", "path": "/"}})
    for number in (1, 2):
        volumes = [claim_of(name) for name in ("one", "old", "shared", "nfs", "missing")]
        own = {"name": "own", "csi": {"driver": "secrets.test"}}
        key = rig.add_pod(f"web-{number}", "a")
        rig.kube.store.get(key)["spec"]["volumes"] = [*volumes, own]
    inline = {"name": "inline", "awsElasticBlockStore": {"volumeID": "vol-9"}}
    rig.kube.store.get(rig.add_pod("old", "a"))["spec"]["volumes"] = [inline]
    rig.steps(rig.reports())
    nodes = rig.platform.pods.pod_state["nodes"]
    assert nodes["a"]["volume_limits"] == {EBS: 25}
    assert nodes["a"]["volumes"] == {EBS: 3, EFS: 1}
    assert nodes["b"].keys().isdisjoint({"volumes", "volume_limits"})


def test_pods_that_wait_tell_what_they_attach(rig: Rig) -> None:
    storage_class(rig, "gp3", EBS)
    storage_class(rig, "gp2", "kubernetes.io/aws-ebs")
    storage_class(rig, "local", "kubernetes.io/no-provisioner")
    storage(rig, "bound", {"csi": {"driver": EFS, "volumeHandle": "fs-1"}})
    storage(rig, "new", storageClassName="gp3")
    storage(rig, "older", storageClassName="gp2")
    storage(rig, "hand", storageClassName="local")
    storage(rig, "web-1-scratch", storageClassName="gp3")
    volumes = [
        *map(claim_of, ("bound", "new", "older", "hand")),
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
    ]
    rig.add_waiting("web-1", volumes=volumes)
    rig.steps(rig.reports())
    (template,) = rig.platform.pods.templates()
    assert template["attachments"] == {EBS: 3, EFS: 1}


def test_pods_on_nodes_tell_where_their_volumes_bind_them(rig: Rig) -> None:
    """The facts say where the pods could go when their node goes."""
    rig.add_node("a")
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    storage(rig, "data", {"csi": {"driver": EBS, "volumeHandle": "vol-1"}, "nodeAffinity": affinity})
    rig.kube.store.get(rig.add_pod("db", "a"))["spec"]["volumes"] = [claim_of("data")]
    rig.steps(rig.reports())
    pod_state = rig.platform.pods.pod_state
    (group,) = pod_state["running"]["a"]
    assert (pod_state["groups"][group]["volumes"], pod_state["groups"][group]["attachments"]) == ([[zone]], {EBS: 1})


def test_volumes_of_pods_on_nodes_are_read_once(rig: Rig) -> None:
    rig.platform.pods.interval = 10
    rig.add_node("a")
    storage(rig, "data", {"csi": {"driver": EBS, "volumeHandle": "vol-1"}})
    rig.kube.store.get(rig.add_pod("db", "a"))["spec"]["volumes"] = [claim_of("data")]
    reports = rig.reports()
    for number in range(40):
        rig.add_pod(f"web-{number}", "a")
        rig.steps(reports)
    assert len(rig.platform.pods.posts) > 3
    assert sum(call.action.resource == "persistentvolumeclaims" for call in rig.kube.calls) == 1


def test_a_driver_that_comes_to_a_node_is_told_while_pods_wait(rig: Rig) -> None:
    rig.add_node("a")
    rig.add_waiting("web")
    reports = rig.reports()
    rig.steps(reports, 20)
    csi_node(rig, "a", **{EBS: 1})
    rig.steps(reports, 20)
    assert rig.platform.pods.pod_state["nodes"]["a"]["volume_limits"] == {EBS: 1}
    assert len(rig.platform.pods.posts) == 2


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        ("kubernetes.io/aws-ebs", EBS), ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"), (EBS, EBS),
        ("kubernetes.io/no-provisioner", ""), ("", ""), ("example.test/slow", "example.test/slow"),
    ],
)  # fmt: skip
def test_drivers_of_classes(provisioner: str, driver: str) -> None:
    assert csi.driver_of(provisioner) == driver


def test_an_agent_that_may_not_read_limits_tells_all_else(rig: Rig) -> None:
    """One that was upgraded under the roles of an older one."""
    role = next(role for key, role in rig.kube.store.objects.items() if key.resource == "clusterroles")
    names = (["csinodes"], ["namespaces"], ["limitranges"])
    role["rules"] = [rule for rule in role["rules"] if rule["resources"] not in names]
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cni", "namespace": "web"}}
    rig.kube.install([{**daemon, "spec": {"template": {"spec": {}}}}])
    selector = {"matchLabels": {"team": "db"}}
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": selector}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    rig.add_node("a")
    rig.add_waiting("web-1", affinity=rule)
    reports = rig.reports()
    rig.steps(reports, 40)
    assert rig.platform.pods.pod_state["nodes"]["a"]["ready"] == "True"
    (template,) = rig.platform.pods.templates()
    assert template["spec"]["affinity"] == rule, "Stockyard reads the selector as well as it can"
    assert len([line for line in rig.logs if "are not told" in line]) == 3


# --- pods that are assigned and not bound -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "nominated"), [(["a"], {"a": 1}), (["a", "a"], {"a": 1}), (["a", None], {}), (["gone"], {}), ([None], {})]
)
def test_a_pod_whose_volumes_are_being_made_keeps_its_room(
    rig: Rig, nodes: list[str | None], nominated: dict[str, int]
) -> None:
    """As kube-scheduler before 1.35 says it: by a note at each claim."""
    rig.add_node("a")
    storage_class(rig, "slow", "example.test/slow")
    for number, node in enumerate(nodes):
        storage(rig, f"data-{number}", storageClassName="slow")
        if node is not None:
            key = Key("", "persistentvolumeclaims", "web", f"data-{number}")
            rig.kube.store.get(key)["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
    storage(rig, "bound", {"csi": {"driver": EBS, "volumeHandle": "vol-1"}})
    names = [*(f"data-{number}" for number in range(len(nodes))), "bound"]
    rig.add_waiting("db-0", volumes=[claim_of(name) for name in names])
    reports = rig.reports()
    rig.steps(reports, 2)
    pods = rig.platform.pods
    assert pods.nominated == nominated
    assert pods.pending == ([] if nominated else [(1, ["web/db-0"])])


def test_a_pod_that_the_scheduler_has_not_marked_keeps_its_room_too(rig: Rig) -> None:
    rig.add_node("a")
    storage_class(rig, "slow", "example.test/slow")
    storage(rig, "data", storageClassName="slow")
    key = Key("", "persistentvolumeclaims", "web", "data")
    rig.kube.store.get(key)["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "a"}
    first = rig.add_waiting("db-0", volumes=[claim_of("data")])
    rig.kube.store.get(first)["status"] = {"phase": "Pending"}
    rig.add_waiting("db-1")
    rig.steps(rig.reports())
    assert (rig.platform.pods.nominated, rig.platform.pods.pending) == ({"a": 1}, [(1, ["web/db-1"])])
    (group,) = rig.platform.pods.pod_state["nominated"]["a"]
    assert rig.platform.pods.pod_state["groups"][group]["attachments"] == {"example.test/slow": 1}
