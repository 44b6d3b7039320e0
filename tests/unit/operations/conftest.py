"""One tenant in memory, a cloud that keeps its resources in a dictionary, and a player of workflow documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import Ec2PriceList
from stockyard.domain.nodes.offers import ClusterVersion
from stockyard.domain.records import CloudAccount, Cluster, Fact
from stockyard.errors import InvalidInput, PermissionDenied, StockyardError
from stockyard.operations.clusters.await_report import report_ready
from stockyard.operations.clusters.creation.create import NewCluster, create_cluster
from stockyard.operations.services import Services
from stockyard.ports import (
    Cloud,
    CloudWork,
    ClusterDriver,
    ClusterPlan,
    Create,
    Finding,
    MachineIdentity,
    Outcome,
    PriceList,
    Put,
    Skipped,
    Tagged,
    Verification,
)
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.clusters.ec2 import planning
from tests.harness.checkpoint import Checkpoint
from tests.harness.crash.machine_report import machine_report
from tests.harness.walk import Walk
from tests.harness.worlds.memory import (
    FixedClock,
    MemoryAttestor,
    MemoryBus,
    MemoryDeployer,
    MemoryIdentity,
    MemorySecrets,
    MemoryWorkflows,
)
from tests.harness.worlds.ports import memory_services
from tests.harness.worlds.states import States
from tests.unit.operations.installation import Installation
from tests.unit.operations.nodes import Nodes


@dataclass
class MemoryProvider(ClusterDriver, Cloud):
    """A cloud and the driver of its clusters. Each phase creates one thing.

    It plans as the EC2 driver does. A phase raises the next of its ``faults`` before it creates the thing, and the next
    of its ``late`` faults after that.
    """

    retags = True

    things: dict[str, str] = field(default_factory=dict)
    faults: dict[str, list[StockyardError]] = field(default_factory=dict)
    late: dict[str, list[StockyardError]] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    dark: set[str] = field(default_factory=set)
    sweeps: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """The tenant, account and regions of each sweep. Regions in ``dark`` refuse to answer."""
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """The tags of each thing that has any."""
    account_fault: str | None = None
    """The message of a failed verification of an account; None if accounts can be verified."""

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        return Verification(self.account_fault is None, self.account_fault or "")

    def principal(self, attributes: Mapping[str, Any]) -> str:
        return str(attributes.get("role_arn"))

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        if attributes.get("region") == "nowhere-1":
            raise InvalidInput.at("/attributes/region", "there is no region nowhere-1")

    def machine_roles(self, account: CloudAccount, cluster: Cluster) -> tuple[str, Sequence[str]]:
        stem = f"vantage-{cluster.client_id}"
        return "222222222222", (f"{stem}-node-role", f"{stem}-ctrl-role")

    def regions(self, account: CloudAccount) -> Sequence[str]:
        return (str(account.attributes["region"]),)

    def template(self, account: CloudAccount, installation: str) -> dict[str, Any]:
        return {"account": account.id, "installation": installation}

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        return list(planning.faults(cluster, prices, "vantage"))

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        return planning.plan(cluster, prices, "vantage")

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        self._strike(self.faults, "inspect")
        return self.findings

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        # No cluster here wants a bastion, and a policy of snapshots is of the first machine's phase.
        if phase in ("account", "bastion", "snapshots"):
            self._strike(self.faults, phase)
            return Outcome(True)
        kind = "instance" if phase == "control_plane" else phase
        line = work.ledger.intend(kind, "main")
        self._strike(self.faults, phase)
        vendor_id = self.machine_of(work.cluster) if kind == "instance" else f"{phase}-{work.cluster.id}"
        self.things[vendor_id] = phase
        self.tags.setdefault(vendor_id, dict(work.cluster.tags))
        self._strike(self.late, phase)
        if line.state != "made":
            work.ledger.made(line, vendor_id)
        facts = {"endpoint": "nlb.example"} if phase == "endpoint" else {}
        facts = {"instance_id": vendor_id} if phase == "control_plane" else facts
        return Outcome(True, facts=facts)

    def machine_of(self, cluster: Cluster) -> str:
        return f"i-{cluster.id}"

    def retag(self, work: CloudWork, stale_keys: Sequence[str]) -> Outcome:
        """``late`` faults come when the first thing has its tags."""
        self._strike(self.faults, "retag")
        for vendor_id in self.things:
            carried = {key: value for key, value in self.tags[vendor_id].items() if key not in stale_keys}
            self.tags[vendor_id] = {**carried, **work.cluster.tags}
            self._strike(self.late, "retag")
        return Outcome(True, f"{len(self.things)} resources carry the tags.")

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        self._strike(self.faults, f"remove {phase}")
        for line in work.ledger.lines(phase):
            vendor_ids = [k for k, v in self.things.items() if v == phase and (line.vendor_id in ("", k))]
            for vendor_id in vendor_ids:
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
        self.sweeps.append((tenant, account.id, tuple(regions)))
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

    def spot(self, _region: str) -> None:
        return None

    def rate(self, region: str, item: str) -> float | None:
        return {
            "nat_gateway": 0.045,
            "network_load_balancer": 0.0225,
            "public_ipv4": 0.005,
            "gp3": 0.08,
            "ebs_snapshot": 0.05,
            "eks": 0.1,
            "eks_extended": 0.5,
            "efs": 0.3,
            "object_storage": 0.023,
        }[item]

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        return Ec2PriceList(MemoryRegistry().platform()).versions(region)

    def why_unknown(self, region: str) -> str:
        return f"Prices of {region} are not known yet."


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

    def new_cluster(self, name: str = "demo", **fields: Any) -> NewCluster:
        settings = {"key_pair": "my-key", "region_name": "us-east-1"}
        return NewCluster(name, "a cluster", 1, "k8s", {**settings, **fields.pop("settings", {})}, **fields)

    def create(self, name: str = "demo") -> Cluster:
        return create_cluster(self.services, self.new_cluster(name), "ann")[0]

    def cluster(self, cluster: Cluster) -> Cluster:
        current = self.services.store.get(Cluster, cluster.id)
        assert current is not None
        return current

    def checkpoint(self, *objects: Any, shared: Sequence[Any] = ()) -> Checkpoint:
        """The state of the world, for a later return, with the state of the ``objects``."""
        memory = (self.registry.table, self.provider, self.identity, self.secrets, self.workflows, self.deployer)
        everything = (self, *memory, self.bus, self.clock, self.services.telemetry, *objects)
        return Checkpoint.of(*everything, shared=(self.services, self.registry, *shared))

    def report(self, cluster: Cluster, authority: str = "Q0E=") -> dict[str, str]:
        """Report as the cluster's machine once it has proven itself, and return the report."""
        current = self.cluster(cluster)
        self.services.store.commit(Put(Fact(f"{cluster.id}/bootstrapped", "i-1", self.services.now())))
        report = machine_report(current.endpoint, authority)
        report_ready(self.services, current, report["kubeconfig"], report["certificate_authority"])
        return report

    def proof(self, cluster: Cluster, machine: str = "") -> dict[str, Any]:
        """A proof of the cluster's control plane, or of another machine of the cluster."""
        url = f"https://sts.example.test/{machine}"
        role = f"vantage-{cluster.client_id}-node-role"
        identity = MachineIdentity("222222222222", role, machine or f"i-{cluster.id}")
        cast(MemoryAttestor, self.services.attestor).identities[url] = identity
        return {"method": "GET", "url": url, "headers": {}}

    def drive(
        self,
        cluster: Cluster,
        document: str,
        report: bool = True,
        before: Callable[[States, str], None] = lambda _states, _token: None,
    ) -> str:
        """Walk the states of a workflow document as Step Functions would. Returns the last state's name. ``before``
        is called when the machine would report."""
        current = self.cluster(cluster)
        assert current.operation_id is not None
        value = {
            "tenant": self.services.tenant,
            "cluster_id": cluster.id,
            "operation_id": current.operation_id,
            "attempt": current.attempt,
            "from_phase": current.phase if document != "delete_cluster" else "",
        }

        def answer(states: States, token: str) -> None:
            before(states, token)
            if not report:
                states.expire()
                return
            self.report(cluster)
            states.succeed(token, {"done": True})

        return Walk(lambda: self.services, self.clock, answer=answer).run(document, value)


def make_world() -> World:
    """A new world, for tests that need several."""
    registry, clock, identity, secrets = MemoryRegistry(), FixedClock(), MemoryIdentity(), MemorySecrets()
    workflows, deployer, provider = MemoryWorkflows(), MemoryDeployer(), MemoryProvider()
    services = memory_services(
        registry,
        clock,
        identity=identity,
        secrets=secrets,
        workflows=workflows,
        deployer=deployer,
        clouds={"aws": provider, "cudo": CudoCloud(Access(lambda: secrets))},
        cluster_drivers={"memory": provider},
        driver_names={("aws", "k8s"): ("memory",)},
        prices=MemoryPrices(),
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
    return World(services, registry, provider, identity, secrets, workflows, deployer, MemoryBus(), clock)


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def installation(world: World) -> Installation:
    """Two tenants and the platform, by name."""
    return Installation(Nodes.of(world.registry, world.services, world.clock))
