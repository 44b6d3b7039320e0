"""A tenant's world in memory, a provider that keeps its resources in a dictionary, and a walk through a document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from local.memory import (
    FixedClock,
    MemoryBus,
    MemoryDeployer,
    MemoryIdentity,
    MemoryProver,
    MemorySecrets,
    MemoryWorkflows,
)
from local.memory_store import MemoryRegistry
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import ClusterCouldNotBeDeployed, PermissionDenied, StockyardError
from stockyard.operations.advance import Fence
from stockyard.operations.await_report import await_report, report_ready
from stockyard.operations.create_cluster import NewCluster, create_cluster
from stockyard.operations.fail_cluster import block, compensate, fail
from stockyard.operations.run_phase import run_phase
from stockyard.operations.services import Rules, Services
from stockyard.ports import CloudWork, Create, Finding, Outcome, Skipped, Tagged
from tests.unit.operations.installation import Installation
from tests.unit.operations.nodes import Nodes

DOCUMENTS = Path(__file__).parents[3] / "stacks" / "workflows"


@dataclass
class MemoryProvider:
    """Makes one thing a phase. ``faults`` are raised, one each, by phase; ``late`` ones after the thing was made."""

    things: dict[str, str] = field(default_factory=dict)
    faults: dict[str, list[StockyardError]] = field(default_factory=dict)
    late: dict[str, list[StockyardError]] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    dark: set[str] = field(default_factory=set)
    asked: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """The tenant, account and regions of each look of a sweep; it cannot see ``dark`` regions."""

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        self._strike(self.faults, "inspect")
        return self.findings

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        if phase == "account":
            self._strike(self.faults, phase)
            return Outcome(True)
        kind = "instance" if phase == "control_plane" else phase
        line = work.ledger.intend(kind, "main")
        self._strike(self.faults, phase)
        vendor_id = f"i-{work.cluster.id}" if kind == "instance" else f"{phase}-{work.cluster.id}"
        self.things[vendor_id] = phase
        self._strike(self.late, phase)
        if line.state != "made":
            work.ledger.made(line, vendor_id)
        facts = {"endpoint": "nlb.example"} if phase == "endpoint" else {}
        facts = {"instance_id": vendor_id} if phase == "control_plane" else facts
        return Outcome(True, facts=facts)

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        self._strike(self.faults, f"remove {phase}")
        for line in work.ledger.lines(phase):
            found = [k for k, v in self.things.items() if v == phase and (line.vendor_id in ("", k))]
            for vendor_id in found:
                del self.things[vendor_id]
            work.ledger.gone(line)
        return Outcome(True)

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],
        skipped: Skipped | None = None,
    ) -> Sequence[Tagged]:
        self.asked.append((tenant, account.id, tuple(regions)))
        for region in self.dark & set(regions):
            assert skipped is not None
            skipped(region, PermissionDenied("the region is not enabled"))
        return [Tagged(v, k, "us-east-1", tenant, k.partition("-")[2], "1") for k, v in self.things.items()]

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        return self.things.pop(thing.vendor_id, None) is not None

    @staticmethod
    def _strike(faults: dict[str, list[StockyardError]], phase: str) -> None:
        if faults.get(phase):
            raise faults[phase].pop(0)


class MemoryPrices:
    def instance(self, region: str, name: str) -> Mapping[str, Any] | None:
        return {"vcpu": 4, "memory_mib": 16384, "architecture": "x86_64", "usd_hour": 0.1664}

    def offered(self, region: str, name: str) -> bool | None:
        return name != "x9.none"

    def rate(self, region: str, item: str) -> float | None:
        return {"nat_gateway": 0.045, "network_load_balancer": 0.0225, "public_ipv4": 0.005, "gp3": 0.08}[item]


class Verifier:
    def __init__(self) -> None:
        self.fault: str | None = None

    def verify(self, account: CloudAccount, tenant: str) -> str | None:
        return self.fault


@dataclass
class World:
    services: Services
    registry: MemoryRegistry
    provider: MemoryProvider
    identity: MemoryIdentity
    secrets: MemorySecrets
    workflows: MemoryWorkflows
    deployer: MemoryDeployer
    bus: MemoryBus
    clock: FixedClock
    verifier: Verifier

    def wanted(self, name: str = "demo", **fields: Any) -> NewCluster:
        settings = {"key_pair": "my-key", "region_name": "us-east-1"}
        return NewCluster(name, "a cluster", 1, "k8s", {**settings, **fields.pop("settings", {})}, **fields)

    def create(self, name: str = "demo") -> Cluster:
        return create_cluster(self.services, self.wanted(name), "ann")[0]

    def cluster(self, cluster: Cluster) -> Cluster:
        found = self.services.store.get(Cluster, cluster.id)
        assert found is not None
        return found

    def drive(self, cluster: Cluster, document: str, retries: int = 3, report: bool = True) -> str:
        """Walk the states of a workflow document as Step Functions would. Returns the last state's name."""
        states = json.loads((DOCUMENTS / f"{document}.asl.json").read_text())["States"]
        current = self.cluster(cluster)
        assert current.operation_id is not None
        fence = Fence(cluster.id, current.operation_id, current.attempt)
        state = "start" if "start" in states else "settle"
        data: dict[str, Any] = {"from_phase": current.phase if document == "provision_cluster" else ""}
        for _ in range(1000):
            spec = states[state]
            if spec["Type"] in ("Succeed", "Fail"):
                return state
            if spec["Type"] == "Wait":
                self.clock.advance(data["wait"])
                state = spec["Next"]
            elif spec["Type"] == "Choice":
                state = self._choose(spec, data)
            else:
                state = self._task(spec, fence, data, retries, report)
        raise AssertionError("the walk does not end")

    @staticmethod
    def _choose(spec: Mapping[str, Any], data: dict[str, Any]) -> str:
        for choice in spec["Choices"]:
            if choice["Variable"] == "$.from_phase" and choice["StringEquals"] == data["from_phase"]:
                return str(choice["Next"])
            if choice["Variable"] == "$.result.done" and data["done"]:
                return str(choice["Next"])
        return str(spec["Default"])

    def _task(self, spec: Mapping[str, Any], fence: Fence, data: dict[str, Any], retries: int, report: bool) -> str:
        payload = spec["Parameters"]["Payload"]
        retried = {name for entry in spec["Retry"] for name in entry["ErrorEquals"]}
        for left in range(retries, -1, -1):
            try:
                data.update(self._act(payload, fence, data, report))
                return str(spec["Next"])
            except StockyardError as error:
                if type(error).__name__ in retried and left:
                    continue
                data["error"] = {
                    "Error": type(error).__name__,
                    "Cause": json.dumps({"errorMessage": str(error), "errorType": type(error).__name__}),
                }
                for catch in spec["Catch"]:
                    if {type(error).__name__, "States.ALL"} & set(catch["ErrorEquals"]):
                        return str(catch["Next"])
                raise
        raise AssertionError("unreachable")

    def _act(self, payload: Mapping[str, Any], fence: Fence, data: dict[str, Any], report: bool) -> dict[str, Any]:
        action = payload["action"]
        if action == "await":
            await_report(self.services, fence, "token")
            if not report:
                raise ClusterCouldNotBeDeployed("The machine did not report in time.")
            cluster = self.services.store.get(Cluster, fence.cluster_id)
            assert cluster is not None
            report_ready(self.services, cluster, "kubeconfig: text", "Q0E=")
            return {}
        if action == "run":
            step = run_phase(self.services, fence, payload["phase"])
        elif action == "compensate":
            step = compensate(self.services, fence)
        elif action == "fail":
            step = fail(self.services, fence, data["error"])
        else:
            step = block(self.services, fence, data["error"])
        return {"done": step.done, "wait": step.wait}


