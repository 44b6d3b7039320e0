"""Every write of a claim's life, from the request to its end, struck by every fault: nothing is left, nothing sticks.

The cells are read off a life without faults: each write to the table and each call that makes or removes a machine, in
every phase of both documents, in the handlers that create and delete, and in the scheduler. A new phase adds cells.
"""

from __future__ import annotations

import itertools
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from local.memory_store import MemoryStore
from stockyard.domain.records import NodeClaim, SimulatedMachine
from stockyard.errors import StockyardError, VendorRefused, VendorThrottled, VendorTimeout
from stockyard.operations.create_claim import NewClaim, create_claim
from stockyard.operations.every import every
from stockyard.operations.reap import Reaper
from stockyard.ports import Create, Remove, Replace, Write
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

T = TypeVar("T")
CLAIM = "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"
TYPES: tuple[dict[str, Any], ...] = (
    {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1},
    {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 0.4, "maxCapacity": 1},
)
FAULTS = ("before", "after", "timeout", "throttled", "refused")
"""The worker dies before the call, or after it and before its answer is used; a vendor's call times out after it was
done, is throttled, or is refused for good."""


class Died(StockyardError):
    """The worker's process ended. Lambda reports it under this name, and documents and streams try again."""

    workflow_name = "Runtime.ExitError"


@dataclass
class Struck:
    """A tenant's store that counts its commits, and fails at ``site`` by ``fault``."""

    store: MemoryStore
    site: int = -1
    fault: str = ""
    seen: list[tuple[str, bool]] = field(default_factory=list)
    fired: bool = False
    where: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        vendor = any(_kind(write) is SimulatedMachine for write in writes)
        mine = len(self.seen) == self.site
        self.seen.append((self.where, vendor))
        if mine:
            self.fired = True
            if self.fault == "before":
                raise Died("before the call")
            if self.fault == "throttled":
                raise VendorThrottled("slow down")
            if self.fault == "refused":
                raise VendorRefused("never")
        self.store.commit(*writes)
        if mine and self.fault == "after":
            raise Died("after the call")
        if mine and self.fault == "timeout":
            raise VendorTimeout("no answer")


def _kind(write: Write) -> type[Any] | None:
    if isinstance(write, Create | Replace):
        return type(write.record)
    return write.kind if isinstance(write, Remove) else None


@dataclass
class Life:
    """One claim's life under at most one fault."""

    nodes: Nodes
    store: Struck

    @classmethod
    def of(cls, site: int = -1, fault: str = "", refused: bool = False) -> Life:
        world = make_world()
        nodes = Nodes.of(world.registry, world.services, world.clock)
        nodes.provider("lab", *TYPES, block={"launchSeconds": 1, "joinSeconds": 2})
        if refused:
            nodes.refused.add(("lab", "small", "global"))
        store = Struck(world.registry.store("acme"), site, fault)  # type: ignore[arg-type]
        source = SimulatedNodes(lambda _: store, lambda *way: way in nodes.refused)  # type: ignore[arg-type, return-value]
        nodes.services = replace(nodes.services, store=store, sources={"simulated": source})  # type: ignore[arg-type]
        return cls(nodes, store)

    def run(self) -> str:
        """From the request to nothing. Returns what the claim became before it was deleted."""
        self._again("create", lambda: create_claim(self.nodes.services, NewClaim(name="one"), "user:ann", CLAIM))
        for _ in range(4):
            self._again("schedule", self.nodes.schedule)
            self._relay("provision")
            claim = self.nodes.services.store.get(NodeClaim, CLAIM)
            if claim is not None and claim.phase != "Pending":
                break
        became = "gone" if claim is None else claim.phase
        self._again("delete", self._delete)
        for _ in range(4):
            self._relay("delete")
            if self.nodes.services.store.get(NodeClaim, CLAIM) is None:
                break
            # What was blocked or lost is the sweep's.
            self.nodes.hours(1)
            self._again("sweep", self._sweep)
        return became

    def _delete(self) -> None:
        if self.nodes.services.store.get(NodeClaim, CLAIM) is not None:
            self.nodes.delete(self.nodes.services.store.get(NodeClaim, CLAIM))  # type: ignore[arg-type]

    def _sweep(self) -> None:
        Reaper(self.nodes.registry, self.nodes.clock, lambda _: self.nodes.services).run()

    def _relay(self, where: str) -> None:
        self.store.where = where
        self.nodes.where = self._phase
        self._again(where, self.nodes.relay)

    def _phase(self, name: str) -> None:
        self.store.where = name

    def _again(self, where: str, work: Callable[[], T]) -> T:
        """As a caller or a stream does: again, while the worker dies or a vendor is slow."""
        self.store.where = where
        for _ in range(3):
            try:
                return work()
            except (Died, VendorThrottled, VendorTimeout):
                continue
        raise AssertionError(f"{where} never succeeds")


def _cells(refused: bool) -> Iterator[tuple[int, str, str, bool]]:
    """(site, where, fault, refused) of every write, read off a life without faults."""
    plain = Life.of(refused=refused)
    assert plain.run() == "Available"
    assert plain.nodes.nothing_left()
    for site, (where, vendor) in enumerate(plain.store.seen):
        for fault in FAULTS if vendor else FAULTS[:2]:
            yield site, where, fault, refused


def test_node_crash_matrix(record_property: Callable[[str, object], None]) -> None:
    cells = list(itertools.chain(_cells(False), _cells(True)))
    became: Tally[str] = Tally()
    bad: list[str] = []
    for site, where, fault, refused in cells:
        life = Life.of(site, fault, refused)
        name = f"{site} in {where}, {fault}{', first type refused' if refused else ''}"
        try:
            found = life.run()
        except Exception as error:
            bad.append(f"{name}: {type(error).__name__}: {error}")
            continue
        became[found] += 1
        if not life.store.fired:
            bad.append(f"{name}: the fault never came")
        elif found not in ("Available", "Failed"):
            bad.append(f"{name}: it became {found}")
        elif not life.nodes.nothing_left():
            left = [machine.id for machine in every(life.store, SimulatedMachine)]  # type: ignore[type-var, arg-type]
            bad.append(f"{name}: something is left ({left})")
    places = {where for _, where, _, _ in cells}
    assert not bad, "\n".join(bad)
    assert places >= {"create", "schedule", "delete", "launch", "register", "terminate", "release"}
    assert len(cells) > 60
    record_property("figure:node_crash_matrix", {"cells": len(cells), "places": len(places), "bad": 0, **became})


def test_a_fault_that_leaves_something_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is not blind: a source that forgets its ledger leaves a machine."""
    monkeypatch.setattr(SimulatedNodes, "terminate", lambda self, work: _forget(work))
    life = Life.of()
    life.run()
    assert not life.nodes.nothing_left()


def _forget(work: Any) -> Any:
    from stockyard.ports import Outcome

    for line in work.ledger.lines():
        work.ledger.gone(line)
    return Outcome(True)
