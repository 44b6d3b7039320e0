"""The agent on a real API server: its commands do what they do on the stand-in, with its rights and no others."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from agent import manifest, roles
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent import tokens
from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from local.kubernetes.api import node
from local.kubernetes.real.control_plane import PORT, ControlPlane
from local.kubernetes.store import stamp
from tests.kubernetes.conftest import Cluster
from tests.unit.agent.rig import API, CLUSTER, TOKEN_URL, Clock, Rig


class RealRig(Rig):
    """As ``Rig``, on a real API server without kubelets: a pod that is to end waits until its deletion is forced."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        super().__init__(clock=Clock(datetime.now(UTC)))

    def __post_init__(self) -> None:
        items = manifest.documents(manifest.Settings(API, CLUSTER, TOKEN_URL))
        self.apply({"apiVersion": "v1", "kind": "List", "items": items})
        self.account = self.plane.kubectl("create", "token", NAME, "-n", NAMESPACE).stdout.strip()
        self._context = ssl.create_default_context(cafile=str(self.plane.folder / "pki/ca.crt"))

    def deliver(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        if parts.netloc != "kube.test":
            return super().deliver(request)
        return self.send(request.method, f"{parts.path}?{parts.query}", request.headers, request.body)

    def send(self, method: str, path: str, headers: Any = None, body: bytes | None = None) -> HttpResponse:
        connection = http.client.HTTPSConnection(self.plane.address, PORT, timeout=10, context=self._context)
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            answer = connection.getresponse()
            return HttpResponse(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def rounds(self, agent: Any, count: int = 2, *, kubelets: bool = True) -> None:
        for _ in range(count):
            self.clock.later(agent.round())

    def apply(self, document: dict[str, Any]) -> None:
        """Apply as the administrator."""
        path = self.plane.folder / "applied.json"
        path.write_text(json.dumps(document))
        self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))

    def add_node(self, name: str, **more: Any) -> Any:
        document = {"apiVersion": "v1", "kind": "Node", **node(name, **more)}
        document.pop("status", None)
        self.apply(document)
        return self.node(name)

    def node(self, name: str) -> Any:
        return json.loads(self.plane.kubectl("get", "node", name, "-o", "json").stdout)

    def pod(self, name: str, on: str, labels: dict[str, str], grace: int = 30) -> None:
        """A pod that nobody runs, bound to the node and said to be ready."""
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "web", "labels": labels},
                "spec": {
                    "nodeName": on,
                    "terminationGracePeriodSeconds": grace,
                    "containers": [{"name": "c", "image": "none"}],
                },
            }
        )
        condition = {"type": "Ready", "status": "True"}
        patch = json.dumps({"status": {"phase": "Running", "conditions": [condition]}})
        self.plane.kubectl("patch", "pod", name, "-n", "web", "--subresource=status", "--type=merge", "-p", patch)

    def pods(self, on: str) -> list[str]:
        done = self.plane.kubectl("get", "pods", "-n", "web", "--field-selector", f"spec.nodeName={on}", "-o", "json")
        return [item["metadata"]["name"] for item in json.loads(done.stdout)["items"]]


def until(condition: Any, seconds: float = 20.0) -> Any:
    """What the condition answers as soon as that is true."""
    ends_at = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < ends_at, "it never came to be"
        time.sleep(0.2)
    return answer


@pytest.fixture(scope="module")
def started(cluster: Cluster) -> ControlPlane:
    cluster.plane.kubectl("create", "namespace", "web")
    until(lambda: cluster.plane.kubectl("get", "serviceaccount", "default", "-n", "web", check=False).returncode == 0)
    return cluster.plane


@pytest.fixture
def rig(started: ControlPlane) -> RealRig:
    return RealRig(started)


def test_nodes_are_cordoned_tainted_and_labelled(rig: RealRig) -> None:
    rig.add_node("edited")
    agent = rig.agent()
    rig.platform.order("c", "cordon", node="edited")
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    rig.platform.order("t", "taint", node="edited", taints=[taint], remove=[])
    rig.platform.order("l", "label", node="edited", labels={"team": "blue"})
    rig.until_ended(agent)
    assert {result["status"] for result in rig.platform.results_by_id.values()} == {"done"}
    after = rig.node("edited")
    assert after["spec"]["unschedulable"] is True
    assert taint in after["spec"]["taints"]
    assert after["metadata"]["labels"]["team"] == "blue"
    rig.platform.order("u", "uncordon", node="edited")
    rig.until_ended(agent)
    assert "unschedulable" not in rig.node("edited")["spec"]


