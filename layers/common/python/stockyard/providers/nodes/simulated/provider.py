"""Machines that exist in Stockyard alone: they take their time, run out, and join by themselves.

For trying things out, for tests, and as the pattern of every other source of nodes. How long a machine takes is written
in the provider's document: ``launchSeconds`` until it runs, ``joinSeconds`` more until its node has joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from stockyard.domain.nodes.declared_types import block_of, node_types_of
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import CloudAccount, NodeProvider, SimulatedMachine
from stockyard.domain.values import times
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.ports import Finding, Outcome, Store, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.nodes.simulated.machines import Machines

KIND, KEY = "simulated machine", "node"
SILENT = "never"
"""``joinSeconds`` of machines that never join."""

SPARE_SECONDS = 300
"""How long a machine may take beyond what its document says."""

Refuses = Callable[[str, str, str], bool]
"""Whether a type of a provider is refused in a zone: the plan of somebody who tries failures out."""


class SimulatedNodes(NodeSource):
    """Implements ``ports.nodes.NodeSource``. Whoever tries failures out sets ``refuses``."""

    switches = True

    def __init__(self, store_of: Callable[[str], Store], refuses: Refuses = lambda *_: False) -> None:
        self._machines = Machines(store_of)
        self.refuses = refuses

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:
        """As declared."""
        return node_types_of(provider, built=True)

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:
        """A simulated machine is refused by one provider alone."""
        return f"provider/{provider.id}"

    def attestation(self, provider: NodeProvider) -> str:
        """No cloud gives its machines keys. They join by themselves, so the token is for what plays their boot."""
        return TOKEN

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:
        """Nothing beyond the form can be wrong."""
        return ()

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:
        """See ``ports.nodes.LaunchesSlowly``. A node that never joins is given up when the stage says so."""
        seconds = _join_seconds(provider)
        return {} if seconds is None else {"register": math.ceil(seconds) + SPARE_SECONDS}

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """There is nothing to set up."""
        return Outcome(True)

    def launch(self, work: NodeWork) -> Outcome:
        """Make the machine of the first option and zone that is not refused; see ``ports.nodes.NodeSource.launch``."""
        line = work.ledger.intend(KIND, KEY)
        machine = self._machines.find(work.tenant, line.token) or self._make(work, line.token)
        if line.state != "made":
            work.ledger.made(line, machine.id)
        facts = {
            "machine_id": machine.id,
            "type": machine.type,
            "capacity_type": machine.capacity_type,
            "zone": machine.zone,
        }
        return Outcome(True, f"Machine {machine.id} was launched in {machine.zone}.", facts=facts)

    def _make(self, work: NodeWork, token: str) -> SimulatedMachine:
        name, capacity_type, zone = self._offering(work)
        seconds = _join_seconds(work.provider)
        machine = SimulatedMachine(
            id=token,
            claim_id=work.claim.id,
            provider_id=work.provider.id,
            type=name,
            capacity_type=capacity_type,
            zone=zone,
            launched_at=times.to_text(work.now),
            joins_at=None if seconds is None else times.to_text(work.now + timedelta(seconds=seconds)),
            tags={
                "installation": work.installation,
                "tenant": work.tenant,
                "resource": work.claim.id,
                "generation": str(work.claim.generation),
            },
        )
        return self._machines.make(work.tenant, machine)

    def _offering(self, work: NodeWork) -> tuple[str, str, str]:
        """The first option that can be had. ``InsufficientCapacity`` names every way that was refused."""
        placed = work.claim.placement
        if placed is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        refused: list[tuple[str, str, str]] = []
        for option in placed.options:
            name = option.type_of(work.provider.name)
            for zone in option.zones:
                if not self.refuses(work.provider.name, name, zone):
                    return option.type, option.capacity_type, zone
                refused.append((name, option.capacity_type, zone))
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
        seconds = (times.from_text(machine.joins_at) - work.now).total_seconds()
        if seconds > 0:
            return Machine("starting", machine.id, zone=machine.zone, refresh=math.ceil(seconds))
        return Machine("running", machine.id, f"{work.claim.name}.simulated", machine.zone)

    def _machine(self, work: NodeWork) -> SimulatedMachine | None:
        line = work.ledger.find(KIND, KEY)
        return self._machines.find(work.tenant, line.vendor_id or line.token) if line else None

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """Switched on, off, or off and on; at once."""
        machine = self._machine(work)
        if machine is None:
            raise NodeCouldNotBeProvisioned("The claim has no machine.")
        power = "On" if state == "Reboot" else state
        if machine.power != power:
            self._machines.switch(work.tenant, machine, power)
        return Outcome(True, f"The machine is {power}.", facts={"power": power})

    def terminate(self, work: NodeWork) -> Outcome:
        """Remove the machine, found by what the ledger says was intended."""
        for line in work.ledger.lines():
            if line.kind == KIND:
                self._machines.remove(work.tenant, line.vendor_id or line.token)
                work.ledger.gone(line)
        return Outcome(True, "The machine is gone.")

    def clear(self, work: EnvironmentWork) -> Outcome:
        """Nothing was set up."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:
        """Every machine of the provider."""
        return [
            Tagged(KIND, machine.id, "", tenant, machine.claim_id, machine.tags["generation"], machine.launched_at)
            for machine in self._machines.of_provider(tenant, provider.id)
            if machine.tags.get("installation") == installation
        ]

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan."""
        self._machines.remove(tenant, thing.vendor_id)
        return True


def _join_seconds(provider: NodeProvider) -> float | None:
    """Seconds from a machine's launch until its node joins; None: never."""
    block = block_of(provider)
    join = block.get("joinSeconds", 0)
    return None if join == SILENT else float(block.get("launchSeconds", 0)) + float(join)
