"""A cluster, a Stockyard that commands, and real agents between them; time goes on only when a test says so."""

from __future__ import annotations

import copy
import gzip
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agent import manifest
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.certificates import Approvals
from agent.stockyard_agent.commands.inbox import CommandInbox
from agent.stockyard_agent.kubeconfig_secrets import KubeconfigSecrets
from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.loop import Agent
from agent.stockyard_agent.mirror import Mirror
from agent.stockyard_agent.pod_reports import PodReports
from agent.stockyard_agent.stockyard_api import StockyardApi
from agent.stockyard_agent.transport import Exchange, HttpRequest, HttpResponse, Unreachable
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import ConnectionReset, KubeApi, node
from local.kubernetes.certificates import CertificateRequest
from local.kubernetes.store import Key, Object, stamp
from stockyard.domain.models.base import read
from stockyard.domain.models.pools.pending_pods import PendingPods
from tests.unit.agent.kept_secrets import SecretsOfCluster

START = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
CLUSTER = "clu_01KDVJXQ80000000000000000A"
KUBE, API, TOKEN_URL = "https://kube.test", "https://api.test", "https://id.test/realms/s/token"
SECRET = "client-s3cret-value"
PIN = "sha256:" + "ab" * 32
TOKEN = "abcdef.0123456789abcdef"
SERVICE = "10.96.0.1"
"""Where the API server answers inside the cluster."""


