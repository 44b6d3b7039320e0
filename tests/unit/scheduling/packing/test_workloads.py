"""Manifests become the pods that they would make; what is wrong is named by its place."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.scheduling.packing.workloads import Workloads, read_workloads

SPEC = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}


def manifest(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": {"template": TEMPLATE, **spec}}


def pod(**changes: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "one"}, "spec": SPEC, **changes}


def read(*manifests: Any, most_pods: int = 100, most_kinds: int = 10) -> Workloads:
    return read_workloads(manifests, most_pods, most_kinds)


@pytest.mark.parametrize(
    ("document", "count"),
    [
        (manifest("Deployment"), 1),
        (manifest("Deployment", replicas=3), 3),
        (manifest("Deployment", replicas=0), 0),
        (manifest("ReplicaSet", replicas=2), 2),
        (manifest("ReplicationController", replicas=2), 2),
        (manifest("StatefulSet", replicas=2), 2),
        (manifest("Job"), 1),
        (manifest("Job", parallelism=4), 4),
        (manifest("Job", parallelism=4, completions=2), 2),
        (manifest("CronJob", jobTemplate={"spec": {"template": TEMPLATE, "parallelism": 2}}), 2),
    ],
)
def test_what_makes_pods_counts_as_its_pods(document: dict[str, Any], count: int) -> None:
    workloads = read(document)
    assert [name for name, _ in workloads.pods] == [f"shop/web-{number}" for number in range(count)]
    for _, each in workloads.pods:
        assert (each.namespace, each.labels) == ("shop", (("app", "web"),))
        assert dict(each.requests) == {"cpu": 250, "memory": 2**30 * 1000, "pods": 1000}


def test_lists_are_taken_apart() -> None:
    named = {"kind": "List", "items": [pod(), {"kind": "DeploymentList", "items": [manifest("Deployment", "api")]}]}
    without_kind = {"kind": "PodList", "items": [{"metadata": {"name": "two"}, "spec": SPEC}]}
    assert [name for name, _ in read(named, without_kind).pods] == ["default/one", "shop/api-0", "default/two"]


def test_daemon_sets_run_on_every_node() -> None:
    workloads = read(manifest("DaemonSet", "agent"))
    assert (list(workloads.daemon_sets), workloads.pods) == (["shop/agent"], [])


def test_what_needs_no_new_node_is_skipped_and_counted() -> None:
    owned = pod(metadata={"name": "d", "ownerReferences": [{"kind": "DaemonSet", "name": "agent"}]})
    finished_pod, bound = pod(status={"phase": "Succeeded"}), pod(spec={**SPEC, "nodeName": "n"})
    service = {"kind": "Service", "metadata": {"name": "web"}}
    workloads = read(owned, finished_pod, bound, bound, service, {"kind": "NodePool", "spec": 7})
    assert not workloads.pods
    assert dict(workloads.skipped) == {
        "pods of a DaemonSet are counted by their DaemonSet": 1,
        "the pod has ended": 1,
        "the pod has a node already": 2,
        "the kind Service makes no pods": 1,
        "the kind NodePool makes no pods": 1,
    }


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        ([7], "/0: an object"),
        ([{"metadata": {}}], "/0/kind: a text"),
        ([pod(), pod(metadata={})], "/1/metadata/name: a text"),
        ([{"kind": "List", "items": 7}], "/0/items: a list"),
        ([{"kind": "List", "items": [pod(), 7]}], "/0/items/1: an object"),
        ([{"kind": "Job", "metadata": {"name": "j"}, "spec": {}}], "/0/spec/template: it is missing"),
        ([manifest("Deployment", replicas=-1)], "/0/spec/replicas: an integer"),
        ([manifest("Deployment", replicas=True)], "/0/spec/replicas: an integer"),
        ([manifest("CronJob", jobTemplate={"spec": {}})], "/0/spec/jobTemplate/spec/template: it is missing"),
        ([pod(spec={"containers": 7})], "/0/spec/containers: a list"),
        (
            [manifest("Deployment", template={"spec": {"tolerations": [{"operator": "Odd"}]}})],
            "/0/spec/template/spec/tolerations/0/operator: Equal, Exists, Gt or Lt",
        ),
        ([manifest("Deployment", replicas=10**12)], "/0: no more than 100 pods"),
        ([manifest("Deployment", replicas=60), manifest("Job", parallelism=60)], "/1: no more than 100 pods"),
        ([pod()] * 11, "/10: no more than 10 manifests"),
        ([manifest("DaemonSet", str(number)) for number in range(11)], "/10: no more than 10 manifests"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(documents: list[Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        read(*documents)
