"""The node of a cluster's first machine, which only the agent sees: what it is called, and what it has for pods.

While the machine is no claim's, nothing else tells of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain.clusters.control_plane import takes_pods
from stockyard.domain.records import Cluster, Fact
from stockyard.operations.services import Services
from stockyard.ports import Put

FIRST_NODE = "observed-first-node"
"""The fact of a cluster with that name. It is written once."""
FIRST_ROOM = "observed-first-room"
"""The fact of a cluster whose control plane takes pods: ``name``, ``labels``, ``taints`` and ``allocatable`` of that
node, as JSON."""
_ROOM = ("name", "labels", "taints", "allocatable")
_MOST_ROOM = 64_000
"""Characters. A node with more labels than that has no room that anybody knows of."""


def first_node(services: Services, cluster: Cluster) -> str:
    """The name; empty until the agent has told it."""
    fact = services.store.get(Fact, f"{cluster.id}/{FIRST_NODE}")
    return fact.value if fact is not None else ""


def first_room(services: Services, cluster: Cluster) -> Mapping[str, Any] | None:
    """Room of the first node, as the agent has told of it; None for a control plane that takes no pods, and until it is
    told."""
    fact = services.store.get(Fact, f"{cluster.id}/{FIRST_ROOM}") if takes_pods(cluster.settings) else None
    room: dict[str, Any] | None = json.loads(fact.value) if fact is not None else None
    return room


def note_first_node(
    services: Services, cluster: Cluster, nodes: Iterable[Mapping[str, Any]], known_facts: Mapping[str, Fact]
) -> None:
    """Remember the node of the cluster's first machine, once it is among those of a post. ``known_facts`` are the
    cluster's, by id."""
    is_named = f"{cluster.id}/{FIRST_NODE}" in known_facts
    if not cluster.instance_id or (is_named and not takes_pods(cluster.settings)):
        return
    own = (node for node in nodes if str(node.get("provider_id", "")).rpartition("/")[2] == cluster.instance_id)
    node = next(own, None)
    if node is None:
        return
    now = services.now()
    if not is_named:
        services.store.commit(Put(Fact(f"{cluster.id}/{FIRST_NODE}", str(node["name"]), now)))
    known_room = known_facts.get(f"{cluster.id}/{FIRST_ROOM}")
    room = json.dumps({key: node[key] for key in _ROOM if key in node}, sort_keys=True)
    is_news = known_room is None or known_room.value != room
    if takes_pods(cluster.settings) and is_news and len(room) <= _MOST_ROOM:
        services.store.commit(Put(Fact(f"{cluster.id}/{FIRST_ROOM}", room, now)))
