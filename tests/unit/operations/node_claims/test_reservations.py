"""Nodes in room that was bought for a time leave before their cloud ends them; a launch that hangs says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stockyard.domain.pools.disruption_records import ClusterDisruption
from stockyard.domain.records import Event, NodeClaim
from stockyard.domain.values import times
from stockyard.lifecycle.nodes.draining import drain_deadline
from stockyard.lifecycle.pools.no_types import why_claims_wait
from stockyard.operations.fleet.disruption.run import look
from stockyard.operations.listing import every
from stockyard.operations.node_claims import reservations
from stockyard.ports import Outcome
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.unit.operations.fleet.pools.conftest import Yard, yard

__all__ = ["yard"]


def bought(yard: Yard, monkeypatch: pytest.MonkeyPatch, minutes: float) -> tuple[NodeClaim, str]:
    """A claim whose machine is to be ended in so many minutes, and when that is."""
    until = times.to_text(yard.nodes.clock.now() + timedelta(minutes=minutes))
    launch = SimulatedNodes.launch

    def launched(source: SimulatedNodes, work: Any) -> Outcome:
        outcome = launch(source, work)
        return replace(outcome, facts={**outcome.facts, "reserved_until": until}) if outcome.done else outcome

    monkeypatch.setattr(SimulatedNodes, "launch", launched)
    claim = yard.nodes.claim("block", cluster_ref=yard.cluster.id)
    yard.nodes.schedule()
    yard.nodes.relay()
    return yard.nodes.now(claim), until


def test_a_node_of_a_capacity_block_leaves_twelve_minutes_before_its_machine(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case b59: thirty minutes before the end of the block EC2 begins to end its machines."""
    services, clock = yard.nodes.services, yard.nodes.clock
    claim, until = bought(yard, monkeypatch, 60)
    assert (claim.phase, claim.reserved_until) == ("Available", until)
    record = services.store.get(ClusterDisruption, yard.cluster.id)
    assert record is not None
    assert str(record.due_at) <= times.to_text(times.from_text(until) - timedelta(minutes=12))
    look(services, yard.cluster.id)
    assert not yard.nodes.now(claim).deleting
    record = services.store.get(ClusterDisruption, yard.cluster.id)
    assert record is None or str(record.due_at) <= until, "whatever the look says of the next one"
    clock.advance((times.from_text(until) - timedelta(minutes=12) - clock.now()).total_seconds())
    look(services, yard.cluster.id)
    leaving = yard.nodes.now(claim)
    assert (leaving.deleting, leaving.ends_at) == (True, until)
    deadline = drain_deadline(replace(leaving, termination_grace_period="Never"), 0)
    assert deadline == times.from_text(until) - timedelta(seconds=15), "budgets of pods hold until then"
    events = [event for event in every(services.store, Event, "") if event.reason == "ReservationEnds"]
    assert [until in event.message and "room that was bought" in event.message for event in events] == [True]


def test_a_reservation_is_asked_for_again_while_it_may_have_been_extended(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = yard.nodes.services
    claim, until = bought(yard, monkeypatch, 110)
    assert claim.placement is not None
    of_block = replace(claim, placement=replace(claim.placement, capacity_type="capacity-block"))
    now = services.clock.now()
    assert reservations.to_ask([claim], now) == []
    assert reservations.to_ask([of_block], now) == [of_block]
    assert reservations.to_ask([of_block], now - timedelta(hours=1)) == []
    unknown = replace(of_block, reserved_until=None)
    assert reservations.to_ask([unknown], now) == [unknown]
    later = times.to_text(times.from_text(until) + timedelta(days=1))
    # not on its class: what a class can do, a check of a protocol remembers
    monkeypatch.setattr(services.node_sources["simulated"], "ends_at", lambda *_: later, raising=False)
    reservations.ask(services, claim.id)
    assert yard.nodes.now(claim).reserved_until == later


def test_what_a_vendor_says_of_a_launch_that_hangs_is_on_its_claim(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case b60, on a cluster that is ready."""
    text = "EKS says of node group workers: AccessDenied: the role is gone."
    hanging = Outcome(False, "It hangs.", wait_seconds=15, facts={"blocker": text})
    launch, answers = SimulatedNodes.launch, [hanging, hanging]
    monkeypatch.setattr(SimulatedNodes, "launch", lambda *args: answers.pop() if answers else launch(*args))
    claim = yard.nodes.claim("worker", cluster_ref=yard.cluster.id)
    waiting: list[NodeClaim] = []
    yard.nodes.meanwhile = lambda: waiting.append(yard.nodes.now(claim))
    yard.nodes.schedule()
    yard.nodes.relay()
    first, second, *_ = waiting
    assert (first.reason, first.message, second) == ("LaunchHindered", text, first)
    provisioned = next(part for part in first.conditions if part.type == "Provisioned")
    assert (provisioned.status, provisioned.message) == ("False", text)
    assert why_claims_wait([first]) == f"worker waits: {text}"
    after = yard.nodes.now(claim)
    assert (after.phase, after.message) == ("Available", "")
