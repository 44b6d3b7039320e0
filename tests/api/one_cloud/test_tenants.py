"""Another tenant's resource does not exist: every route, every kind of id, lists, filters and page tokens."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from local.aws import OWN_ACCOUNT
from stacks.names import Names
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.domain.records import NodeEnvironment
from stockyard.ports import Create

LEAK = """
from stockyard.adapters.dynamodb.registry import DynamoRegistry

own = DynamoRegistry.store
DynamoRegistry.store = lambda self, tenant: own(self, "acme")
"""
ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
NAME = "canary-of-acme"


@pytest.fixture(scope="module")
def acme(api):
    """Everything of acme that another tenant could ask for, by kind. The cluster stands in its own tenant only."""
    token = api.token("acme", *ROLES)
    headers = {"Authorization": f"Bearer {token}"}
    body = {
        "name": NAME,
        "description": "canary description",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key"},
        "tags": {"canary-tag": "canary-value"},
    }
    made = api.send("POST", "/v1/clusters", headers, body)
    assert made.status_code == 202, made.text
    account = api.send("GET", "/v1/cloud-accounts/1", headers).json()
    nodes = nodes_of_acme(api, headers)
    lists = {
        path: api.send("GET", f"/v1/{path}", headers).json()["items"] for path in ("events", "audit", "operations")
    }
    assert all(lists.values()), lists
    return {
        "token": token,
        "cluster": made.json()["id"],
        "name": NAME,
        "client": made.json()["client_id"],
        "operation": made.json()["operation_id"],
        "account": "1",
        "role": account["attributes"]["role_arn"],
        "external id": account["external_id"],
        "event": lists["events"][0]["id"],
        "audit": lists["audit"][0]["id"],
        "tag": "canary-value",
        "description": "canary description",
        **nodes,
    }


def nodes_of_acme(api, headers):
    """A provider with a node type, a claim, and what the provider has set up for a cluster."""
    kind = {"name": "canary-type", "resources": {"cpu": "1", "memory": "1Gi"}}
    provider = {"name": "canary-lab", "kind": "simulated", "spec": {"nodeTypes": [kind]}, "labels": {"canary": "lab"}}
    made = api.send("POST", "/v1/node-providers", headers, provider)
    # of no cluster, with which it would go, and of a provider that there is not, so that it stays as it is
    manifest = {"apiVersion": "management.loft.sh/v1", "kind": "NodeClaim", "metadata": {"name": "canary-claim"}}
    claim = api.send("POST", "/v1/apply", headers, {**manifest, "spec": {"providerRef": "nobody"}})
    assert (made.status_code, claim.status_code) == (201, 200), (made.text, claim.text)
    types = api.send("GET", "/v1/node-types?provider=canary-lab", headers).json()["items"]
    environment = NodeEnvironment(
        "nev_01ARZ3NDEKTSV4RRFFQ69G5FAV", "clu_canary", made.json()["id"], "canary-lab", "t", "t"
    )
    table = api.cloud.aws.client("dynamodb", api.cloud.aws.keys(OWN_ACCOUNT))
    DynamoRegistry(table, Names("dev").table).store("acme").commit(Create(environment))
    return {
        "provider": made.json()["id"],
        "provider name": "canary-lab",
        "type": types[0]["id"],
        "type name": "canary-lab.canary-type",
        "claim": claim.json()["results"][0]["id"],
        "claim name": "canary-claim",
        "environment": environment.id,
    }


KINDS = (
    "cluster",
    "name",
    "client",
    "operation",
    "account",
    "event",
    "audit",
    "provider",
    "provider name",
    "type",
    "type name",
    "claim",
    "claim name",
    "environment",
)
FILTERS = ("subject", "after", "tag", "status", "region", "cluster", "provider", "phase", "kind", "label")
ELSEWHERE = {
    "GET /v1/health": "says nothing of anybody",
    "POST /v1/cloud-accounts": "test_an_idempotency_key_of_another_gives_no_answer_of_theirs",
    "POST /v1/clusters": "test_an_account_of_another_cannot_be_used",
    "POST /v1/apply": "test_manifests_of_one_do_not_meet_those_of_another",
    "POST /v1/node-claims": "test_a_cluster_or_provider_of_another_cannot_be_claimed",
    "POST /v1/node-providers": "test_manifests_of_one_do_not_meet_those_of_another",
    "PUT /v1/allowed-node-types": "test_a_quota_of_one_is_not_the_others",
    "POST /v1/clusters/{id}/bootstrap": "test_whoever_knows_a_cluster_gets_nothing_without_its_machines_proof",
    "POST /v1/node-claims/{id}/join": "test_whoever_knows_a_cluster_gets_nothing_without_its_machines_proof",
    "PUT /v1/quotas/{name}": "test_a_quota_of_one_is_not_the_others",
}
"""Operations without a foreign id in their path and without a list, and where they are tested."""


def covered(operations, chosen):
    """The check that every operation is in this matrix."""
    inside = {str(one) for name in ("with_id", "listing") for one in chosen[name]}
    assert {str(one) for one in operations} == inside | set(ELSEWHERE)
    assert not inside & set(ELSEWHERE)


def no_trace(answer, acme, *asked):
    """No byte of acme in an answer, but what the caller has said itself."""
    for kind, value in acme.items():
        if kind not in ("token", "account") and not any(value in one for one in asked):
            assert value not in answer.text, (kind, answer.text)
    assert answer.status_code < 500, answer.text


def invisible(api, operation, acme, token):
    """Each kind of acme's ids gives 404, with nothing of acme in it."""
    for kind in KINDS:
        asked = acme[kind]
        answer = api.call(operation, token, at=asked)
        assert answer.status_code == 404, (kind, answer.status_code, answer.text)
        assert answer.json()["error_type"] == "NotFound"
        no_trace(answer, acme, asked)


