"""Holds of claims on machines of a node group that makes its machines by itself: one record for each machine.

A machine is taken by making its record, so that two claims never have one. Whoever holds a machine ends it, and the
record goes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from stockyard.domain.records import MachineHold, NodeClaim
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import Conflict, Fenced
from stockyard.lifecycle.nodes.machine_gone import is_lost
from stockyard.lifecycle.nodes.node_claim import PENDING
from stockyard.operations.listing import every
from stockyard.operations.node_claims.cluster_claims import claims_of
from stockyard.operations.services import Services
from stockyard.ports import Check, Create, Remove, Write


def hold_id(inventory: str, machine_id: str) -> str:
    """The id of the record of one machine's holder."""
    return f"{inventory}/{machine_id}"


def holds_of(services: Services, inventory: str) -> list[MachineHold]:
    """The records of all machines of the cluster, or the inventory of hosts, that claims hold."""
    return list(every(services.store, MachineHold, prefix=f"{inventory}/"))


def forgetting(services: Services, claim: NodeClaim) -> list[Write]:
    """Writes that go with the removal of a claim's record: its hold, where one is left. Who ended the machine has
    removed it already."""
    if not claim.host_name:
        return []
    hold = services.store.get(MachineHold, hold_id(claim.cluster_id, claim.machine_id))
    return [Remove(MachineHold, hold.id, hold.version)] if hold is not None and hold.claim_id == claim.id else []


@dataclass(frozen=True, slots=True)
class StoreHolds:
    """``ports.node_work.MachineHolds`` on a store. ``guard`` is the fence of the claim that works on it. ``inventory``
    is that of the machines, where they are not the cluster's own."""

    services: Services
    claim: NodeClaim
    guard: Check
    inventory: str | None = None

    def holders(self) -> Mapping[str, str]:
        """See ``ports.node_work.MachineHolds.holders``."""
        return {hold.machine_id: hold.claim_id for hold in holds_of(self.services, self._inventory)}

    def take(self, machine_id: str) -> bool:
        """See ``ports.node_work.MachineHolds.take``. ``Fenced`` when the claim is no longer this attempt's."""
        new_hold = MachineHold(hold_id(self._inventory, machine_id), self.claim.id, self.services.now())
        try:
            self.services.store.commit(self.guard, Create(new_hold))
        except Fenced:
            raise
        except Conflict as conflict:
            if conflict.index == 0:
                raise Fenced("Another operation or attempt owns the claim now.") from conflict
            hold = self._hold(machine_id)
            return hold is not None and hold.claim_id == self.claim.id
        return True

    def release(self, machine_id: str) -> None:
        """See ``ports.node_work.MachineHolds.release``. Not fenced: the machine is gone, whoever owns the claim."""
        hold = self._hold(machine_id)
        if hold is not None and hold.claim_id == self.claim.id:
            self.services.store.commit(Remove(MachineHold, hold.id, hold.version))

    def count(self, *, own: bool = True) -> int:
        """See ``ports.node_work.MachineHolds.count``."""
        holders = frozenset(self.holders().values())
        claims = claims_of(self.services, self.claim.cluster_id, self.claim.pool)
        return sum(_counts(claim, holders) for claim in claims if own or claim.id != self.claim.id)

    @property
    def _inventory(self) -> str:
        return self.inventory or self.claim.cluster_id

    def _hold(self, machine_id: str) -> MachineHold | None:
        return self.services.store.get(MachineHold, hold_id(self._inventory, machine_id))


def _counts(claim: NodeClaim, holders: Set[str]) -> bool:
    """Whether a claim has a machine of its group, or waits for one. One that waits for the scheduler may yet go
    elsewhere, and the machine of a lost one is gone."""
    if claim.id in holders:
        return not is_lost(claim)
    return claim.phase == PENDING and claim.placement is not None and not claim.deleting
