"""The level ``pack``: manifests through the packer, with one pool ``default``, without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, Declaration, NodeType, Offering, node_type_of
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import HOSTNAME, ZONE
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Node, PlacedPod, Pod, Pool, Problem, Settings, Taint, term
from stockyard.scheduling.packing.plan import Plan, grouped, pack
from stockyard.scheduling.packing.workloads import Workloads, read_workloads
from tests.conformance.bug_levels.reading import (
    Different,
    Json,
    Unreadable,
    absent,
    as_expected,
    check_fields,
    counts,
    is_number,
    judge,
    listed,
    names_of,
)

FIELDS = frozenset({"types", "zones", "manifests", "nodes", "volumes"})
PROVIDER, POOL = "case", "default"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
MOST = 10_000
_TYPE = frozenset({"name", "cpu", "memory", "usd", "spot", "zones", "labels", "resources", "pods"})
_NODE = frozenset({"name", "labels", "free", "taints", "pods", "ports", "unschedulable", "attachable"})
_POD = frozenset({"namespace", "name", "labels", "spec", "metadata"})
EXPECTATIONS = frozenset(
    {"left_out", "nodes", "on", "zones_used", "new_zone", "pods", "skipped", "requests", "reason_names", "refused"}
)


def play(case: Mapping[str, Json]) -> None:
    """Play one case. Raises ``Different`` or ``Unreadable``."""
    volumes = tuple(term(entries) for entries in case.get("volumes", ()))
    try:
        workloads = read_workloads(case["manifests"], MOST, MOST)
    except ValueError as refused:
        _judge_refusal(case["expected"], str(refused))
        return
    pods = [(name, replace(pod, volumes=volumes) if volumes else pod) for name, pod in workloads.pods]
    daemons = tuple(workloads.daemon_sets.values())
    # As scale-up and placements ask the packer.
    settings = Settings(preferred_nodes=False)
    plan = pack(Problem(grouped(pods), (_pool(case),), _nodes(case), daemons, settings))
    judge(case["expected"], _checks(case, workloads, plan))


# --- what is given ----------------------------------------------------------------------------------------------------


def _pool(case: Mapping[str, Json]) -> Pool:
    return Pool(POOL, tuple(_type(document, case["zones"]) for document in case["types"]))


def _type(document: Mapping[str, Json], zones: Json) -> NodeType:
    check_fields("type", document, _TYPE)
    own_zones = tuple(document.get("zones") or zones)
    offerings = [Offering(ON_DEMAND, own_zones, float(document["usd"]))]
    if "spot" in document:
        offerings.append(Offering(SPOT, own_zones, float(document["spot"])))
    resources = {name: document[name] for name in ("cpu", "memory", "pods") if name in document}
    return node_type_of(
        Declaration(
            provider=PROVIDER,
            name=document["name"],
            resources={**resources, **document.get("resources", {})},
            properties=document.get("labels", {}),
            offerings=tuple(offerings),
        )
    )


def _nodes(case: Mapping[str, Json]) -> tuple[Node, ...]:
    return tuple(_node(document) for document in case.get("nodes", ()))


def _node(document: Mapping[str, Json]) -> Node:
    check_fields("node", document, _NODE)
    taints = [Taint(**{name: str(value) for name, value in taint.items()}) for taint in document.get("taints", ())]
    if document.get("unschedulable"):
        taints.append(Taint(UNSCHEDULABLE))
    pods = [_placed(pod) for pod in document.get("pods", ())]
    free = {name: milli(amount) for name, amount in document["free"].items()}
    return Node(
        document["name"],
        {HOSTNAME: document["name"], **document.get("labels", {})},
        {"pods": milli(110), **free},
        tuple(taints),
        tuple(PlacedPod(pod.namespace, pod.labels, pod.anti_affinity) for pod in pods),
        (*(port for pod in pods for port in pod.ports), *map(_port, document.get("ports", ()))),
        attachable=dict(document.get("attachable", {})),
    )


def _placed(document: Mapping[str, Json]) -> Pod:
    """A pod on a node: its namespace and labels, or a manifest."""
    check_fields("pod of a node", document, _POD)
    own = {name: document[name] for name in ("namespace", "labels") if name in document}
    return read_pod({"metadata": {**own, **document.get("metadata", {})}, "spec": document.get("spec", {})})


def _port(document: Json) -> HostPort:
    if is_number(document):
        return HostPort(document)
    check_fields("port", document, ("hostPort", "protocol", "hostIP"))
    return HostPort(document["hostPort"], document.get("protocol", "TCP"), document.get("hostIP", ""))


# --- what is expected -------------------------------------------------------------------------------------------------


def _checks(case: Mapping[str, Json], workloads: Workloads, plan: Plan) -> Mapping[str, Callable[[Json], str | None]]:
    on = Counter({placement.node: len(placement.pods) for placement in plan.placements})
    zone_of = {node["name"]: node.get("labels", {}).get(ZONE) for node in case.get("nodes", ())}
    new_zones = {claim.row.zone for claim in plan.claims}
    used = new_zones | {zone for name in on if (zone := zone_of[name]) is not None}
    left_out = [name for item in plan.left_out for name in item.pods]
    why = " ".join(
        f"{reason.rule} {reason.subject} {reason.message}" for item in plan.left_out for reason in item.reasons
    )
    return {
        "left_out": lambda expected: _pods(expected, left_out),
        "nodes": counts(lambda: len(plan.claims)),
        "on": lambda expected: _on(expected, on),
        "zones_used": lambda expected: _zones(expected, used),
        "new_zone": lambda expected: _zones(expected, new_zones),
        "pods": counts(lambda: len(workloads.pods)),
        "skipped": counts(workloads.skipped.total),
        "requests": lambda expected: _requests(expected, workloads),
        "reason_names": lambda expected: absent(expected, why),
        "refused": lambda _: "no refusal",
    }


def _judge_refusal(expected: Mapping[str, Json], text: str) -> None:
    check_fields("expected", expected, EXPECTATIONS)
    if "refused" not in expected:
        raise Different(f"the manifests are refused: {text}")
    judge({"refused": expected["refused"]}, {"refused": lambda pointer: _begins(text, pointer)})


def _begins(text: str, pointer: Json) -> str | None:
    """Whether a refusal begins with the pointer, and not with one that only looks like it."""
    text_pointer = text.partition(":")[0]
    return None if text_pointer == pointer or text_pointer.startswith(f"{pointer}/") else text


def _pods(expected: Json, names: list[str]) -> str | None:
    """A number of pods, or their names."""
    if not isinstance(expected, list):
        return None if as_expected(expected, len(names)) else f"{len(names)} ({listed(names)})"
    return None if sorted(names_of(expected)) == sorted(names) else listed(names)


def _on(expected: Json, on: Counter[str]) -> str | None:
    """Existing nodes that take pods: how many, which, or how many pods each."""
    came = listed(f"{node} ({count})" for node, count in on.items())
    if isinstance(expected, Mapping) and not expected.keys() <= {"min", "max"}:
        return None if set(on) <= set(expected) and all(as_expected(n, on[k]) for k, n in expected.items()) else came
    if isinstance(expected, Mapping) or is_number(expected):
        return None if as_expected(expected, len(on)) else came
    return None if set(names_of(expected)) == set(on) else came


def _zones(expected: Json, zones: set[str]) -> str | None:
    """Zones by name, or how many."""
    if isinstance(expected, Mapping) or is_number(expected):
        return None if as_expected(expected, len(zones)) else listed(zones)
    return None if set(names_of(expected)) == zones else listed(zones)


def _requests(expected: Json, workloads: Workloads) -> str | None:
    """Requests of the first pod, of each resource that is named."""
    if not workloads.pods:
        raise Unreadable("requests: there is no pod")
    own: dict[str, Any] = dict(workloads.pods[0][1].requests)
    return None if all(own.get(name, 0) == milli(amount) for name, amount in expected.items()) else str(own)
