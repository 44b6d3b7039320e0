"""A provider of nodes of EKS for a cluster with node groups in an account in memory, and claims that work with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from local.aws.corrections.pace import paced
from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.nodes.offers import Gpus, InstanceOffer, RegionOffers
from stockyard.domain.pools.records import cluster_claim
from stockyard.domain.records import (
    CloudAccount,
    Cluster,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
    Placement,
    PlacementOption,
)
from stockyard.domain.values.ids import client_id
from stockyard.domain.values.times import to_text
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.node_claims.machine_holds import StoreHolds
from stockyard.operations.services import Services
from stockyard.ports import Create, Outcome, Replace
from stockyard.ports.node_work import EnvironmentWork, NodeWork
from stockyard.providers.nodes.eks.provider import EksNodes, EksNodesConfig
from tests.harness.worlds.direct_aws import direct_aws
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.node_groups import NodeGroups, scarce_groups

MOMENT = "2026-01-31T12:00:00.000Z"
CLUSTER, PROVIDER, ENVIRONMENT = (f"{kind}_01KDVJXQ80000000000000000A" for kind in ("clu", "npr", "nev"))
ROLE = "arn:aws:iam::222222222222:role/stockyard"
ACCOUNT = CloudAccount("1", "aws", "a", "", {"role_arn": ROLE}, "ext", "verified", "", "t", "t")
OFFERS = RegionOffers(
    "us-east-1",
    "2026",
    {
        offer.name: offer
        for offer in (
            InstanceOffer("m6i.xlarge", 4, 16384, "x86_64", 4, 15, 0.192),
            InstanceOffer("m6i.2xlarge", 8, 32768, "x86_64", 4, 15, 0.384),
            InstanceOffer("m6i.32xlarge", 128, 524288, "x86_64", 15, 50, 6.144),
            InstanceOffer("p5.48xlarge", 192, 2097152, "x86_64", 64, 50, 55.04, (Gpus("H100", "NVIDIA", 8, 81920),)),
            InstanceOffer("mac2.metal", 8, 16384, "arm64_mac", 8, 30, 0.65),
        )
    },
    {"gp3": 0.073},
)


@dataclass
class Yard:
    """The source, its provider and cluster. Each claim is worked on as the workflow does it."""

    store: MemoryStore
    clock: FixedClock
    groups: NodeGroups
    cluster: Cluster
    full: set[str]
    source: EksNodes = field(
        default_factory=lambda: EksNodes(EksNodesConfig("vantage"), boto3.Session, {"us-east-1": OFFERS}.get)
    )
    provider: NodeProvider = field(
        default_factory=lambda: NodeProvider(
            PROVIDER, "aws", "eks", {"eks": {"cloudAccount": 1, "region": "us-east-1"}}, MOMENT, MOMENT
        )
    )

    @property
    def services(self) -> Services:
        now = lambda: to_text(self.clock.now())  # noqa: E731
        return cast(Services, SimpleNamespace(store=self.store, clock=self.clock, now=now))

    def claim(self, letter: str, pool: str = "workers", kind: str = "m6i.xlarge", **fields: Any) -> NodeClaim:
        """A claim of a pool that is placed on its group's type."""
        option = PlacementOption(f"aws.{kind}", "on-demand", (ANY,), usd_hour=0.1, cost=1)
        placement = Placement(PROVIDER, option.type, "on-demand", (ANY,), 1.0, MOMENT, options=(option,))
        usual: dict[str, Any] = {"placement": placement, "operation_id": "op_1"}
        claim = NodeClaim(
            f"ncl_01KDVJXQ80000000000000000{letter}", f"{pool}-{letter.lower()}", MOMENT, MOMENT, cluster_id=CLUSTER,
            pool=pool, **{**usual, **fields},
        )  # fmt: skip
        self.store.commit(Create(claim), Create(cluster_claim(CLUSTER, pool, claim.id, MOMENT)))
        return claim

    def settings(self, *groups: dict[str, Any]) -> None:
        """Give the cluster these node groups in its settings."""
        self.cluster = replace(self.cluster, settings={**self.cluster.settings, "node_groups": list(groups)})

    def put(self, claim: NodeClaim, **fields: Any) -> NodeClaim:
        current = self.store.get(NodeClaim, claim.id)
        assert current is not None
        changed: NodeClaim = replace(current, version=current.version + 1, **fields)
        self.store.commit(Replace(changed))
        return changed

    def work(self, claim: NodeClaim, operation: str = "op_1") -> NodeWork:
        current = self.store.get(NodeClaim, claim.id) or claim
        owner = Owner.of_claim(current, operation, current.attempt, "us-east-1", 1)
        return NodeWork(
            "acme", "inst", current, self.provider, StoreLedger(self.services, owner, "launch"), self.clock.now(),
            operation, self.cluster, ACCOUNT, holds=StoreHolds(self.services, current, owner.guard),
        )  # fmt: skip

    def environment_work(self) -> EnvironmentWork:
        environment = NodeEnvironment(ENVIRONMENT, CLUSTER, PROVIDER, "aws", MOMENT, MOMENT)
        ledger = StoreLedger(self.services, Owner.of_environment(environment, "us-east-1", 1), "environment")
        return EnvironmentWork(
            "acme", "inst", environment, self.provider, self.cluster, ledger, self.clock.now(), "op_1", ACCOUNT
        )

    def step(self, claim: NodeClaim) -> Outcome:
        """One visit of the workflow in the phase ``launch``."""
        return self.source.launch(self.work(claim))

    def launch(self, claim: NodeClaim) -> Outcome:
        """Visits until there is a machine, which the claim then has."""
        outcome = self.until_done(lambda: self.step(claim))
        fields = {name: outcome.facts[name] for name in ("machine_id", "host_name")}
        self.put(claim, **fields)
        return outcome

    def end(self, claim: NodeClaim) -> None:
        """Give a claim back, until nothing of it is left."""
        self.put(claim, deleting=True)
        self.until_done(lambda: self.source.terminate(self.work(claim)))
        assert lines_of(self.services, claim.id) == []

    def until_done(self, step: Callable[[], Outcome]) -> Outcome:
        for _ in range(60):
            outcome = step()
            if outcome.done:
                return outcome
            assert outcome.message
            self.clock.advance(outcome.wait_seconds)
        raise AssertionError(f"it does not end: {outcome}")


@contextmanager
def account_with_eks() -> Iterator[Yard]:
    """A tenant's account with a cluster on EKS that has no node group yet."""
    cluster = Cluster(
        CLUSTER, "c", "d", "k8s", "aws", 1, client_id("acme", CLUSTER, "c"), "ready", {"region_name": "us-east-1"},
        MOMENT, MOMENT, operation_id="op_0", driver="eks", cloud_prefix="vantage", group_prefix="demo",
    )  # fmt: skip
    full: set[str] = set()
    clock = FixedClock()
    now = lambda: clock.now().timestamp()  # noqa: E731
    with mock_aws(), direct_aws(), scarce_groups(full), paced(lambda _kind: 0.0, now):
        keys = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
        tenant = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
        store = MemoryStore(MemoryTable(), "acme")
        store.commit(Create(cluster))
        yield Yard(store, clock, NodeGroups(tenant, cluster), cluster, full)


@pytest.fixture
def yard() -> Iterator[Yard]:
    with account_with_eks() as yard:
        yield yard
