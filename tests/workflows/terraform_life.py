"""One claim's life with a node that a template makes and at most one fault: programs that are played in memory, the
store in memory. Time passes on a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stockyard.domain.records import Cluster, NodeClaim
from stockyard.domain.run_records import ProviderRun, RunState
from stockyard.domain.values import ids
from stockyard.errors import VendorThrottled, VendorTimeout
from stockyard.operations.listing import every
from stockyard.operations.machines.attest import issue_token
from stockyard.operations.runs import StoreRuns
from stockyard.ports import Create
from stockyard.ports.runs import Runner
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
from stockyard.providers.nodes.terraform.repositories import Repositories
from tests.harness.crash.faults import Errors
from tests.harness.runs.memory_runner import MemoryRunner
from tests.harness.runs.played_tofu import PlainSeals, PlayedTofu
from tests.harness.worlds.memory import MemoryObjects
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes
from tests.workflows.cudo_life import FaultyCommits
from tests.workflows.fake_agent import FakeAgent
from tests.workflows.faulty_cloud import CLUSTER, FaultInjection
from tests.workflows.machine_life import MachineLife

_ERRORS = Errors(lambda: VendorTimeout("no answer"), lambda: VendorThrottled("slow down"), lambda: VendorTimeout("no"))
TEMPLATE = 'output "ip" { value = var.vcluster.name }\n'


@dataclass
class FaultyRunner:
    """Machines for runs whose calls can fail."""

    runner: Runner
    injection: FaultInjection
    usd_a_minute: float = 0.0034

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.runner, name)
        return lambda *arguments: self.injection.inject(f"runner.{name}", lambda: method(*arguments), _ERRORS)


@dataclass
class TemplateMachine:
    """A machine that a template has made."""

    id: str
    state: str = "running"


@dataclass
class Machines:
    """Machines of templates, as a life sees them."""

    tofu: PlayedTofu
    cluster: Cluster
    life: TerraformLife

    def machines(self) -> list[TemplateMachine]:
        """The machines that are there."""
        return [TemplateMachine(name) for name in self.tofu.machines if name != self.cluster.name]

    def leftovers(self) -> list[str]:
        """Machines, states and objects of states that are left."""
        store = self.life.nodes.services.store
        storage = self.life.nodes.services.factories.objects_of
        assert isinstance(storage, MemoryObjects)
        names = [name for _, name in storage.objects if name.startswith("states/")]
        return [*self.tofu.machines, *(state.id for state in every(store, RunState)), *names]


class TerraformLife(MachineLife):
    """A claim for a node of a template, from its request to the end of its deletion. ``environment``: its provider has
    a template for environments too."""

    provider = "tofu."
    stages: tuple[str, ...] = ("infrastructure",)
    template: Mapping[str, Any] = {"inline": TEMPLATE}
    repositories: Repositories | None = None

    def __init__(self, injection: FaultInjection | None = None, *, environment: bool = False) -> None:
        world = make_world()
        self.injection = injection or FaultInjection()
        self.injection.point = ""
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        store: Any = FaultyCommits(world.registry.store("acme"), self.injection)
        plain = nodes.services
        self.seals, self.tofu = PlainSeals(), PlayedTofu(lambda: plain)
        self.memory_runner = MemoryRunner(self.tofu, world.clock, queue_seconds=20)
        moment = world.services.now()
        cluster = Cluster(
            CLUSTER, "demo", "d", "k8s", "aws", 1, ids.client_id("acme", CLUSTER, "demo"), "ready", {},
            moment, moment, endpoint="demo.example.test",
        )  # fmt: skip
        world.services.store.commit(Create(cluster))
        small = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "cost": 1, "maxCapacity": 1}
        block: dict[str, Any] = {"nodeTemplate": {**self.template, "timeout": "10m"}, "runner": {"cloudAccount": 1}}
        if environment:
            stage = {"inline": TEMPLATE, "timeout": "10m"}
            block["nodeEnvironmentTemplate"] = dict.fromkeys(self.stages, stage)
        nodes.provider("tofu", small, kind="terraform", block=block)
        config = TerraformConfig("https://api.example", "us-east-1")
        runner: Any = FaultyRunner(self.memory_runner, self.injection)
        source = TerraformNodes(
            config,
            runner,
            lambda _: StoreRuns(nodes.services, self.seals),
            lambda _: nodes.services.store,
            self.repositories,
        )
        sources = {"terraform": source, "simulated": SimulatedNodes(lambda _: store)}
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources=sources)
        self.cloud: Any = Machines(self.tofu, cluster, self)
        self.agent = FakeAgent(nodes, cluster, "1", self._joins, token_of=self._token)
        nodes.meanwhile = self._meanwhile
        self.reached_phase, self.machine_count = "", 0
        self.powered: list[str] = []

    def runs(self) -> list[ProviderRun]:
        """Runs in the order in which they were created."""
        return sorted(every(self.nodes.services.store, ProviderRun), key=lambda run: (run.created_at, run.number))

    def _power(self, state: str) -> None:
        """Nobody switches what a template has made."""

    def _meanwhile(self) -> None:
        self.injection.point = ""
        self.memory_runner.play()
        super()._meanwhile()

    def _joins(self, machine_id: str) -> bool:
        claim = self._claim()
        return claim is not None and claim.name in self.tofu.machines

    def _token(self, claim: NodeClaim) -> str:
        from stockyard.operations.engine.advance import Fence

        return issue_token(self.nodes.services, claim, Fence.of(claim))
