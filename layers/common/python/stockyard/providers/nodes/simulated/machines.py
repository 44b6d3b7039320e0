"""Substitute for a vendor: machines that are records. A real provider calls its vendor's API instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stockyard.domain.records import SimulatedMachine
from stockyard.domain.values.states import Power
from stockyard.errors import Conflict
from stockyard.ports import Create, Remove, Replace, Store


class Machines:
    """The machines of all tenants. ``store_of`` gives a tenant's records, where they stand."""

    def __init__(self, store_of: Callable[[str], Store]) -> None:
        self._store_of = store_of

    def find(self, tenant: str, machine_id: str) -> SimulatedMachine | None:
        """The machine of that id, if it is there."""
        return self._store_of(tenant).get(SimulatedMachine, machine_id)

    def make(self, tenant: str, machine: SimulatedMachine) -> SimulatedMachine:
        """Make the machine. Its id is the launch token: a second call with it finds what the first one made."""
        store = self._store_of(tenant)
        try:
            store.commit(Create(machine))
        except Conflict:
            return store.get(SimulatedMachine, machine.id) or machine
        return machine

    def switch(self, tenant: str, machine: SimulatedMachine, power: Power) -> None:
        """Switch it ``On`` or ``Off``."""
        self._store_of(tenant).commit(Replace(replace(machine, power=power, version=machine.version + 1)))

    def remove(self, tenant: str, machine_id: str) -> None:
        """Remove it; nothing happens when it is not there."""
        self._store_of(tenant).commit(Remove(SimulatedMachine, machine_id))

    def of_provider(self, tenant: str, provider_id: str) -> list[SimulatedMachine]:
        """Every machine of one provider."""
        store, after = self._store_of(tenant), None
        machines: list[SimulatedMachine] = []
        while True:
            page = store.list(SimulatedMachine, after=after, limit=200, where={"provider_id": provider_id})
            machines += page.items
            if page.next_id is None:
                return machines
            after = page.next_id
