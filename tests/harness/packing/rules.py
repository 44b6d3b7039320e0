"""Random problems of packing with all rules: those of ``packing_problems``, and all others that Kubernetes has."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from local.testing.packing_checker import HOSTNAME, ports_of
from stockyard.domain.values.requirements import INSTANCE_TYPE
from tests.harness.stories.packing_problems import APPS, ARCHS, ZONE, ZONES, random_problem

Json = Any
RACK = "example.com/rack"
"""A label that no node has."""
DRIVERS = ("ebs.csi.aws.com", "efs.csi.aws.com")
OLD_ZONE, DRIVER_ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"
NAMESPACES = {"one": {"tier": "front"}, "two": {"tier": "back"}}
PRIORITIES = (0, 0, 0, 0, 100)
MAINTENANCE = "example.com/maintenance"


def ruled_problem(seed: int) -> dict[str, Json]:
    """A small problem with every kind of rule. The same seed makes the same problem."""
    problem, chance = random_problem(seed), random.Random(f"rules {seed}")
    problem["namespaces"] = NAMESPACES
    shapes: dict[str, dict[str, Json]] = {}
    for pod in problem["pods"]:
        number = pod["name"].split("-")[1]
        if number not in shapes:
            shapes[number] = _more_rules(chance)
        _put(pod, shapes[number])
    for node in problem["nodes"]:
        _close(chance, node, list(shapes.values()))
    # Two DaemonSets with one port would keep each other from a node, whatever the plan is.
    for daemon, port in zip(problem["daemonsets"], chance.sample((80, 443, 9000), 3), strict=False):
        if chance.random() < 0.2:
            daemon["ports"] = [port]
    return problem


def _put(pod: dict[str, Json], rules: dict[str, Json]) -> None:
    """Give a pod more rules: lists are lengthened, other fields replaced."""
    for name, value in rules.items():
        pod[name] = [*pod.get(name, ()), *value] if isinstance(value, list) else value
    if pod.get("gated"):
        pod.pop("gang", None)  # of a gang that waits for one of its pods nobody could be placed
    # The API server takes a port once.
    ports = {ports_of({"ports": [port]})[0]: port for port in pod.get("ports", ())}
    if ports:
        pod["ports"] = list(ports.values())
    _once(pod)


def _once(pod: dict[str, Json]) -> None:
    """Leave one constraint of a label and a hardness: the API server takes no more."""
    spreads = {(each["key"], each["hard"]): each for each in pod.get("spreads", ())}
    if spreads:
        pod["spreads"] = list(spreads.values())


def _more_rules(chance: random.Random) -> dict[str, Json]:
    """Each rule in some of the pods; many of them together in few."""
    rules: dict[str, Json] = {}
    makers: Sequence[tuple[float, str, Callable[[random.Random], Json]]] = (
        (0.12, "spreads", _spreads),
        (0.12, "anti_affinity", _terms),
        (0.10, "affinity", _terms),
        (0.08, "ports", _ports),
        (0.06, "sidecar_ports", lambda _: [9000]),
        (0.12, "volumes", _volumes),
        (0.06, "pod_resources", _whole),
        (0.04, "node_selector", _old_selector),
        (0.02, "devices", lambda _: ["gpu"]),
        (0.02, "gated", lambda _: True),
        (1.00, "priority", lambda chance: chance.choice(PRIORITIES)),
    )
    for share, name, make in makers:
        if chance.random() < share:
            rules[name] = make(chance)
    return rules


def _selecting(chance: random.Random) -> dict[str, Json]:
    """Selector of the pods that a rule is about."""
    term: dict[str, Json] = {"key": chance.choice((ZONE, ZONE, HOSTNAME, HOSTNAME, RACK))}
    term["selector"] = chance.choice(({"app": chance.choice(APPS)}, {"app": chance.choice(APPS)}, {}, None))
    if term["selector"] is not None and chance.random() < 0.3:
        operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = chance.sample(APPS, 2) if operator in ("In", "NotIn") else []
        term["expressions"] = [{"key": "app", "operator": operator, **({"values": values} if values else {})}]
    return term


def _keys(chance: random.Random, term: dict[str, Json], *names: str) -> None:
    named = term["selector"] is None or "app" in term["selector"] or "expressions" in term
    if not named and chance.random() < 0.5:
        term[chance.choice(names)] = ["app"]


def _spreads(chance: random.Random) -> list[Json]:
    spread = {**_selecting(chance), "max_skew": chance.choice((1, 2)), "hard": chance.random() < 0.6}
    if spread["hard"] and spread["key"] == ZONE and chance.random() < 0.2:
        spread["min_domains"] = chance.choice((2, 3))
    if chance.random() < 0.3:
        spread["affinity_policy"] = "Ignore"
    if chance.random() < 0.3:
        spread["taints_policy"] = "Honor"
    _keys(chance, spread, "match_label_keys")
    return [spread]


def _terms(chance: random.Random) -> list[Json]:
    term = {**_selecting(chance), "weight": chance.choice((0, 0, 7))}
    named = chance.random()
    if named < 0.2:
        term["namespaces"] = ["two"]
    elif named < 0.5:
        term["namespace_selector"] = chance.choice(
            ({}, {"kubernetes.io/metadata.name": "two"}, {"tier": "back"}, {"tier": "none"})
        )
    _keys(chance, term, "match_label_keys", "mismatch_label_keys")
    return [term]


def _ports(chance: random.Random) -> list[Json]:
    address = chance.choice(("", "", "10.0.0.1", "10.0.0.2"))
    return [{"port": chance.choice((80, 53)), "protocol": chance.choice(("TCP", "UDP")), "address": address}]


def _volumes(chance: random.Random) -> list[Json]:
    return [
        {
            "zones": chance.sample(ZONES, chance.choice((1, 1, 2, 3))),
            "key": chance.choice((ZONE, ZONE, DRIVER_ZONE)),
            "driver": chance.choice(DRIVERS),
        }
        for _ in range(chance.choice((1, 1, 2)))
    ]


def _whole(chance: random.Random) -> dict[str, Json]:
    return chance.choice(
        (
            {"requests": {"cpu": 3000, "memory": 4000}},
            {"limits": {"cpu": 6000, "memory": 6000}},
            {"requests": {"cpu": 2600}},
        )
    )


def _old_selector(chance: random.Random) -> dict[str, str]:
    return chance.choice(
        (
            {OLD_ZONE: chance.choice(ZONES)},
            {"beta.kubernetes.io/arch": chance.choice(ARCHS)},
            {"beta.kubernetes.io/instance-type": f"type-{chance.randint(0, 3)}"},
        )
    )


def _close(chance: random.Random, node: dict[str, Json], shapes: Sequence[dict[str, Json]]) -> None:
    """Change a node as people and machines do."""
    node["cordoned"] = chance.random() < 0.15
    if chance.random() < 0.15:
        effect = chance.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        node["taints"] = [*node["taints"], {"key": MAINTENANCE, "value": "", "effect": effect}]
    if chance.random() < 0.1:
        node["labels"] = {key: value for key, value in node["labels"].items() if key != ZONE}
    node["attach"] = {driver: chance.choice((1, 2, 25)) for driver in DRIVERS}
    node["labels"].setdefault(INSTANCE_TYPE, f"type-{chance.randint(0, 3)}")
    zone = node["labels"].get(ZONE)
    ports: set[str] = set()
    for pod in node["pods"]:
        _once(pod)
        rules = chance.choice(shapes) if shapes and chance.random() < 0.5 else {}
        if "anti_affinity" in rules:
            pod["anti_affinity"] = rules["anti_affinity"]
        for name in ("ports", "sidecar_ports"):
            if name in rules and name not in ports:
                pod[name] = rules[name]
                ports.add(name)
        volumes = [volume for volume in rules.get("volumes", ()) if zone in volume["zones"]]
        for volume in volumes[:1]:
            if (
                sum(volume["driver"] == other["driver"] for each in node["pods"] for other in each.get("volumes", ()))
                < (node["attach"][volume["driver"]])
            ):
                pod["volumes"] = [volume]
