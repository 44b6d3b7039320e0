"""A problem and its plan on the board of the local scheduler, a second reading of Kubernetes' rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Node, node_of, pod_of
from local.kubernetes.placing.volumes import Storage
from local.testing.packing_checker import daemons_on
from tests.harness.packing.manifests import node_document, pod_manifest, volume_manifests

Json = Any
SPACE = "kube-system"
"""The namespace of the DaemonSets."""


def board_of(problem: Mapping[str, Json], plan: Mapping[str, Json]) -> Board:
    """The present and the planned nodes, with the pods on each before the first pod is placed."""
    claims: dict[str, Json] = {}
    volumes: dict[str, Json] = {}
    there = [pod for node in problem["nodes"] for pod in node["pods"]]
    for pod in (*there, *problem["pods"]):
        for document in volume_manifests(pod):
            name = document["metadata"]["name"]
            if document["kind"] == "PersistentVolume":
                volumes[name] = document
            else:
                claims[f"{document['metadata']['namespace']}/{name}"] = document
    nodes = [_node(problem, node) for node in (*problem["nodes"], *plan["nodes"])]
    names = {name: {**labels, "kubernetes.io/metadata.name": name} for name, labels in problem["namespaces"].items()}
    return Board(nodes, Storage(claims, volumes, {}), names)


def _node(problem: Mapping[str, Json], document: Mapping[str, Json]) -> Node:
    node = node_of(node_document(document), document.get("attach"))
    for pod in (*document.get("pods", ()), *daemon_pods(problem, document)):
        node.add(pod_of(pod_manifest(pod)))
    return node


def daemon_pods(problem: Mapping[str, Json], node: Mapping[str, Json]) -> Iterable[Json]:
    """The pods of DaemonSets that will be on a planned node."""
    for number, daemon in enumerate(daemons_on(problem, node)):
        yield {"name": f"daemon-{number}-{node['name']}", "namespace": SPACE, "labels": {}, **daemon}


def with_plan(problem: Mapping[str, Json], plan: Mapping[str, Json]) -> dict[str, Json]:
    """State after the plan has been carried out, as a problem of the pods that it has left out."""
    pods = {pod["name"]: pod for pod in problem["pods"]}
    nodes = []
    for node in (*problem["nodes"], *plan["nodes"]):
        placed = [pods[name] for name, where in plan["where"].items() if where == node["name"]]
        there = [*node.get("pods", ()), *daemon_pods(problem, node), *placed]
        own_fields = {name: value for name, value in node.items() if name not in ("pool", "type", "price", "values")}
        nodes.append({"attach": {}, **own_fields, "pods": there})
    left_pods = [pod for name, pod in pods.items() if name not in plan["where"]]
    return {**problem, "nodes": nodes, "pods": left_pods}
