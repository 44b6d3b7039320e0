"""Random problems of packing as plain documents, and what the packer makes of them in the words of the checker."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import HOSTNAME, INSTANCE_TYPE, Requirements
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.model import (
    Node,
    PlacedPod,
    Pod,
    PodGroup,
    PodTerm,
    Pool,
    Preference,
    Problem,
    Selector,
    Spread,
    Taint,
    Toleration,
    term,
)
from stockyard.scheduling.packing.plan import Plan

Json = Any
ZONE, CAPACITY_TYPE = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
ZONES, ARCHS, APPS = ("a", "b", "c"), ("amd64", "arm64"), ("web", "db", "job")
KEYS = (ZONE, HOSTNAME)
TEAM, DISK = "example.com/team", "example.com/disk"


def random_problem(seed: int) -> dict[str, Json]:
    """A small problem with every kind of rule in it. The same seed makes the same problem."""
    chance = random.Random(seed)
    kinds = [_kind(chance, number) for number in range(chance.randint(1, 8))]
    pools = [_pool(chance, number) for number in range(chance.randint(1, 3))]
    daemons = [_daemon(chance) for _ in range(chance.choice((0, 0, 1, 2)))]
    shapes = [_pod(chance) for _ in range(chance.randint(1, 6))]
    _into_gangs(random.Random(seed + 1), shapes)
    pods = [
        {**shape, "name": f"pod-{number}-{copy}"}
        for number, shape in enumerate(shapes)
        for copy in range(chance.choice((1, 1, 2, 3, 5)))
    ]
    nodes = [_node(chance, number, shapes) for number in range(chance.choice((0, 0, 1, 3)))]
    return {"types": kinds, "pools": pools, "daemonsets": daemons, "nodes": nodes, "pods": pods, "seed": seed}


def _into_gangs(chance: random.Random, shapes: Sequence[Json]) -> None:
    for gang in ("g", "h"):
        if chance.random() < 0.1:
            for shape in chance.sample(shapes, min(2, len(shapes))):
                shape["gang"] = gang


def _kind(chance: random.Random, number: int) -> dict[str, Json]:
    cpu, memory = chance.choice((1000, 2000, 4000, 8000)), chance.choice((2000, 4000, 8000, 16000))
    labels: dict[str, list[str]] = {"kubernetes.io/arch": [chance.choice(ARCHS)], INSTANCE_TYPE: [f"type-{number}"]}
    if chance.random() < 0.5:
        labels[DISK] = chance.choice((["ssd"], ["hdd"], ["ssd", "hdd"], []))
    capacity = {"cpu": cpu, "memory": memory, "pods": chance.choice((3, 8, 110))}
    if chance.random() < 0.15:
        capacity["example.com/gpu"] = chance.choice((1, 2))
    allocatable = {**capacity, "cpu": cpu - 100, "memory": memory - 100}
    offerings: list[Json] = [
        {
            "zone": zone,
            "capacity_type": kind,
            "price": round(cpu * 0.00004 + memory * 0.00001 * chance.uniform(0.5, 2), 4),
        }
        for zone in chance.sample(ZONES, chance.randint(1, 3))
        for kind in chance.choice((("on-demand",), ("on-demand", "spot"), ("spot",)))
    ]
    name = f"type-{number}"
    return {"name": name, "labels": labels, "capacity": capacity, "allocatable": allocatable, "offerings": offerings}


def _pool(chance: random.Random, number: int) -> dict[str, Json]:
    requirements: list[Json] = []
    if chance.random() < 0.3:
        requirements.append({"key": ZONE, "operator": "In", "values": chance.sample(ZONES, chance.randint(1, 2))})
    if chance.random() < 0.2:
        requirements.append({"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]})
    if chance.random() < 0.2:
        requirements.append({"key": INSTANCE_TYPE, "operator": "Exists", "minValues": 2})
    if chance.random() < 0.25:
        requirements.append({"key": TEAM, "operator": "In", "values": chance.choice((["x"], ["x", "y"]))})
    pool: dict[str, Json] = {
        "name": f"pool-{number}",
        "requirements": requirements,
        "labels": {"example.com/kind": chance.choice(("k", "l"))} if chance.random() < 0.3 else {},
        "taints": [{"key": "only", "value": "us", "effect": chance.choice(("NoSchedule", "PreferNoSchedule"))}]
        if chance.random() < 0.25
        else [],
        "weight": chance.choice((0, 0, 10)),
        "limits": {},
    }
    if chance.random() < 0.4:
        name = chance.choice(("nodes", "cpu", "money", "memory"))
        amount: dict[str, float] = {
            "nodes": chance.randint(1, 4),
            "cpu": chance.choice((4000, 12000)),
            "memory": 16000,
            "money": 0.5,
        }
        pool["limits"] = {name: amount[name]}
    return pool


def _daemon(chance: random.Random) -> dict[str, Json]:
    daemon: dict[str, Json] = {"requests": {"cpu": chance.choice((50, 200)), "memory": 100}, "tolerations": []}
    if chance.random() < 0.5:
        daemon["tolerations"] = [{"operator": "Exists"}]
    if chance.random() < 0.4:
        daemon["node_selector"] = {"kubernetes.io/arch": chance.choice(ARCHS)}
    return daemon


def _pod(chance: random.Random) -> dict[str, Json]:
    pod: dict[str, Json] = {
        "namespace": chance.choice(("one", "one", "two")),
        "labels": {"app": chance.choice(APPS)},
        "requests": {"cpu": chance.choice((100, 500, 1000, 2500)), "memory": chance.choice((100, 1000, 3000))},
    }
    if chance.random() < 0.05:
        pod["requests"]["example.com/gpu"] = 1
    if chance.random() < 0.2:
        key, values = chance.choice(
            ((ZONE, ZONES), ("kubernetes.io/arch", ARCHS), (TEAM, "xy"), (DISK, ("ssd", "hdd")))
        )
        pod["node_selector"] = {key: chance.choice(values)}
    if chance.random() < 0.2:
        pod["required_terms"] = [[_requirement(chance)] for _ in range(chance.randint(1, 2))]
    if chance.random() < 0.2:
        pod["preferred_terms"] = [{"weight": chance.randint(1, 100), "requirements": [_requirement(chance)]}]
    if chance.random() < 0.4:
        pod["tolerations"] = [chance.choice(({"operator": "Exists"}, {"key": "only", "value": "us"}))]
    if chance.random() < 0.3:
        pod["spreads"] = [
            {
                **_selecting(chance, namespaces=False),
                "max_skew": chance.choice((1, 1, 2)),
                "hard": chance.random() < 0.7,
            }
            for _ in range(chance.choice((1, 1, 2)))
        ]
        if pod["spreads"][0]["key"] == ZONE and chance.random() < 0.2:
            pod["spreads"][0]["min_domains"] = 2
    if chance.random() < 0.2:
        pod["anti_affinity"] = [{**_selecting(chance), "weight": chance.choice((0, 0, 5))}]
    if chance.random() < 0.15:
        pod["affinity"] = [{**_selecting(chance), "weight": chance.choice((0, 0, 5))}]
    if chance.random() < 0.1:
        pod["ports"] = [chance.choice((80, 443))]
    return pod


def _requirement(chance: random.Random) -> dict[str, Json]:
    return chance.choice(
        (
            {"key": ZONE, "operator": "In", "values": chance.sample(ZONES, 2)},
            {"key": ZONE, "operator": "NotIn", "values": [chance.choice(ZONES)]},
            {"key": TEAM, "operator": chance.choice(("Exists", "DoesNotExist"))},
            {"key": DISK, "operator": chance.choice(("Exists", "DoesNotExist"))},
            {"key": DISK, "operator": chance.choice(("In", "NotIn")), "values": ["ssd"]},
            {"key": CAPACITY_TYPE, "operator": "In", "values": [chance.choice(("spot", "on-demand"))]},
            {"key": "example.com/kind", "operator": "In", "values": ["k"]},
        )
    )


def _selecting(chance: random.Random, *, namespaces: bool = True) -> dict[str, Json]:
    term_document: dict[str, Json] = {"key": chance.choice(KEYS), "selector": {"app": chance.choice(APPS)}}
    if namespaces and chance.random() < 0.2:
        term_document["namespaces"] = ["one", "two"]
    return term_document


def _node(chance: random.Random, number: int, shapes: Sequence[Json]) -> dict[str, Json]:
    name = f"node-{number}"
    zone, arch = chance.choice(ZONES), chance.choice(ARCHS)
    pods = [
        {**chance.choice(shapes), "name": f"{name}-pod-{index}", "requests": {"cpu": 100, "memory": 100}}
        for index in range(chance.choice((0, 1, 2)))
    ]
    for pod in pods:
        pod.pop("anti_affinity", None)
        pod.pop("ports", None)
    return {
        "name": name,
        "labels": {HOSTNAME: name, ZONE: zone, "kubernetes.io/arch": arch, CAPACITY_TYPE: "on-demand"},
        "taints": [{"key": "only", "value": "us", "effect": "NoSchedule"}] if chance.random() < 0.2 else [],
        "allocatable": {"cpu": chance.choice((1000, 4000)), "memory": chance.choice((2000, 8000)), "pods": 10},
        "pods": pods,
    }


# --- for the packer -------------------------------------------------------------------------------------------------


def problem_of(document: Mapping[str, Json]) -> Problem:
    """The document as the packer takes it; equal pods are one group."""
    kinds = tuple(_node_type(kind) for kind in document["types"])
    groups: defaultdict[Pod, list[str]] = defaultdict(list)
    for pod in document["pods"]:
        groups[_read_pod(pod)].append(pod["name"])
    return Problem(
        tuple(PodGroup(pod, tuple(names)) for pod, names in groups.items()),
        tuple(_read_pool(pool, kinds) for pool in document["pools"]),
        tuple(_read_node(node) for node in document["nodes"]),
        tuple(_read_pod({"namespace": "one", "labels": {}, **daemon}) for daemon in document["daemonsets"]),
    )


def plan_document(document: Mapping[str, Json], plan: Plan) -> dict[str, Json]:
    """The plan in the words of the checker."""
    kinds = {kind["name"]: kind for kind in document["types"]}
    pools = {pool["name"]: pool for pool in document["pools"]}
    nodes: list[Json] = []
    where: dict[str, str] = {}
    for claim in plan.claims:
        kind = kinds[claim.row.node_type.bare]
        node = {"name": claim.name, "labels": {**claim.labels, HOSTNAME: claim.name}, "pool": claim.pool.name}
        node |= {"taints": pools[claim.pool.name]["taints"], "allocatable": kind["allocatable"], "type": kind["name"]}
        choices = {INSTANCE_TYPE: sorted(node_type.bare for node_type in claim.node_types)}
        nodes.append({**node, "price": claim.price, "values": choices})
        where |= dict.fromkeys(claim.pods, claim.name)
    for placement in plan.placements:
        where |= dict.fromkeys(placement.pods, placement.node)
    return {"nodes": nodes, "where": where, "order": list(plan.order)}


def _node_type(kind: Mapping[str, Json]) -> NodeType:
    return NodeType(
        f"p.{kind['name']}",
        "p",
        {key: tuple(values) for key, values in kind["labels"].items()},
        dict(kind["allocatable"]),
        dict(kind["capacity"]),
        0,
        tuple(Offering(entry["capacity_type"], (entry["zone"],), entry["price"]) for entry in kind["offerings"]),
    )


def _read_pool(pool: Mapping[str, Json], kinds: tuple[NodeType, ...]) -> Pool:
    limits = dict(pool["limits"])
    money = limits.pop("money", None)
    if "nodes" in limits:
        limits["nodes"] *= 1000
    requirements, taints = Requirements.of(pool["requirements"]), tuple(Taint(**taint) for taint in pool["taints"])
    return Pool(pool["name"], kinds, requirements, pool["labels"], taints, pool["weight"], limits, money=money)


def _read_node(node: Mapping[str, Json]) -> Node:
    free = dict(node["allocatable"])
    for pod in node["pods"]:
        for name, amount in {**pod["requests"], "pods": 1}.items():
            free[name] -= amount
    pods = tuple(PlacedPod(pod["namespace"], tuple(sorted(pod["labels"].items()))) for pod in node["pods"])
    return Node(node["name"], node["labels"], free, tuple(Taint(**taint) for taint in node["taints"]), pods)


def _read_pod(pod: Mapping[str, Json]) -> Pod:
    node_selector = [
        {"key": key, "operator": "In", "values": [value]} for key, value in pod.get("node_selector", {}).items()
    ]
    terms = tuple(term([*node_selector, *entry]) for entry in pod.get("required_terms") or [[]])
    return Pod(
        pod["namespace"],
        tuple(sorted(pod["labels"].items())),
        tuple(sorted({**pod["requests"], "pods": 1}.items())),
        terms,
        tuple(Preference(entry["weight"], term(entry["requirements"])) for entry in pod.get("preferred_terms", ())),
        tuple(Toleration(**entry) for entry in pod.get("tolerations", ())),
        tuple(
            Spread(
                entry["key"],
                entry["max_skew"],
                _selector(entry),
                hard=entry["hard"],
                min_domains=entry.get("min_domains"),
            )
            for entry in pod.get("spreads", ())
        ),
        tuple(_term(entry, pod) for entry in pod.get("affinity", ())),
        tuple(_term(entry, pod) for entry in pod.get("anti_affinity", ())),
        tuple(HostPort(port) for port in pod.get("ports", ())),
        gang=pod.get("gang", ""),
    )


def _selector(document: Mapping[str, Json]) -> Selector:
    entries = [{"key": key, "operator": "In", "values": [value]} for key, value in document["selector"].items()]
    return Selector(term(entries))


def _term(document: Mapping[str, Json], pod: Mapping[str, Json]) -> PodTerm:
    namespaces = frozenset(document.get("namespaces") or [pod["namespace"]])
    return PodTerm(document["key"], _selector(document), namespaces, document["weight"])
