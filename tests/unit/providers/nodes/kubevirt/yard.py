"""A host with KubeVirt, a provider, and the work of any number of claims, with the real ledger in a table in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.records import Cluster, NodeClaim, NodeProvider, Placement, PlacementOption
from stockyard.domain.values import ids
from stockyard.domain.values.times import to_text
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.services import Services
from stockyard.ports import Create, Outcome
from stockyard.ports.node_work import NodeWork
from stockyard.providers.nodes.kubevirt.provider import KubeVirtNodes
from tests.harness.kubevirt.host import CONFIG, IMAGE, VirtualMachineHost, block
from tests.harness.worlds.kubernetes_host import NUMBER, TENANT

MOMENT = "2026-01-31T12:00:00.000Z"
CLUSTER, PROVIDER = "clu_01KDVJXQ80000000000000000A", "npr_01KDVJXQ80000000000000000A"
SMALL: Mapping[str, Any] = {"name": "small", "properties": IMAGE}


class Yard:
    """The host and its tenant. ``types`` are the provider's node types."""

    def __init__(self, *types: Mapping[str, Any], host: VirtualMachineHost | None = None, **fields: Any) -> None:
        self.host = host or VirtualMachineHost()
        self.clock = self.host.clock
        self.store = MemoryStore(MemoryTable(), TENANT)
        services = SimpleNamespace(store=self.store, clock=self.clock, now=lambda: to_text(self.clock.now()))
        self.services = cast(Services, services)
        self.source = self.new_source()
        self.cluster = Cluster(
            CLUSTER, "c", "d", "k8s", "kubernetes", int(NUMBER), ids.client_id(TENANT, CLUSTER, "c"), "ready", {},
            MOMENT, MOMENT,
        )  # fmt: skip
        self.provider = self.provider_of(*(types or (SMALL,)), **fields)
        self.claims: dict[int, NodeClaim] = {}
        self.store.commit(Create(self.cluster))

    def provider_of(
        self, *types: Mapping[str, Any], properties: Mapping[str, str] | None = None, **fields: Any
    ) -> NodeProvider:
        """A provider with these types, and fields of its block."""
        spec = {"kubeVirt": block(*types, **fields)}
        return NodeProvider(PROVIDER, "vms", "kubeVirt", spec, MOMENT, MOMENT, properties=dict(properties or {}))

    def new_source(self) -> KubeVirtNodes:
        """A source that has asked the host nothing yet."""
        return KubeVirtNodes(CONFIG, self.host.access(), lambda _tenant: self.store)

    def work(self, number: int = 1, name: str = "small") -> NodeWork:
        """Work of the claim of that number, for a node of that type."""
        if number not in self.claims:
            options = (PlacementOption(f"vms.{name}", "on-demand", ("global",), usd_hour=0.1, cost=1),)
            placement = Placement(PROVIDER, f"vms.{name}", "on-demand", ("global",), 1.0, MOMENT, options=options)
            claim = NodeClaim(
                f"ncl_01KDVJXQ800000000000{number:06d}", f"n-{number}", MOMENT, MOMENT, cluster_id=CLUSTER,
                operation_id="op_1", placement=placement,
            )  # fmt: skip
            self.claims[number] = claim
            self.store.commit(Create(claim))
        claim = self.claims[number]
        owner = Owner.of_claim(claim, "op_1", claim.attempt, "machines", 1)
        ledger = StoreLedger(self.services, owner, "launch")
        return NodeWork(
            TENANT, "inst", claim, self.provider, ledger, self.clock.now(), "op_1", self.cluster, self.host.account,
            machine_token="token",
        )  # fmt: skip

    def launch(self, number: int = 1, name: str = "small") -> Outcome:
        """Launch until it is done."""
        for _ in range(60):
            outcome = self.source.launch(self.work(number, name))
            if outcome.done:
                return outcome
            self.clock.advance(outcome.wait_seconds)
        raise AssertionError(outcome)

    def terminate(self, number: int = 1) -> None:
        """Terminate until it is done."""
        for _ in range(60):
            outcome = self.source.terminate(self.work(number))
            if outcome.done:
                return
            self.clock.advance(outcome.wait_seconds)
        raise AssertionError(outcome)

    def change(self, **fields: Any) -> None:
        """Change the provider's block."""
        self.provider = replace(self.provider, spec={"kubeVirt": {**self.provider.spec["kubeVirt"], **fields}})

    def judged(self, provider: NodeProvider | None = None) -> dict[str, str]:
        """Faults that the host finds, by pointer."""
        judge = partial(self.source.judge, account=self.host.account, host=None, tenant=TENANT)
        return {finding.pointer: finding.detail for finding in judge(provider or self.provider)}
