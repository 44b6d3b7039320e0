"""A resource of another tenant does not exist: on every route, with every kind of id, in lists, filters and pages."""

from __future__ import annotations

import json

from tests.api.each import check_each
from tests.api.one_cloud.isolation import FILTERS, KINDS, PROFILE, ROLES, intruder, invisible, no_trace


def test_a_foreign_id_does_not_exist(api, operations_by_choice, acme):
    check_each(operations_by_choice["with_id"], lambda route: invisible(api, route, acme, intruder(api, route)))


def test_a_foreign_id_and_an_unknown_id_have_the_same_answer(api, operations_by_choice, acme):
    def answer_without(operation, value):
        answer = api.call(operation, intruder(api, operation), at=value)
        document = {key: v for key, v in answer.json().items() if key not in ("request_id", "instance")}
        return answer.status_code, json.dumps(document).replace(value, "?")

    def check(operation):
        unknown = answer_without(operation, "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV")
        assert answer_without(operation, acme["cluster"]) == unknown

    check_each(operations_by_choice["with_id"], check)


def test_bootstrap_and_join_give_nothing_without_a_machines_attestation(api, all_operations, acme):
    bootstrap = next(operation for operation in all_operations if operation.path.endswith("/bootstrap"))
    answer = api.call(bootstrap, None, at=acme["cluster"])
    assert answer.status_code == 401
    no_trace(answer, acme, acme["cluster"])
    join = next(operation for operation in all_operations if operation.path.endswith("/join"))
    body = {"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}, "cluster_id": acme["cluster"]}
    for proof in (body, {"token": "0" * 64, "cluster_id": acme["cluster"]}):
        answer = api.send("POST", join.at(acme["claim"]), {}, proof)
        assert answer.status_code == 401
        no_trace(answer, acme, acme["claim"], acme["cluster"])
        report = api.send("POST", f"/v1/node-claims/{acme['claim']}/boot-reports", {}, {**proof, "step": "join"})
        assert report.status_code == 401
        no_trace(report, acme, acme["claim"], acme["cluster"])
        member = {**proof, "state": "joined", "removed": []}
        report = api.send("POST", f"/v1/node-claims/{acme['claim']}/member-reports", {}, member)
        assert report.status_code == 401
        no_trace(report, acme, acme["claim"], acme["cluster"])
    end = {**body, "kind": "interruption", "time": "2026-01-01T00:00:00Z"}
    announced = api.send("POST", f"/v1/node-claims/{acme['claim']}/interruptions", {}, end)
    assert announced.status_code == 401
    no_trace(announced, acme, acme["claim"], acme["cluster"])
    proof = {"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}, "step": "init"}
    answer = api.send("POST", f"/v1/clusters/{acme['cluster']}/boot-reports", {}, proof)
    assert answer.status_code == 401
    no_trace(answer, acme, acme["cluster"])
    for proof in ({"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}}, {"token": "0" * 64}):
        answer = api.send("POST", f"/v1/clusters/{acme['cluster']}/snapshot-reports", {}, proof)
        assert answer.status_code == 401
        no_trace(answer, acme, acme["cluster"])


def test_open_routes_answer_a_proof_alike_whether_an_id_is_there_or_not(api, acme):
    signed = {"method": "POST", "url": "https://sts.amazonaws.com/", "headers": {}}
    no_cluster, no_claim = "clu_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ncl_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    own = {"bootstrap": {}, "boot-reports": {"step": "init"}, "snapshot-reports": {}}
    of_claims = {
        "join": {},
        "boot-reports": {"step": "join"},
        "member-reports": {"state": "joined", "removed": []},
        "interruptions": {"kind": "interruption", "time": "2026-01-01T00:00:00Z"},
    }
    for proof in (signed, {"token": "0" * 64}):
        for route, more in own.items():
            answers = [
                api.send("POST", f"/v1/clusters/{cluster}/{route}", {}, {**proof, **more})
                for cluster in (acme["cluster"], no_cluster)
            ]
            assert {(answer.status_code, answer.json()["detail"]) for answer in answers} == {
                (401, answers[0].json()["detail"])
            }
        for route, more in of_claims.items():
            if route == "interruptions" and "token" in proof:
                continue  # it takes no token
            answers = [
                api.send("POST", f"/v1/node-claims/{claim}/{route}", {}, {**proof, **more, "cluster_id": cluster})
                for claim, cluster in (
                    (acme["claim"], acme["cluster"]),
                    (no_claim, acme["cluster"]),
                    (no_claim, no_cluster),
                )
            ]
            assert {(answer.status_code, answer.json()["detail"]) for answer in answers} == {
                (401, answers[0].json()["detail"])
            }


def test_a_run_is_reached_by_its_own_token_alone(api, acme):
    """Tokens of runs that are there are tried against each other in ``tests/functions/runs``."""
    path = "/v1/runs/run_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    parts = (("POST", "begin"), ("POST", "log"), ("POST", "end"), ("GET", "state"), ("POST", "state"))
    for method, part in (*parts, ("DELETE", "state"), ("PUT", "lock"), ("DELETE", "lock")):
        for credential in (f"Bearer {acme['token']}", f"Bearer acme.{'0' * 64}", "Basic cnVuOmFjbWUuMA==", "Basic !"):
            answer = api.send(method, f"{path}/{part}", {"Authorization": credential}, {})
            assert answer.status_code == 401, (method, part, credential[:12])
            no_trace(answer, acme)


def test_lists_and_filters_show_nothing_of_another_tenant(api, operations_by_choice, acme):
    # This tenant has asked for nothing before: audit records of refused calls would name what it asked for.
    token = api.token("initech", *ROLES)

    def check(listing):
        no_trace(api.call(listing, token), acme)
        for name in (parameter for parameter in listing.parameters if parameter in FILTERS):
            for kind in KINDS:
                value = {"tag": f"canary-tag={acme['tag']}", "label": "canary=lab"}.get(name, acme[kind])
                answer = api.call(listing, token, query=f"?{name}={value}")
                assert not answer.json().get("items"), (name, kind, answer.text)
                no_trace(answer, acme, value, acme[kind], acme["tag"])

    check_each(operations_by_choice["listing"], check)


def test_page_tokens_of_another_tenant_are_refused(api, operations_by_choice, acme):
    prices = api.send("GET", "/v1/prices?page_size=1", {"Authorization": f"Bearer {acme['token']}"}).json()

    def check(paged):
        own_token = api.call(paged, acme["token"], query="?page_size=1").json()["next_page_token"]
        if own_token is not None:
            assert api.call(paged, acme["token"], query=f"?page_token={own_token}").status_code == 200
        # A list of one page gives no token. Then the token of another list is used.
        for token in {own_token or prices["next_page_token"], prices["next_page_token"]}:
            answer = api.call(paged, api.token("globex", *ROLES), query=f"?page_token={token}")
            assert (answer.status_code, answer.json()["error_type"]) == (422, "InvalidInput")
            no_trace(answer, acme)

    check_each(operations_by_choice["paged"], check)


def test_a_foreign_account_cannot_be_used(api, acme):
    body = {
        "name": "stolen",
        "description": "a cluster",
        "cloud_account_id": int(acme["account"]),
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key"},
    }
    headers = {"Authorization": f"Bearer {api.token('initech', *ROLES)}"}
    for query in ("", "?dry_run=true"):
        answer = api.send("POST", f"/v1/clusters{query}", headers, body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/cloud_account_id")
        no_trace(answer, acme)


def test_an_idempotency_key_of_another_tenant_does_not_give_its_answer(api, acme):
    body = {"provider": "aws", "name": "canary-key", "attributes": {"role_arn": "arn:aws:iam::333333333333:role/r"}}
    headers = {"Idempotency-Key": "shared-key"}
    path = "/v1/cloud-accounts?dry_run=false"
    first = api.send("POST", path, {**headers, "Authorization": f"Bearer {acme['token']}"}, body)
    foreign_token = api.token("globex", *ROLES)
    second = api.send("POST", path, {**headers, "Authorization": f"Bearer {foreign_token}"}, body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["external_id"] != second.json()["external_id"]
    assert "idempotent-replayed" not in second.headers
    for token, created in ((acme["token"], first), (foreign_token, second)):
        deleted = api.send("DELETE", f"/v1/cloud-accounts/{created.json()['id']}", {"Authorization": f"Bearer {token}"})
        assert deleted.status_code == 202


def test_quotas_and_allowed_types_of_two_tenants_are_separate(api, acme):
    platform = {"Authorization": f"Bearer {api.token('acme', 'stockyard-platform')}"}

    def quotas_of(tenant):
        answer = api.send("GET", "/v1/quotas", {**platform, "X-Stockyard-Tenant": tenant})
        return {quota["name"]: quota for quota in answer.json()["items"]}

    before = quotas_of("acme")["clusters"]
    headers = {
        **platform,
        "X-Stockyard-Tenant": "globex",
        "If-Match": f'"{quotas_of("globex")["clusters"]["version"]}"',
    }
    assert api.send("PUT", "/v1/quotas/clusters", headers, {"limit": 33}).status_code == 200
    assert quotas_of("globex")["clusters"]["limit"] == 33
    assert quotas_of("acme")["clusters"] == before
    allowed, headers = {"allowed": ["lab.*"]}, {**headers, "If-Match": '"0"'}
    assert api.send("PUT", "/v1/allowed-node-types", headers, allowed).status_code == 200
    acmes = api.send("GET", "/v1/allowed-node-types", {**platform, "X-Stockyard-Tenant": "acme"}).json()
    assert (acmes["allowed"], acmes["version"]) == (None, 0)


def test_manifests_with_a_foreign_name_create_an_own_resource(api, acme):
    headers = {"Authorization": f"Bearer {api.token('globex', *ROLES)}"}
    manifest = {
        "apiVersion": "stockyard/v1",
        "kind": "NodeProvider",
        "metadata": {"name": acme["provider name"]},
        "spec": {"simulated": {}},
    }
    applied = api.send("POST", "/v1/apply", headers, manifest)
    assert applied.json()["results"][0]["action"] == "created", applied.text
    assert applied.json()["results"][0]["id"] != acme["provider"]
    no_trace(applied, acme, acme["provider name"])
    deleted = api.send("DELETE", f"/v1/node-providers/{acme['provider name']}", headers)
    assert deleted.status_code == 202, deleted.text
    body = {"name": acme["provider name"], "kind": "simulated", "spec": {}}
    assert api.send("POST", "/v1/node-providers", headers, body).status_code == 201
    acme_headers = {"Authorization": f"Bearer {acme['token']}"}
    assert len(api.send("GET", f"/v1/node-providers/{acme['provider']}", acme_headers).json()["node_types"]) == 1


def test_a_profile_with_a_foreign_name_is_an_own_one(api, acme):
    headers = {"Authorization": f"Bearer {api.token('globex', *ROLES)}"}
    for query, status in (("?dry_run=true", 200), ("", 201)):
        answer = api.send("POST", f"/v1/cluster-profiles{query}", headers, {**PROFILE, "name": acme["profile name"]})
        assert answer.status_code == status, answer.text
        no_trace(answer, acme, acme["profile name"])
    own_id = answer.json()["id"]
    assert api.send("DELETE", f"/v1/cluster-profiles/{acme['profile name']}", headers).status_code == 202
    assert api.send("GET", f"/v1/cluster-profiles/{own_id}", headers).status_code == 404
    acme_headers = {"Authorization": f"Bearer {acme['token']}"}
    assert api.send("GET", f"/v1/cluster-profiles/{acme['profile name']}", acme_headers).json()["id"] == acme["profile"]


def test_a_site_with_a_foreign_name_is_an_own_one(api, acme):
    headers = {"Authorization": f"Bearer {api.token('globex', *ROLES)}"}
    answer = api.send("POST", "/v1/sites", headers, {"name": acme["site name"]})
    assert answer.status_code == 201, answer.text
    no_trace(answer, acme, acme["site name"])
    assert answer.json()["id"] != acme["site"]
    assert api.send("DELETE", f"/v1/sites/{acme['site name']}", headers).status_code == 202
    acme_headers = {"Authorization": f"Bearer {acme['token']}"}
    assert api.send("GET", f"/v1/sites/{acme['site name']}", acme_headers).json()["id"] == acme["site"]


def test_an_image_with_a_foreign_name_is_an_own_one(api, acme):
    headers = {"Authorization": f"Bearer {api.token('globex', *ROLES)}"}
    body = {"name": acme["image name"], "url": "https://images.example.test/i"}
    answer = api.send("POST", "/v1/os-images", headers, body)
    assert answer.status_code == 201, answer.text
    no_trace(answer, acme, acme["image name"])
    assert answer.json()["id"] != acme["image"]
    assert api.send("DELETE", f"/v1/os-images/{acme['image name']}", headers).status_code == 202
    acme_headers = {"Authorization": f"Bearer {acme['token']}"}
    assert api.send("GET", f"/v1/os-images/{acme['image name']}", acme_headers).json()["id"] == acme["image"]


def test_a_claim_for_a_foreign_cluster_is_refused(api, acme):
    headers = {"Authorization": f"Bearer {api.token('initech', *ROLES)}"}
    for body, pointers in (
        ({"cluster": acme["cluster"]}, ["/cluster"]),
        ({"cluster": acme["name"]}, ["/cluster"]),
        ({"cluster": acme["name"], "provider": acme["provider name"]}, ["/cluster"]),
    ):
        for query in ("", "?dry_run=true"):
            answer = api.send("POST", f"/v1/node-claims{query}", headers, body)
            assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (422, pointers)
            no_trace(answer, acme, *body.values())


def test_pods_are_planned_for_own_clusters_and_on_own_providers_alone(api, acme):
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"nodeSelector": {"vcluster.com/node-type": acme["type name"]}},
    }
    answers = {}
    for tenant in ("acme", "globex"):
        headers = {"Authorization": f"Bearer {api.token(tenant, *ROLES)}"}
        answers[tenant] = api.send("POST", "/v1/placements", headers, {"manifests": [pod]})
        for cluster in (acme["cluster"], acme["name"]) if tenant == "globex" else ():
            refusal = api.send("POST", "/v1/placements", headers, {"manifests": [pod], "cluster": cluster})
            assert (refusal.status_code, refusal.json()["errors"][0]["pointer"]) == (422, "/cluster")
            no_trace(refusal, acme, cluster, acme["type name"])
    assert [node["type"] for node in answers["acme"].json()["nodes"]] == [acme["type name"]]
    assert answers["globex"].json()["left_out"][0]["reasons"][0]["rule"] == "NoNodeTypes"
    no_trace(answers["globex"], acme, acme["type name"])


def test_traces_are_replayed_on_own_clusters_and_own_providers_alone(api, acme):
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"nodeSelector": {"vcluster.com/node-type": acme["type name"]}},
    }
    trace = {"until": "1h", "events": [{"at": "0s", "arrive": [pod]}]}
    headers = {"Authorization": f"Bearer {api.token('globex', *ROLES)}"}
    for cluster in (acme["cluster"], acme["name"]):
        refusal = api.send("POST", "/v1/simulations", headers, {**trace, "cluster": cluster})
        assert (refusal.status_code, refusal.json()["errors"][0]["pointer"]) == (422, "/cluster")
        no_trace(refusal, acme, cluster)
    answer = api.send("POST", "/v1/simulations", headers, trace)
    assert (answer.status_code, answer.json()["nodes"], answer.json()["without_place"][0]["count"]) == (200, 0, 1)
    no_trace(answer, acme, acme["type name"])


def test_a_cluster_client_sees_nothing_of_another_tenant(api, all_operations, acme):
    """Tries a client id of its own tenant, and the client id of acme's cluster, both in its own tenant."""
    open_to_both = [operation for operation in all_operations if operation.machine and operation.roles]
    assert len(open_to_both) == 6
    for operation in open_to_both:
        for client in ("globex-0123456789ab", acme["client"]):
            answer = api.call(operation, api.token("globex", client_id=client), at=acme["claim"])
            assert (answer.status_code, answer.json()["error_type"]) == (404, "NotFound"), answer.text
            no_trace(answer, acme, acme["claim"])