def test_a_drain_waits_for_a_budget_and_ends_at_its_deadline(rig: RealRig) -> None:
    uid = rig.add_node("drained")["metadata"]["uid"]
    rig.pod("kept", "drained", {"app": "kept"})
    rig.pod("free", "drained", {"app": "free"})
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    about = {"name": "kept", "namespace": "web"}
    rig.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": budget})
    get_budget = ("get", "pdb", "kept", "-n", "web", "-o", "jsonpath={.status.currentHealthy}")
    until(lambda: rig.plane.kubectl(*get_budget).stdout == "1")
    agent, deadline = rig.agent(), stamp(rig.clock.now + timedelta(seconds=600))
    rig.platform.order("d", "drain", node="drained", uid=uid, grace_seconds=None, deadline=deadline)
    rig.rounds(agent, 2)
    result = rig.platform.results["d"]
    assert result["status"] == "running"
    assert "kept" in result["message"], result
    # Evicted: it ends when its kubelet says so, and there is none.
    marked = json.loads(rig.plane.kubectl("get", "pod", "free", "-n", "web", "-o", "json").stdout)
    assert marked["metadata"]["deletionTimestamp"]
    rig.plane.kubectl("delete", "pod", "free", "-n", "web", "--grace-period=0", "--force")
    rig.rounds(agent, 1)
    assert rig.pods("drained") == ["kept"]
    rig.clock.later(700)
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_d"]["status"] == "done"
    rig.platform.order("x", "delete_node", node="drained", uid=uid)
    rig.until_ended(agent)
    assert rig.plane.kubectl("get", "node", "drained", check=False).returncode != 0


def test_the_agent_may_do_what_it_needs_and_nothing_else(rig: RealRig) -> None:
    def may(verb: str, resource: str, *options: str) -> bool:
        account = f"system:serviceaccount:{NAMESPACE}:{NAME}"
        kind, _, part = resource.partition("/")
        about = [kind, f"--subresource={part}"] if part else [kind]
        done = rig.plane.kubectl("auth", "can-i", verb, *about, "--as", account, *options, check=False)
        return done.stdout.strip() == "yes"

    assert may("list", "nodes")
    assert may("create", "pods/eviction", "-n", "web")
    assert may("create", "secrets", "-n", "kube-system")
    for verb, resource, namespace in (
        ("get", "secrets", "kube-system"),
        ("list", "secrets", "web"),
        ("create", "serviceaccounts/token", "kube-system"),
        ("create", "clusterrolebindings", ""),
        ("get", "nodes/proxy", ""),
        ("create", "pods/exec", "web"),
    ):
        assert not may(verb, resource, *(["-n", namespace] if namespace else [])), (verb, resource)


def test_the_admission_policy_lets_the_agent_write_bootstrap_tokens_alone(rig: RealRig) -> None:
    """What the agent itself writes passes (the join test above); each Secret here differs from that in one thing."""
    path = "/api/v1/namespaces/kube-system/secrets"

    def call(method: str, path: str, document: Any = None) -> HttpResponse:
        headers = {"Authorization": f"Bearer {rig.account}", "Content-Type": "application/json"}
        return rig.send(method, path, headers, json.dumps(document).encode() if document else None)

    def token(identity: str) -> dict[str, Any]:
        return tokens.secret_of(identity, "0123456789abcdef", "ncl_1", "worker-1", "2099-01-01T00:00:00Z")

    def refused(method: str, path: str, document: Any = None) -> str:
        answer = call(method, path, document)
        assert answer.status == 422, answer.body
        status = yaml.safe_load(answer.body)
        assert status["reason"] == "Invalid"
        return str(status["message"])

    of_another_type = {**token("zzzzzz"), "type": "Opaque"}
    assert "writes bootstrap tokens only" in refused("POST", path, of_another_type)
    renamed, unlabelled = token("zzzzzz"), token("zzzzzz")
    renamed["metadata"]["name"] = "stolen"
    assert "named after its id" in refused("POST", path, renamed)
    renamed["metadata"].pop("name")
    renamed["metadata"]["generateName"] = "bootstrap-token-"
    assert "named after its id" in refused("POST", path, renamed)
    groups = token("zzzzzz")["stringData"]["auth-extra-groups"]
    admins = "system:bootstrappers:admins"
    for stray in (admins, roles.JOINERS, f"{groups},{admins}", f"{groups}1,{admins}", f"{groups}12,{admins}"):
        changed = token("zzzzzz")
        changed["stringData"]["auth-extra-groups"] = stray
        assert "joins one node and nothing else" in refused("POST", path, changed), stray
    unlabelled["metadata"].pop("labels")
    assert "carries its label" in refused("POST", path, unlabelled)
    endless, empty = token("zzzzzz"), token("zzzzzz")
    endless["stringData"].pop("expiration")
    assert "ends" in refused("POST", path, endless)
    empty.pop("stringData")
    assert "named after its id" in refused("POST", path, empty)
    # A token of somebody else: it stays as it is.
    folder = rig.plane.folder / "foreign.json"
    foreign = token("yyyyyy")
    foreign["metadata"]["labels"] = {"owner": "somebody"}
    folder.write_text(json.dumps(foreign))
    rig.plane.kubectl("create", "-f", str(folder))
    assert "its own bootstrap tokens only" in refused("PUT", f"{path}/bootstrap-token-yyyyyy", token("yyyyyy"))
    assert "its own bootstrap tokens only" in refused("DELETE", f"{path}/bootstrap-token-yyyyyy")
    # One of its own goes all the way.
    assert call("POST", path, token("xxxxxx")).status == 201
    assert call("PUT", f"{path}/bootstrap-token-xxxxxx", token("xxxxxx")).status == 200
    assert call("DELETE", f"{path}/bootstrap-token-xxxxxx").status == 200
