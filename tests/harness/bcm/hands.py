"""Claims for hosts, worked on step by step without a store: each step's source, ledger and leases are the product's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.records import Cluster, NodeClaim, NodeProvider, Placement, PlacementOption
from stockyard.domain.values.ids import client_id
from stockyard.domain.values.states import DesiredPower
from stockyard.domain.values.times import to_text
from stockyard.errors import StockyardError
from stockyard.ports import Outcome
from stockyard.ports.node_work import NodeWork
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.provider import BcmNodes
from tests.harness.bcm.yard import ENDPOINT, NAME, NUMBER, TENANT, HeadYard
from tests.unit.providers.conftest import MemoryLedger

CLUSTER, PROVIDER = "clu_01KDVJXQ80000000000000000A", "npr_01KDVJXQ80000000000000000A"
MOMENT = "2026-01-31T12:00:00.000Z"
MOST_STEPS = 120


def cluster() -> Cluster:
    """The cluster that claims are for."""
    return Cluster(
        CLUSTER, "c", "d", "k8s", "bcm", int(NUMBER), client_id(TENANT, CLUSTER, "c"), "ready", {}, MOMENT, MOMENT,
        operation_id="op_0",
    )  # fmt: skip


def provider(*types: Mapping[str, Any], **properties: str) -> NodeProvider:
    """A provider with these node types."""
    block = {"secretRef": {"name": NAME}, "endpoint": ENDPOINT, "nodeTypes": [dict(entry) for entry in types]}
    return NodeProvider(PROVIDER, "yard", "bcm", {"bcm": block}, MOMENT, MOMENT, properties=dict(properties))


@dataclass
class Holds:
    """Leases of one claim among those of all. ``leases`` is shared: the claim of each host."""

    leases: dict[str, str]
    claim: str

    def holders(self) -> Mapping[str, str]:
        """See ``ports.node_work.MachineHolds``."""
        return dict(self.leases)

    def take(self, machine_id: str) -> bool:
        """See ``ports.node_work.MachineHolds``."""
        return self.leases.setdefault(machine_id, self.claim) == self.claim

    def release(self, machine_id: str) -> None:
        """See ``ports.node_work.MachineHolds``."""
        if self.leases.get(machine_id) == self.claim:
            del self.leases[machine_id]

    def count(self, *, own: bool = True) -> int:
        """See ``ports.node_work.MachineHolds``."""
        return len(self.leases) - (not own and self.claim in self.leases.values())


@dataclass
class HostClaim:
    """One claim. ``between`` is called before each step, and may change the world."""

    yard: HeadYard
    provider: NodeProvider
    number: int = 1
    leases: dict[str, str] = field(default_factory=dict)
    between: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.source = BcmNodes(BcmNodesConfig("https://api.example.test"), self.yard.access())
        self.id = f"ncl_01KDVJXQ8000000000000000{self.number:02d}"
        self.ledger = MemoryLedger(cluster(), "launch")
        self.types = [str(entry["name"]) for entry in self.provider.spec["bcm"]["nodeTypes"]]

    def work(self) -> NodeWork:
        """Description of one step."""
        options = tuple(
            PlacementOption(f"yard.{name}", "on-demand", ("global",), usd_hour=None, cost=1) for name in self.types
        )
        first = options[0].type if options else "yard.none"
        placement = Placement(PROVIDER, first, "on-demand", ("global",), 1.0, MOMENT, options=options)
        now = self.yard.clock.now()
        claim = NodeClaim(
            self.id, f"n{self.number}", MOMENT, MOMENT, cluster_id=CLUSTER, operation_id="op_1", placement=placement
        )
        self.ledger.now = now
        return NodeWork(
            TENANT, "inst", claim, self.provider, self.ledger, now, "op_1", cluster(), self.yard.account,
            holds=Holds(self.leases, self.id), machine_token="0123456789abcdef" * 4,
        )  # fmt: skip

    def run(self, step: Callable[[NodeWork], Outcome], most: int = MOST_STEPS) -> Outcome | StockyardError:
        """The last outcome of a phase, or the error that ends it; retryable ones do not."""
        outcome: Outcome | StockyardError = Outcome(False, "nothing was done")
        for _ in range(most):
            self.between()
            try:
                outcome = step(self.work())
            except StockyardError as error:
                outcome = error
                if not error.retryable or type(error).__name__ == "InsufficientCapacity":
                    return error
                self.yard.clock.advance(5)
                continue
            if outcome.done:
                return outcome
            self.yard.clock.advance(min(outcome.wait_seconds, 30))
        return outcome

    def launch(self, most: int = MOST_STEPS) -> Outcome | StockyardError:
        """The launch, to its end."""
        return self.run(self.source.launch, most)

    def terminate(self, most: int = MOST_STEPS) -> Outcome | StockyardError:
        """The termination, to its end."""
        return self.run(self.source.terminate, most)

    def power(self, state: DesiredPower) -> Outcome | StockyardError:
        """A switch, to its end."""
        return self.run(lambda work: self.source.power(work, state))

    def host(self) -> str | None:
        """The uuid of the claim's host; None while it has none."""
        return next((line.key for line in self.ledger.lines() if line.kind == "host"), None)

    def moment(self) -> str:
        """The yard's time as records write it."""
        return to_text(self.yard.clock.now())