def intruder(api, operation):
    """The strongest token of the other tenant that the route lets in."""
    return api.token("globex", *ROLES) if operation.roles else api.token("globex", client_id="globex-0123456789ab")


def test_a_foreign_id_does_not_exist(api, with_id, acme):
    invisible(api, with_id, acme, intruder(api, with_id))


def test_a_foreign_id_and_an_unknown_one_look_the_same(api, with_id, acme):
    def seen(value):
        answer = api.call(with_id, intruder(api, with_id), at=value)
        document = {key: v for key, v in answer.json().items() if key not in ("request_id", "instance")}
        return answer.status_code, json.dumps(document).replace(value, "?")

    assert seen(acme["cluster"]) == seen("clu_01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_whoever_knows_a_cluster_gets_nothing_without_its_machines_proof(api, all_operations, acme):
    bootstrap = next(one for one in all_operations if one.path.endswith("/bootstrap"))
    answer = api.call(bootstrap, None, at=acme["cluster"])
    assert answer.status_code in (401, 404)
    no_trace(answer, acme, acme["cluster"])
    join = next(one for one in all_operations if one.path.endswith("/join"))
    body = {"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}, "cluster_id": acme["cluster"]}
    answer = api.send("POST", join.at(acme["claim"]), {}, body)
    assert answer.status_code in (401, 404)
    no_trace(answer, acme, acme["claim"], acme["cluster"])


def test_lists_and_filters_show_nothing_of_another(api, listing, acme):
    # a tenant that has asked for nothing yet: its own audit records name what it was refused
    token = api.token("initech", *ROLES)
    no_trace(api.call(listing, token), acme)
    for name in (one for one in listing.parameters if one in FILTERS):
        for kind in KINDS:
            value = {"tag": f"canary-tag={acme['tag']}", "label": "canary=lab"}.get(name, acme[kind])
            answer = api.call(listing, token, query=f"?{name}={value}")
            assert not answer.json().get("items"), (name, kind, answer.text)
            no_trace(answer, acme, value, acme[kind], acme["tag"])


def test_page_tokens_of_another_are_refused(api, paged, acme):
    first = api.call(paged, acme["token"], query="?page_size=1").json()
    # a list of one page gives no token; then one of another list has to do
    prices = api.send("GET", "/v1/prices?page_size=1", {"Authorization": f"Bearer {acme['token']}"}).json()
    mine = first["next_page_token"]
    if mine is not None:
        assert api.call(paged, acme["token"], query=f"?page_token={mine}").status_code == 200
    for token in (mine or prices["next_page_token"], prices["next_page_token"]):
        answer = api.call(paged, api.token("globex", *ROLES), query=f"?page_token={token}")
        assert (answer.status_code, answer.json()["error_type"]) == (422, "InvalidInput")
        no_trace(answer, acme)


def test_an_account_of_another_cannot_be_used(api, acme):
    body = {
        "name": "stolen",
        "description": "",
        "cloud_account_id": int(acme["account"]),
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key"},
    }
    headers = {"Authorization": f"Bearer {api.token('initech', *ROLES)}"}
    for query in ("", "?dry_run=true"):
        answer = api.send("POST", f"/v1/clusters{query}", headers, body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/cloud_account_id")
        no_trace(answer, acme)


def test_an_idempotency_key_of_another_gives_no_answer_of_theirs(api, acme):
    body = {"provider": "aws", "name": "canary-key", "attributes": {"role_arn": "arn:aws:iam::333333333333:role/r"}}
    headers = {"Idempotency-Key": "shared-key"}
    path = "/v1/cloud-accounts?dry_run=false"
    first = api.send("POST", path, {**headers, "Authorization": f"Bearer {acme['token']}"}, body)
    other = api.token("globex", *ROLES)
    second = api.send("POST", path, {**headers, "Authorization": f"Bearer {other}"}, body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["external_id"] != second.json()["external_id"]
    assert "idempotent-replayed" not in second.headers
    for token, made in ((acme["token"], first), (other, second)):
        gone = api.send("DELETE", f"/v1/cloud-accounts/{made.json()['id']}", {"Authorization": f"Bearer {token}"})
        assert gone.status_code == 202


def test_a_quota_of_one_is_not_the_others(api, acme):
    platform = {"Authorization": f"Bearer {api.token('acme', 'stockyard-platform')}"}

    def shown(tenant):
        answer = api.send("GET", "/v1/quotas", {**platform, "X-Stockyard-Tenant": tenant})
        return {one["name"]: one for one in answer.json()["items"]}

    before = shown("acme")["clusters"]
    headers = {**platform, "X-Stockyard-Tenant": "globex", "If-Match": f'"{shown("globex")["clusters"]["version"]}"'}
    assert api.send("PUT", "/v1/quotas/clusters", headers, {"limit": 33}).status_code == 200
    assert shown("globex")["clusters"]["limit"] == 33
    assert shown("acme")["clusters"] == before
    allowed, headers = {"allowed": ["lab.*"]}, {**headers, "If-Match": '"0"'}
    assert api.send("PUT", "/v1/allowed-node-types", headers, allowed).status_code == 200
    acmes = api.send("GET", "/v1/allowed-node-types", {**platform, "X-Stockyard-Tenant": "acme"}).json()
    assert (acmes["allowed"], acmes["version"]) == (None, 0)


def test_manifests_of_one_do_not_meet_those_of_another(api, acme):
    headers = {"Authorization": f"Bearer {api.token('globex', *ROLES)}"}
    manifest = {
        "apiVersion": "stockyard/v1",
        "kind": "NodeProvider",
        "metadata": {"name": acme["provider name"]},
        "spec": {"simulated": {}},
    }
    made = api.send("POST", "/v1/apply", headers, manifest)
    assert made.json()["results"][0]["action"] == "created", made.text
    assert made.json()["results"][0]["id"] != acme["provider"]
    no_trace(made, acme, acme["provider name"])
    gone = api.send("DELETE", f"/v1/node-providers/{acme['provider name']}", headers)
    assert gone.status_code == 202, gone.text
    body = {"name": acme["provider name"], "kind": "simulated", "spec": {}}
    assert api.send("POST", "/v1/node-providers", headers, body).status_code == 201
    mine = {"Authorization": f"Bearer {acme['token']}"}
    assert len(api.send("GET", f"/v1/node-providers/{acme['provider']}", mine).json()["node_types"]) == 1


def test_a_cluster_or_provider_of_another_cannot_be_claimed(api, acme):
    headers = {"Authorization": f"Bearer {api.token('initech', *ROLES)}"}
    for body, pointers in (
        ({"cluster": acme["cluster"]}, ["/cluster"]),
        ({"cluster": acme["name"]}, ["/cluster"]),
        ({"cluster": acme["name"], "provider": acme["provider name"]}, ["/cluster"]),
    ):
        for query in ("", "?dry_run=true"):
            answer = api.send("POST", f"/v1/node-claims{query}", headers, body)
            assert (answer.status_code, [one["pointer"] for one in answer.json()["errors"]]) == (422, pointers)
            no_trace(answer, acme, *body.values())


def test_a_clusters_client_of_one_sees_nothing_of_another(api, all_operations, acme):
    """Neither with the id of its own tenant's client, nor with that of acme's cluster in its own tenant."""
    open_to_both = [one for one in all_operations if one.machine and one.roles]
    assert len(open_to_both) == 4
    for operation in open_to_both:
        for client in ("globex-0123456789ab", acme["client"]):
            answer = api.call(operation, api.token("globex", client_id=client), at=acme["claim"])
            assert (answer.status_code, answer.json()["error_type"]) == (404, "NotFound"), answer.text
            no_trace(answer, acme, acme["claim"])


def test_a_leak_is_noticed(api, all_operations, acme):
    """The checks themselves: with a token of acme, everything of acme is there, so they must fail."""
    readable = [one for one in all_operations if one.method == "GET" and not one.public]
    for operation in readable:
        if "{id}" in operation.path:
            with pytest.raises(AssertionError):
                invisible(api, operation, acme, acme["token"])
    listed = ("clusters", "operations", "events", "audit", "cloud-accounts")
    for path in (f"/v1/{one}" for one in (*listed, "node-providers", "node-types", "node-claims", "node-environments")):
        operation = next(one for one in readable if one.path == path)
        with pytest.raises(AssertionError):
            no_trace(api.call(operation, acme["token"]), acme)


def test_handlers_that_mix_tenants_up_are_noticed(broken, chosen, acme):
    """The real functions, whose store is always that of acme."""
    leaking = broken(LEAK)
    for operation in chosen["listing"]:
        # prices are the same for all, quotas are numbers, and nothing is set for acme's node types
        if operation.path not in ("/v1/prices", "/v1/quotas", "/v1/allowed-node-types"):
            with pytest.raises(AssertionError):
                no_trace(leaking.call(operation, leaking.token("initech", *ROLES)), acme)
    asked = [one for one in chosen["with_id"] if one.roles]
    for operation in sorted(asked, key=lambda one: one.method == "DELETE"):
        with pytest.raises(AssertionError):
            invisible(leaking, operation, acme, intruder(leaking, operation))


def test_the_matrix_is_whole(all_operations, chosen, whole, record_property):
    whole(all_operations)
    covered(all_operations, chosen)
    for operation in all_operations:
        with pytest.raises(AssertionError):
            covered([one for one in all_operations if one != operation], chosen)
    with pytest.raises(AssertionError):
        covered([*all_operations, replace(all_operations[0], path="/v1/new")], chosen)
    with_id, listing = len(chosen["with_id"]), len(chosen["listing"])
    filters = sum(name in FILTERS for one in chosen["listing"] for name in one.parameters)
    cells = (with_id + filters) * len(KINDS) + with_id + listing + len(chosen["paged"]) + len(ELSEWHERE)
    figure = {"operations": len(all_operations), "ids": len(KINDS), "cells": cells, "percent": 100}
    record_property("figure:tenants", figure)
