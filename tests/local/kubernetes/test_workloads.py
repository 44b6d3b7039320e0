"""Pods that controllers of a simulated cluster make of workloads, and watches that tell of them."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any

import pytest

from local.kubernetes import pods as kube_pods
from local.kubernetes.api import KubeApi, node
from local.kubernetes.controllers.upkeep import keep
from local.kubernetes.controllers.workloads import settle
from local.kubernetes.pods import reap
from local.kubernetes.scheduler import schedule
from local.kubernetes.store import Key, KubeStore, Object

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


class Town:
    """A simulated API and the clock of its controllers."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, 12, tzinfo=UTC)
        self.api = KubeApi(now=lambda: self.now)
        self.headers = {"authorization": f"Bearer {self.api.administrator()}", "content-type": "application/json"}
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("default", "team")]
        self.api.install([*spaces, node("n1"), node("n2")])

    @property
    def store(self) -> KubeStore:
        return self.api.store

    def asks(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
        headers = {**self.headers, **({"content-type": content_type} if content_type else {})}
        return self.api.request(method, path, headers, b"" if body is None else json.dumps(body).encode())

    def makes(self, kind: str, resource: str, group: str = "apps", **spec: Any) -> Key:
        document = {
            "apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, **spec},
        }  # fmt: skip
        status, answer = self.asks("POST", f"/apis/{group}/v1/namespaces/default/{resource}", document)
        assert status == 201, answer
        return Key(group, resource, "default", "a")

    def works(self, rounds: int = 6) -> None:
        for _ in range(rounds):
            reap(self.store, all_marked=True)
            schedule(self.store)
            settle(self.store, ())
            keep(self.store)
            self.now += timedelta(seconds=1)

    def pods(self) -> dict[str, Object]:
        return {key.name: pod for key, pod in self.store.objects.items() if key.resource == "pods"}

    def change(self, key: Key, **spec: Any) -> None:
        document = self.store.objects[key]
        self.store.replace(key, {**document, "spec": {**document["spec"], **spec}})


@pytest.fixture
def town() -> Town:
    return Town()


def test_a_deployment_rolls_without_losing_pods(town: Town) -> None:
    key = town.makes("Deployment", "deployments", replicas=3)
    town.works()
    first = set(town.pods())
    assert len(first) == 3
    assert town.store.objects[key]["status"]["availableReplicas"] == 3
    town.change(key, template={**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "y"}]}})
    for _ in range(8):
        town.works(1)
        assert sum(map(kube_pods.ready, town.pods().values())) >= 3, "old pods stay until new ones are ready"
    assert len(town.pods()) == 3
    assert not first & set(town.pods())
    assert town.store.objects[key]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert (
        town.store.objects[key]["status"]["observedGeneration"]
        == town.store.objects[key]["metadata"]["generation"]
        == 2
    )
    revision = town.store.revision
    town.works(2)
    assert town.store.revision == revision, "what is as it was is not written"
    status, scale = town.asks(
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        {"spec": {"replicas": 1}},
        "application/merge-patch+json",
    )
    assert (status, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 1})
    town.works()
    assert len(town.pods()) == 1
    # A pod whose node is gone is made anew.
    ((name, pod),) = town.pods().items()
    town.store.remove(Key("", "nodes", "", pod["spec"]["nodeName"]), {})
    town.works()
    assert town.pods().keys() != {name}
    assert len(town.pods()) == 1
    town.asks("DELETE", "/apis/apps/v1/namespaces/default/deployments/a")
    town.works()
    assert not [key for key in town.store.objects if key.resource in ("pods", "replicasets")]


def test_dependents_of_an_orphaning_deletion_stay(town: Town) -> None:
    town.makes("Deployment", "deployments", replicas=2)
    town.works()
    town.asks("DELETE", "/apis/apps/v1/namespaces/default/deployments/a", {"propagationPolicy": "Orphan"})
    town.works()
    assert len(town.pods()) == 2


