"""Workers are never newer than the API server: their machines get another minor when it serves that minor."""

from __future__ import annotations

import json

from stockyard.domain.clusters.kubernetes_minors import number
from stockyard.domain.records import Cluster, Fact
from stockyard.lifecycle.pools.pool import later_than
from stockyard.operations.engine.advance import Fence
from stockyard.operations.engine.runner import Learned
from stockyard.operations.machines.attention import attend
from stockyard.operations.machines.observe import OBSERVED
from stockyard.operations.services import Services
from stockyard.ports import Outcome

LOOK_AGAIN, ATTEND_SECONDS = 30, 600
WRITE_SECONDS = 30
"""A node that is asked for while the record is being written may still get the minor of before: it counts as old."""


def await_version(services: Services, cluster: Cluster, fence: Fence[Cluster]) -> Outcome:  # noqa: ARG001
    """Done when the cluster's agent has seen the API server at the cluster's minor: nodes that are made from then on
    have it, and those of pools that were made before are replaced."""
    if not cluster.nodes_version:
        return Outcome(True, "Nodes have the control plane's minor.")
    if cluster.nodes_version == cluster.kubernetes_version:
        return Learned(True, "The minor stays.", fields={"nodes_version": ""})
    served = served_version(services, cluster.id)
    if served and number(served) >= number(cluster.kubernetes_version):
        fields = {"nodes_version": "", "nodes_since": later_than(services.now(), WRITE_SECONDS)}
        return Learned(True, f"The API server has {served}.", fields=fields)
    attend(services, cluster.id, ATTEND_SECONDS)
    version_text = f"it has {served}" if served else "nobody has told its version yet"
    text = f"Waiting for the API server to have {cluster.kubernetes_version}; {version_text}."
    return Outcome(False, text, wait_seconds=LOOK_AGAIN)


def served_version(services: Services, cluster_id: str) -> str:
    """The version of the API server as the cluster's agent saw it last; empty before its first post."""
    fact = services.store.get(Fact, f"{cluster_id}/{OBSERVED}")
    return str(json.loads(fact.value)["kubernetes_version"]) if fact is not None else ""
