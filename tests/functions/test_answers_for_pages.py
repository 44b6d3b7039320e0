"""Answers that pages look at again and again, through their handlers: use of nodes, costs of a list, cures, prices."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from functions.clusters import handler as clusters_handler
from functions.node_claims import handler as claims_handler
from functions.node_providers import handler as providers_handler
from functions.pools import handler as pools_handler
from functions.records import handler as records_handler
from stockyard.domain.models.clusters.views import ClusterView
from stockyard.domain.models.costs import CostsView
from stockyard.domain.models.nodes.explanations import ExplanationView
from stockyard.domain.models.nodes.node_types import NodeTypeView
from stockyard.domain.models.pools.usage import ClusterUsageView
from tests.harness.asking import Ask, asking
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard

HANDLERS = (clusters_handler, claims_handler, providers_handler, pools_handler, records_handler)


def module_of(path: str) -> ModuleType:
    """The handler that serves a path."""
    places = {"/usage": pools_handler, "/node-claims": claims_handler, "/node-types": providers_handler}
    places["/costs"] = records_handler
    return next((module for part, module in places.items() if part in path), clusters_handler)


@pytest.fixture
def yard() -> Yard:
    return make_yard()


@pytest.fixture
def ask(yard: Yard) -> Iterator[Ask]:
    with asking(lambda: yard.nodes.services, module_of, *HANDLERS) as send:
        yield send


def test_each_new_answer_is_as_the_contract_says(yard: Yard, ask: Ask) -> None:
    claim = yard.nodes.claim("waits", cluster_ref=yard.cluster.name, resources={"cpu": "64"})
    yard.nodes.schedule()
    usage = ask("GET", f"/v1/clusters/{yard.cluster.id}/usage")
    assert usage.status == 200, usage.json
    ClusterUsageView.model_validate(usage.json)
    explanation = ask("GET", f"/v1/node-claims/{claim.id}/explanation", query="cures=true")
    assert [cure["change"] for cure in explanation.json["cures"]["cures"]] == ["with 8 of cpu"]
    ExplanationView.model_validate(explanation.json)
    node_type = ask("GET", "/v1/node-types/sim.small", query="history=true")
    assert (node_type.status, node_type.json["spot_history"]) == (200, {}), node_type.json
    NodeTypeView.model_validate(node_type.json)
    costs = ask("GET", "/v1/costs", query="max_age=60")
    assert costs.status == 200, costs.json
    CostsView.model_validate(costs.json)
    for query, has_costs in (("costs=true", True), ("", False)):
        (cluster,) = ask("GET", "/v1/clusters", query=query).json["items"]
        ClusterView.model_validate(cluster)
        assert (cluster["costs"] is not None) == has_costs
