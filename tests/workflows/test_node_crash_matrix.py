"""Every fault at every write of a claim's life, from the request to its end: nothing is left and nothing hangs.

The cells are made from a recorded life without faults: each write to the table and each call that creates or removes a
machine, in every phase of both workflows, in the handlers that create and delete, and in the scheduler. A new phase
adds cells by itself.
"""

from __future__ import annotations

import itertools
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from local.testing.memory_store import MemoryStore
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import NodeClaim, SimulatedMachine
from stockyard.errors import StockyardError, VendorRefused, VendorThrottled, VendorTimeout
from stockyard.operations.listing import every
from stockyard.operations.node_claims.create import create_claim
from stockyard.ports import Create, Remove, Replace, Write
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

T = TypeVar("T")
CLAIM = "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"
TYPES: tuple[dict[str, Any], ...] = (
    {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1, "maxCapacity": 1},
    {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 0.4, "maxCapacity": 1},
)
FAULTS = ("before", "after", "timeout", "throttled", "refused")
"""``before``: the worker dies before the call. ``after``: it dies after the call and before the answer is used.
``timeout``: the vendor did the call but gave no answer. ``throttled`` and ``refused``: the vendor's answers."""


class Died(StockyardError):
    """The worker's process ended. Lambda reports it under this name, and workflows and streams try again."""

    workflow_name = "Runtime.ExitError"


@dataclass
class FaultyStore:
    """A tenant's store that counts its commits and fails at the commit number ``site`` by ``fault``."""

    store: MemoryStore
    site: int = -1
    fault: str = ""
    sites: list[tuple[str, bool]] = field(default_factory=list)
    fired: bool = False
    point: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, *writes: Write) -> None:
        vendor = any(_kind(write) is SimulatedMachine for write in writes)
        at_site = len(self.sites) == self.site
        self.sites.append((self.point, vendor))
        if at_site:
            self.fired = True
            if self.fault == "before":
                raise Died("before the call")
            if self.fault == "throttled":
                raise VendorThrottled("slow down")
            if self.fault == "refused":
                raise VendorRefused("never")
        self.store.commit(*writes)
        if at_site and self.fault == "after":
            raise Died("after the call")
        if at_site and self.fault == "timeout":
            raise VendorTimeout("no answer")


def _kind(write: Write) -> type[Any] | None:
    if isinstance(write, Create | Replace):
        return type(write.record)
    return write.kind if isinstance(write, Remove) else None


@dataclass
class Life:
    """One claim's life under at most one fault."""

    nodes: Nodes
    store: FaultyStore

    @classmethod
    def of(cls, site: int = -1, fault: str = "", refused: bool = False) -> Life:
        world = make_world()
        nodes = Nodes.of(world.registry, world.services, world.clock)
        nodes.provider("lab", *TYPES, block={"launchSeconds": 1, "joinSeconds": 2})
        if refused:
            nodes.refused.add(("lab", "small", "global"))
        store = FaultyStore(world.registry.store("acme"), site, fault)
        source = SimulatedNodes(lambda _: store, lambda *way: way in nodes.refused)
        nodes.services = with_ports(replace(nodes.services, store=store), node_sources={"simulated": source})
        return cls(nodes, store)

    def run(self) -> str:
        """Runs the life from the request to the end of the deletion. Returns the claim's phase before the deletion."""
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
            # The sweep continues what was blocked or lost.
            self.nodes.hours(1)
            self._again("sweep", self._sweep)
        return became

    def _delete(self) -> None:
        if self.nodes.services.store.get(NodeClaim, CLAIM) is not None:
            self.nodes.delete(self.nodes.services.store.get(NodeClaim, CLAIM))

    def _sweep(self) -> None:
        Reaper(self.nodes.registry, self.nodes.clock, lambda _: self.nodes.services).run()

    def _relay(self, point: str) -> None:
        self.store.point = point
        self.nodes.before_phase = self._phase
        self._again(point, self.nodes.relay)

    def _phase(self, name: str) -> None:
        self.store.point = name

    def _again(self, point: str, work: Callable[[], T]) -> T:
        """Repeats ``work`` while the worker dies or a vendor is slow, as a caller or a stream does."""
        self.store.point = point
        for _ in range(3):
            try:
                return work()
            except (Died, VendorThrottled, VendorTimeout):
                continue
        raise AssertionError(f"{point} never succeeds")


def _cells(refused: bool) -> Iterator[tuple[int, str, str, bool]]:
    """(site, point, fault, refused) of every write in a life without faults."""
    plain = Life.of(refused=refused)
    assert plain.run() == "Available"
    assert plain.nodes.nothing_left()
    for site, (point, vendor) in enumerate(plain.store.sites):
        for fault in FAULTS if vendor else FAULTS[:2]:
            yield site, point, fault, refused


def test_node_crash_matrix(record_property: Callable[[str, object], None]) -> None:
    cells = list(itertools.chain(_cells(False), _cells(True)))
    became: Tally[str] = Tally()
    faults: list[str] = []
    for site, point, fault, refused in cells:
        life = Life.of(site, fault, refused)
        name = f"{site} in {point}, {fault}{', first type refused' if refused else ''}"
        try:
            phase = life.run()
        except Exception as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
            continue
        became[phase] += 1
        if not life.store.fired:
            faults.append(f"{name}: the fault never came")
        elif phase not in ("Available", "Failed"):
            faults.append(f"{name}: it became {phase}")
        elif not life.nodes.nothing_left():
            machine_ids = [machine.id for machine in every(life.store, SimulatedMachine)]
            faults.append(f"{name}: something is left ({machine_ids})")
    points = {point for _, point, _, _ in cells}
    assert not faults, "\n".join(faults)
    assert points >= {"create", "schedule", "delete", "launch", "register", "terminate", "release"}
    assert len(cells) > 60
    record_property("figure:node_crash_matrix", {"cells": len(cells), "places": len(points), "bad": 0, **became})


def test_the_judge_sees_a_machine_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that forgets its ledger leaves a machine, and the judge must report it."""
    monkeypatch.setattr(SimulatedNodes, "terminate", lambda self, work: _forget(work))
    life = Life.of()
    life.run()
    assert not life.nodes.nothing_left()


def _forget(work: Any) -> Any:
    from stockyard.ports import Outcome

    for line in work.ledger.lines():
        work.ledger.gone(line)
    return Outcome(True)
