"""Nodes of simulated machines: they are in their cluster once they have joined, and follow the machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.kubernetes.cluster import JoinFailed
from local.machines.simulated_nodes import SimulatedNodes
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider, SimulatedMachine
from stockyard.domain.values import times

NOW = times.to_text(datetime.now(UTC))
TYPE = {"name": "gpu", "resources": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}}
CLAIM = NodeClaim(
    "ncl_1", "web-a", NOW, NOW, cluster_id="clu_1", node_labels={"tier": "new"},
    taints=({"key": "a", "value": "b", "effect": "NoSchedule"},),
)  # fmt: skip
PROVIDER = NodeProvider("npr_1", "lab", "simulated", {"simulated": {"nodeTypes": [TYPE]}}, NOW, NOW)
CLUSTER = Cluster(
    "clu_1", "demo", "", "k8s", "aws", 1, "demo-1", "ready", {}, NOW, NOW, endpoint="https://127.1.2.3:6443"
)
MACHINE = SimulatedMachine("m-1", "ncl_1", "npr_1", "lab.gpu", "on-demand", "yard", NOW, NOW)


class Yard:
    """The table, and the one cluster that there is."""

    def __init__(self) -> None:
        self.shown = {("acme", MACHINE.id): MACHINE}
        self.nodes: dict[str, Any] = {}
        self.is_up = True

    def machines(self) -> dict[tuple[str, str], SimulatedMachine]:
        return self.shown

    def record(self, kind: type[Any], tenant: str, record_id: str) -> Any:
        records: dict[type[Any], Any] = {
            NodeClaim: CLAIM,
            NodeProvider: PROVIDER,
            Cluster: CLUSTER,
        }
        return records[kind] if (tenant, records[kind].id) == ("acme", record_id) else None

    def at(self, endpoint: str) -> Yard:
        if not self.is_up or endpoint != "127.1.2.3:6443":
            raise JoinFailed("nothing answers")
        return self

    def apply(self, documents: list[Any]) -> None:
        self.nodes |= {document["metadata"]["name"]: document for document in documents}

    def power(self, name: str, *, on: bool) -> None:
        self.nodes[name]["on"] = on


@pytest.fixture
def yard() -> Yard:
    return Yard()


@pytest.fixture
def watch(yard: Yard) -> SimulatedNodes:
    return SimulatedNodes(yard, yard)


def test_a_node_has_what_its_claim_and_its_type_say(yard: Yard, watch: SimulatedNodes) -> None:
    watch.look()
    (node,) = yard.nodes.values()
    assert node["metadata"]["name"] == "web-a.simulated"
    assert {"tier": "new", "stockyard.dev/claim": "ncl_1"}.items() <= node["metadata"]["labels"].items()
    assert node["spec"]["taints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    assert {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}.items() <= node["status"]["allocatable"].items()


def test_it_comes_when_its_time_has_come_and_its_cluster_is_up(yard: Yard, watch: SimulatedNodes) -> None:
    later = times.to_text(datetime.now(UTC) + timedelta(hours=1))
    for joins_at, is_up, comes in ((None, True, False), (later, True, False), (NOW, False, False), (NOW, True, True)):
        yard.shown, yard.is_up = {("acme", MACHINE.id): replace(MACHINE, joins_at=joins_at)}, is_up
        watch.look()
        assert bool(yard.nodes) is comes
    # Somebody who deletes a Node does not find it again.
    yard.nodes.clear()
    watch.look()
    assert yard.nodes == {}


def test_it_is_not_ready_while_its_machine_is_off_or_gone(yard: Yard, watch: SimulatedNodes) -> None:
    watch.look()
    (node,) = yard.nodes.values()
    for power, on in (("Off", False), ("On", True)):
        yard.shown = {("acme", MACHINE.id): replace(MACHINE, power=power)}
        watch.look()
        assert node["on"] is on
    yard.shown = {}
    watch.look()
    assert node["on"] is False
