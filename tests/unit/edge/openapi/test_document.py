"""The document says what the edge does."""

from __future__ import annotations

import json
import re

import pytest

from stockyard.edge.openapi import document as openapi
from stockyard.edge.route import Answer, HttpFunction, Query, Roles


def inlined(document, part):
    """A part of the document, where it may stand among the components."""
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    return document["components"][kind][name]


@pytest.fixture
def document(world):
    http = world.http
    http.route(
        "POST /v1/clusters",
        summary="Create",
        action="CreateCluster",
        roles=Roles.OPERATOR,
        body="clusters.clusters:ClusterCreate",
        answers={202: "clusters.views:ClusterView"},
        idempotent=True,
        dry_run=True,
    )(lambda _: Answer(202))
    http.route(
        "GET /v1/clusters",
        summary="List",
        action="ListClusters",
        roles=Roles.READERS,
        answers={200: "clusters.views:ClusterView"},
        query=(Query("status", "Only this.", values=("ready",)),),
        paged=True,
    )(lambda _: Answer(200))
    http.route(
        "PATCH /v1/clusters/{id}",
        summary="Change",
        action="ChangeCluster",
        roles=Roles.OPERATOR,
        body="clusters.patch:ClusterPatch",
        answers={200: "clusters.views:ClusterView"},
        if_match=True,
        dry_run=True,
        description="More words.",
    )(lambda _: Answer(200))
    second_function = HttpFunction("other")
    second_function.route(
        "GET /v1/health",
        summary="Health",
        action="Health",
        open_because="A probe.",
        answers={200: "clusters.machines:HealthView"},
    )(lambda _: Answer(200))
    second_function.route(
        "GET /v1/prices",
        summary="Prices",
        action="ListPrices",
        roles=Roles.READERS,
        answers={200: None},
        query=(Query("n", "A number.", "integer", minimum=1, maximum=3), Query("p", "", pattern="^x")),
    )(lambda _: Answer(200))
    second_function.route(
        "GET /v1/costs",
        summary="Costs",
        action="GetCosts",
        roles=Roles.READERS,
        answers={200: None},
        query=(Query("cluster", "Of a cluster.", finds=True),),
    )(lambda _: Answer(200))
    second_function.route(
        "GET /v1/clusters/{id}/kubeconfig",
        summary="Kubeconfig",
        action="ReadKubeconfig",
        roles=Roles.READERS,
        answers={200: "clusters.views:KubeconfigView"},
    )(lambda _: Answer(200))
    return openapi.build([http, second_function])


def test_document_is_json_and_its_references_resolve(document):
    text = json.dumps(document)
    for kind, name in re.findall(r'"#/components/(\w+)/(\w+)"', text):
        assert name in document["components"][kind]
    assert "#/$defs" not in text


def test_operations_list_all_their_statuses(document):
    def statuses(path, method):
        return set(document["paths"][path][method]["responses"])

    always = {"413", "422", "429", "500", "502", "503"}
    assert statuses("/v1/clusters", "post") == always | {"200", "202", "400", "401", "403", "409", "415"}
    assert statuses("/v1/clusters", "get") == always | {"200", "401", "403"}
    changed = {"200", "400", "401", "403", "404", "409", "412", "415", "428"}
    assert statuses("/v1/clusters/{id}", "patch") == always | changed
    assert statuses("/v1/health", "get") == always | {"200"}
    assert statuses("/v1/prices", "get") == always | {"200", "401", "403"}
    assert statuses("/v1/costs", "get") == always | {"200", "401", "403", "404"}, "its parameter names a cluster"
    # a part of a cluster may not be there yet
    assert statuses("/v1/clusters/{id}/kubeconfig", "get") == always | {"200", "401", "403", "404", "409"}


def test_answers_of_the_gateway_are_documented(document):
    for status in ("401", "413", "429", "503"):
        content = inlined(document, document["paths"]["/v1/clusters"]["post"]["responses"][status])["content"]
        assert set(content) == {"application/problem+json", "application/json"}
        assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/GatewayMessage"}


