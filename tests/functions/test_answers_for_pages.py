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
    handlers = {"/usage": pools_handler, "/node-claims": claims_handler, "/node-types": providers_handler}
    handlers |= {"/node-providers": providers_handler, "/costs": records_handler, "/operations": records_handler}
    return next((module for part, module in handlers.items() if part in path), clusters_handler)


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


def test_a_list_says_how_many_it_has_where_that_is_asked_for(yard: Yard, ask: Ask) -> None:
    for n in range(3):
        yard.nodes.claim(f"waits-{n}", cluster_ref=yard.cluster.name, resources={"cpu": "64"})
    providers = ask("GET", "/v1/node-providers", query="offers=true").json["items"]
    for path, query, number in (
        ("/v1/node-claims", "", 3),
        ("/v1/node-claims", "&phase=Pending", 3),
        ("/v1/node-claims", "&phase=Failed", 0),
        ("/v1/clusters", "", 1),
        ("/v1/node-providers", "", len(providers)),
        ("/v1/node-types", "", sum(provider["offers"]["types"] for provider in providers)),
        ("/v1/operations", "&kind=create_node", 3),
    ):
        answer = ask("GET", path, query=f"count=true{query}")
        assert answer.json.get("total") == {"count": number, "more": False}, (path, query, answer.json)
        assert ask("GET", path).json["total"] is None


def test_a_provider_says_what_it_offers_and_from_which_price_on(yard: Yard, ask: Ask) -> None:
    offers = {
        each["name"]: each["offers"] for each in ask("GET", "/v1/node-providers", query="offers=true").json["items"]
    }
    types = ask("GET", "/v1/node-types", query="page_size=200").json["items"]
    for name, offer in offers.items():
        own = [each for each in types if each["provider"] == name]
        prices = [each["usd_hour"] for each in own if each["usd_hour"] is not None]
        assert offer == {"types": len(own), "usd_hour": min(prices, default=None)}, name
    assert any(offer["types"] for offer in offers.values())
    assert {each["offers"] for each in ask("GET", "/v1/node-providers").json["items"]} == {None}
