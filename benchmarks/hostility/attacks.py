"""Attacks of a hostile user of a tenant, without end: one function for each attack of ``benchmarks/hostile.py``.

Each is a request that is heavy for its size and within all limits, or beyond one by little. A refusal is an answer like
any other: what counts is what it costs, and that none is 5xx.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from local.testing.serving import JSON, Answer, Served, http

EVIL = "STOCKYARD_TOKEN"
"""The name of acme's token in the file of the local cloud."""
VIEWER, OPERATOR = "STOCKYARD_TOKEN_VIEWER", "STOCKYARD_TOKEN_OPERATOR"
PORTS = 60
START = datetime(2026, 3, 2, tzinfo=UTC)


TOKEN_SECONDS = 240.0
"""How long a token of the cluster's client is used; it ends after 300 seconds."""


@dataclass(slots=True)
class Target:
    """Target of attacks: the served cloud, acme's cluster, and the id and secret of the cluster's own client."""

    served: Served
    cluster_id: str
    client: tuple[str, str]
    _token: str | None = None
    _since: float = 0.0

    def client_token(self) -> str:
        """A token of the cluster's own client that is valid now."""
        if self._token is None or time.monotonic() > self._since + TOKEN_SECONDS:
            self._token, self._since = self.served.client_token(*self.client), time.monotonic()
        return self._token

    def send(self, method: str, path: str, body: Any, token: str, *, packed: bool = False) -> Answer:
        """One request of the hostile tenant, compressed where the route takes that. Bytes are sent as they are."""
        environment = self.served.environment
        data = body if isinstance(body, bytes) else body_bytes(body, packed=packed)
        headers = {"Authorization": f"Bearer {environment.get(token, token)}", "Content-Type": JSON}
        if packed:
            headers["Content-Encoding"] = "gzip"
        return http(method, environment["STOCKYARD_URL"] + path, data, headers)


def body_bytes(body: Any, *, packed: bool) -> bytes:
    """A body as it is sent."""
    data = json.dumps(body).encode()
    return gzip.compress(data, 5) if packed else data


def container(number: int, ports: int, chance: random.Random) -> dict[str, Any]:
    """A container with a size of its own and ports of the node."""
    requests = {"cpu": f"{100 + number % 900}m", "memory": f"{64 + number % 700}Mi"}
    host_ports = [{"hostPort": port} for port in chance.sample(range(1, 60_000), ports)]
    return {"name": "c", "resources": {"requests": requests}, "ports": host_ports}


def deployments(kinds: int, replicas: int, ports: int = 0, preferred: int = 0) -> list[dict[str, Any]]:
    """Deployments of different pods: with ports of the node, or with preferences for being beside others."""
    chance = random.Random(kinds)

    def term(number: int) -> dict[str, Any]:
        selector = {"matchLabels": {"app": f"k{number % kinds}"}}
        return {
            "weight": 1 + number % 100,
            "podAffinityTerm": {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector},
        }

    def manifest(number: int) -> dict[str, Any]:
        labels = {"app": f"k{number}"}
        terms = [term(number + each) for each in range(preferred)]
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}} if terms else {}
        spec = {"containers": [container(number, ports, chance)], "affinity": affinity}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"k{number}"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }

    return [manifest(number) for number in range(kinds)]


def _question(body: dict[str, Any], path: str) -> Callable[[Target], Answer]:
    data = body_bytes(body, packed=True)
    return lambda target: target.send("POST", path, data, VIEWER, packed=True)


def simulation(arrivals: int) -> dict[str, Any]:
    """A trace whose nodes are consolidated again and again, for a month, with 200 types of its own."""
    types = [
        {
            "name": f"t{number}",
            "resources": {"cpu": str(2 + number % 62), "memory": f"{4 + 3 * number}Gi"},
            "usdPerHour": round(0.05 + number * 0.013, 4),
            "zones": ["a", "b", "c"],
        }
        for number in range(200)
    ]
    events = []
    for number in range(arrivals):
        at = (START + timedelta(minutes=20 * number)).isoformat()
        pod = {"metadata": {"name": f"p{number}"}, "spec": {"containers": [container(number, 0, random.Random(1))]}}
        events.append({"at": at, "arrive": [{"apiVersion": "v1", "kind": "Pod", **pod}]})
    until = (START + timedelta(days=30)).isoformat()
    return {"startsAt": START.isoformat(), "until": until, "nodeTypes": types, "events": events}


