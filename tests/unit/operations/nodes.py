"""A tenant's nodes in memory: providers, claims, a scheduler, and a walk through the workflow documents of a claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from local.memory import FixedClock
from local.memory_store import MemoryRegistry
from stockyard.adapters.scarcity import StoredScarcity
from stockyard.domain import ids, times
from stockyard.domain.records import Counter, NodeClaim, NodeProvider, Operation, Outbox, SimulatedMachine
from stockyard.errors import StockyardError
from stockyard.operations.claims import ClaimFence
from stockyard.operations.create_claim import NewClaim, create_claim
from stockyard.operations.delete_claim import delete_claim
from stockyard.operations.every import every
from stockyard.operations.fail_node import block, compensate, fail
from stockyard.operations.run_node_phase import run_node_phase
from stockyard.operations.services import Services
from stockyard.operations.wake_scheduler import Scheduler
from stockyard.ports import Create, Remove
from stockyard.providers.nodes.simulated.provider import SimulatedNodes

DOCUMENTS = Path(__file__).parents[3] / "stacks" / "workflows"


@dataclass
class Nodes:
    """``refused`` are (provider, type, zone) that cannot be had; ``errors`` are raised by the next phases."""

    registry: MemoryRegistry
    services: Services
    clock: FixedClock
    refused: set[tuple[str, str, str]] = field(default_factory=set)
    errors: dict[str, list[StockyardError]] = field(default_factory=dict)
    where: Callable[[str], None] = lambda _: None
    """Is told the phase or action that runs next."""
    meanwhile: Callable[[], None] = lambda: None
    """What happens elsewhere while a workflow waits."""

    @classmethod
    def of(cls, registry: MemoryRegistry, services: Services, clock: FixedClock) -> Nodes:
        found = cls(registry, services, clock)
        source = SimulatedNodes(registry.store, lambda *way: way in found.refused)
        found.services = replace(services, sources={"simulated": source}, scarcity=StoredScarcity(registry.platform()))
        return found

    def provider(self, name: str, *types: Mapping[str, Any], kind: str = "simulated", **fields: Any) -> NodeProvider:
        block = {"nodeTypes": list(types), **fields.pop("block", {})}
        now = self.services.now()
        made = NodeProvider(self.services.new_id(ids.NODE_PROVIDER), name, kind, {kind: block}, now, now, **fields)
        self.services.store.commit(Create(made))
        return made

    def claim(self, name: str = "", **fields: Any) -> NodeClaim:
        return create_claim(self.services, NewClaim(name=name, **fields), "user:ann")

    def now(self, claim: NodeClaim) -> NodeClaim:
        found = self.services.store.get(NodeClaim, claim.id)
        assert found is not None
        return found

    def operation(self, claim: NodeClaim) -> Operation:
        found = self.services.store.get(Operation, str(claim.operation_id))
        assert found is not None
        return found

    def schedule(self, *claims: NodeClaim) -> Mapping[str, int]:
        """One pass: of these claims as given (stale ones too), else of all that wait."""
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
        """Run what the outbox starts, oldest first, to its end; the last state of each."""
        ended = []
        for item in list(every(self.services.store, Outbox)):
            if item.kind == "workflow" and "claim_id" in item.payload["input"]:
                ended.append(self.run(str(item.payload["workflow"]), item.payload["input"]))
            self.services.store.commit(Remove(Outbox, item.id))
        return ended

    def run(self, document: str, given: Mapping[str, Any], most: int = 1000) -> str:
        """Walk the states of a document as Step Functions would. Returns the last state's name."""
        workflow = json.loads((DOCUMENTS / f"{document}.asl.json").read_text())
        states, state, data = workflow["States"], workflow["StartAt"], dict(given)
        fence = ClaimFence(given["claim_id"], given["operation_id"], given["attempt"])
        for _ in range(most):
            spec = states[state]
            if spec["Type"] in ("Succeed", "Fail"):
                return str(state)
            if spec["Type"] == "Wait":
                self.clock.advance(data["wait"])
                self.meanwhile()
                state = spec["Next"]
            elif spec["Type"] == "Choice":
                state = spec["Choices"][0]["Next"] if data["done"] else spec["Default"]
            else:
                state = self._task(spec, fence, data)
        return f"still at {state}"

    def _task(self, spec: Mapping[str, Any], fence: ClaimFence, data: dict[str, Any]) -> str:
        payload = spec["Parameters"]["Payload"]
        self.where(payload.get("phase") or payload["action"])
        retried = {name for entry in spec["Retry"] for name in entry["ErrorEquals"]}
        for left in range(7, -1, -1):
            try:
                data.update(self._act(payload, fence, data))
                return str(spec["Next"])
            except StockyardError as error:
                name = getattr(error, "workflow_name", type(error).__name__)
                if name in retried and left:
                    continue
                data["error"] = {"Error": name, "Cause": json.dumps({"errorMessage": str(error)})}
                for catch in spec["Catch"]:
                    if {name, "States.ALL"} & set(catch["ErrorEquals"]):
                        return str(catch["Next"])
                raise
        raise AssertionError("unreachable")

    def _act(self, payload: Mapping[str, Any], fence: ClaimFence, data: Mapping[str, Any]) -> dict[str, Any]:
        phase = payload.get("phase", "")
        if self.errors.get(phase):
            raise self.errors[phase].pop(0)
        action = payload["action"]
        if action == "run":
            step = run_node_phase(self.services, fence, phase)
        elif action == "compensate":
            step = compensate(self.services, fence)
        else:
            step = (fail if action == "fail" else block)(self.services, fence, data["error"])
        return {"done": step.done, "wait": step.wait}

    def delete(self, claim: NodeClaim) -> NodeClaim:
        return delete_claim(self.services, claim.id, "user:ann")

    def nothing_left(self) -> bool:
        """No claim, no machine, no place taken, no quota used."""
        counters = [one for one in every(self.services.store, Counter) if one.value and one.id != "quota/clusters"]
        return not counters and not self.machines() and not list(every(self.services.store, NodeClaim))

    def hours(self, count: float) -> None:
        self.clock.advance(count * 3600)

    def moment(self) -> str:
        return times.to_text(self.clock.now())
