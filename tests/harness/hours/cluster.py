"""A Kubernetes cluster that is played: nodes, pods, their controllers, budgets, and a scheduler, in one object.

It is the API that the agent's own code is given. Evictions keep the rules of the eviction API: a pod under a
PodDisruptionBudget that allows none is refused. A deployment makes the next pod as soon as one begins to end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from agent.stockyard_agent.kubernetes import Object, Refused
from tests.harness.hours.pods import NAMESPACE, App, Daemon, is_ending, is_healthy, pod_of, stamp
from tests.harness.people.scheduler import SPREAD, STYLES, schedule
from tests.harness.people.storage import PlayedStorage

__all__ = ["STYLES", "PlayedCluster", "Watched"]
T = TypeVar("T")
PODS, NODES, BUDGETS, DAEMONS = "/api/v1/pods", "/api/v1/nodes", "poddisruptionbudgets", "daemonsets"


@dataclass
class Watched:
    """Events that others want to know of: called when a pod was evicted, deleted, found no room, was given a node that
    it is not bound to yet, or pushes others out. ``evicted`` says why."""

    evicted: Callable[[Object, str], str] = lambda _pod, _verb: "eviction"
    waits: Callable[[Object], None] = lambda _pod: None
    assumed: Callable[[Object], None] = lambda _pod: None
    preempts: Callable[[Object], None] = lambda _pod: None


@dataclass
class PlayedCluster:
    """``at`` has something done at a later moment. ``changed`` says that something is new since it was last reset."""

    now: Callable[[], datetime]
    at: Callable[[float, Callable[[], None]], None]
    chance: Random
    style: str = SPREAD
    apps: dict[str, App] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)
    nodes: dict[str, Object] = field(default_factory=dict)
    watched: Watched = field(default_factory=Watched)
    storage: PlayedStorage = field(default_factory=PlayedStorage)
    daemons: dict[str, Daemon] = field(default_factory=lambda: {"proxy": Daemon("proxy")})
    barred: set[str] = field(default_factory=set)
    """Deployments whose pods the scheduler refuses for a reason that nobody can read."""
    spoilt: set[str] = field(default_factory=set)
    """Nodes onto which it puts nothing, for such a reason."""
    unready_since: dict[str, datetime] = field(default_factory=dict)
    changed: bool = False
    _on: defaultdict[str, dict[str, Object]] = field(default_factory=lambda: defaultdict(dict))
    _log: list[tuple[str, Object]] = field(default_factory=list)
    _numbers: int = 0

    # --- nodes --------------------------------------------------------------------------------------------------------

    def join(self, name: str, labels: Mapping[str, str], cpu: int, mib: int, taints: Iterable[Object] = ()) -> None:
        """A node joins and is ready. Its pod of the DaemonSet is there at once."""
        self._numbers += 1
        moment = stamp(self.now())
        self.nodes[name] = {
            "metadata": {
                "name": name,
                "uid": f"node-{self._numbers}",
                "labels": {**labels, "kubernetes.io/hostname": name},
                "annotations": {},
                "creationTimestamp": moment,
                "resourceVersion": "1",
            },
            "spec": {"taints": list(taints)},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": moment}],
                "allocatable": {"cpu": f"{cpu}m", "memory": f"{mib}Mi", "pods": "110"},
                "capacity": {"cpu": f"{cpu}m", "memory": f"{mib}Mi", "pods": "110"},
            },
            "cpu": cpu,
            "mib": mib,
        }
        for daemon in self.daemons.values():
            self.start_daemon(daemon, name)
        self.schedule()

    def start_daemon(self, daemon: Daemon, name: str) -> None:
        """Start the pod of a DaemonSet on a node, if it fits there: otherwise it waits, and nobody sees it here."""
        self._numbers += 1
        pod = daemon.pod(self._numbers, self.now())
        cpu, mib = self.free(name)
        ports = {port["hostPort"] for other in self._on[name].values() for port in _ports(other)}
        if daemon.cpu <= cpu and daemon.mib <= mib and daemon.port not in ports:
            self.pods[pod["metadata"]["uid"]] = pod
            self._note("ADDED", pod)
            self.bind(pod, name)

    def drop(self, pod: Object) -> None:
        """The pod is gone at once, and its place is not filled."""
        self._vanish(pod)

    def replace_daemon(self, pod: Object, daemon: Daemon, name: str) -> None:
        """The node's pod of a DaemonSet is made anew."""
        self._vanish(pod)
        self.start_daemon(daemon, name)

    def touch(self, name: str) -> None:
        """Something of the node's object has changed."""
        meta = self.nodes[name]["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self.changed = True
        self.schedule()

    def silence(self, name: str, status: str = "Unknown") -> None:
        """The node's kubelet is heard no more, or says (``False``) that it is not ready; its pods are given up five
        minutes later."""
        if name in self.nodes and self.is_ready(name):
            self.nodes[name]["status"]["conditions"] = [
                {"type": "Ready", "status": status, "lastTransitionTime": stamp(self.now())}
            ]
            since = self.unready_since[name] = self.now()
            self.changed = True
            self.at(300, lambda: self._give_up(name, since))

    def wake(self, name: str) -> None:
        """Let the node's kubelet be heard again."""
        if self.unready_since.pop(name, None) is not None and name in self.nodes:
            self.nodes[name]["status"]["conditions"] = [
                {"type": "Ready", "status": "True", "lastTransitionTime": stamp(self.now())}
            ]
            self.changed = True
            self.schedule()

    def remove(self, name: str) -> None:
        """The node object is deleted, and what was on it is gone."""
        if self.nodes.pop(name, None) is not None:
            self.unready_since.pop(name, None)
            self._end_all(name)
            self._on.pop(name, None)
            self.changed = True

    def _give_up(self, name: str, since: datetime) -> None:
        if name in self.nodes and self.unready_since.get(name) == since:
            self._end_all(name)

    def _end_all(self, name: str) -> None:
        for pod in list(self._on[name].values()):
            self._vanish(pod, disturbed="fault")
        self.schedule()

    def is_ready(self, name: str) -> bool:
        """Whether the node is there and its kubelet is heard."""
        return name in self.nodes and name not in self.unready_since

    def is_closed(self, name: str) -> bool:
        """Whether people keep ordinary pods from the node, or have made it smaller."""
        spec, status = self.nodes[name]["spec"], self.nodes[name]["status"]
        closed = spec.get("unschedulable") or any(taint["effect"] != "PreferNoSchedule" for taint in spec["taints"])
        return bool(closed) or status["allocatable"] != status["capacity"]

    def free(self, name: str) -> tuple[int, int]:
        """Thousandths of a core and MiB that no pod takes."""
        node, pods = self.nodes[name], self._on[name].values()
        return node["cpu"] - sum(pod["cpu"] for pod in pods), node["mib"] - sum(pod["mib"] for pod in pods)

    def on(self, name: str) -> list[Object]:
        """The pods of a node that need another one when it goes."""
        return [pod for pod in self._on[name].values() if pod["app"] in self.apps and not is_ending(pod)]

    def daemons_on(self, name: str) -> list[Object]:
        """The node's pods of DaemonSets."""
        return [pod for pod in self._on[name].values() if pod["app"] in self.daemons]

    # --- pods ---------------------------------------------------------------------------------------------------------

    def scale(self, name: str, replicas: int) -> None:
        """Change how many pods a deployment has. Those that wait go first, then the youngest."""
        self.apps[name].replicas = replicas
        own = [pod for pod in self.of(name) if not is_ending(pod)]
        own.sort(key=lambda pod: ("nodeName" in pod["spec"], -pod["number"]))
        for pod in own[: max(0, len(own) - replicas)]:
            self._end(pod, controlled=False)
        self._fill(name)
        self.schedule()

    def of(self, name: str) -> list[Object]:
        """All pods of a deployment."""
        return [pod for pod in self.pods.values() if pod["app"] == name]

    def _fill(self, name: str, disturbed: str = "") -> None:
        app = self.apps[name]
        for _ in range(app.replicas - sum(not is_ending(pod) for pod in self.of(name))):
            self._numbers += 1
            pod = pod_of(app, self._numbers, self.now())
            pod["disturbed"] = disturbed
            self.pods[pod["metadata"]["uid"]] = pod
            self.storage.claim_for(app, pod)
            self._note("ADDED", pod)

    def _note(self, kind: str, pod: Object) -> None:
        self._log.append((kind, pod))
        self.changed = True

    def bind(self, pod: Object, name: str) -> None:
        """The pod is on the node, and begins."""
        moment = stamp(self.now())
        pod["spec"]["nodeName"] = name
        pod["status"] = {
            "phase": "Running",
            "startTime": moment,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}],
        }
        pod.pop("assumed", None)
        self._on[name][pod["metadata"]["uid"]] = pod
        self._note("MODIFIED", pod)
        app = self.apps.get(pod["app"])
        if app is not None and app.least is not None:
            self.at(app.begin, lambda: self._begin(pod))
        else:
            self._begin(pod)

    def _begin(self, pod: Object) -> None:
        if pod["metadata"]["uid"] in self.pods:
            pod["status"]["conditions"].append({"type": "Ready", "status": "True"})
            self._note("MODIFIED", pod)

    def _end(self, pod: Object, *, controlled: bool = True, disturbed: str = "", at_once: bool = False) -> None:
        """The pod begins to end; its deployment makes the next one."""
        name = pod["spec"].get("nodeName")
        if not is_ending(pod):
            pod["metadata"]["deletionTimestamp"] = stamp(self.now() + timedelta(seconds=30))
            self._note("MODIFIED", pod)
            if controlled and pod["app"] in self.apps:
                self._fill(pod["app"], disturbed)
        if name is None or at_once:
            self._vanish(pod)
        elif self.is_ready(name):
            app = self.apps.get(pod["app"])
            self.at(app.grace if app else 1, lambda: self._vanish(pod))

    def _vanish(self, pod: Object, disturbed: str = "") -> None:
        uid = pod["metadata"]["uid"]
        if self.pods.pop(uid, None) is None:
            return
        if (name := pod["spec"].get("nodeName")) is not None:
            self._on[name].pop(uid, None)
        self.storage.drop(pod)
        self._note("DELETED", pod)
        if pod["app"] in self.apps:
            self._fill(pod["app"], disturbed)
        self.schedule()

    # --- the scheduler ------------------------------------------------------------------------------------------------

    def pending(self) -> list[Object]:
        """Pods without a node that are to get one, those of the highest priority first, then the oldest."""
        pods = [pod for pod in self.pods.values() if "nodeName" not in pod["spec"] and not is_ending(pod)]
        due = [pod for pod in pods if "assumed" not in pod and not pod["spec"].get("schedulingGates")]
        return sorted(due, key=lambda pod: -int(pod["spec"].get("priority", 0)))

    def schedule(self) -> None:
        """Put each pod that waits onto a node, by the rules of kube-scheduler and in its style."""
        schedule(self)

    def push_out(self, pod: Object, why: str) -> None:
        """The pod goes, whatever its budget says: for one of higher priority, or by a taint."""
        self._end(pod, disturbed=why)

    def tell(self, pod: Object) -> None:
        """Something of the pod has changed."""
        self._note("MODIFIED", pod)

    def open_gates(self, name: str) -> None:
        """The pods of a deployment, and its next ones, are to be scheduled."""
        self.apps[name].gated = False
        for pod in self.of(name):
            if pod["spec"].pop("schedulingGates", None):
                pod.pop("read", None)
                self._note("MODIFIED", pod)
        self.schedule()

    # --- the API ------------------------------------------------------------------------------------------------------

    def allowed(self, app: App) -> int:
        """Number of evictions that the budget of a deployment allows now."""
        healthy = sum(is_healthy(pod) for pod in self.of(app.name))
        return max(0, healthy - (app.least or 0))

    def listed(
        self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], page: int
    ) -> tuple[list[T], str]:
        """As ``Kubernetes.listed``."""
        self._log.clear()
        return self.collect(path, query, keep, page), "1"

    def collect(self, path: str, query: Mapping[str, str], keep: Callable[[Object], T | None], _page: int) -> list[T]:
        """As ``Kubernetes.collect``."""
        items: Iterable[Object] = self.pods.values()
        if path == NODES:
            items = self.nodes.values()
        elif path.endswith(BUDGETS):
            items = [self._budget(app) for app in self.apps.values() if app.least is not None]
        elif path.endswith(DAEMONS):
            items = [daemon.document() for daemon in self.daemons.values()]
        elif (stored := self.storage.items(path, self.nodes)) is not None:
            items = stored
        elif (selector := query.get("fieldSelector", "")).startswith("spec.nodeName="):
            items = self._on[selector.partition("=")[2]].values()
        return [entry for item in list(items) if (entry := keep(item)) is not None]

    def watch(self, *_: Any) -> Iterator[tuple[str, Object]]:
        """Changes since the last call."""
        log, self._log = self._log, []
        yield from log

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **_: Any) -> Object:
        """One request of the agent. Raises ``Refused``."""
        parts = path.split("/")
        if "nodes" in parts:
            return self._node_call(method, parts[-1], body or {})
        if "pods" not in parts:
            return {}
        name = parts[parts.index("pods") + 1]
        pod = next((pod for pod in self.pods.values() if pod["metadata"]["name"] == name), None)
        if pod is None:
            raise Refused(404, "NotFound", name, {})
        if method == "DELETE":
            reason = self.watched.evicted(pod, "delete")
            options = body or {}
            self._end(pod, disturbed=reason, at_once=options.get("gracePeriodSeconds") == 0)
        elif not is_ending(pod):
            self.check_budget(pod)
            self._end(pod, disturbed=self.watched.evicted(pod, "evict"))
        self.schedule()
        return {}

    def check_budget(self, pod: Object) -> None:
        """Raise ``Refused`` 429 where the budget of the pod allows no eviction."""
        app = self.apps.get(pod["app"])
        if app is not None and app.least is not None and is_healthy(pod) and self.allowed(app) < 1:
            text = f"The disruption budget {app.name} needs {app.least} healthy pods"
            raise Refused(429, "TooManyRequests", "Cannot evict pod", {"DisruptionBudget": text})

    def end_by_hand(self, pod: Object, why: str) -> None:
        """Somebody with kubectl evicts the pod. Raises ``Refused`` 429."""
        self.check_budget(pod)
        self._end(pod, disturbed=why)
        self.schedule()

    def _node_call(self, method: str, name: str, body: Mapping[str, Any]) -> Object:
        node = self.nodes.get(name)
        if node is None:
            raise Refused(404, "NotFound", name, {})
        if method == "PATCH":
            node["metadata"]["labels"] |= (body.get("metadata") or {}).get("labels") or {}
            node["spec"] |= body.get("spec") or {}
            node["metadata"]["resourceVersion"] = str(int(node["metadata"]["resourceVersion"]) + 1)
            self.changed = True
        elif method == "DELETE":
            self.remove(name)
            return {"kind": "Status"}
        return node

    def _budget(self, app: App) -> Object:
        return {
            "metadata": {"namespace": NAMESPACE, "name": app.name, "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": app.name}}, "minAvailable": app.least},
            "status": {"observedGeneration": 1, "disruptionsAllowed": self.allowed(app)},
        }

    def counts(self) -> Counter[str]:
        """Number of pods of each deployment."""
        return Counter(pod["app"] for pod in self.pods.values() if pod["app"] in self.apps and not is_ending(pod))


def _ports(pod: Object) -> list[Object]:
    return [port for container in pod["spec"]["containers"] for port in container.get("ports", ())]
