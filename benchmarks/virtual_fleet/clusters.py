"""Clusters of a fleet as the table has them: tenants, accounts, providers, and nodes that are there already."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from stockyard.adapters.catalog import OFFLINE_REGION
from stockyard.domain.nodes.records import PlacementOption
from stockyard.domain.pools.records import DYNAMIC, POOL_LABEL, Pool, cluster_claim, pool_id
from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    Name,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
    Record,
    Resource,
)
from stockyard.domain.values import ids, times
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.requirements import CAPACITY_TYPE, IN, NODE_TYPE, ZONE
from stockyard.lifecycle.pools.pool import decide
from stockyard.operations.node_claims.work import environment_id
from stockyard.providers.nodes.ec2.node_class import NodeClass

PROVIDER, POOL, NODE_KIND = "ec2", "web", "m6i.large"
SPOT, ON_DEMAND = "spot", "on-demand"
USD = {SPOT: 0.035, ON_DEMAND: 0.096}


@dataclass
class Tenant:
    """A tenant with one cloud account and one provider."""

    name: str
    number: str
    """Of the account in AWS."""
    account: CloudAccount
    provider: NodeProvider
    clusters: list[FleetCluster] = field(default_factory=list)


@dataclass
class FleetCluster:
    """A cluster with its nodes' claims, of which the first ``spot`` are spot."""

    tenant: Tenant
    cluster: Cluster
    claims: list[NodeClaim]


@dataclass
class FleetRecords:
    """Makes tenants, and clusters in turn of each of them. ``began`` is the moment at which all is there."""

    began: datetime
    seed: int
    spot: float
    """The part of the nodes that is spot."""
    _ids: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._ids = random.Random(self.seed)

    def _id(self, prefix: str) -> str:
        return ids.make(prefix, self.began, self._ids.randbytes(10))

    @property
    def _now(self) -> str:
        return times.to_text(self.began)

    def tenant(self, number: int) -> Tenant:
        """The tenant of that number, without a cluster."""
        aws = f"{200_000_000_000 + number}"
        role, now = {"role_arn": f"arn:aws:iam::{aws}:role/stockyard"}, self._now
        account = CloudAccount("1", "aws", "main", "", role, "external", "verified", "", now, now, verified_at=now)
        block = {
            "cloudAccount": 1,
            "region": OFFLINE_REGION,
            "instanceTypes": ["m6i.large", "m5.large"],
            "capacityTypes": [SPOT, ON_DEMAND],
        }
        provider = NodeProvider(self._id(ids.NODE_PROVIDER), PROVIDER, "ec2", {"ec2": block}, now, now)
        return Tenant(f"tenant-{number:03}", aws, account, provider)

    def cluster(self, tenant: Tenant, number: int, nodes: int) -> tuple[FleetCluster, Sequence[Record]]:
        """A cluster of the tenant with its records."""
        now, provider = self._now, tenant.provider
        cluster = Cluster(
            id=self._id(ids.CLUSTER), name=f"demo-{number}", description="", cluster_type="k8s", provider="aws",
            cloud_account_id=1, client_id=f"demo-{number:012x}", status="ready",
            settings={"region_name": OFFLINE_REGION}, created_at=now, updated_at=now, driver="ec2",
            endpoint="https://cluster.example:6443", operation_id=self._id(ids.OPERATION),
        )  # fmt: skip
        zones = {f"subnet-{letter}": f"{OFFLINE_REGION}{letter}" for letter in "abc"}
        node_class = NodeClass(
            zones, ("sg-1",), "nodes", {"amd64": "ami-1"},
            generation=provider.generation, found_on=self.began.date().isoformat(),
        )  # fmt: skip
        environment = NodeEnvironment(
            environment_id(cluster.id, provider.id), cluster.id, provider.id, provider.name, now, now,
            phase="Available", outputs=node_class.facts(),
        )  # fmt: skip
        spot = round(nodes * self.spot)
        claims = [self._claim(cluster, provider, n, SPOT if n < spot else ON_DEMAND) for n in range(nodes)]
        pool = Pool(
            id=pool_id(cluster.id, POOL), cluster_id=cluster.id, name=POOL, created_at=now, updated_at=now,
            kind=DYNAMIC, provider_ref=PROVIDER, created_by="user:ann",
            requirements=({"key": CAPACITY_TYPE, "operator": IN, "values": [SPOT, ON_DEMAND]},),
        )  # fmt: skip
        # Clusters were made at different times: their pools are looked at at different times.
        looked_at = times.to_text(self.began - timedelta(seconds=self._ids.uniform(0, 1700)))
        pool = decide(pool, cluster, claims, looked_at).pool
        records: list[Record] = [cluster, environment, pool]
        for claim in claims:
            records += self._of_claim(claim)
        whole = FleetCluster(tenant, cluster, claims)
        tenant.clusters.append(whole)
        return whole, records

    def _of_claim(self, claim: NodeClaim) -> Iterator[Record]:
        yield claim
        yield cluster_claim(str(claim.cluster_id), POOL, claim.id, self._now)
        yield Name(f"node-claim/{claim.name}", claim.id)
        earlier = times.to_text(self.began - timedelta(hours=1))
        yield Resource(
            f"{claim.id}/launch/instance/machine", claim.id, "launch", "instance", "machine", "t" * 32, "made",
            OFFLINE_REGION, 1, earlier, str(claim.machine_id), earlier, {"capacity_type": ON_DEMAND},
        )  # fmt: skip

    def _claim(self, cluster: Cluster, provider: NodeProvider, number: int, capacity_type: str) -> NodeClaim:
        name, zone = f"{POOL}-{cluster.name}-{number:05}", f"{OFFLINE_REGION}a"
        kinds, now = ("Scheduled", "Provisioned", "Joined", "Ready"), self._now
        type_ref, usd = f"{PROVIDER}.{NODE_KIND}", USD[capacity_type]
        way = PlacementOption(type_ref, capacity_type, (zone,), usd, usd)
        operation = self._id(ids.OPERATION)
        wishes = {NODE_TYPE: [type_ref], ZONE: [zone], CAPACITY_TYPE: [capacity_type]}
        return NodeClaim(
            id=self._id(ids.NODE_CLAIM), name=name, created_at=now, updated_at=now, cluster_ref=cluster.id,
            cluster_id=cluster.id, provider_ref=PROVIDER, properties={POOL_LABEL: POOL}, labels={POOL_LABEL: POOL},
            requirements=tuple({"key": key, "operator": IN, "values": values} for key, values in wishes.items()),
            resources={"cpu": "1"}, pool=POOL, pool_generation=1, type_ref=type_ref,
            environment_ref=environment_id(cluster.id, provider.id), phase="Available",
            conditions=tuple(Condition(kind, "True", kind, f"{kind}.", now) for kind in kinds),
            placement=Placement(provider.id, type_ref, capacity_type, (zone,), usd, now, usd, options=(way,)),
            machine_id=f"i-{self._ids.getrandbits(64):017x}", node_name=name,
            node_labels={ZONE: zone, POOL_LABEL: POOL, CAPACITY_TYPE: capacity_type},
            operation_id=operation, execution=f"{operation}-1", created_by="user:ann", sequence=8, version=9,
        )  # fmt: skip
