"""One life of an agent with every kind of command: what the crash matrix kills at each call, and the rights cover."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from agent import manifest
from agent.roles import NAMESPACE
from agent.stockyard_agent.kubeconfig_secrets import KubeconfigSecrets
from agent.stockyard_agent.loop import Agent
from agent.stockyard_agent.mirror import Mirror
from agent.stockyard_agent.mirror_objects import DIGEST
from agent.stockyard_agent.observation import timestamp
from agent.stockyard_agent.pod_reports import PodReports
from agent.stockyard_agent.transport import Exchange, HttpRequest, HttpResponse, Unreachable
from local.kubernetes import pods as kube_pods
from local.kubernetes.store import Key
from tests.unit.agent.rig import API, CLUSTER, START, TOKEN_URL, Rig, node_claim, node_pool

MIRRORS = {
    0: ("first", [node_pool("burst"), node_claim("burst", "1"), node_claim("burst", "2"), node_pool("old")]),
    3: ("second", [node_pool("burst", "4"), node_claim("burst", "1"), node_claim("burst", "2", "True", zone="a")]),
    6: ("last", [node_pool("burst", "4"), node_claim("burst", "2", "True", zone="a"), node_claim("burst", "3")]),
}
"""What there is to mirror from the end of a round on."""
LAST = "last"
MODES = ("killed before", "killed after", "answer lost", "refused 429", "refused 500")
_VOLATILE = frozenset(
    {
        "uid",
        "kubeconfig",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        DIGEST,
    }
)
_MOST_ROUNDS = 60


Parts = tuple[Agent, PodReports, Mirror, KubeconfigSecrets]


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Story:
    """``at``: the number (from 1) of the outgoing call where ``mode`` strikes; 0: nowhere."""

    at: int = 0
    mode: str = ""
    rig: Rig = field(default_factory=Rig)
    calls: int = 0
    deaths: int = 0

    def run(self) -> Story:
        """Set the scene, and let agents work until Stockyard has no open command."""
        _scene(self.rig)
        self.rig.around = self._around
        parts = self._parts()
        for number in range(_MOST_ROUNDS):
            parts = self._round(*parts)
            _world(self.rig, number)
            if not self.rig.platform.commands and self._reported and self._mirrored(parts[2]) and self._has_secrets:
                return self
        raise AssertionError(f"open after {_MOST_ROUNDS} rounds: {self.rig.platform.results}")

    @property
    def _reported(self) -> bool:
        """Whether Stockyard knows all the pods that are left."""
        pods = self.rig.platform.pods
        objects = self.rig.kube.store.objects.items()
        nodes = {key.name: node["spec"].get("unschedulable", False) for key, node in objects if key.resource == "nodes"}
        told_nodes = {name: facts["unschedulable"] for name, facts in pods.pod_state.get("nodes", {}).items()}
        return pods.pending == [(1, ["web/late"])] and pods.running == {"a": 1, "b": 1} and told_nodes == nodes

    @property
    def _has_secrets(self) -> bool:
        """Whether the cluster has the Secret that is asked for, and no longer the other one."""
        secrets, objects = self.rig.platform.secrets, self.rig.kube.store.objects
        there = {(key.namespace, key.name) for key in objects if key.resource == "secrets"}
        return secrets.names <= there and not secrets.removed

    def _mirrored(self, mirror: Mirror) -> bool:
        """Whether the cluster shows what Stockyard told of last."""
        return mirror.settled and self.rig.platform.mirror == LAST

    def _parts(self) -> Parts:
        """Parts of an agent's process."""
        mirror, reports, secrets = self.rig.mirror(), self.rig.reports(), self.rig.secrets()
        return self.rig.agent(mirror=mirror, reports=reports, secrets=secrets), reports, mirror, secrets

    def _round(self, agent: Agent, reports: PodReports, mirror: Mirror, secrets: KubeconfigSecrets) -> Parts:
        """A round, and after it steps of what has threads of its own."""
        try:
            self.rig.clock.later(agent.round())
            self.rig.clock.later(reports.step())
            self.rig.clock.later(mirror.step())
            secrets.step()
        except Killed:
            self.deaths += 1
            self.rig.clock.later(1)
            return self._parts()
        return agent, reports, mirror, secrets

    def _around(self, request: HttpRequest, deliver: Exchange) -> HttpResponse:
        self.calls += 1
        if self.calls != self.at:
            return deliver(request)
        if self.mode.startswith("refused"):
            return HttpResponse(int(self.mode[-3:]), {}, json.dumps({"kind": "Status", "message": "injected"}).encode())
        if self.mode != "killed before":
            deliver(request)
        raise Unreachable("lost") if self.mode == "answer lost" else Killed

    @property
    def ends(self) -> dict[str, str]:
        """Status of each command at its end."""
        return {name: result["status"] for name, result in self.rig.platform.results_by_id.items()}

    @property
    def state(self) -> list[Any]:
        """Every object that is left, without what differs from life to life."""
        objects = sorted(self.rig.kube.store.objects.items())
        stored_objects = [[str(key), key.namespace, _lasting(stored)] for key, stored in objects]
        pod_state = self.rig.platform.pods.pod_state
        # When a pod last moved is another moment in each life.
        nodes = {name: {**facts, "pod_event_at": None} for name, facts in pod_state["nodes"].items()}
        return [*stored_objects, {**pod_state, "nodes": nodes}]

    @property
    def things(self) -> Counter[str]:
        """Number of objects of each kind that are left."""
        return Counter(key.resource for key in self.rig.kube.store.objects)


