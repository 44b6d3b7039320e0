"""Manifests of pods that are broken in any way are refused as the caller's fault, or planned: none is a fault of ours.

One manifest that has everything the packer reads is changed at each of its places by each of some odd values.
``STOCKYARD_SOAK`` changes two places of it at a time, 20,000 times; otherwise a few hundred are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from stockyard.errors import InvalidInput
from stockyard.operations.fleet.pools.placements import plan_placements
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

FEW, MANY = 400, 20_000
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SELECTOR = {"matchLabels": {"app": "w"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["w"]}]}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": SELECTOR, "matchLabelKeys": ["app"]}
SPREAD = {
    **TERM,
    "topologyKey": "topology.kubernetes.io/zone",
    "maxSkew": 1,
    "minDomains": 1,
    "whenUnsatisfiable": "DoNotSchedule",
}
NODE_TERM = {
    "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}],
}
RESOURCES = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}}
PORT = {"hostPort": 80, "hostIP": "198.51.100.7", "protocol": "TCP", "containerPort": 80}
SPEC = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "priority": 1,
    "overhead": {"cpu": "1m"},
    "hostNetwork": True,
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [SPREAD],
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
            PREFERRED: [{"weight": 1, "preference": NODE_TERM}],
        },
        "podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {**TERM, "namespaceSelector": {}}}]},
        "podAntiAffinity": {REQUIRED: [{**TERM, "namespaces": ["s"]}]},
    },
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": RESOURCES}],
    "containers": [{"name": "a", "ports": [PORT], "resources": RESOURCES}],
}
LABELS = {"app": "w", "scheduling.x-k8s.io/pod-group": "g"}
MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "w", "namespace": "s"},
    "spec": {"replicas": 3, "template": {"metadata": {"labels": LABELS}, "spec": SPEC}},
}
VALUES: tuple[Any, ...] = (None, 7, -1, True, "", "x", "1e999", "\x00", 1.5, 10**30, [], {}, [7], [[]], [{}], {"": ""})
SMALL = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "zones": ["a", "b"]}

FieldPath = tuple[str | int, ...]


def paths_of(document: Any, at: FieldPath = ()) -> Iterator[FieldPath]:
    if at:
        yield at
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, inner in parts:
        yield from paths_of(inner, (*at, key))


def changed(document: Any, at: FieldPath, value: Any) -> None:
    for key in at[:-1]:
        document = document[key]
    document[at[-1]] = deepcopy(value)


def test_broken_pods_are_refused_or_planned(seed: int, soaking: bool) -> None:
    world = make_world()
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("sim", SMALL)
    plan_placements(nodes.services, None, [deepcopy(MANIFEST)])  # what is broken below is whole before
    chance, outcomes = Random(seed), Counter[str]()
    pointers: set[str] = set()
    for _ in range(MANY if soaking else FEW):
        document = deepcopy(MANIFEST)
        for _ in range(2 if soaking else 1):
            at = chance.choice(list(paths_of(document)))
            changed(document, at, chance.choice(VALUES))
        try:
            plan_placements(nodes.services, None, [document])
            outcomes["planned"] += 1
        except InvalidInput as refusal:
            pointers |= {problem.pointer for problem in refusal.errors}
            outcomes["refused"] += 1
    assert all(pointer.startswith("/manifests") for pointer in pointers), pointers
    assert min(outcomes["planned"], outcomes["refused"]) > FEW // 10, outcomes
