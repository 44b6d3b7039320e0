"""Machines that exist in Stockyard alone: they take their time, run out, and join by themselves.

For trying things out, for tests, and as the pattern of every other source of nodes. How long a machine takes is written
in the provider's document: ``launchSeconds`` until it runs, ``joinSeconds`` more until its node has joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from stockyard.domain import times
from stockyard.domain.declared_types import block_of, kinds
from stockyard.domain.node_types import NodeKind
from stockyard.domain.records import CloudAccount, NodeProvider, SimulatedMachine
from stockyard.errors import Conflict, InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.ports import Create, Finding, Outcome, Remove, Replace, Store, Tagged
from stockyard.ports.nodes import EnvironmentWork, Machine, NodeWork

KIND, KEY = "simulated machine", "node"
SILENT = "never"
"""``joinSeconds`` of machines that never join."""

Refuses = Callable[[str, str, str], bool]
"""Whether a type of a provider is refused in a zone: the plan of somebody who tries failures out."""


def nothing_refused(*_: str) -> bool:
    """No plan: everything can be had."""
    return False


class SimulatedNodes:
    """Implements ``ports.nodes.NodeSource``. ``store_of`` gives a tenant's records, where the machines stand."""

    def __init__(self, store_of: Callable[[str], Store], refuses: Refuses = nothing_refused) -> None:
        self._store_of = store_of
        self._refuses = refuses

    def kinds(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeKind]:
        """As declared."""
        return kinds(provider, built=True)

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:
        """A simulated machine is refused by one provider alone."""
        return f"provider/{provider.id}"

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:
        """Nothing beyond the form can be wrong."""
        return ()

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """There is nothing to set up."""
        return Outcome(True)

    def launch(self, work: NodeWork) -> Outcome:
        """Make the machine of the first option and zone that is not refused; see ``ports.nodes.NodeSource.launch``."""
        store = self._store_of(work.tenant)
        line = work.ledger.intend(KIND, KEY)
        machine = store.get(SimulatedMachine, line.token)
        if machine is None:
            machine = self._made(work, store, line.token)
        if line.state != "made":
            work.ledger.made(line, machine.id)
        facts = {
            "machine_id": machine.id,
            "type": machine.type,
            "capacity_type": machine.capacity_type,
            "zone": machine.zone,
        }
        return Outcome(True, f"Machine {machine.id} was launched in {machine.zone}.", facts=facts)

    def _made(self, work: NodeWork, store: Store, token: str) -> SimulatedMachine:
        name, capacity_type, zone = self._way(work)
        block = block_of(work.provider)
        join = block.get("joinSeconds", 0)
        delay = None if join == SILENT else timedelta(seconds=float(block.get("launchSeconds", 0)) + float(join))
        machine = SimulatedMachine(
            id=token,
            claim_id=work.claim.id,
            provider_id=work.provider.id,
            type=name,
            capacity_type=capacity_type,
            zone=zone,
            launched_at=times.to_text(work.now),
            joins_at=None if delay is None else times.to_text(work.now + delay),
            tags={
                "installation": work.installation,
                "tenant": work.tenant,
                "resource": work.claim.id,
                "generation": str(work.claim.generation),
            },
        )
        try:
            store.commit(Create(machine))
        except Conflict:
            return store.get(SimulatedMachine, token) or machine
        return machine

    def _way(self, work: NodeWork) -> tuple[str, str, str]:
        """The first option that can be had. ``InsufficientCapacity`` names every way that was refused."""
        placed = work.claim.placement
        if placed is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        refused: list[tuple[str, str, str]] = []
        for option in placed.options:
            bare = str(option["type"]).removeprefix(f"{work.provider.name}.")
            for zone in option["zones"]:
                if not self._refuses(work.provider.name, bare, zone):
                    return str(option["type"]), str(option["capacity_type"]), str(zone)
                refused.append((bare, str(option["capacity_type"]), str(zone)))
        names = ", ".join(sorted({f"{name} in {zone}" for name, _, zone in refused}))
        raise InsufficientCapacity(f"No capacity for {names}.", code="SimulatedCapacity", refused=refused)

    def look(self, work: NodeWork) -> Machine:
        """The machine by the clock: its node joins when its time has come."""
        machine = self._machine(work)
        if machine is None:
            return Machine("absent")
        if machine.power == "Off":
            return Machine("stopped", machine.id, zone=machine.zone)
        if machine.joins_at is None:
            return Machine("running", machine.id, zone=machine.zone)
        left = (times.from_text(machine.joins_at) - work.now).total_seconds()
        if left > 0:
            return Machine("starting", machine.id, zone=machine.zone, refresh=math.ceil(left))
        return Machine("running", machine.id, f"{work.claim.name}.simulated", machine.zone)

    def _machine(self, work: NodeWork) -> SimulatedMachine | None:
        line = work.ledger.find(KIND, KEY)
        return self._store_of(work.tenant).get(SimulatedMachine, line.vendor_id or line.token) if line else None

    def power(self, work: NodeWork, state: str) -> Outcome:
        """Switched on, off, or off and on; at once."""
        machine = self._machine(work)
        if machine is None:
            raise NodeCouldNotBeProvisioned("The claim has no machine.")
        wanted = "On" if state == "Reboot" else state
        if machine.power != wanted:
            changed = replace(machine, power=wanted, version=machine.version + 1)
            self._store_of(work.tenant).commit(Replace(changed))
        return Outcome(True, f"The machine is {wanted}.", facts={"power": wanted})

    def terminate(self, work: NodeWork) -> Outcome:
        """Remove the machine, found by what the ledger says was intended."""
        store = self._store_of(work.tenant)
        for line in work.ledger.lines():
            if line.kind == KIND:
                store.commit(Remove(SimulatedMachine, line.vendor_id or line.token))
                work.ledger.gone(line)
        return Outcome(True, "The machine is gone.")

    def clear(self, work: EnvironmentWork) -> Outcome:
        """Nothing was set up."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:
        """Every machine of the provider."""
        store, after = self._store_of(tenant), None
        found: list[Tagged] = []
        while True:
            page = store.list(SimulatedMachine, after=after, limit=200, where={"provider_id": provider.id})
            found += [
                Tagged(KIND, one.id, "", tenant, one.claim_id, one.tags["generation"], one.launched_at)
                for one in page.items
                if one.tags.get("installation") == installation
            ]
            if page.next_id is None:
                return found
            after = page.next_id

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan."""
        self._store_of(tenant).commit(Remove(SimulatedMachine, thing.vendor_id))
        return True