def report(target: Target, kinds: int, replicas: int, sequence: int) -> Answer:
    """A report of waiting pods in the agent's form, since users of the cluster may create any pods."""
    chance = random.Random(sequence)
    groups, pending = {}, {}
    for number in range(kinds):
        name = f"{number:016x}"
        groups[name] = {
            "namespace": "default",
            "labels": {"app": name},
            "spec": {"containers": [container(number, PORTS, chance)]},
            "volumes": [],
            "daemon_set": "",
        }
        pending[name] = {"count": replicas, "names": [f"default/{name}-1"]}
    body = {
        "sequence": int(time.time() * 1000),
        "base": None,
        "observed_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "agent_version": "1",
        "groups": groups,
        "pending": pending,
        "running": {},
    }
    return target.send(
        "POST", f"/v1/clusters/{target.cluster_id}/pending-pods", body, target.client_token(), packed=True
    )


def profile(target: Target, number: int) -> Answer:
    """A profile with variables that grow when they are filled in, and with an expression of the backtracking kind."""
    variables = [
        {"name": "a", "default": "x" * 4000},
        {"name": "b", "regex": "(a|a)*b?", "default": "a" * 200},
    ]
    values = "\n".join(f"k{each}: '{{{{ .profile.var.a }}}}'" for each in range(100))
    data = {f"d{each}": f"{{{{ .values.k{each} }}}}" for each in range(100)}
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{each}"}, "data": data} for each in range(9)
    ]
    manifests = [{"name": f"m{each}", "content": json.dumps(content)} for each, content in enumerate(objects)]
    packs = [{"layer": "addon", "name": "p", "tag": "1", "namespace": "evil", "manifests": manifests, "values": values}]
    body = {"name": f"evil-{number}", "version": "1.0.0", "variables": variables, "packs": packs}
    return target.send("POST", "/v1/cluster-profiles?dry_run=true", body, OPERATOR)


def manifests(target: Target, number: int) -> Answer:
    """Claims with as many requirements and values as are taken, changed each time: the scheduler looks at all anew."""
    entries = [
        {"key": f"example.com/k{key}", "operator": "NotIn", "values": [f"v{number}-{each}" for each in range(40)]}
        for key in range(50)
    ]
    documents = [
        {
            "apiVersion": "management.loft.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": f"evil-{number % 20}-{each}"},
            "spec": {"desiredCapacity": {"cpu": "1P"}, "requirements": entries},
        }
        for each in range(2)
    ]
    return target.send("POST", "/v1/apply?dry_run=true", documents, OPERATOR)


def attacks() -> Mapping[str, Callable[[Target], Answer]]:
    """The attacks by name. ``pods`` is what somebody can do who may do nothing but create pods in a cluster."""
    turns = count()
    return {
        "plan: 900 kinds of pods with 60 host ports": _question(
            {"manifests": deployments(900, 20, PORTS)}, "/v1/placements"
        ),
        "plan: 1,000 kinds of pods": _question({"manifests": deployments(1000, 10)}, "/v1/placements"),
        "plan: 300 kinds with 20 preferences": _question({"manifests": deployments(300, 10, 0, 20)}, "/v1/placements"),
        "simulation of 2,000 arrivals": _question(simulation(2000), "/v1/simulations"),
        "pods: 300 kinds with 60 host ports wait": lambda target: report(target, 300, 20, next(turns)),
        "profiles that grow": lambda target: profile(target, next(turns)),
        "claims with 2,000 values": lambda target: manifests(target, next(turns)),
    }
