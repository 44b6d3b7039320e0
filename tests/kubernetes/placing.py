"""Plans of the packer on a real API server: nodes and pods of many problems side by side, judged by kube-scheduler.

What keeps problems apart is a label of their nodes, which every pod asks for, and namespaces of their own: spread then
counts the nodes of one problem, and pod affinity its pods. Daemon sets are real ones; Kubernetes' controller decides
on which nodes they run. Pods and daemon sets bear the taints of nodes that no kubelet reports for, since none runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from local.kubernetes.real.client import Client
from local.kubernetes.real.control_plane import ControlPlane
from tests.harness.packing_checker import HOSTNAME, allowed, tolerates
from tests.kubernetes.rigs import until

Json = Any
PROBLEM, PLANNED, PLACE = "example.com/problem", "example.com/planned", "example.com/place"
"""Labels of a node: its problem, and that it is planned. The key of the taint that only pods planned for it bear."""
CALLERS = 4
CONTAINER = {"name": "c", "image": "none"}
SILENT = [{"key": f"node.kubernetes.io/{reason}", "operator": "Exists"} for reason in ("not-ready", "unreachable")]
UNITS = {"cpu": "m", "memory": "Mi"}
POD_KEYS = ("node_selector", "required_terms", "preferred_terms", "spreads", "affinity", "anti_affinity", "ports")


def acceptable(problem: Mapping[str, Json]) -> bool:
    """Whether the API server takes the pods: it refuses two constraints of one label that are equally hard."""
    spreads = [[(spread["key"], spread["hard"]) for spread in pod.get("spreads", ())] for pod in problem["pods"]]
    return all(len(set(marks)) == len(marks) for marks in spreads)


def manifest(pod: Mapping[str, Json], mark: str, node: str) -> Json:
    """A pod of the problem ``mark``, which bears the taints of no node but ``node``."""
    rules = {key: pod[key] for key in POD_KEYS if key in pod}
    pin = {"key": PLACE, "operator": "Equal", "value": node, "effect": "NoSchedule"}
    requests = _resources(pod["requests"])
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    container: Json = {**CONTAINER, "resources": {"requests": requests, "limits": extended}}
    container["ports"] = [{"containerPort": port, "hostPort": port} for port in rules.get("ports", ())]
    spec = {
        "automountServiceAccountToken": False,
        "containers": [container],
        "nodeSelector": {**rules.get("node_selector", {}), PROBLEM: mark},
        "tolerations": [*_tolerations(pod), *SILENT, pin],
        "affinity": {
            "nodeAffinity": _node_affinity(rules),
            "podAffinity": _pod_terms(rules.get("affinity", ()), mark),
            "podAntiAffinity": _pod_terms(rules.get("anti_affinity", ()), mark),
        },
        "topologySpreadConstraints": [_spread(spread) for spread in rules.get("spreads", ())],
    }
    meta = {"name": pod["name"], "namespace": f"{pod['namespace']}-{mark}", "labels": pod["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def node_manifest(node: Mapping[str, Json], mark: str) -> Json:
    """A node that is there, or planned, with room, labels and taints."""
    name = _host(node["name"], mark)
    labels = {**node["labels"], HOSTNAME: name, PROBLEM: mark}
    if "pool" in node:
        labels[PLANNED] = mark
    taints = [*node["taints"], {"key": PLACE, "value": name, "effect": "NoSchedule"}]
    room = _resources(node["allocatable"])
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": taints}, "status": status}


def daemon_manifest(daemon: Mapping[str, Json], number: int, mark: str) -> Json:
    """A daemon set for the planned nodes of a problem: the room of others is what such pods have left already."""
    labels = {PROBLEM: mark, "daemon": str(number)}
    spec = {
        "automountServiceAccountToken": False,
        "containers": [{**CONTAINER, "resources": {"requests": _resources(daemon["requests"])}}],
        "nodeSelector": {**daemon.get("node_selector", {}), PLANNED: mark},
        "tolerations": [*_tolerations(daemon), {"key": PLACE, "operator": "Exists"}],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    meta = {"name": f"daemon-{mark}-{number}", "namespace": "kube-system"}
    body = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": body}


class Judge:
    """kube-scheduler as the judge of plans."""

    def __init__(self, plane: ControlPlane) -> None:
        self._client = Client.of_kubeconfig(plane.kubeconfig)
        self._problems = 0

    def refused(self, cases: Sequence[tuple[Mapping[str, Json], Mapping[str, Json]]]) -> list[str]:
        """For each problem and plan the scheduler's words on the first pod that it does not bind; empty: it binds all.

        Pods come in the order of the plan, each when the one before it is bound, and each bears the taint of its
        planned node alone. So the scheduler judges every placement of the plan by all its filters, with what was placed
        before, and has no other choice. Taints do not change which nodes spread counts, as node affinity would.
        """
        marks = [str(self._problems + number) for number in range(len(cases))]
        self._problems += len(cases)
        self._make(cases, marks)
        verdicts = [""] * len(cases)
        try:
            for turn in range(max((len(plan["order"]) for _, plan in cases), default=0)):
                waiting: dict[tuple[str, str], int] = {}
                documents = []
                for number, (problem, plan) in enumerate(cases):
                    if turn < len(plan["order"]) and not verdicts[number]:
                        name = plan["order"][turn]
                        pod = next(pod for pod in problem["pods"] if pod["name"] == name)
                        documents.append(manifest(pod, marks[number], _host(plan["where"][name], marks[number])))
                        waiting[documents[-1]["metadata"]["namespace"], name] = number
                self._create(documents)
                for key, message in self._judged(set(waiting)).items():
                    verdicts[waiting[key]] = f"{key[1]}: {message}" if message else ""
        finally:
            self._clear(marks)
        return verdicts

    def _make(self, cases: Sequence[tuple[Mapping[str, Json], Mapping[str, Json]]], marks: Sequence[str]) -> None:
        """All but the pods that wait; daemon sets run where the checker expects them before anything else comes."""
        spaces, nodes, bound, daemons = [], [], [], []
        expected: dict[tuple[str, str], int] = {}
        for (problem, plan), mark in zip(cases, marks, strict=True):
            names = sorted({pod["namespace"] for pod in problem["pods"]} | {"one", "two"})
            spaces += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{n}-{mark}"}} for n in names]
            nodes += [node_manifest(node, mark) for node in (*problem["nodes"], *plan["nodes"])]
            for node in problem["nodes"]:
                for pod in node["pods"]:
                    document = manifest(pod, mark, "")
                    document["spec"]["nodeName"] = _host(node["name"], mark)
                    bound.append(document)
            for number, daemon in enumerate(problem["daemonsets"]):
                daemons.append(daemon_manifest(daemon, number, mark))
                expected[mark, str(number)] = sum(
                    tolerates(daemon, node["taints"], soft=False) and allowed(daemon, node["labels"])
                    for node in plan["nodes"]
                )
        self._create(spaces)
        self._create(nodes)
        for space in spaces:
            path = f"/api/v1/namespaces/{space['metadata']['name']}/serviceaccounts"
            until(lambda path=path: self._client.call("GET", path)["items"], 60)
        self._create(bound)
        self._create(daemons)
        until(lambda: self._running() == {key: count for key, count in expected.items() if count}, 60)

    def _running(self) -> dict[tuple[str, str], int]:
        """How many pods of each daemon set are bound."""
        counts: dict[tuple[str, str], int] = {}
        for pod in self._pods("kube-system"):
            labels = pod["metadata"].get("labels", {})
            if PROBLEM in labels and pod["spec"].get("nodeName"):
                key = (labels[PROBLEM], labels["daemon"])
                counts[key] = counts.get(key, 0) + 1
        return counts

    def _judged(self, waiting: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """For each of these pods why it is refused, empty when it is bound, once the scheduler has looked at all."""
        verdicts: dict[tuple[str, str], str] = {}

        def complete() -> bool:
            for pod in self._pods():
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                if key in waiting and key not in verdicts:
                    conditions = pod["status"].get("conditions") or ()
                    if pod["spec"].get("nodeName"):
                        verdicts[key] = ""
                    elif any(entry.get("reason") == "Unschedulable" for entry in conditions):
                        verdicts[key] = next(entry["message"] for entry in conditions if "message" in entry)
            return len(verdicts) == len(waiting)

        until(complete, 60)
        return verdicts

    def _pods(self, namespace: str = "") -> Iterable[Json]:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        return list(self._client.call("GET", path)["items"])

    def _create(self, documents: Sequence[Json]) -> None:
        paths = {"Namespace": "namespaces", "Node": "nodes", "Pod": "pods", "DaemonSet": "daemonsets"}
        with ThreadPoolExecutor(CALLERS) as callers:
            list(callers.map(lambda body: self._client.call("POST", _collection(body, paths), body), documents))

    def _clear(self, marks: Sequence[str]) -> None:
        """Leave no pod and no node of these problems."""
        problems = sorted(marks)
        now = {"gracePeriodSeconds": 0}
        daemons = "/apis/apps/v1/namespaces/kube-system/daemonsets"
        for item in self._client.call("GET", daemons)["items"]:
            if item["metadata"]["name"].startswith("daemon-"):
                self._client.call("DELETE", f"{daemons}/{item['metadata']['name']}", {"propagationPolicy": "Orphan"})
        selector = quote(f"{PROBLEM} in ({','.join(problems)})")
        self._client.call("DELETE", f"/api/v1/namespaces/kube-system/pods?labelSelector={selector}", now)
        for mark in problems:
            for name in ("one", "two"):
                self._client.call("DELETE", f"/api/v1/namespaces/{name}-{mark}/pods", now)
                self._client.call("DELETE", f"/api/v1/namespaces/{name}-{mark}")
        self._client.call("DELETE", f"/api/v1/nodes?labelSelector={selector}")


def _collection(body: Json, paths: Mapping[str, str]) -> str:
    version, name = body["apiVersion"], paths[body["kind"]]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace = body["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{name}" if namespace else f"{root}/{name}"


def _host(name: str, mark: str) -> str:
    return f"p{mark}-{name}"


def _resources(amounts: Mapping[str, int]) -> dict[str, str]:
    """Cores in thousandths, memory in MiB, everything else in pieces: any unit will do, since all use the same."""
    return {name: f"{amount}{UNITS.get(name, '')}" for name, amount in amounts.items()}


def _tolerations(pod: Mapping[str, Json]) -> list[Json]:
    """A pod that bears any taint bears that of problems, but not that of another pod's node."""
    return [
        toleration if toleration.get("key") else {**toleration, "key": "only"}
        for toleration in pod.get("tolerations", ())
    ]