def test_workloads_of_other_kinds_have_their_pods(town: Town) -> None:
    key = town.makes(
        "StatefulSet", "statefulsets", replicas=2, volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": {}}]
    )
    town.works()
    assert set(town.pods()) == {"a-0"}, "a-1 waits for a-0, whose claim nobody binds"
    assert Key("", "persistentvolumeclaims", "default", "v-a-0") in town.store.objects
    town.store.remove(key, {})
    town.works()
    key = town.makes("DaemonSet", "daemonsets")
    town.works()
    assert {pod["spec"]["nodeName"] for pod in town.pods().values()} == {"n1", "n2"}
    town.change(
        key, template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"kubernetes.io/hostname": "n2"}}}
    )
    town.works()
    assert {pod["spec"]["nodeName"] for pod in town.pods().values()} == {"n2"}
    town.store.remove(key, {})
    town.works()
    key = town.makes("Job", "jobs", "batch", parallelism=2, completions=3)
    town.works(12)
    assert town.store.objects[key]["status"]["succeeded"] == 3
    assert {pod["status"]["phase"] for pod in town.pods().values()} == {"Succeeded"}


def test_a_pod_that_waits_has_an_event_and_a_namespace_goes_with_what_is_in_it(town: Town) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    big = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "64"}}}]
    town.asks("POST", "/api/v1/namespaces/team/pods", {**pod, "spec": {"containers": big}})
    town.works()
    _, events = town.asks("GET", "/api/v1/namespaces/team/events?fieldSelector=involvedObject.name=p")
    assert [event["reason"] for event in events["items"]] == ["FailedScheduling"]
    assert "2 Insufficient cpu" in events["items"][0]["message"]
    assert Key("", "serviceaccounts", "team", "default") in town.store.objects
    town.asks(
        "POST", "/api/v1/namespaces/team/pods", {**pod, "metadata": {"name": "q"}, "spec": {"containers": big[:0]}}
    )
    town.works()
    status, answer = town.asks("DELETE", "/api/v1/namespaces/team")
    assert (status, answer["status"]["phase"]) == (200, "Terminating")
    assert (
        town.asks(
            "POST",
            "/api/v1/namespaces/team/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        )[0]
        == 403
    )
    town.works()
    assert not [key for key in town.store.objects if "team" in (key.namespace, key.name)]


def test_dry_runs_and_generated_names(town: Town) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}
    path = "/api/v1/namespaces/default/configmaps"
    revision = town.store.revision
    assert town.asks("POST", f"{path}?dryRun=All", config)[0] == 201
    assert town.asks("DELETE", "/api/v1/nodes/n1?dryRun=All")[0] == 200
    assert town.store.revision == revision
    names = {town.asks("POST", path, config)[1]["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("c-") and len(name) == 7 for name in names)


def test_a_watch_tells_what_changes_when_it_does(town: Town) -> None:
    url = town.api.serve()
    connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    path = "/api/v1/nodes?watch=true&labelSelector=kubernetes.io/hostname=n1&sendInitialEvents=true"
    connection.request("GET", path, headers={**town.headers, "accept": table})
    answer = connection.getresponse()

    def change() -> None:
        town.asks(
            "PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True}}, "application/strategic-merge-patch+json"
        )

    try:
        events = [json.loads(answer.readline()) for _ in range(2)]
        threading.Timer(0.1, change).start()
        events.append(json.loads(answer.readline()))
        assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "MODIFIED"]
        assert [event["object"]["rows"][0]["cells"][1] for event in events[::2]] == [
            "Ready",
            "Ready,SchedulingDisabled",
        ]
    finally:
        connection.close()
        town.api.close()


def test_who_may_what(town: Town) -> None:
    wish = {
        "spec": {
            "resourceAttributes": {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default"}
        }
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert town.asks("POST", path, wish)[1]["status"] == {"allowed": True}
    town.headers["authorization"] = f"Bearer {town.api.issue('default', 'nobody')}"
    assert town.asks("POST", path, wish)[1]["status"] == {"allowed": False}
    _, answer = town.asks(
        "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
    )
    assert answer["status"]["resourceRules"] == []
    _, answer = town.asks("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert answer["status"]["userInfo"]["username"] == "system:serviceaccount:default:nobody"
    for part in ("log", "exec"):
        assert town.asks("GET", f"/api/v1/namespaces/default/pods/p/{part}")[0] == 403
