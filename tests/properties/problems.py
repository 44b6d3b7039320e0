"""Random catalogues and claims as plain data, small enough that values, prices and names collide all the time."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.scheduling.match import Availability, SchedulingRequest
from stockyard.scheduling.reading import Reader

NODE_TYPE, INSTANCE_TYPE = "vcluster.com/node-type", "node.kubernetes.io/instance-type"
ZONE, CAPACITY = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
ZONES = ("a", "b", "c")
WORDS = ("x", "y", "z")
ARCHITECTURES = ("amd64", "amd64", "arm64", "z")
NUMBERS = ("1", "2", "4", "8")
ARCH = "kubernetes.io/arch"
TEXT_KEYS = ("team", ARCH)
NUMBER_KEYS = ("size", "generation")
EXTENDED = ("nvidia.com/gpu", "vendor.com/fpga")
PROVIDERS = ("p", "q")
BARE = ("m1", "m2", "m3", "m4")


def problem(chance: Random) -> dict[str, Any]:
    """One catalogue, some claims, and what is scarce."""
    names = [(provider, bare) for provider in PROVIDERS for bare in BARE if chance.random() < 0.8]
    chance.shuffle(names)
    node_types = [node_type(chance, provider, bare) for provider, bare in names]
    refused = [
        [node_type["name"], way["capacity_type"], chance.choice((*ZONES, "*", "*"))]
        for node_type in node_types
        for way in node_type["offerings"]
        if chance.random() < 0.3
    ]
    return {
        "kinds": node_types,
        "claims": [claim(chance) for _ in range(chance.randint(1, 5))],
        "free": {node_type["name"]: chance.randint(-1, 2) for node_type in node_types if chance.random() < 0.8},
        "refused": refused,
    }


def words(key: str) -> tuple[str, ...]:
    return ARCHITECTURES if key == ARCH else WORDS


def node_type(chance: Random, provider: str, bare: str) -> dict[str, Any]:
    properties: dict[str, list[str]] = {}
    for key in (*TEXT_KEYS, *NUMBER_KEYS):
        draw = chance.random()
        if draw < 0.1:
            properties[key] = ["*"]
        elif draw < 0.8:
            values = NUMBERS if key in NUMBER_KEYS else words(key)
            properties[key] = list(dict.fromkeys(chance.sample(values, 1 if draw < 0.65 else 2)))
    name = f"{provider}.{bare}"
    properties[NODE_TYPE] = [name]
    properties[INSTANCE_TYPE] = [bare if chance.random() < 0.4 else name]
    capacity = {"cpu": chance.choice((1000, 2000, 4000)), "memory": chance.choice((1000, 2000)), "pods": 3000}
    for resource in EXTENDED:
        if chance.random() < 0.2:
            capacity[resource] = chance.choice((0, 1000, 2000))
    return {
        "name": name,
        "provider": provider,
        "bare": bare,
        "properties": properties,
        "capacity": capacity,
        "allocatable": {**capacity, "cpu": capacity["cpu"] - chance.choice((0, 0, 0, 500, 1001))},
        "cost": chance.choice((1, 2, 3, 4)),
        "cost_given": chance.random() < 0.4,
        "unit_price": {"p": 0.5, "q": None}[provider] if chance.random() < 0.7 else None,
        "offerings": [offering(chance) for _ in range(chance.choice((0, 1, 1, 1, 2, 2)))],
        "limited": chance.random() < 0.4,
        "available": chance.random() < 0.9,
        "small": chance.random() < 0.15,
        "unserved": "no image" if chance.random() < 0.1 else None,
    }


def offering(chance: Random) -> dict[str, Any]:
    zones = ["*"] if chance.random() < 0.1 else chance.sample(ZONES, chance.randint(1, 3))
    price = chance.choice((None, 0.5, 1.0, 1.0, 2.0))
    return {"capacity_type": chance.choice(("on-demand", "on-demand", "spot")), "zones": zones, "usd_hour": price}


def claim(chance: Random) -> dict[str, Any]:
    resources = {
        name: chance.choice((0, 500, 1000, 1500, 2000)) for name in ("cpu", "memory", "pods") if chance.random() < 0.3
    }
    if chance.random() < 0.25:
        resources[chance.choice((*EXTENDED, "unknown"))] = chance.choice((0, 1000, 1000, 2000))
    allowed = None
    if chance.random() < 0.25:
        allowed = chance.sample(("p.*", "q.*", "p.m1", "q.m1", "p.m2", "q.m3", "m4", "*"), chance.randint(0, 3))
    requirements = [requirement(chance) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3)))]
    if chance.random() < 0.4:  # any capacity type will do
        requirements.append({"key": CAPACITY, "operator": "Exists"})
    if requirements and chance.random() < 0.1:  # the larger of two holds
        first = requirements[0]
        first["minValues"] = chance.randint(1, 3)
        requirements.append({"key": first["key"], "operator": "Exists", "minValues": chance.randint(1, 3)})
    return {
        "requirements": requirements,
        "resources": resources,
        "provider": chance.choice((None, None, "p", "q", "unknown" if chance.random() < 0.1 else "p")),
        "allowed": allowed,
        "out_of_reach": [provider for provider in PROVIDERS if chance.random() < 0.05],
        "images": {provider: [chance.choice(ARCHITECTURES)] for provider in PROVIDERS if chance.random() < 0.15},
        "likely": {provider: [chance.choice(ARCHITECTURES)] for provider in PROVIDERS if chance.random() < 0.15},
    }


def requirement(chance: Random) -> dict[str, Any]:
    key = chance.choice((*TEXT_KEYS, *NUMBER_KEYS, ZONE, CAPACITY, NODE_TYPE, INSTANCE_TYPE, "never", *NUMBER_KEYS))
    values = {
        ZONE: ZONES,
        CAPACITY: ("on-demand", "spot", "reserved"),
        NODE_TYPE: (*BARE, "p.m1", "q.m1", "p.m2"),
        INSTANCE_TYPE: (*BARE, "p.m3", "q.m4", "q.m2"),
    }.get(key, NUMBERS if key in NUMBER_KEYS else words(key))
    operators = ["In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"]
    if key in NUMBER_KEYS or chance.random() < 0.05:
        operators += ["Gt", "Lt", "Gte", "Lte"] * 2
    operator = chance.choice(operators)
    entry: dict[str, Any] = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        entry["values"] = list(dict.fromkeys(chance.sample(values, chance.randint(1, min(3, len(values))))))
        if operator == "In" and chance.random() < 0.3:
            del entry["operator"]
    elif operator in ("Gt", "Lt", "Gte", "Lte"):
        entry["values"] = [chance.choice(NUMBERS)]
    if chance.random() < 0.15:
        entry["minValues"] = chance.randint(1, 3)
    return entry


def node_types_of(data: dict[str, Any]) -> list[NodeType]:
    """The catalogue as the core takes it."""
    return [
        NodeType(
            name=node_type["name"],
            provider=node_type["provider"],
            properties={key: tuple(values) for key, values in node_type["properties"].items()},
            allocatable=node_type["allocatable"],
            capacity=node_type["capacity"],
            cost=node_type["cost"],
            offerings=tuple(
                Offering(way["capacity_type"], tuple(way["zones"]), way["usd_hour"]) for way in node_type["offerings"]
            ),
            limited=node_type["limited"],
            available=node_type["available"],
            cost_given=node_type["cost_given"],
            unit_price=node_type["unit_price"],
            small=node_type["small"],
            unserved=node_type["unserved"],
        )
        for node_type in data["kinds"]
    ]


def requests_of(data: dict[str, Any]) -> list[SchedulingRequest]:
    """The claims as the core takes them."""
    reader = Reader()
    return [
        replace(
            reader.request(
                claim["requirements"],
                {name: f"{amount}m" for name, amount in claim["resources"].items()},
                claim["provider"],
                claim["allowed"],
                frozenset(claim["out_of_reach"]),
            ),
            images={provider: frozenset(names) for provider, names in claim["images"].items()},
            likely={provider: frozenset(names) for provider, names in claim["likely"].items()},
        )
        for claim in data["claims"]
    ]


def availability_of(data: dict[str, Any]) -> Availability:
    """Scarce offerings, as the core takes them."""
    return Availability(data["free"], frozenset((name, capacity, zone) for name, capacity, zone in data["refused"]))
