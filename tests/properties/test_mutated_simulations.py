"""Traces that are broken in any way are refused as the caller's fault, or replayed: none is a fault of ours.

One trace that has everything is changed at each of its places by each of some odd values. ``STOCKYARD_SOAK`` changes up
to two places of it at a time, 20,000 times; otherwise a few hundred are drawn.
"""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.pools.simulations import SimulationRequest
from stockyard.errors import StockyardError
from stockyard.operations.fleet.pools.simulations import simulate
from tests.properties.test_mutated_pods import VALUES, changed, paths_of
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

FEW, MANY = 300, 20_000
SERVER_FAULT = 500
REQUESTS = {"requests": {"cpu": "500m", "memory": "1Gi"}}
POD = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"karpenter.sh/do-not-disrupt": "10m"}},
    "spec": {"containers": [{"name": "c", "resources": REQUESTS, "ports": [{"hostPort": 80}]}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 3, "template": POD},
}
DAEMON_SET = {
    **DEPLOYMENT,
    "kind": "DaemonSet",
    "metadata": {"name": "log"},
    "spec": {"template": {"spec": POD["spec"]}},
}
TRACE: dict[str, Any] = {
    "startsAt": "2026-01-05T00:00:00Z",
    "until": "3h",
    "startUp": "90s",
    "drain": "1m",
    "nodeTypes": [
        {"name": "small", "resources": {"cpu": 2, "memory": "8Gi"}, "usdPerHour": 0.1, "spotUsdPerHour": 0.03},
        {"name": "large", "resources": {"cpu": 8, "memory": "32Gi"}, "usdPerHour": 0.36, "zones": ["a", "b"]},
    ],
    "pools": [
        {
            "name": "default",
            "weight": 1,
            "limits": {"cpu": 100},
            "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b", "default"]}],
        }
    ],
    "policy": {"consolidateAfter": "30s", "budgets": [{"nodes": "50%"}]},
    "daemonSets": [DAEMON_SET],
    "events": [
        {"at": "0s", "arrive": [DEPLOYMENT]},
        {"at": "1h", "depart": [{"name": "web", "namespace": "shop", "count": 2}]},
    ],
}


def test_broken_traces_are_refused_or_replayed(seed: int, soaking: bool) -> None:
    world = make_world()
    services = Nodes.of(world.registry, world.services, world.clock).services
    whole = simulate(services, None, read(SimulationRequest, deepcopy(TRACE)))
    assert whole["pods"] == 3  # what is broken below is whole before
    chance, outcomes, statuses = Random(seed), Counter[str](), set[int]()
    for _ in range(MANY if soaking else FEW):
        document = deepcopy(TRACE)
        for _ in range(chance.choice((1, 2)) if soaking else 1):
            changed(document, chance.choice(list(paths_of(document))), chance.choice(VALUES))
        try:
            json.dumps(simulate(services, None, read(SimulationRequest, document)), allow_nan=False)
            outcomes["replayed"] += 1
        except StockyardError as refusal:
            statuses.add(refusal.status)
            outcomes["refused"] += 1
    assert max(statuses) < SERVER_FAULT
    assert min(outcomes["replayed"], outcomes["refused"]) > FEW // 10, outcomes
