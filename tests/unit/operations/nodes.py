"""A tenant's nodes in memory: providers, claims, a scheduler, and a walk through the workflow documents of a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.unavailable_offerings import StoredUnavailableOfferings
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Counter, NodeClaim, NodeProvider, Operation, Outbox, SimulatedMachine
from stockyard.domain.values import ids, times
from stockyard.errors import StockyardError
from stockyard.operations.listing import every
from stockyard.operations.node_claims.create import create_claim
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.scheduler.wake import Scheduler
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.walk import Walk
from tests.harness.worlds.memory import FixedClock
from tests.harness.worlds.ports import with_ports


@dataclass
class Nodes:
    """``refused`` holds each (provider, type, zone) without capacity; ``errors`` holds what each phase raises next."""

    registry: MemoryRegistry
    services: Services
    clock: FixedClock
    refused: set[tuple[str, str, str]] = field(default_factory=set)
    errors: dict[str, list[StockyardError]] = field(default_factory=dict)
    before_phase: Callable[[str], None] = lambda _: None
    """Called with the phase or action that runs next."""
    meanwhile: Callable[[], None] = lambda: None
    """Called while a workflow waits: what others do in that time."""

    @classmethod
    def of(cls, registry: MemoryRegistry, services: Services, clock: FixedClock) -> Nodes:
        nodes = cls(registry, services, clock)
        source = SimulatedNodes(registry.store, lambda *way: way in nodes.refused)
        nodes.services = with_ports(
            services,
            node_sources={"simulated": source},
            unavailable_offerings=StoredUnavailableOfferings(registry.platform()),
        )
        return nodes

    def provider(self, name: str, *types: Mapping[str, Any], kind: str = "simulated", **fields: Any) -> NodeProvider:
        block = {"nodeTypes": list(types), **fields.pop("block", {})}
        now = self.services.now()
        provider = NodeProvider(self.services.new_id(ids.NODE_PROVIDER), name, kind, {kind: block}, now, now, **fields)
        self.services.store.commit(Create(provider))
        return provider

    def claim(self, name: str = "", **fields: Any) -> NodeClaim:
        """A new claim, younger than those before it."""
        self.clock.advance(0.001)
        return create_claim(self.services, NewClaim(name=name, **fields), "user:ann")

    def now(self, claim: NodeClaim) -> NodeClaim:
        current = self.services.store.get(NodeClaim, claim.id)
        assert current is not None
        return current

    def operation(self, claim: NodeClaim) -> Operation:
        operation = self.services.store.get(Operation, str(claim.operation_id))
        assert operation is not None
        return operation

    def schedule(self, *claims: NodeClaim) -> Mapping[str, int]:
        """Run one scheduling pass over these records of claims, which may be stale, or else over all that wait."""
        scheduler = Scheduler(self.registry, lambda _: self.services)
        later = self.clock.advance(0.001)
        if claims:
            return scheduler.woken([("acme", claim) for claim in claims], later)
        return scheduler.overdue(later)

    def used(self, provider: NodeProvider, type_name: str) -> int:
        counter = self.services.store.get(Counter, f"capacity/{provider.id}/{type_name}")
        return counter.value if counter else 0

    def machines(self) -> list[SimulatedMachine]:
        return list(every(self.services.store, SimulatedMachine))

    def relay(self) -> list[str]:
        """Run each workflow that the outbox starts, oldest first, to its end. Returns the last state of each."""
        last_states = []
        for item in list(every(self.services.store, Outbox)):
            for kind, message in item.messages:
                if kind == "workflow" and "claim_id" in message["input"]:
                    last_states.append(self.run(str(message["workflow"]), message["input"]))
            self.services.store.commit(Remove(Outbox, item.id))
        return last_states

    def run(self, document: str, payload: Mapping[str, Any], most: int = 3000) -> str:
        """Play a document. Returns the last state's name."""
        return Walk(lambda: self.services, self.clock, self._before, self.meanwhile).run(document, payload, most)

    def _before(self, payload: Mapping[str, Any]) -> None:
        phase = payload.get("phase", "")
        self.before_phase(phase or payload["action"])
        if self.errors.get(phase):
            raise self.errors[phase].pop(0)

    def delete(self, claim: NodeClaim) -> NodeClaim:
        return delete_claim(self.services, claim.id, "user:ann")

    def nothing_left(self) -> bool:
        """Whether no claim, no machine, no used capacity and no used quota is left."""
        counters = [
            counter
            for counter in every(self.services.store, Counter)
            if counter.value and counter.id != "quota/clusters"
        ]
        return not counters and not self.machines() and not list(every(self.services.store, NodeClaim))

    def hours(self, count: float) -> None:
        self.clock.advance(count * 3600)

    def moment(self) -> str:
        return times.to_text(self.clock.now())
