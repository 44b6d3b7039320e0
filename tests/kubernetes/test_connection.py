"""Cost of the agent's calls of a real API server, over a connection that stays open and over one for each."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

from agent.stockyard_agent.connection import KeptConnection
from agent.stockyard_agent.kubernetes import Kubernetes
from agent.stockyard_agent.transport import Exchange, https
from tests.kubernetes.conftest import Cluster
from tests.kubernetes.rigs import RealRig

CALLS, TURNS = 20, 5


def test_a_kept_connection_saves_most_of_a_call(
    cluster: Cluster, record_property: Callable[[str, object], None]
) -> None:
    plane = cluster.plane
    token = RealRig(plane).account
    context = ssl.create_default_context(cafile=str(plane.folder / "pki/ca.crt"))
    connection = KeptConnection(context, timeout=20)
    ways: dict[str, Exchange] = {"kept": connection, "new": https(context, timeout=20, proxies={})}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for way, exchange in ways.items():
            kube = Kubernetes(plane.url, exchange, lambda: token)
            started = time.perf_counter()
            for _ in range(CALLS):
                assert kube.call("GET", "/version")["gitVersion"]
            best[way] = min(best[way], (time.perf_counter() - started) / CALLS * 1000)
    connection.close()
    record_property("figure:agent_call_ms", {way: round(best[way], 2) for way in best})
    assert best["kept"] < best["new"] / 2
