"""Nodes of simulated machines: such a machine is a record of the table, and nothing of it is in its cluster.

Once the time has come at which its document lets it join, its Node is in the cluster, so that the cluster's agent tells
of it as of any other, and pods go there. Without one, Stockyard would take it for a node that somebody has deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.quick.tables import plain_value
from local.kubernetes.cluster import InitFailed, JoinFailed, Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.real.control_plane import KWOK
from local.kubernetes.store import Object
from local.machines.booted import MachineWatch
from stockyard.adapters.dynamodb import codec, keys
from stockyard.domain.nodes.declared_types import node_types_of
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.pools.mirror import CLAIM_LABEL
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider, Record, SimulatedMachine
from stockyard.domain.values import times
from stockyard.domain.values.quantities import resource_text
from stockyard.providers import registry

TABLE, TENANTS = "stockyard-dev", ("acme", "globex")
R = TypeVar("R", bound=Record)


class Table:
    """The product's table, as moto has it in this process."""

    def machines(self) -> dict[tuple[str, str], SimulatedMachine]:
        """The simulated machines by tenant and id."""
        items = ((tenant, item) for tenant in TENANTS for item in list(_rows(SimulatedMachine, tenant).values()))
        machines = ((tenant, codec.from_item(SimulatedMachine, _plain(item))) for tenant, item in items)
        return {(tenant, machine.id): machine for tenant, machine in machines}

    def record(self, kind: type[R], tenant: str, record_id: str) -> R | None:
        """A record of a tenant."""
        item = _rows(kind, tenant, record_id).get(DynamoType({"S": record_id}))
        return None if item is None else codec.from_item(kind, _plain(item))


def _rows(kind: type[Any], tenant: str, record_id: str = "") -> dict[Any, Any]:
    """Items of a partition by sort key; nothing before the table is there."""
    table = dynamodb_backends[OWN_ACCOUNT][REGION].tables.get(TABLE)
    partition = DynamoType({"S": keys.partition(tenant, kind, record_id)})
    rows: dict[Any, Any] = table.items.get(partition, {}) if table is not None else {}
    return rows


def _plain(item: Any) -> codec.Item:
    return {name: plain_value(value) for name, value in item.attrs.items()}


class SimulatedNodes(MachineWatch):
    """Watches the simulated machines of all tenants, and has the Node of each that has joined."""

    def __init__(self, clusters: Clusters, table: Table | None = None) -> None:
        super().__init__("simulated nodes")
        registry.introduce()  # Its documents are read here too.
        self._clusters, self._table = clusters, table or Table()
        self._power: dict[str, tuple[Any, str, str]] = {}
        """Cluster, node and power by machine."""

    def look(self) -> None:
        """Register nodes of machines that have joined, and follow the power of the others."""
        now, machines = times.to_text(datetime.now(UTC)), self._table.machines()
        for (tenant, machine_id), machine in machines.items():
            if machine_id not in self._power and machine.joins_at is not None and machine.joins_at <= now:
                self._join(tenant, machine)
        present = {machine.id: machine.power for machine in machines.values()}
        for machine_id, (cluster, node, power) in list(self._power.items()):
            current = present.get(machine_id, "Off")
            if current != power:
                cluster.power(node, on=current == "On")
                self._power[machine_id] = (cluster, node, current)
            if machine_id not in present:
                del self._power[machine_id]

    def _join(self, tenant: str, machine: SimulatedMachine) -> None:
        claim = self._table.record(NodeClaim, tenant, machine.claim_id)
        provider = self._table.record(NodeProvider, tenant, machine.provider_id)
        record = self._table.record(Cluster, tenant, claim.cluster_id) if claim is not None else None
        if claim is None or provider is None or record is None or not record.endpoint:
            return
        try:
            cluster = self._clusters.at(urlsplit(f"//{record.endpoint.rpartition('//')[2]}").netloc)
            cluster.apply([node_of(claim, machine, node_types_of(provider, built=True))])
        except (InitFailed, JoinFailed):
            return  # Its control plane is off: again with the next look.
        self._power[machine.id] = (cluster, _name(claim), "On")


def node_of(claim: NodeClaim, machine: SimulatedMachine, types: Sequence[NodeType]) -> Object:
    """The Node of a claim's machine, with the labels and taints of the claim and the room of its type."""
    labels = {**claim.node_labels, CLAIM_LABEL: claim.id, KWOK: "on"}
    taints: list[Mapping[str, Any]] = [dict(taint) for taint in (*claim.taints, *claim.startup_taints)]
    document = Kubelet(f"simulated://{machine.id}", 0, 0).node(_name(claim), labels, taints, "110")
    kind = next((each for each in types if each.name == machine.type), None)
    if kind is not None:
        for part, quantities in (("capacity", kind.capacity), ("allocatable", kind.allocatable)):
            document["status"][part] = {name: resource_text(name, amount) for name, amount in quantities.items()}
    return document


def _name(claim: NodeClaim) -> str:
    """As the simulated provider calls the node."""
    return f"{claim.name}.simulated"
