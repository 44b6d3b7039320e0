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


def versioned(version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {**manifest(kind, **spec), "apiVersion": version}


@pytest.mark.parametrize(
    ("version", "kind", "why"),
    [
        ("batch.example.com/v1", "Job", "Job of batch.example.com/v1 is another kind than that of batch/v1"),
        ("apps.example.com/v1", "Deployment", "Deployment of apps.example.com/v1 is another kind than that of apps/v1"),
        ("metrics.k8s.io/v1beta1", "Pod", "Pod of metrics.k8s.io/v1beta1 is another kind than that of v1"),
        (
            "extensions/v1beta1",
            "Deployment",
            "Deployment of extensions/v1beta1 is of a version that is not read; write it as apps/v1",
        ),
        ("batch/v1beta1", "CronJob", "CronJob of batch/v1beta1 is of a version that is not read; write it as batch/v1"),
        ("argoproj.io/v1alpha1", "Rollout", "the kind Rollout makes no pods"),
    ],
)
def test_a_kind_is_one_of_its_group_and_version(version: str, kind: str, why: str) -> None:
    foreign = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": 7}
    for sent in (foreign, {"apiVersion": version, "kind": f"{kind}List", "items": [{"spec": 7}]}):
        workloads = read(sent, versioned("apps/v1", "Deployment"))
        assert ([name for name, _ in workloads.pods], dict(workloads.skipped)) == (["shop/web-0"], {why: 1})


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (manifest("Job", suspend=True, parallelism=3), "the Job is suspended"),
        (manifest("CronJob", suspend=True), "the CronJob is suspended"),
        (
            manifest("CronJob", jobTemplate={"spec": {"template": TEMPLATE, "suspend": True}}),
            "the Jobs of the CronJob are suspended",
        ),
        (
            {**manifest("Job"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}},
            "the Job has ended",
        ),
        (pod(spec={**SPEC, "schedulingGates": [{"name": "quota"}]}), "scheduling gates hold the pods"),
        (
            manifest("Deployment", template={"spec": {**SPEC, "schedulingGates": [{"name": "quota"}]}}),
            "scheduling gates hold the pods",
        ),
        (
            manifest("DaemonSet", template={"spec": {**SPEC, "schedulingGates": [{"name": "quota"}]}}),
            "scheduling gates hold the pods",
        ),
        (pod(metadata={"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"}), "the pod is being deleted"),
    ],
)
def test_what_is_held_or_over_has_no_pods(document: dict[str, Any], why: str) -> None:
    workloads = read(document)
    assert (workloads.pods, workloads.daemon_sets, dict(workloads.skipped)) == ([], {}, {why: 1})


def test_what_is_not_held_has_pods() -> None:
    running = {**manifest("Job", suspend=False), "status": {"conditions": [{"type": "Complete", "status": "False"}]}}
    documents = (running, manifest("Deployment", "p", paused=True), pod(spec={**SPEC, "schedulingGates": []}))
    assert len(read(*documents).pods) == 3


def test_what_another_manifest_makes_is_counted_there() -> None:
    """As in what ``kubectl get all -o yaml`` prints."""

    def owned(kind: str, name: str, owner: tuple[str, str], **document: Any) -> dict[str, Any]:
        owners = [{"kind": owner[0], "name": owner[1], "controller": True}]
        return {**document, "kind": kind, "metadata": {"name": name, "namespace": "shop", "ownerReferences": owners}}

    web = manifest("Deployment", replicas=2)
    replicas = owned("ReplicaSet", "web-1", ("Deployment", "web"), spec={"replicas": 2, "template": TEMPLATE})
    waiting = owned("Pod", "web-1-a", ("ReplicaSet", "web-1"), spec=SPEC)
    assert [name for name, _ in read(waiting, replicas, web).pods] == ["shop/web-0", "shop/web-1"]
    assert [name for name, _ in read(waiting).pods] == ["shop/web-1-a"]


def test_namespaces_are_known_by_their_labels() -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}}
    other = {"apiVersion": "x.example.com/v1", "kind": "Namespace", "metadata": {"name": "other"}}
    assert read(shop, {"kind": "Namespace"}, other).namespaces == {"shop": {"team": "a"}}
    selected = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "a"}}}
    rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selected]}}
    (_, before), *_ = read(pod(spec={**SPEC, "affinity": rules}), {"kind": "List", "items": [shop]}).pods
    namespaces = before.affinity[0].namespaces
    assert namespaces is not None
    assert ("shop" in namespaces, "default" in namespaces) == (True, False)
    with pytest.raises(ValueError, match=r"^/0/metadata/labels/team: "):
        read({**shop, "metadata": {"name": "shop", "labels": {"team": 1}}})


def test_limit_ranges_complete_the_pods_of_their_namespace() -> None:
    bare = {"spec": {"containers": [{"name": "a"}]}}
    limit = {"type": "Container", "defaultRequest": {"cpu": "2"}}
    limit_range = {"kind": "LimitRange", "apiVersion": "v1", "metadata": {"namespace": "shop"}}
    limits = {**limit_range, "spec": {"limits": [limit]}}
    documents = [
        manifest("Deployment", template=bare),
        manifest("DaemonSet", "log", template=bare),
        pod(metadata={"name": "one", "namespace": "shop"}),
        pod(metadata={"name": "elsewhere"}, spec=bare["spec"]),
    ]
    workloads = read(*documents, {"kind": "List", "items": [limits]})
    amounts = {name: dict(each.requests).get("cpu") for name, each in workloads.pods}
    assert amounts == {"shop/web-0": 2000, "shop/one": 250, "default/elsewhere": None}
    assert dict(workloads.daemon_sets["shop/log"].requests)["cpu"] == 2000
    assert workloads.skipped == {"the kind LimitRange makes no pods": 1}
    foreign = {**limits, "apiVersion": "x.example.com/v1"}
    assert dict(read(documents[0], foreign).pods[0][1].requests).get("cpu") is None
    with pytest.raises(ValueError, match=r"^/0/spec/limits/0/max/cpu: "):
        read({**limits, "spec": {"limits": [{**limit, "max": {"cpu": "many"}}]}})


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
        ([{**pod(), "apiVersion": 1}], "/0/apiVersion: a text"),
        ([manifest("Job", suspend="yes")], "/0/spec/suspend: true or false"),
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
def test_what_is_wrong_is_named_by_its_pointer(documents: list[Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        read(*documents)
