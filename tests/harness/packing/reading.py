"""A problem with all rules as the packer takes it: its pods are read from their documents, as those of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from local.testing.packing_checker import taints_of
from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import Requirements
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, Pool, Problem, Taint, term
from stockyard.scheduling.packing.plan import grouped
from tests.harness.packing.manifests import pod_manifest, resources

Json = Any


def problem_of(document: Mapping[str, Json]) -> Problem:
    """The document as the packer takes it. Pods that are gated wait for something else than nodes."""
    kinds = tuple(_node_type(kind) for kind in document["types"])
    pods = [(pod["name"], _pod(pod, document)) for pod in document["pods"] if not pod.get("gated")]
    daemons = [{"name": "daemon", "namespace": "one", "labels": {}, **daemon} for daemon in document["daemonsets"]]
    return Problem(
        grouped(pods),
        tuple(_pool(pool, kinds) for pool in document["pools"]),
        tuple(_node(node, document) for node in document["nodes"]),
        tuple(_pod(daemon, document) for daemon in daemons),
    )


def _amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: milli(text) for name, text in resources(amounts).items()}


def _pod(pod: Mapping[str, Json], document: Mapping[str, Json]) -> Pod:
    volumes = pod.get("volumes", ())
    zone_terms = [{"key": volume["key"], "operator": "In", "values": volume["zones"]} for volume in volumes]
    read = read_pod(pod_manifest(pod), (term(zone_terms),) if zone_terms else (), document["namespaces"])
    attached = Counter(volume["driver"] for volume in volumes)
    gang = pod.get("gang", "")
    return replace(read, attachments=tuple(sorted(attached.items())), gang=gang, priority=pod.get("priority", 0))


def _node_type(kind: Mapping[str, Json]) -> NodeType:
    return NodeType(
        f"p.{kind['name']}",
        "p",
        {key: tuple(values) for key, values in kind["labels"].items()},
        _amounts(kind["allocatable"]),
        _amounts(kind["capacity"]),
        0,
        tuple(Offering(entry["capacity_type"], (entry["zone"],), entry["price"]) for entry in kind["offerings"]),
    )


def _pool(pool: Mapping[str, Json], kinds: tuple[NodeType, ...]) -> Pool:
    limits = dict(pool["limits"])
    money = limits.pop("money", None)
    requirements, taints = Requirements.of(pool["requirements"]), _taints(pool["taints"])
    return Pool(
        pool["name"], kinds, requirements, pool["labels"], taints, pool["weight"], _amounts(limits), money=money
    )


def _taints(taints: Iterable[Mapping[str, str]]) -> tuple[Taint, ...]:
    return tuple(Taint(**taint) for taint in taints)


def _node(node: Mapping[str, Json], document: Mapping[str, Json]) -> Node:
    there = [_pod(pod, document) for pod in node["pods"]]
    free = Counter(_amounts(node["allocatable"]))
    for pod in there:
        free.subtract(dict(pod.requests))
    attached = Counter(volume["driver"] for pod in node["pods"] for volume in pod.get("volumes", ()))
    return Node(
        node["name"],
        node["labels"],
        dict(free),
        _taints(taints_of(node)),
        tuple(PlacedPod(pod.namespace, pod.labels, pod.anti_affinity) for pod in there),
        tuple(port for pod in there for port in pod.ports),
        attachable={driver: most - attached[driver] for driver, most in node["attach"].items()},
    )
