"""A cluster with the agent, simulated or real: what the contract suite needs of both goes by HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from agent import manifest
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import MERGE, node
from local.kubernetes.real.client import Client, Refused
from local.kubernetes.real.control_plane import PORT, ControlPlane
from local.kubernetes.resources import RBAC
from local.kubernetes.store import Key, Object, copied
from tests.unit.agent.rig import API, CLUSTER, TOKEN_URL, Clock, Rig

JSON = "application/json"
WEB = "/api/v1/namespaces/web/pods"
BUDGETS = "/apis/policy/v1/namespaces/web/poddisruptionbudgets"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def until(condition: Any, seconds: float = 20.0) -> Any:
    """Wait until the condition's answer is true, and return it."""
    ends_at = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < ends_at, "it never came to be"
        time.sleep(0.1)
    return answer


class ContractRig(Rig):
    """``Rig`` by means that both kinds of clusters have. Pods are in the namespace ``web``."""

    def call(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> HttpResponse:
        """A request of the agent's account, without the agent."""
        raise NotImplementedError

    def administer(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Object:
        """The object of an answer to the administrator. Raises ``AssertionError`` for anything but 2xx."""
        raise NotImplementedError

    def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> HttpResponse:
        """The answer to the administrator, whatever it is."""
        raise NotImplementedError

    def end_pods(self) -> None:
        """End pods as kubelets do, whatever their grace: most programs end when they are told to."""
        for pod in self.administer("GET", "/api/v1/pods")["items"]:
            meta = pod["metadata"]
            if "deletionTimestamp" in meta and not meta.get("finalizers"):
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                self.administer("DELETE", path, {"gracePeriodSeconds": 0})

    def settled(self) -> None:
        """Wait until budgets know the pods that there are."""

    def rounds(self, agent: Any, count: int = 2, *, kubelets: bool = True) -> None:
        for _ in range(count):
            self.clock.later(agent.round())
            if kubelets:
                self.end_pods()
                self.settled()

    def add_node(self, name: str, **more: Any) -> Object:
        return self.administer("POST", "/api/v1/nodes", node(name, **more))

    def node(self, name: str) -> Object:
        return self.administer("GET", f"/api/v1/nodes/{name}")

    def taints(self, name: str) -> list[Object]:
        """A node's taints but for those of Kubernetes' own controllers."""
        taints = self.node(name)["spec"].get("taints") or []
        return [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]

    def put(self, name: str, on: str, namespace: str = "web", **more: Any) -> str:
        """Create a pod that runs and is ready; its path."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.administer("POST", path, kube_pods.pod(name, on, **more))
        return f"{path}/{name}"

    def put_waiting(self, name: str, **spec: Any) -> str:
        """Create a pod that no node has room for; its path. ``spec`` are more members of its specification."""
        document = kube_pods.waiting(name, cpu="1000", owner="", **spec)
        if spec.get("schedulingGates"):
            document["status"]["conditions"][0]["reason"] = "SchedulingGated"
        self.administer("POST", WEB, document)
        return f"{WEB}/{name}"

    def open_gate(self, name: str) -> None:
        """Let the scheduler look at a pod that was gated."""
        raise NotImplementedError

    def finish(self, path: str) -> None:
        """The pod's programs have ended."""
        raise NotImplementedError

    def restart(self) -> None:
        """End the API server and start it again."""
        raise NotImplementedError

    def budget(self, name: str, labels: Mapping[str, str], least: int) -> str:
        """Create a disruption budget; its path."""
        spec = {"minAvailable": least, "selector": {"matchLabels": dict(labels)}}
        document = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
        self.administer("POST", BUDGETS, document)
        self.settled()
        return f"{BUDGETS}/{name}"

    def pods(self, on: str) -> list[str]:
        items = self.administer("GET", f"/api/v1/pods?fieldSelector={quote(f'spec.nodeName={on}')}")["items"]
        return sorted(item["metadata"]["name"] for item in items)

    def exists(self, path: str) -> bool:
        """Whether there is an object at the path."""
        collection, _, name = path.rpartition("/")
        return name in [item["metadata"]["name"] for item in self.administer("GET", collection)["items"]]


class SimulatedRig(ContractRig):
    """On the simulated API, by HTTP."""

    def __post_init__(self) -> None:
        super().__post_init__()
        about = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "all"}}
        subject = {"kind": "ServiceAccount", "namespace": "kube-system", "name": "admin"}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "all"}
        self.kube.install(
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}},
                {**about, "kind": "ClusterRole", "rules": [EVERYTHING]},
                {**about, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
            ]
        )
        self._administrator = self.kube.issue("kube-system", "admin")
        self._address = urlsplit(self.kube.serve()).netloc

    def close(self) -> None:
        """Stop listening."""
        self.kube.close()

    def open_gate(self, name: str) -> None:
        key = Key("", "pods", "web", name)
        pod = copied(self.kube.store.get(key))
        del pod["spec"]["schedulingGates"]
        pod["status"]["conditions"][0]["reason"] = "Unschedulable"
        self.kube.store.replace(key, pod)

    def finish(self, path: str) -> None:
        key = Key("", "pods", "web", path.rpartition("/")[2])
        pod = self.kube.store.get(key)
        self.kube.store.replace(key, {**pod, "status": {"phase": "Succeeded"}})

    def restart(self) -> None:
        self.kube.store.compact()

    def call(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> HttpResponse:
        return self._send(method, path, body, content_type, self.account)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> HttpResponse:
        return self._send(method, path, body, content_type, self._administrator)

    def administer(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Object:
        answer = self.ask(method, path, body, content_type)
        assert 200 <= answer.status < 300, answer.body
        return answer.json_object()

    def _send(self, method: str, path: str, body: Any, content_type: str, token: str) -> HttpResponse:
        connection = http.client.HTTPConnection(self._address, timeout=10)
        return _exchanged(connection, method, path, body, content_type, token)


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Ignore that an object is not there any more."""
    try:
        yield
    except Refused as refused:
        if refused.status != 404:
            raise


class RealRig(ContractRig):
    """On a real API server and its controllers. Nobody plays kubelets: a pod that is to end waits for ``end_pods``."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        super().__init__(clock=Clock(datetime.now(UTC)))

    def __post_init__(self) -> None:
        items = manifest.documents(manifest.Settings(API, CLUSTER, TOKEN_URL))
        # The tests run the agent; the scheduler would put another one on their nodes.
        items[-1]["spec"]["replicas"] = 0
        self.apply({"apiVersion": "v1", "kind": "List", "items": items})
        self._client = Client.of_kubeconfig(self.plane.kubeconfig)
        self._context = ssl.create_default_context(cafile=str(self.plane.folder / "pki/ca.crt"))
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
        self.account = str(self.administer("POST", path, request)["status"]["token"])

    def close(self) -> None:
        """Leave nothing to the next test."""
        for pod in [*self._items(WEB), *self._items("/api/v1/namespaces/kube-system/pods")]:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            self._release(path)
            self._without(path, {"gracePeriodSeconds": 0})
        for budget in self._items(BUDGETS):
            self._without(f"{BUDGETS}/{budget['metadata']['name']}")
        for item in self._items("/api/v1/nodes"):
            path = f"/api/v1/nodes/{item['metadata']['name']}"
            self._release(path)
            self._without(path)
        secrets = "/api/v1/namespaces/kube-system/secrets"
        for secret in self._items(secrets):
            if secret["metadata"]["name"].startswith("bootstrap-token-"):
                self._without(f"{secrets}/{secret['metadata']['name']}")
        for name in ("site", "other"):
            self._without(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")

    def call(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> HttpResponse:
        connection = http.client.HTTPSConnection(self.plane.address, PORT, timeout=10, context=self._context)
        return _exchanged(connection, method, path, body, content_type, self.account)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> HttpResponse:
        identity = self._client._context
        connection = http.client.HTTPSConnection(self.plane.address, PORT, timeout=10, context=identity)
        return _exchanged(connection, method, path, body, content_type, "")

    def administer(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Object:
        document: Object = self._client.call(method, path, body, content_type)
        return document

    def settled(self) -> None:
        until(lambda: all(self._knows(budget) for budget in self._items(BUDGETS)))

    def put(self, name: str, on: str, namespace: str = "web", **more: Any) -> str:
        document = kube_pods.pod(name, on, **more)
        document["spec"]["containers"] = [{"name": "c", "image": "none"}]
        document["spec"]["automountServiceAccountToken"] = False
        for owner in document["metadata"].get("ownerReferences", ()):
            # An owner that is not there would take the pod with it; of a kind that nobody knows it does not.
            owner["apiVersion"] = "example.test/v1"
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.administer("POST", path, document)
        self.administer("PATCH", f"{path}/{name}/status", {"status": document["status"]}, MERGE)
        return f"{path}/{name}"

    def put_waiting(self, name: str, **spec: Any) -> str:
        document = kube_pods.waiting(name, cpu="1000", owner="", **spec)
        document["spec"]["containers"][0]["image"] = "none"
        document["spec"]["automountServiceAccountToken"] = False
        self.administer("POST", WEB, document)  # its scheduler says why it waits
        return f"{WEB}/{name}"

    def open_gate(self, name: str) -> None:
        self.administer("PATCH", f"{WEB}/{name}", {"spec": {"schedulingGates": None}}, MERGE)

    def finish(self, path: str) -> None:
        self.administer("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, MERGE)

    def restart(self) -> None:
        self.plane.stop()
        self.plane.start()

    def deliver(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        if parts.netloc != "kube.test":
            return super().deliver(request)
        return self.send(request.method, f"{parts.path}?{parts.query}", request.headers, request.body)

    def send(self, method: str, path: str, headers: Any = None, body: bytes | None = None) -> HttpResponse:
        """One request as it is."""
        connection = http.client.HTTPSConnection(self.plane.address, PORT, timeout=10, context=self._context)
        return _answer(connection, method, path, body, dict(headers or {}))

    def apply(self, document: dict[str, Any]) -> None:
        """Apply as the administrator."""
        path = self.plane.folder / "applied.json"
        path.write_text(json.dumps(document))
        self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))

    def _items(self, path: str) -> Iterator[Object]:
        yield from self.administer("GET", path)["items"]

    def _without(self, path: str, options: Any = None) -> None:
        with _unless_gone():
            self.administer("DELETE", path, options)

    def _release(self, path: str) -> None:
        """Take the finalizers of an object away. Controllers may have ended it meanwhile."""
        with _unless_gone():
            self.administer("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)

    def _knows(self, budget: Object) -> bool:
        wish = budget["spec"]["selector"]["matchLabels"].items()
        covered = [pod for pod in self._items(WEB) if wish <= (pod["metadata"].get("labels") or {}).items()]
        status, healthy = budget.get("status") or {}, sum(map(kube_pods.ready, covered))
        current = status.get("observedGeneration") == budget["metadata"]["generation"]
        return bool(current and status["currentHealthy"] == healthy and not status.get("disruptedPods"))


def _exchanged(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any, content_type: str, token: str
) -> HttpResponse:
    headers = {"Content-Type": content_type, "Accept": JSON} | ({"Authorization": f"Bearer {token}"} if token else {})
    return _answer(connection, method, path, None if body is None else json.dumps(body).encode(), headers)


def _answer(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> HttpResponse:
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return HttpResponse(answer.status, headers, answer.read())
    finally:
        connection.close()
