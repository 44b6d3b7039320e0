"""A world whose clusters have a control plane that is a service of the cloud: their rows, and a driver in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stockyard.domain.clusters.kubernetes_minors import number
from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.patch import ClusterPatch
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.node_groups import worker_groups
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Cluster, NodeClaim, Operation
from stockyard.domain.values.prices import PriceItem
from stockyard.domain.values.rights import ADMIN
from stockyard.operations.clusters.changes.change import change_cluster
from stockyard.operations.clusters.changes.reconfigure import plan_change
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster
from stockyard.operations.fleet.pools.claims import commit_claims, draft_claim
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.profiles.clusters import profile_change
from stockyard.ports import CloudWork, ClusterPlan, Finding, Outcome, PriceList
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import MemoryProvider, World, make_world

USER = "user:ann"
GPU = {
    "name": "l4",
    "role": "gpu",
    "instance_type": "g6.xlarge",
    "zones": ["us-east-1a"],
    "accelerator_type": "l4",
    "count": 0,
    "max_size": 2,
}


@dataclass
class ManagedProvider(MemoryProvider):
    """Each phase brings what it made to the record: ``stands`` has, by phase, the version and the settings that it was
    done with last."""

    stands: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    upgrade_faults: list[Finding] = field(default_factory=list)
    newest: str = "1.36"

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        if number(cluster.kubernetes_version) > number(self.newest):
            return [Finding("/kubernetes_version", f"must be at most {self.newest}")]
        return ()

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        hour = 0.6 if cluster.settings["support"] == "extended" else 0.1
        return ClusterPlan((("cluster", cluster.name),), (PriceItem("control plane", 1, hour),))

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        return ProviderDocument("yard", "simulated", {"nodeTypes": []})

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        groups = [group for group in worker_groups(cluster.settings) if group["min_size"]]
        return [PriceItem(group["name"], group["min_size"], 0.2 * group["min_size"]) for group in groups]

    def upgrade_findings(self, work: CloudWork) -> Sequence[Finding]:
        stands, _ = self.stands.get("control_plane", ("", {}))
        return [] if stands == work.cluster.kubernetes_version else list(self.upgrade_faults)

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        outcome = super().ensure(phase, work)
        self.stands[phase] = (work.cluster.kubernetes_version, work.cluster.settings)
        return outcome


@dataclass
class ManagedWorld:
    """A ready cluster, and what is done to it."""

    world: World
    provider: ManagedProvider
    id: str = ""
    warnings: list[dict[str, str]] = field(default_factory=list)
    rights: str = ADMIN
    """Of who chooses profiles."""
    """Those of the last patch."""

    @property
    def cluster(self) -> Cluster:
        cluster = self.world.services.store.get(Cluster, self.id)
        assert cluster is not None
        return cluster

    @property
    def operation(self) -> Operation:
        operation = self.world.services.store.get(Operation, str(self.cluster.operation_id))
        assert operation is not None
        return operation

    def patch(self, document: Mapping[str, Any], version: int | None = None) -> Cluster:
        """A PATCH, as the route does it."""
        cluster, body = self.cluster, read(ClusterPatch, document)
        changed, self.warnings = change_cluster(
            self.world.services,
            cluster.id,
            cluster.version if version is None else version,
            replace(body.change_of(cluster), rights=self.rights),
            actor=USER,
            request_id="r",
        )
        return changed

    def plan(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A dry run of a PATCH."""
        cluster, body = self.cluster, read(ClusterPatch, document)
        target = body.change_of(cluster).target(cluster)
        choices = body.profile_choices()
        packs = None if choices is None else profile_change(self.world.services, cluster, target, choices, self.rights)
        return plan_change(self.world.services, cluster, target, {}, packs)

    def drive(self, document: str = "change_managed") -> str:
        return self.world.drive(self.cluster, document)

    def groups(self, *groups: Mapping[str, Any]) -> dict[str, Any]:
        """A patch of the settings to these groups, each of which keeps its unnamed fields."""
        current = {str(group["name"]): group for group in self.cluster.settings["node_groups"]}
        return {"settings": {"node_groups": [{**current.get(group["name"], {}), **group} for group in groups]}}

    def pools(self) -> dict[str, Pool]:
        return {pool.name: pool for pool in pools_of(self.world.services, self.id)}

    def claims(self, name: str) -> Sequence[NodeClaim]:
        return claims_of(self.world.services, self.id, name)

    def make_claims(self, name: str, count: int) -> None:
        services, pool = self.world.services, self.pools()[name]
        commit_claims(services, self.cluster, pool, [draft_claim(services, self.id, pool) for _ in range(count)])

    def condition(self, kind: str) -> str | None:
        """The status of a condition, None where the cluster has none of it."""
        return {condition.type: condition.status for condition in self.cluster.conditions}.get(kind)


def managed_world() -> ManagedWorld:
    """A ready cluster with its group ``system`` and one of GPUs."""
    world, provider = make_world(), ManagedProvider()
    world.provider = provider
    world.services = with_ports(
        world.services, cluster_drivers={"eks": provider}, driver_names={("aws", "k8s"): ("eks",)}
    )
    settings = {"region_name": "us-east-1", "node_groups": [GPU]}
    new_cluster = NewCluster("demo", "a cluster", 1, "k8s", settings, kubernetes_version="1.34", driver="eks")
    managed = ManagedWorld(world, provider)
    managed.id = create_cluster(world.services, new_cluster, USER)[0].id
    assert managed.drive("provision_managed") == "ready"
    return managed
