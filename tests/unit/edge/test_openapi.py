"""The document says what the edge does."""

from __future__ import annotations

import json
import re

import pytest

from stockyard.edge import openapi
from stockyard.edge.route import Answer, Door, Query, Roles


@pytest.fixture
def document(world):
    door = world.door
    door.route(
        "POST",
        "/v1/clusters",
        summary="Create",
        action="CreateCluster",
        roles=Roles.OPERATOR,
        body="clusters:ClusterCreate",
        answers={202: "cluster_views:ClusterView"},
        idempotent=True,
        dry_run=True,
    )(lambda _: Answer(202))
    door.route(
        "GET",
        "/v1/clusters",
        summary="List",
        action="ListClusters",
        roles=Roles.READERS,
        answers={200: "cluster_views:ClusterView"},
        query=(Query("status", "Only this.", values=("ready",)),),
        paged=True,
    )(lambda _: Answer(200))
    door.route(
        "PATCH",
        "/v1/clusters/{id}",
        summary="Change",
        action="ChangeCluster",
        roles=Roles.OPERATOR,
        body="cluster_patch:ClusterPatch",
        answers={200: "cluster_views:ClusterView"},
        if_match=True,
        dry_run=True,
        description="More words.",
    )(lambda _: Answer(200))
    other = Door("other")
    other.route(
        "GET", "/v1/health", summary="Health", action="Health", token=False, answers={200: "machines:HealthView"}
    )(lambda _: Answer(200))
    other.route(
        "GET",
        "/v1/prices",
        summary="Prices",
        action="ListPrices",
        roles=Roles.READERS,
        answers={200: None},
        query=(Query("n", "A number.", "integer", minimum=1, maximum=3), Query("p", "", pattern="^x")),
    )(lambda _: Answer(200))
    other.route(
        "GET",
        "/v1/clusters/{id}/kubeconfig",
        summary="Kubeconfig",
        action="ReadKubeconfig",
        roles=Roles.READERS,
        answers={200: "cluster_views:KubeconfigView"},
    )(lambda _: Answer(200))
    return openapi.build([door, other])


def test_every_reference_resolves_and_it_is_json(document):
    names = document["components"]["schemas"]
    text = json.dumps(document)
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.split('"')[0] in names
    assert "#/$defs" not in text


def test_statuses_are_all_there(document):
    def statuses(path, method):
        return set(document["paths"][path][method]["responses"])

    always = {"413", "422", "429", "500", "502", "503"}
    assert statuses("/v1/clusters", "post") == always | {"200", "202", "400", "401", "403", "409", "415"}
    assert statuses("/v1/clusters", "get") == always | {"200", "401", "403"}
    changed = {"200", "400", "401", "403", "404", "409", "412", "415", "428"}
    assert statuses("/v1/clusters/{id}", "patch") == always | changed
    assert statuses("/v1/health", "get") == always | {"200"}
    # a part of a cluster may not be there yet
    assert statuses("/v1/clusters/{id}/kubeconfig", "get") == always | {"200", "401", "403", "404", "409"}


def test_what_the_gateway_answers_itself_is_documented_as_such(document):
    for status in ("401", "413", "429", "503"):
        content = document["paths"]["/v1/clusters"]["post"]["responses"][status]["content"]
        assert set(content) == {"application/problem+json", "application/json"}
        assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/GatewayMessage"}


def test_parameters_bodies_roles_and_lists(document):
    create = document["paths"]["/v1/clusters"]["post"]
    assert create["x-stockyard-roles"] == ["stockyard-operator"]
    assert [one["name"] for one in create["parameters"]] == ["dry_run", "X-Stockyard-Tenant", "Idempotency-Key"]
    assert create["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/ClusterCreate"
    }
    listing = document["paths"]["/v1/clusters"]["get"]
    assert [one["name"] for one in listing["parameters"]] == ["status", "page_size", "page_token", "X-Stockyard-Tenant"]
    assert listing["parameters"][0]["schema"]["enum"] == ["ready"]
    page = listing["responses"]["200"]["content"]["application/json"]["schema"]
    assert page["properties"]["items"]["items"] == {"$ref": "#/components/schemas/ClusterView"}
    change = document["paths"]["/v1/clusters/{id}"]["patch"]
    assert "application/merge-patch+json" in change["requestBody"]["content"]
    assert next(one for one in change["parameters"] if one["name"] == "If-Match")["required"] is True
    assert len(change["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]) == 2
    assert document["paths"]["/v1/health"]["get"]["security"] == []
    number, text, _ = (one["schema"] for one in document["paths"]["/v1/prices"]["get"]["parameters"])
    assert number == {"type": "integer", "minimum": 1, "maximum": 3}
    assert text["pattern"] == "^x"


def test_secrets_go_in_and_never_out(document):
    schemas = document["components"]["schemas"]
    secret = schemas["ClusterCreate"]["properties"]["secret"]["anyOf"][0]
    assert secret["writeOnly"] is True
    assert (secret["minLength"], secret["maxLength"]) == (24, 32)
    assert "secret" not in schemas["ClusterView"]["properties"]
    assert schemas["ClusterCreate"]["additionalProperties"] is False


def test_what_is_refused_when_null_is_not_nullable(document):
    patch = document["components"]["schemas"]["ClusterPatch"]["properties"]
    assert (patch["description"]["type"], "default" in patch["description"]) == ("string", False)
    assert {"type": "null"} in patch["tags"]["anyOf"]


def test_rules_of_texts_and_lists_are_in_the_document(document):
    settings = document["components"]["schemas"]["AwsSettings"]["properties"]
    for name in ("ssh_cidrs", "api_cidrs", "integrations"):
        assert settings[name]["uniqueItems"] is True
    assert re.search(settings["ssh_cidrs"]["items"]["pattern"], "198.51.100.0/24")
    labels = document["components"]["schemas"]["NodeGroup"]["properties"]["labels"]["additionalProperties"]
    assert re.search(labels["pattern"], "")
    assert not re.search(labels["pattern"], "-")