def test_operations_have_parameters_bodies_and_roles(document):
    def parameters(operation):
        return [inlined(document, parameter) for parameter in operation["parameters"]]

    create = document["paths"]["/v1/clusters"]["post"]
    assert create["x-stockyard-roles"] == ["stockyard-operator"]
    assert [parameter["name"] for parameter in parameters(create)] == [
        "dry_run",
        "X-Stockyard-Tenant",
        "Idempotency-Key",
    ]
    assert create["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/ClusterCreate"
    }
    listing = document["paths"]["/v1/clusters"]["get"]
    assert [parameter["name"] for parameter in parameters(listing)] == [
        "status",
        "page_size",
        "page_token",
        "X-Stockyard-Tenant",
    ]
    assert parameters(listing)[0]["schema"]["enum"] == ["ready"]
    page = listing["responses"]["200"]["content"]["application/json"]["schema"]
    assert page["properties"]["items"]["items"] == {"$ref": "#/components/schemas/ClusterView"}
    change = document["paths"]["/v1/clusters/{id}"]["patch"]
    assert "application/merge-patch+json" in change["requestBody"]["content"]
    assert next(parameter for parameter in parameters(change) if parameter["name"] == "If-Match")["required"] is True
    assert len(change["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]) == 2
    health = document["paths"]["/v1/health"]["get"]
    assert (health["security"], health["x-stockyard-open"], health["x-stockyard-function"]) == ([], "A probe.", "other")
    assert "x-stockyard-open" not in create
    number, text, _ = (parameter["schema"] for parameter in parameters(document["paths"]["/v1/prices"]["get"]))
    assert number == {"type": "integer", "minimum": 1, "maximum": 3}
    assert text["pattern"] == "^x"


def test_secrets_are_write_only(document):
    schemas = document["components"]["schemas"]
    secret = schemas["ClusterCreate"]["properties"]["secret"]["anyOf"][0]
    assert secret["writeOnly"] is True
    assert (secret["minLength"], secret["maxLength"]) == (24, 32)
    assert "secret" not in schemas["ClusterView"]["properties"]
    assert schemas["ClusterCreate"]["additionalProperties"] is False


def test_fields_that_refuse_null_are_not_nullable(document):
    patch = document["components"]["schemas"]["ClusterPatch"]["properties"]
    assert (patch["description"]["type"], "default" in patch["description"]) == ("string", False)
    assert {"type": "null"} in patch["tags"]["anyOf"]


def test_schemas_have_rules_of_texts_and_lists(document):
    settings = document["components"]["schemas"]["AwsSettingsCreate"]["properties"]
    for name in ("ssh_cidrs", "api_cidrs", "integrations"):
        assert settings[name]["uniqueItems"] is True
    assert re.search(settings["ssh_cidrs"]["items"]["pattern"], "198.51.100.0/24")
    labels = document["components"]["schemas"]["NodeGroup"]["properties"]["labels"]["additionalProperties"]
    assert re.search(labels["pattern"], "")
    assert not re.search(labels["pattern"], "-")


def test_common_responses_and_parameters_are_components(document):
    create, change = document["paths"]["/v1/clusters"]["post"], document["paths"]["/v1/clusters/{id}"]["patch"]
    assert create["responses"]["422"] == change["responses"]["422"] == {"$ref": "#/components/responses/InvalidInput"}
    assert {"$ref": "#/components/parameters/DryRun"} in create["parameters"]
    assert {"$ref": "#/components/parameters/DryRun"} in change["parameters"]
    (if_match,) = (parameter for parameter in change["parameters"] if parameter.get("name") == "If-Match")
    assert if_match["in"] == "header"


def test_two_shared_parameters_of_same_name_are_refused():
    function = HttpFunction("alike")
    for number, text in enumerate(("One meaning.", "One meaning.", "Another.", "Another.")):
        function.route(
            f"GET /v1/things{number}",
            summary="",
            action=f"List{number}",
            roles=Roles.READERS,
            answers={200: None},
            query=(Query("near", text),),
        )(lambda _: Answer(200))
    with pytest.raises(ValueError, match="called alike"):
        openapi.build([function])