def make_world() -> World:
    """A world of its own, for what makes many."""
    registry, clock, identity, secrets = MemoryRegistry(), FixedClock(), MemoryIdentity(), MemorySecrets()
    workflows, deployer, provider, verifier = MemoryWorkflows(), MemoryDeployer(), MemoryProvider(), Verifier()
    services = Services(
        store=registry.store("acme"),
        clock=clock,
        identity=identity,
        secrets=secrets,
        workflows=workflows,
        deployer=deployer,
        prover=MemoryProver(),
        providers={"aws": provider},
        verifiers={"aws": verifier},
        prices=MemoryPrices(),
        installation="inst-1",
        rules=Rules(issuer="https://id.example/realms/stockyard", api_url="https://api.example"),
    )
    account = CloudAccount(
        id="1",
        provider="aws",
        name="main",
        description="",
        attributes={"role_arn": "arn:aws:iam::222222222222:role/tenant", "region": "us-east-1"},
        external_id="x" * 32,
        verification="verified",
        verification_message="",
        created_at=services.now(),
        updated_at=services.now(),
    )
    services.store.commit(Create(account))
    return World(services, registry, provider, identity, secrets, workflows, deployer, MemoryBus(), clock, verifier)


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def them(world: World) -> Installation:
    """Two tenants and the platform, by name."""
    return Installation(Nodes.of(world.registry, world.services, world.clock))
