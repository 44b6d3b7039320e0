"""A ready cluster whose control plane's machines stand behind a load balancer, with pools that follow its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.records import Placement
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import ClusterClaim, Pool, entry_id
from stockyard.domain.records import Cluster, Event, Fact, NodeClaim, Operation
from stockyard.domain.values.prices import PriceItem
from stockyard.lifecycle.nodes.pool_drift import template_hash
from stockyard.operations.clusters.changes.alignment import aligned
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.changes.reconfigure import plan_change
from stockyard.operations.clusters.creation.create import create_cluster
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.pools.reconcile import reconcile
from stockyard.operations.listing import every
from stockyard.ports import CloudWork, Outcome, PriceList, Put, Remove, Replace
from stockyard.providers.clusters.ec2 import groups
from tests.harness.walk import Walk, input_of
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, World, make_world

USER = "user:ann"
WEB: dict[str, Any] = {
    "name": "web",
    "role": "worker",
    "min_size": 2,
    "max_size": 4,
    "instance_types": ["m5.large"],
}
NODE_USD_HOUR = 0.1664 + 0.08 * 50 / 730
"""A machine and its disk, as the world's prices have them."""
CHANGE, UPGRADE = "change_balanced", "upgrade_balanced"


@dataclass
class BalancedProvider(MemoryProvider):
    """``stands`` has, by phase, the settings that it was done with last."""

    stands: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        outcome = super().ensure(phase, work)
        self.stands[phase] = work.cluster.settings
        return outcome

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        return ProviderDocument("yard", "simulated", {"nodeTypes": []})

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        return groups.group_items(cluster, prices)


@dataclass
class BalancedWorld:
    """A ready cluster, and what is done to it. While a workflow waits, ``meanwhile`` is what others do."""

    world: World
    provider: BalancedProvider
    id: str = ""
    warnings: list[dict[str, str]] = field(default_factory=list)
    """Those of the last patch."""
    replaces: bool = True
    """Whether drifted nodes are replaced while a workflow waits, one at a time."""
    replaced: list[str] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        cluster = self.world.services.store.get(Cluster, self.id)
        assert cluster is not None
        return cluster

    @property
    def operation(self) -> Operation:
        return self.operation_of(str(self.cluster.operation_id))

    def operation_of(self, id: str) -> Operation:
        operation = self.world.services.store.get(Operation, id)
        assert operation is not None
        return operation

    def patch(self, document: Mapping[str, Any]) -> Cluster:
        """A PATCH, as the route does it."""
        cluster, body = aligned(self.world.services, self.cluster), read(ClusterPatch, document)
        changed, self.warnings = change_cluster(
            self.world.services,
            cluster.id,
            cluster.version,
            body.change_of(cluster),
            actor=USER,
            request_id="r",
        )
        return changed

    def plan(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A dry run of a PATCH."""
        cluster, body = self.cluster, read(ClusterPatch, document)
        target = body.change_of(cluster).target(cluster)
        return plan_change(self.world.services, cluster, target, {})

    def groups(self, *entries: Mapping[str, Any]) -> dict[str, Any]:
        """A patch of the settings to these groups."""
        return {"settings": {"autoscaler_node_groups": [dict(entry) for entry in entries]}}

    def drive(self, document: str = CHANGE) -> str:
        return Walk(lambda: self.world.services, self.world.clock, waited=self.meanwhile).run(
            document, input_of("acme", self.cluster)
        )

    def meanwhile(self) -> None:
        """A pass over the pools, nodes that come up and go, and one drifted node that is replaced."""
        services = self.world.services
        reconcile(services, self.id)
        for claim in claims_of(services, self.id):
            if claim.deleting:
                self._removed(claim)
            elif claim.phase != "Available":
                placed = Placement("p", "yard.m5", "on-demand", ("a",), 1.0, services.now(), usd_hour=NODE_USD_HOUR)
                placement = claim.placement if claim.control_plane else placed
                available = replace(claim, phase="Available", placement=placement, version=claim.version + 1)
                services.store.commit(Replace(available))
        workers = [claim for claim in claims_of(services, self.id) if not claim.control_plane]
        stale = [claim for claim in workers if not self.is_new(claim) and not claim.deleting]
        if stale and self.replaces:
            self.replaced.append(stale[0].name)
            self._removed(stale[0])

    def _removed(self, claim: NodeClaim) -> None:
        services = self.world.services
        entry = entry_id(self.id, claim.pool, claim.id)
        services.store.commit(Remove(NodeClaim, claim.id), Remove(ClusterClaim, entry))

    def is_new(self, claim: NodeClaim) -> bool:
        """Whether the claim is as its pool would make it now."""
        pool = self.pools().get(claim.pool)
        return (
            pool is not None
            and claim.pool_hash == template_hash(pool)
            and claim.created_at >= self.cluster.nodes_since
            and all(
                requirement in claim.requirements
                for requirement in pool.requirements
                if requirement["key"] != "karpenter.sh/capacity-type"
            )
        )

    def pools(self) -> dict[str, Pool]:
        return {pool.name: pool for pool in pools_of(self.world.services, self.id)}

    def claims(self, name: str) -> Sequence[NodeClaim]:
        return claims_of(self.world.services, self.id, name)

    def serves(self, version: str) -> None:
        """The cluster's agent says which version the API server has."""
        summary = {"kubernetes_version": version, "written_at": self.world.services.now(), "ca_hash": "", "sequence": 1}
        services = self.world.services
        services.store.commit(Put(Fact(f"{self.id}/observed", json.dumps(summary), services.now())))

    def condition(self, kind: str) -> str | None:
        return {condition.type: condition.status for condition in self.cluster.conditions}.get(kind)

    def messages(self, reason: str) -> list[str]:
        """The messages of events with that reason, in order."""
        events = [event for event in every(self.world.services.store, Event) if event.reason == reason]
        return [event.message for event in events]


def balanced_world(*entries: Mapping[str, Any], version: str = "1.34", **settings: Any) -> BalancedWorld:
    """A ready cluster with these groups, else with two nodes of ``web``."""
    world, provider = make_world(), BalancedProvider()
    world.provider = provider
    world.services = with_ports(
        world.services, cluster_drivers={"ec2": provider}, driver_names={("aws", "k8s"): ("ec2",)}
    )
    settings = {"autoscaler_node_groups": [dict(entry) for entry in entries or (WEB,)], **settings}
    new_cluster = replace(world.new_cluster(settings=settings), kubernetes_version=version)
    balanced = BalancedWorld(world, provider)
    balanced.id = create_cluster(world.services, new_cluster, USER)[0].id
    assert world.drive(balanced.cluster, "provision") == "ready"
    for _ in range(2):
        balanced.meanwhile()
    world.clock.advance(60)
    return balanced
