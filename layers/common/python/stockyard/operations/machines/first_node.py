"""What the node of a cluster's first machine is called: it has the machine's own name, which only the agent sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stockyard.domain.records import Cluster, Fact
from stockyard.operations.services import Services
from stockyard.ports import Put

FIRST_NODE = "observed-first-node"
"""The fact of a cluster with that name. It is written once."""


def first_node(services: Services, cluster: Cluster) -> str:
    """The name; empty until the agent has told it."""
    fact = services.store.get(Fact, f"{cluster.id}/{FIRST_NODE}")
    return fact.value if fact is not None else ""


def note_first_node(
    services: Services, cluster: Cluster, nodes: Iterable[Mapping[str, Any]], known_fact: Fact | None
) -> None:
    """Remember the node of the cluster's first machine, once it is among those of a post."""
    if known_fact is not None or not cluster.instance_id:
        return
    for node in nodes:
        if str(node.get("provider_id", "")).rpartition("/")[2] == cluster.instance_id:
            services.store.commit(Put(Fact(f"{cluster.id}/{FIRST_NODE}", str(node["name"]), services.now())))
            return
