"""Machines of a source that has to be questions: when each is compared, and what its claim says of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim, NodeProvider
from stockyard.errors import Conflict, VendorUnavailable
from stockyard.lifecycle.nodes.drift import is_drifted
from stockyard.operations.node_claims import comparisons
from stockyard.operations.node_claims.drift import compare
from stockyard.operations.node_claims.power import power_claim
from stockyard.ports.node_work import NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.sweeping import Reaper
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}}
WORDS = "image: noble instead of jammy"


class _Comparing(SimulatedNodes):
    """Implements ``Compares`` besides; ``questions`` are the claims that it was questions for."""

    compares = True

    questions: Sequence[str] = ()
    mark = "commit-1"
    words: str | None = None
    fault: Exception | None = None

    def template_fingerprint(self, provider: NodeProvider) -> str:
        return self.mark

    def drift(self, work: NodeWork) -> str | None:
        self.questions = (*self.questions, work.claim.name)
        if self.fault is not None:
            raise self.fault
        return self.words


@pytest.fixture
def source(world: World) -> _Comparing:
    return _Comparing(world.registry.store)


@pytest.fixture
def nodes(world: World, source: _Comparing) -> Nodes:
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    nodes.provider("lab", SMALL)
    return nodes


def available(nodes: Nodes, name: str = "one") -> NodeClaim:
    claim = nodes.claim(name)
    nodes.schedule()
    nodes.relay()
    assert nodes.now(claim).phase == "Available"
    return nodes.now(claim)


def swept(nodes: Nodes, source: _Comparing, hours: float = 0) -> tuple[str, ...]:
    """Names of the claims that a sweep after so many hours compares."""
    source.questions = ()
    nodes.hours(hours)
    Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run(reconciled=True)
    return tuple(source.questions)


def not_drifted(nodes: Nodes, claim: NodeClaim) -> tuple[str, str, str]:
    (condition,) = (part for part in nodes.now(claim).conditions if part.type == "NotDrifted")
    return condition.status, condition.reason, condition.message


def test_a_machine_is_compared_once_a_day_and_when_its_template_moved(nodes: Nodes, source: _Comparing) -> None:
    claim = available(nodes)
    assert [swept(nodes, source, hours) for hours in (0, 1, 22, 1.1, 0)] == [("one",), (), (), ("one",), ()]
    source.mark = "commit-2"
    assert [swept(nodes, source), swept(nodes, source)] == [("one",), ()]
    assert nodes.now(claim).updated_at == claim.updated_at, "that nothing differs is no news"
    assert not_drifted(nodes, claim)[0] == "True"


def test_what_differs_is_a_condition_that_goes_again(nodes: Nodes, source: _Comparing) -> None:
    claim = available(nodes)
    source.words = WORDS
    swept(nodes, source)
    text = f"Changed since the launch: what the provider would make. {WORDS}"
    assert not_drifted(nodes, claim) == ("False", "MachineChanged", text)
    assert is_drifted(nodes.now(claim)), "so pools replace it within their budgets of disruption"
    noted = nodes.now(claim)
    swept(nodes, source, 25)
    assert nodes.now(claim).conditions == noted.conditions, "it is said once"
    # A look at the document says nothing of it.
    provider = nodes.services.store.get(NodeProvider, str(noted.placement and noted.placement.provider_id))
    assert compare(nodes.services, provider, nodes.now(claim)) is None
    source.words = None
    swept(nodes, source, 25)
    assert not_drifted(nodes, claim)[:2] == ("True", "AsLaunched")


def test_a_vendor_that_does_not_answer_leaves_all_as_it_was_and_is_asked_again(
    nodes: Nodes, source: _Comparing
) -> None:
    claim = available(nodes)
    source.fault = VendorUnavailable("no answer")
    assert swept(nodes, source) == swept(nodes, source, 0.1) == ("one",)
    assert nodes.now(claim) == claim
    source.fault = None
    assert swept(nodes, source) == ("one",)
    assert nodes.now(claim).compared_as == "commit-1"


def test_who_waited_longest_is_first_and_no_sweep_compares_too_many(
    nodes: Nodes, source: _Comparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons, "MOST", 2)
    for name in ("a", "b", "c"):
        available(nodes, name)
    assert [swept(nodes, source), swept(nodes, source), swept(nodes, source)] == [("a", "b"), ("c",), ()]
    assert swept(nodes, source, 25) == ("a", "b")
    assert swept(nodes, source) == ("c",)


def test_only_machines_that_stand_are_compared(nodes: Nodes, source: _Comparing, monkeypatch: Any) -> None:
    claim = available(nodes)
    power_claim(nodes.services, claim.id, "Off", "user:ann")
    assert swept(nodes, source) == ()
    assert comparisons.compare_machine(nodes.services, claim.id, "m") is None
    assert comparisons.compare_machine(nodes.services, "ncl_gone", "m") is None
    nodes.relay()
    source.words = WORDS

    def late(*_: Any) -> None:
        raise Conflict("somebody was first")

    monkeypatch.setattr(type(nodes.services.store), "commit", late)
    before = nodes.now(claim)
    assert comparisons.compare_machine(nodes.services, claim.id, "m") is None
    source.words = None
    assert comparisons.compare_machine(nodes.services, claim.id, "m") is None
    assert nodes.now(claim) == before