def _scene(rig: Rig) -> None:
    """Node ``a`` is drained behind a budget and goes; ``b`` is marked; ``c`` has no kubelet, its deadline is near."""
    for name in "abc":
        rig.add_node(name)
    for number in (1, 2):
        rig.add_pod(f"db-{number}", "a", labels={"app": "db"})
    rig.add_pod("web", "a")
    rig.add_pod("dns", "a", "kube-system", priority="system-cluster-critical")
    rig.add_pod("cni", "a", "kube-system", owner="DaemonSet", everywhere=True)
    rig.add_pod("agent-1", "a", NAMESPACE, priority="system-cluster-critical")
    rig.add_pod("stuck", "c")
    rig.add_waiting("early")
    rig.add_budget("db", {"app": "db"}, 2)
    rig.kube.install([_secret("there", "0123456789abcdef"), _secret("gone00", "fedcba9876543210"), *_storage()])
    rig.platform.secrets.names.add(("web", "west-kubeconfig"))
    rig.platform.secrets.removed.add(("web", "east-kubeconfig"))
    rig.kube.install([_kubeconfig("west"), _kubeconfig("east")])
    order = rig.platform.order
    rig.order_token("made")
    rig.order_token("replaced", "there0.0123456789abcdef")
    order("removed", "remove_token", token_id="gone00")
    order("cordoned", "cordon", node="b")
    order("tainted", "taint", node="b", taints=[{"key": "x", "effect": "NoSchedule"}], remove=["y"])
    order("labelled", "label", node="b", labels={"stockyard.dev/claim": "ncl_1"})
    order("uncordoned", "uncordon", node="b")
    order("drained", "drain", node="a", grace_seconds=5)
    deadline = timestamp(START + timedelta(seconds=80))
    order("forced", "drain", node="c", grace_seconds=None, deadline=deadline)
    settings = manifest.Settings(API, CLUSTER, TOKEN_URL, "python:3.14-slim")
    order("applied", "apply", manifests=[*manifest.upgrade(settings), _config()])


def _world(rig: Rig, number: int) -> None:
    """Do what others do after a round: kubelets end pods, the budget is eased, Stockyard orders what comes next."""
    kube_pods.reap(rig.kube.store, all_marked=True, nodes_down=frozenset("c"))
    if number == 4:
        for key, stored in rig.kube.store.objects.items():
            if key.resource == "poddisruptionbudgets":
                stored["spec"]["minAvailable"] = 0
    if number == 2:
        rig.bind(Key("", "pods", "web", "early"), "b")
        claim = {"persistentVolumeClaim": {"claimName": "data"}}
        near = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "db"}}}
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": near}]}}
        rig.add_waiting("late", volumes=[{"name": "data", **claim}], affinity=affinity)
    platform = rig.platform
    if number in MIRRORS:
        platform.mirror, platform.mirrored = MIRRORS[number]
    if "cmd_drained" in platform.results_by_id and "cmd_deleted" not in {*platform.results_by_id, *platform.commands}:
        platform.order("deleted", "delete_node", node="a", uid=rig.node("a")["metadata"]["uid"])


def _secret(identity: str, secret: str) -> dict[str, Any]:
    meta = {"name": f"bootstrap-token-{identity.ljust(6, '0')}", "namespace": "kube-system"}
    data = {"token-id": identity, "token-secret": secret[::-1]}
    kind = "bootstrap.kubernetes.io/token"
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "stringData": data}


def _kubeconfig(cluster: str) -> dict[str, Any]:
    """One that an agent before has written."""
    meta = {"name": f"{cluster}-kubeconfig", "namespace": "web", "labels": {"stockyard.dev/kubeconfig": "true"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": {"kubeconfig": "b2xk"}}


def _storage() -> list[dict[str, Any]]:
    """A claim that waits for its pod, and a DaemonSet."""
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "web"}}
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cni", "namespace": "kube-system"}}
    return [
        {**storage, "volumeBindingMode": "WaitForFirstConsumer"},
        {**claim, "spec": {"storageClassName": "fast"}},
        {**daemon, "spec": {"template": {"spec": {}}}},
    ]


def _config() -> dict[str, Any]:
    meta = {"name": "site", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(value) for name, value in value.items() if name not in _VOLATILE}
    return [_lasting(item) for item in value] if isinstance(value, list) else value
