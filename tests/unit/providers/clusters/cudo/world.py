"""One cluster on the simulated Cudo, whose phases a test runs one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.models.base import read
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values.ids import client_id
from stockyard.domain.values.times import to_text
from stockyard.operations.engine.ledger import Owner, StoreLedger, lines_of
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Create, Outcome
from stockyard.providers.clouds.cudo.making import CHOICE
from stockyard.providers.clusters.cudo.configuration import CudoConfig
from stockyard.providers.clusters.cudo.provider import CudoClusterDriver
from stockyard.providers.clusters.cudo.settings import CudoSettings
from tests.harness.worlds.cudo_yard import CudoYard

CLUSTER = "clu_01KDVJXQ80000000000000000A"
TOKEN = "e" * 64
PHASES = ("account", "machine_type", "network", "disk", "control_plane")
CHEAP, DEAR = "epyc-milan", "intel-broadwell"


class World:
    """One cluster in a project where two machine types are sold, the first the cheaper."""

    def __init__(self, *, dns_suffix: str = "", name: str = "demo", **settings: Any) -> None:
        self.yard = CudoYard(CHEAP, DEAR)
        config = CudoConfig("vantage", "https://api.example.test", "https://id.example.test", dns_suffix)
        self.driver = CudoClusterDriver(config, self.yard.access())
        clock = self.yard.clock
        store = MemoryStore(MemoryTable(), "acme")
        services = SimpleNamespace(store=store, clock=clock, now=lambda: to_text(clock.now()))
        self.services, moment = cast(Services, services), to_text(clock.now())
        own = read(CudoSettings, {"no_vault": True, **settings}).normal()
        self.cluster = Cluster(
            CLUSTER, name, "d", "k8s", "cudo", 2, client_id("acme", CLUSTER, name), "preparing", own, moment, moment,
            operation_id="op_1", driver="cudo", created_by="user:ann",
        )  # fmt: skip
        store.commit(Create(self.cluster))

    def step(self, phase: str, method: str = "ensure") -> Outcome:
        ledger = StoreLedger(self.services, Owner.of_cluster(self.cluster, "op_1", 1), phase)
        now = self.yard.clock.now()
        token = TOKEN if phase == "control_plane" else ""
        work = CloudWork("acme", "inst", self.cluster, self.yard.account, ledger, now, "op_1", machine_token=token)
        outcome: Outcome = getattr(self.driver, method)(phase, work)
        return outcome

    def until_done(self, phase: str, method: str = "ensure") -> Outcome:
        for _ in range(60):
            outcome = self.step(phase, method)
            if outcome.done:
                return outcome
            self.yard.clock.advance(outcome.wait_seconds)
        raise AssertionError(f"{phase} does not end: {outcome.message}")

    def up_to(self, last: str) -> Outcome:
        for phase in PHASES[: PHASES.index(last) + 1]:
            outcome = self.until_done(phase)
        return outcome

    def removed(self) -> None:
        for phase in reversed(PHASES[1:]):
            self.until_done(phase, "remove")

    def choice(self) -> Resource:
        (line,) = [line for line in lines_of(self.services, CLUSTER) if line.kind == CHOICE]
        return line

    def things(self) -> list[str]:
        project = self.yard.project
        return [*self.yard.machines(), *project.disks, *project.networks, *project.groups]

    def rules(self, thing: str) -> set[tuple[str, str, str]]:
        """The rules for what comes in: protocol, ports, range."""
        group = self.yard.project.groups[f"vantage-{self.cluster.client_id}-{thing}"]
        inbound = [rule for rule in group["rules"] if rule["ruleType"] == "RULE_TYPE_INBOUND"]
        return {(rule["protocol"], rule.get("ports", ""), rule["ipRangeCidr"]) for rule in inbound}

    def machine(self) -> dict[str, Any]:
        (machine,) = self.yard.project.machines.values()
        return machine.body