def _expressions(requirements: Iterable[Mapping[str, Json]]) -> Json:
    return {"matchExpressions": [dict(entry) for entry in requirements]}


def _node_affinity(rules: Mapping[str, Json]) -> Json:
    affinity: dict[str, Json] = {}
    if rules.get("required_terms"):
        terms = [_expressions(term) for term in rules["required_terms"]]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": entry["weight"], "preference": _expressions(entry["requirements"])}
        for entry in rules.get("preferred_terms", ())
    ]
    return affinity


def _pod_terms(terms: Iterable[Mapping[str, Json]], mark: str) -> Json:
    required: list[Json] = []
    preferred: list[Json] = []
    for entry in terms:
        document = {"topologyKey": entry["key"], "labelSelector": {"matchLabels": entry["selector"]}}
        if entry.get("namespaces"):
            document["namespaces"] = [f"{name}-{mark}" for name in entry["namespaces"]]
        if entry["weight"]:
            preferred.append({"weight": entry["weight"], "podAffinityTerm": document})
        else:
            required.append(document)
    ignored = "DuringSchedulingIgnoredDuringExecution"
    return {f"required{ignored}": required, f"preferred{ignored}": preferred}


def _spread(spread: Mapping[str, Json]) -> Json:
    document = {
        "topologyKey": spread["key"],
        "maxSkew": spread["max_skew"],
        "whenUnsatisfiable": "DoNotSchedule" if spread["hard"] else "ScheduleAnyway",
        "labelSelector": {"matchLabels": spread["selector"]},
    }
    if spread["hard"] and spread.get("min_domains"):
        document["minDomains"] = spread["min_domains"]
    return document
