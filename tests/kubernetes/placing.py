"""Plans of the packer on a real API server: nodes and pods of many problems side by side, judged by kube-scheduler.

What keeps problems apart is a label of their nodes, which every pod asks for, and namespaces of their own: spread then
counts the nodes of one problem, and pod affinity its pods. Daemon sets are real ones; Kubernetes' controller decides
on which nodes they run. Pods and daemon sets bear the taints of nodes that no kubelet reports for, since none runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from local.kubernetes.real.client import MERGE, Client
from local.kubernetes.real.control_plane import ControlPlane
from local.testing.packing_checker import HOSTNAME, ZONE, allowed, tolerates
from tests.harness.packing.manifests import (
    CONTAINER,
    PRIORITY_CLASS,
    node_document,
    pod_manifest,
    port_manifest,
    resources,
    volume_manifests,
)
from tests.harness.packing.rules import MAINTENANCE, PRIORITIES
from tests.kubernetes.rigs import until

Json = Any
PROBLEM, PLANNED, PLACE = "example.com/problem", "example.com/planned", "example.com/place"
"""Labels of a node: its problem, and that it is planned. The key of the taint that only pods planned for it bear."""
CALLERS = 4
LONGEST = 600
"""Seconds to wait for anything: kube-scheduler gives up no pod, and a busy machine takes long."""
NUDGE = 20
_NO_FINALIZERS = {"metadata": {"finalizers": None}}
SILENT = [{"key": f"node.kubernetes.io/{reason}", "operator": "Exists"} for reason in ("not-ready", "unreachable")]
ANY = ("only", MAINTENANCE, "node.kubernetes.io/unschedulable")
"""Keys of the taints that nodes of problems have."""
ZONES_OF = "example.com/zone-{}"
"""The label that stands for the zone in a problem."""


def acceptable(problem: Mapping[str, Json]) -> bool:
    """Whether the API server takes the pods: it refuses two constraints of one label that are equally hard."""
    spreads = [[(spread["key"], spread["hard"]) for spread in pod.get("spreads", ())] for pod in problem["pods"]]
    return all(len(set(marks)) == len(marks) for marks in spreads)


def manifest(pod: Mapping[str, Json], mark: str, node: str) -> Json:
    """A pod of the problem ``mark``, which bears the taints of no node but ``node``; of all its nodes when empty."""
    pin = {"key": PLACE, "operator": "Equal", "value": node, "effect": "NoSchedule"}
    document = _own(pod_manifest(pod, lambda name: f"{name}-{mark}"), mark)
    spec = document["spec"]
    spec["automountServiceAccountToken"] = False
    spec["nodeSelector"] = {**spec["nodeSelector"], PROBLEM: mark}
    spec["tolerations"] = [*_tolerations(pod), *SILENT, pin if node else {"key": PLACE, "operator": "Exists"}]
    return document


def _own(document: Json, mark: str) -> Json:
    """The document with labels of zones that other problems have not: a spread that counts nodes which the pod may not
    use, and a term that selects namespaces by their labels, would count theirs."""
    text = json.dumps(document).replace(f'"{ZONE}"', f'"{ZONES_OF.format(mark)}"')
    selector_text = '"namespaceSelector": {"matchLabels": {'
    own = f'"{PROBLEM}": "{mark}"'
    text = text.replace(f"{selector_text}}}", f"{selector_text}{own}}}").replace(
        f'{selector_text}"', f'{selector_text}{own}, "'
    )
    return json.loads(text.replace(f"{own}, {own}", own))


def node_manifest(node: Mapping[str, Json], mark: str) -> Json:
    """A node that is there, or planned, with room, labels and taints."""
    document = _own(node_document(node), mark)
    name = document["metadata"]["name"] = _host(node["name"], mark)
    labels = document["metadata"]["labels"]
    labels |= {HOSTNAME: name, PROBLEM: mark, **({PLANNED: mark} if "pool" in node else {})}
    document["spec"]["taints"].append({"key": PLACE, "value": name, "effect": "NoSchedule"})
    return document


def csi_node_manifest(node: Mapping[str, Json], mark: str) -> Json:
    """Number of volumes that a node that is there takes."""
    name = _host(node["name"], mark)
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": {"count": count}} for driver, count in node["attach"].items()
    ]
    meta = {"name": name, "labels": {PROBLEM: mark}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": {"drivers": drivers}}


def daemon_manifest(daemon: Mapping[str, Json], number: int, mark: str) -> Json:
    """A daemon set for the planned nodes of a problem: the room of others is what such pods have left already."""
    labels = {PROBLEM: mark, "daemon": str(number)}
    spec = {
        "automountServiceAccountToken": False,
        "containers": [
            {
                **CONTAINER,
                "resources": {"requests": resources(daemon["requests"])},
                "ports": [port_manifest(port) for port in daemon.get("ports", ())],
            }
        ],
        "nodeSelector": {**daemon.get("node_selector", {}), PLANNED: mark},
        "tolerations": [*_tolerations(daemon), {"key": PLACE, "operator": "Exists"}],
    }
    template = {"metadata": {"labels": labels}, "spec": _own(spec, mark)}
    meta = {"name": f"daemon-{mark}-{number}", "namespace": "kube-system"}
    body = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": body}


@dataclass
class Verdict:
    """Decisions of kube-scheduler: the pods of the plan that it ``refused``, with its words, and the nodes of those
    that were left out and that it ``bound`` all the same."""

    refused: dict[str, str] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)


Case = tuple[Mapping[str, Json], Mapping[str, Json]]
"""A problem and its plan."""


class Judge:
    """kube-scheduler as the judge of plans."""

    def __init__(self, plane: ControlPlane) -> None:
        self._client = Client.of_kubeconfig(plane.kubeconfig)
        self._problems = 0
        for value in sorted({*PRIORITIES} - {0}):
            meta = {"name": PRIORITY_CLASS.format(value)}
            document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta}
            # A pod that pushes others out would change what the plan has placed.
            self._create([{**document, "value": value, "preemptionPolicy": "Never"}])

    def refused(self, cases: Sequence[Case]) -> list[str]:
        """For each problem and plan the scheduler's words on the first pod that it does not bind; empty: it binds all.

        Pods come in the order of the plan, each when the one before it is bound, and each bears the taint of its
        planned node alone. So the scheduler judges every placement of the plan by all its filters, with what was placed
        before, and has no other choice. Taints do not change which nodes spread counts, as node affinity would.
        """
        return [
            next((f"{name}: {text}" for name, text in verdict.refused.items()), "") for verdict in self.judged(cases)
        ]

    def judged(self, cases: Sequence[Case], left_out: Sequence[Sequence[str]] = ()) -> list[Verdict]:
        """The results for the pods of each plan, as in ``refused``, and then for the pods outside the plan: they come
        in the order given, and bear the taints of all nodes. A pod of the plan that is refused ends its case, unless
        others are to be looked at then."""
        marks = [str(self._problems + number) for number in range(len(cases))]
        self._problems += len(cases)
        verdicts = [Verdict() for _ in cases]
        try:
            self._make(cases, marks)
            orders = [[(name, plan["where"][name]) for name in plan["order"]] for _, plan in cases]
            for number, names in enumerate(left_out):
                orders[number] += [(name, "") for name in names]
            for turn in range(max(map(len, orders), default=0)):
                waiting: dict[tuple[str, str], int] = {}
                documents = []
                for number, (problem, _) in enumerate(cases):
                    if turn >= len(orders[number]) or (verdicts[number].refused and not left_out):
                        continue
                    name, where = orders[number][turn]
                    pod = next(pod for pod in problem["pods"] if pod["name"] == name)
                    documents.append(manifest(pod, marks[number], _host(where, marks[number]) if where else ""))
                    waiting[documents[-1]["metadata"]["namespace"], name] = number
                self._create(documents)
                for key, (node, message) in self._looked_at(set(waiting)).items():
                    number = waiting[key]
                    planned = key[1] in cases[number][1]["where"]
                    if planned and not node:
                        verdicts[number].refused[key[1]] = message
                    elif node and not planned:
                        verdicts[number].bound[key[1]] = node.removeprefix(f"p{marks[number]}-")
        finally:
            self._clear(marks)
        return verdicts

    def _make(self, cases: Sequence[Case], marks: Sequence[str]) -> None:
        """All but the pods that wait; daemon sets run where the checker expects them before anything else comes."""
        spaces, nodes, bound, daemons, volumes = [], [], [], [], []
        expected: dict[tuple[str, str], int] = {}
        for (problem, plan), mark in zip(cases, marks, strict=True):
            named = partial("{1}-{0}".format, mark)
            names = sorted({pod["namespace"] for pod in problem["pods"]} | {"one", "two"})
            labels = problem.get("namespaces", {})
            metas: list[Json] = [{"name": named(n), "labels": {PROBLEM: mark, **labels.get(n, {})}} for n in names]
            spaces += [{"apiVersion": "v1", "kind": "Namespace", "metadata": meta} for meta in metas]
            nodes += [csi_node_manifest(node, mark) for node in problem["nodes"] if "attach" in node]
            there = [pod for node in problem["nodes"] for pod in node["pods"]]
            for pod in (*there, *problem["pods"]):
                volumes += [_own(each, mark) for each in volume_manifests(pod, named)]
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
            until(lambda path=path: self._client.call("GET", path)["items"], LONGEST)
        self._create(volumes)
        until(self._volumes_are_bound, LONGEST)
        self._create(bound)
        self._create(daemons)
        expected = {key: count for key, count in expected.items() if count}
        self._await_daemons(expected)

    def _await_daemons(self, expected: Mapping[tuple[str, str], int]) -> None:
        """Wait until daemon sets run where they are expected. The controller of a busy machine may miss a node that
        came just before them, and looks again only when they change."""
        running: dict[tuple[str, str], int] = {}
        for number in range(LONGEST // NUDGE):
            with suppress(AssertionError):
                until(lambda: self._running() == expected, NUDGE)
                return
            running = self._running()
            for mark, daemon in {key for key in {**running, **expected} if running.get(key) != expected.get(key)}:
                path = f"/apis/apps/v1/namespaces/kube-system/daemonsets/daemon-{mark}-{daemon}"
                self._client.call("PATCH", path, {"metadata": {"annotations": {"nudge": str(number)}}}, MERGE)
        different = {key: (running.get(key), count) for key, count in expected.items() if running.get(key) != count}
        raise AssertionError(f"pods of daemon sets, as they run and as expected: {different}")

    def _running(self) -> dict[tuple[str, str], int]:
        """Number of pods of each daemon set that are bound."""
        counts: dict[tuple[str, str], int] = {}
        for pod in self._pods("kube-system"):
            labels = pod["metadata"].get("labels", {})
            if PROBLEM in labels and pod["spec"].get("nodeName"):
                key = (labels[PROBLEM], labels["daemon"])
                counts[key] = counts.get(key, 0) + 1
        return counts

    def _volumes_are_bound(self) -> bool:
        claims = self._client.call("GET", "/api/v1/persistentvolumeclaims")["items"]
        return all((claim.get("status") or {}).get("phase") == "Bound" for claim in claims)

    def _looked_at(self, waiting: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """The node of each of these pods, or why it has none, once the scheduler has looked at all."""
        verdicts: dict[tuple[str, str], tuple[str, str]] = {}

        def complete() -> bool:
            for pod in self._pods():
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                if key in waiting and key not in verdicts:
                    conditions = pod["status"].get("conditions") or ()
                    if pod["spec"].get("nodeName"):
                        verdicts[key] = pod["spec"]["nodeName"], ""
                    elif any(entry.get("reason") == "Unschedulable" for entry in conditions):
                        verdicts[key] = "", next(entry["message"] for entry in conditions if "message" in entry)
            return len(verdicts) == len(waiting)

        until(complete, LONGEST)
        return verdicts

    def _pods(self, namespace: str = "") -> Iterable[Json]:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        return list(self._client.call("GET", path)["items"])

    def _create(self, documents: Sequence[Json]) -> None:
        paths = {
            "Namespace": "namespaces", "Node": "nodes", "Pod": "pods", "DaemonSet": "daemonsets",
            "PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims",
            "CSINode": "csinodes", "PriorityClass": "priorityclasses",
        }  # fmt: skip
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
        self._client.call("DELETE", f"/apis/storage.k8s.io/v1/csinodes?labelSelector={selector}")
        for volume in self._client.call("GET", "/api/v1/persistentvolumes")["items"]:
            name = volume["metadata"]["name"]
            self._client.call("PATCH", f"/api/v1/persistentvolumes/{name}", _NO_FINALIZERS, MERGE)
            self._client.call("DELETE", f"/api/v1/persistentvolumes/{name}")


def _collection(body: Json, paths: Mapping[str, str]) -> str:
    version, name = body["apiVersion"], paths[body["kind"]]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace = body["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{name}" if namespace else f"{root}/{name}"


def _host(name: str, mark: str) -> str:
    return f"p{mark}-{name}"


def _tolerations(pod: Mapping[str, Json]) -> list[Json]:
    """A pod that bears any taint bears those of problems, but not that of another pod's node."""
    return [
        {**toleration, "key": key}
        for toleration in pod.get("tolerations", ())
        for key in ([toleration["key"]] if toleration.get("key") else ANY)
    ]
