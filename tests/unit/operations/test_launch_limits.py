"""Limits that a provider's machines have of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stockyard.domain.records import NodeClaim, NodeProvider, Placement
from stockyard.lifecycle.nodes.node_phases import SLOWEST_SECONDS
from stockyard.lifecycle.phases import PROCEDURES, procedure_of
from stockyard.operations.node_claims.phases import RUNNER
from stockyard.operations.node_providers.catalog import drain_seconds, limits_of
from stockyard.ports.nodes import NodeSource
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from stockyard.settings import Settings
from tests.harness.worlds.ports import partial_port

NOW = "2026-01-31T12:00:00.000Z"
PROVIDER = NodeProvider("npr_1", "lab", "slow", {"slow": {}}, NOW, NOW)
CLAIM = NodeClaim(
    "ncl_1", "workers-1", NOW, NOW, placement=Placement("npr_1", "lab.small", "on-demand", ("a",), 1.0, NOW)
)


class Plain(NodeSource):
    """A source that says nothing."""


class Slow(NodeSource):
    """A source of machines that need long."""

    def limits(self, provider: NodeProvider) -> dict[str, int]:
        slow = {"environment": 7200, "terminate": 5400, "power": 99_999}
        return {"launch": 3600, "register": 60, "drain": 7200, **slow}


def services(source: object) -> Any:
    store = SimpleNamespace(get=lambda _kind, _id: PROVIDER)
    return SimpleNamespace(store=store, settings=Settings("t"), node_sources={"slow": source})


@pytest.mark.parametrize(
    ("kind", "name", "own", "stage"),
    [
        ("create_node", "environment", 7200, 1800),
        ("create_node", "launch", 3600, 300),
        ("create_node", "register", 900, 900),
        ("create_node", "initialize", 900, 900),
        ("delete_node", "drain", 8400, 3600),
        ("delete_node", "terminate", 5400, 3600),
        ("delete_node", "release", 600, 600),
        ("power_node", "power", SLOWEST_SECONDS, 1200),
    ],
)
def test_limit_of_phase_is_the_providers_where_it_is_longer(kind: str, name: str, own: int, stage: int) -> None:
    phase = procedure_of(PROCEDURES, kind).phase(name)
    assert RUNNER.limit(services(partial_port(Slow)), CLAIM, phase) == own
    assert RUNNER.limit(services(partial_port(Plain)), CLAIM, phase) == stage


def test_workflows_outlast_the_slowest_phases_of_a_provider() -> None:
    slow_phases = ("environment", "launch", "register", "terminate", "power")
    for kind in ("create_node", "delete_node", "power_node"):
        procedure = procedure_of(PROCEDURES, kind)
        longest = (SLOWEST_SECONDS if phase.name in slow_phases else phase.limit_seconds for phase in procedure.phases)
        assert procedure.timeout_seconds > sum(longest), kind


def test_drain_may_take_as_long_as_the_provider_says() -> None:
    assert drain_seconds(services(partial_port(Slow)), CLAIM) == 7200
    assert drain_seconds(services(partial_port(Plain)), CLAIM) == 600


def test_claim_without_placement_has_the_stages_limits() -> None:
    assert limits_of(services(partial_port(Slow)), NodeClaim("ncl_1", "workers-1", NOW, NOW)) == {}


@pytest.mark.parametrize(
    ("block", "limits"),
    [
        ({}, {"register": 300}),
        ({"launchSeconds": 0.5, "joinSeconds": 60}, {"register": 361}),
        ({"joinSeconds": "never"}, {}),
    ],
)
def test_simulated_machines_may_take_what_their_document_says(block: dict[str, Any], limits: dict[str, int]) -> None:
    source: Any = SimulatedNodes(lambda _tenant: pytest.fail("no call is made"))
    provider = NodeProvider("npr_1", "lab", "simulated", {"simulated": block}, NOW, NOW)
    assert source.limits(provider) == limits