@dataclass
class Clock:
    """Wall clock and monotonic clock, together."""

    now: datetime = START

    def wall(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return (self.now - START).total_seconds() + 1000

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class PodsOfCluster:
    """Knowledge of Stockyard about the cluster's pods, as ``operations/machines/pending_pods.py`` keeps it."""

    posts: list[dict[str, Any]] = field(default_factory=list)
    pod_state: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    sequence: int = 0
    interval: int = 60

    def take(self, post: dict[str, Any]) -> dict[str, Any]:
        """Keep a report, if it follows the last one; the answer."""
        # The real models say whether it is one that Stockyard takes.
        read(PendingPods, post)
        self.posts.append(post)
        resync = post["sequence"] <= self.sequence or post["base"] not in (None, self.sequence)
        if not resync:
            self.sequence = post["sequence"]
            before = self.pod_state if post["base"] is not None else {}
            self.pod_state = {}
            for name in ("groups", "pending", "running", "nominated", "daemon_sets", "nodes", "budgets"):
                if post.get(name) is None:
                    continue
                entries = {**before.get(name, {}), **post[name]}
                self.pod_state[name] = {key: value for key, value in entries.items() if value is not None}
            groups = self.pod_state["groups"]
            assert self.pod_state["pending"].keys() <= groups.keys()
            on_nodes = [*self.pod_state["running"].values(), *self.pod_state.get("nominated", {}).values()]
            assert {group for node in on_nodes for group in node} <= groups.keys()
        return {"sequence": self.sequence, "resync": resync, "interval_seconds": self.interval}

    @property
    def pending(self) -> list[tuple[int, list[str]]]:
        """Count and names of each group that waits, in order of the names."""
        groups = self.pod_state.get("pending", {}).values()
        return sorted(((waiting["count"], waiting["names"]) for waiting in groups), key=lambda group: group[1])

    @property
    def running(self) -> dict[str, int]:
        """Pods on each node."""
        return {node: sum(counts.values()) for node, counts in sorted(self.pod_state.get("running", {}).items())}

    @property
    def nominated(self) -> dict[str, int]:
        """Pods that have been given each node and are not bound yet."""
        return {node: sum(counts.values()) for node, counts in sorted(self.pod_state.get("nominated", {}).items())}

    def templates(self) -> list[dict[str, Any]]:
        """The templates of what waits."""
        return [self.pod_state["groups"][group] for group in self.pod_state["pending"]]


_ROUTES = {("GET", "mirror"), *(("POST", name) for name in ("observations", "pending-pods", "kubeconfig-secrets"))}


@dataclass
class Platform:
    """Stockyard's side of the wire: hands out tokens, answers posts with the commands that are still open."""

    commands: dict[str, dict[str, Any]] = field(default_factory=dict)
    posts: list[dict[str, Any]] = field(default_factory=list)
    results_by_id: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Answers to the next posts, instead of what they ask."""
    tokens: list[str] = field(default_factory=list)
    good: set[str] = field(default_factory=set)
    interval: Any = 15
    expires_in: int = 300
    forgets: bool = True
    """Whether a command is no longer sent once its end is known."""
    heard: threading.Event = field(default_factory=threading.Event)
    pods: PodsOfCluster = field(default_factory=PodsOfCluster)
    mirror: str | None = None
    """The version that posts are answered with."""
    mirrored: list[dict[str, Any]] = field(default_factory=list)
    """What there is to mirror."""
    pods_interval: int | None = None
    """How soon it wants to hear of pods that moved."""
    secrets: SecretsOfCluster = field(default_factory=SecretsOfCluster)
    parts: int = 500
    """Objects in one part of it."""

    def order(self, name: str, kind: str, **more: Any) -> None:
        self.commands[f"cmd_{name}"] = {"id": f"cmd_{name}", "kind": kind, "deadline": None, **more}

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if path.endswith("/token"):
            return self._token(parse_qs(body.decode()))
        return self._answer(method, path, headers, body)

    def _answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        route, _, query = path.removeprefix(f"/v1/clusters/{CLUSTER}/").partition("?")
        if (method, route) not in _ROUTES:
            return 404, {"title": "Not found"}, {}
        if headers.get("authorization", "").removeprefix("Bearer ") not in self.good:
            return 401, {"message": "Unauthorized"}, {}
        if route in ("mirror", "kubeconfig-secrets"):
            part = self._part(int(parse_qs(query).get("after", ["0"])[0]))
            return (200, part, {}) if route == "mirror" else self.secrets.take(json.loads(body))
        refusals = self.refusals if route == "observations" else self.pods.refusals
        if refusals:
            status, more = refusals.pop(0)
            return status, {"title": "Refused", "detail": "not now"}, more
        packed = headers["content-type"] == "application/gzip"
        raw = gzip.decompress(body) if packed else body
        assert packed is (len(raw) > 1024)
        if route == "pending-pods":
            return 200, self.pods.take(json.loads(raw)), {}
        self._take(json.loads(raw))
        return (
            200,
            {
                "commands": list(self.commands.values()),
                "interval_seconds": self.interval,
                "mirror": self.mirror,
                "pods_interval_seconds": self.pods_interval,
                "kubeconfig_secrets": bool(self.secrets.names or self.secrets.removed),
            },
            {},
        )

    def _part(self, begin: int) -> dict[str, Any]:
        end = begin + self.parts
        return {"objects": self.mirrored[begin:end], "after": str(end) if end < len(self.mirrored) else ""}

    def _token(self, form: Mapping[str, list[str]]) -> tuple[int, Any, dict[str, str]]:
        if form != {"grant_type": ["client_credentials"], "client_id": ["the-client"], "client_secret": [SECRET]}:
            return 401, {"error": "invalid_client"}, {}
        self.tokens.append(f"access-{len(self.tokens)}")
        self.good.add(self.tokens[-1])
        return 200, {"access_token": self.tokens[-1], "expires_in": self.expires_in, "token_type": "Bearer"}, {}

    def _take(self, post: dict[str, Any]) -> None:
        self.posts.append(post)
        for result in post["results"]:
            if result["status"] in ("done", "failed"):
                self.results_by_id[result["id"]] = result
                if self.forgets:
                    self.commands.pop(result["id"], None)
        self.heard.set()

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """Results of the last post, by the name given to ``order``."""
        return {result["id"].removeprefix("cmd_"): result for result in self.posts[-1]["results"]}


def node_pool(name: str, cpu: str = "2") -> Object:
    """A pool as Stockyard tells what is to be mirrored."""
    spec = {"template": {"spec": {"requirements": []}}, "limits": {"cpu": cpu}}
    status = {"nodes": 1, "conditions": []}
    named = {"kind": "NodePool", "name": name, "pool": "", "labels": {}, "annotations": {}}
    return {**named, "spec": spec, "status": status}


def node_claim(pool: str, name: str, ready: str = "Unknown", zone: str = "") -> Object:
    """A claim of a pool as Stockyard tells what is to be mirrored. Its node has its name."""
    labels = {"stockyard.dev/claim": f"ncl_{name}", "karpenter.sh/nodepool": pool, "topology.kubernetes.io/zone": zone}
    status = {"conditions": [{"type": "Ready", "status": ready}], "nodeName": f"{pool}-{name}"}
    named = {"kind": "NodeClaim", "name": f"{pool}-{name}", "pool": pool, "labels": labels, "annotations": {}}
    return {**named, "spec": {"requirements": []}, "status": status}


Around = Callable[[HttpRequest, Exchange], HttpResponse]


@dataclass
class Rig:
    """``around`` sees every outgoing call of the agents, and may end them."""

    clock: Clock = field(default_factory=Clock)
    platform: Platform = field(default_factory=Platform)
    logs: list[str] = field(default_factory=list)
    own_pod: tuple[str, str] = (NAMESPACE, "agent-1")
    around: Around | None = None

    def __post_init__(self) -> None:
        self.kube = KubeApi(now=self.clock.wall)
        self.kube.install(manifest.documents(manifest.Settings(API, CLUSTER, TOKEN_URL)))
        self.account = self.kube.issue(NAMESPACE, NAME)

    def agent(
        self, exchange: Exchange | None = None, mirror: Mirror | None = None, reports: PodReports | None = None,
        secrets: KubeconfigSecrets | None = None,
    ) -> Agent:  # fmt: skip
        """A new agent, as a container starts it."""
        used = exchange or self.exchange
        kube = Kubernetes(KUBE, used, lambda: self.account)
        stockyard_api = self._stockyard(used)
        log, now = self.logs.append, self.clock.wall
        inbox = CommandInbox(kube, now=now, monotonic=self.clock.monotonic, log=log, own_pod=self.own_pod)
        agent = Agent(
            kube, stockyard_api, inbox, Approvals(kube, now, log, frozenset({SERVICE})),
            authority=lambda: "PEM", pin=lambda _: PIN, now=now, jitter=lambda: 0.5, log=log,
            mirror=mirror.hear if mirror else lambda _, __: None, secrets=secrets.hear if secrets else lambda _: None,
        )  # fmt: skip
        if reports:
            agent.attach(reports)
        return agent

    def reports(self, exchange: Exchange | None = None, waiting: Callable[[], None] = lambda: None) -> PodReports:
        """The part of a new agent that reports pods."""
        used = exchange or self.exchange
        stockyard_api = self._stockyard(used)
        return PodReports(
            Kubernetes(KUBE, used, lambda: self.account), stockyard_api,
            now=self.clock.wall, monotonic=self.clock.monotonic, jitter=lambda: 0.5, log=self.logs.append,
            waiting=waiting,
        )  # fmt: skip

    def mirror(self, exchange: Exchange | None = None) -> Mirror:
        """The mirror of a new agent."""
        used = exchange or self.exchange
        kube = Kubernetes(KUBE, used, lambda: self.account)
        return Mirror(kube, self._stockyard(used), jitter=lambda: 0.5, log=self.logs.append)

    def secrets(self, exchange: Exchange | None = None) -> KubeconfigSecrets:
        """The Secrets that a new agent keeps."""
        used = exchange or self.exchange
        kube, log = Kubernetes(KUBE, used, lambda: self.account), self.logs.append
        stockyard_api = self._stockyard(used)
        return KubeconfigSecrets(kube, stockyard_api, monotonic=self.clock.monotonic, jitter=lambda: 0.5, log=log)

    def mirrors(self, mirror: Mirror, most: int = 40) -> None:
        """Steps of a mirror until it has nothing more to do."""
        for _ in range(most):
            seconds = mirror.step()
            self.clock.later(seconds)
            if mirror.settled:
                return
        raise AssertionError(f"it is not done: {self.logs[-3:]}")

    def _stockyard(self, exchange: Exchange) -> StockyardApi:
        return StockyardApi(
            api_url=API, cluster_id=CLUSTER, token_url=TOKEN_URL, exchange=exchange,
            credentials=lambda: ("the-client", SECRET), monotonic=self.clock.monotonic,
        )  # fmt: skip

    def steps(self, reports: PodReports, count: int = 1) -> None:
        """Steps of the part that reports pods, with the time between them."""
        for _ in range(count):
            self.clock.later(reports.step())

    def exchange(self, request: HttpRequest) -> HttpResponse:
        return self.around(request, self.deliver) if self.around else self.deliver(request)

    def deliver(self, request: HttpRequest) -> HttpResponse:
        """To the simulated servers, without a socket."""
        parts = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = request.body or b""
        more: dict[str, str] = {}
        if parts.netloc == "kube.test":
            try:
                status, answer = self.kube.request(request.method, f"{parts.path}?{parts.query}", headers, body)
            except ConnectionReset:
                raise Unreachable("injected") from None
        else:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            status, answer, more = self.platform.answer(request.method, target, headers, body)
        return HttpResponse(status, more, (answer if isinstance(answer, str) else json.dumps(answer)).encode())

    def rounds(self, agent: Agent, count: int = 2, *, kubelets: bool = True) -> None:
        """Rounds of an agent, with the time between them; the kubelets end what is to end."""
        for _ in range(count):
            self.clock.later(agent.round())
            if kubelets:
                kube_pods.reap(self.kube.store, all_marked=True)

    def join(self, agent: Agent, token: str, document: Object) -> Object:
        """A machine joins by its token: it asks for a certificate, the agent looks, the node registers."""
        request = self.kube.request_certificate(token, CertificateRequest(document["metadata"]["name"]))
        agent.look()
        registered = self.kube.register(request, document)
        assert registered is not None, "nobody has decided about its certificate"
        return registered

    def until_ended(self, agent: Agent, most: int = 40) -> None:
        """Rounds until no command is open."""
        for _ in range(most):
            if not self.platform.commands:
                return
            self.rounds(agent, 1)
        raise AssertionError(f"still open: {self.platform.results}")

    def add_node(self, name: str, **more: Any) -> Object:
        return self.kube.store.create(Key("", "nodes", "", name), node(name, **more))

    def add_pod(self, name: str, on: str, namespace: str = "web", **more: Any) -> Key:
        key = Key("", "pods", namespace, name)
        self.kube.store.create(key, kube_pods.pod(name, on, **more))
        return key

    def add_waiting(self, name: str, namespace: str = "web", **more: Any) -> Key:
        """A pod that the scheduler has no node for."""
        key = Key("", "pods", namespace, name)
        self.kube.store.create(key, kube_pods.waiting(name, **more))
        return key

    def nominate(self, key: Key, node: str) -> None:
        """The scheduler has given the pod a node, and does not bind it yet."""
        pod = copy.deepcopy(self.kube.store.get(key))
        pod["status"]["nominatedNodeName"] = node
        self.kube.store.replace(key, pod)

    def bind(self, key: Key, node: str) -> None:
        """The scheduler has found a node for the pod, and its kubelet runs it."""
        bound = copy.deepcopy(self.kube.store.get(key))
        bound["spec"]["nodeName"], bound["status"] = node, {"phase": "Running"}
        self.kube.store.replace(key, bound)

    def add_budget(self, name: str, labels: Mapping[str, str], least: int, namespace: str = "web") -> Key:
        key = Key("policy", "poddisruptionbudgets", namespace, name)
        spec = {"minAvailable": least, "selector": {"matchLabels": dict(labels)}}
        self.kube.store.create(key, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec})
        return key

    def node(self, name: str) -> Object:
        return self.kube.store.get(Key("", "nodes", "", name))

    def pods(self, on: str) -> list[str]:
        """Names of the pods on a node."""
        objects = self.kube.store.objects.items()
        return sorted(key.name for key, pod in objects if key.resource == "pods" and pod["spec"].get("nodeName") == on)

    def token_secret(self, identity: str = "abcdef") -> Object | None:
        return self.kube.store.objects.get(Key("", "secrets", "kube-system", f"bootstrap-token-{identity}"))

    def order_token(self, name: str = "t", token: str = TOKEN, seconds: int = 900) -> None:
        expires = stamp(self.clock.now + timedelta(seconds=seconds))
        self.platform.order(name, "bootstrap_token", token=token, expires_at=expires, claim="ncl_1", node="worker-1")
