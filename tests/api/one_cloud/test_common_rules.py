"""The rules that all routes share, against the served API: tags, versions, keys, pages, plans, bodies, paths."""

from __future__ import annotations

import itertools

import pytest

NUMBERS = itertools.count()
ROLES = ("stockyard-viewer", "stockyard-operator", "stockyard-admin")
JSON = {"Content-Type": "application/json"}
ACCOUNT = {
    "provider": "aws",
    "name": "rules",
    "attributes": {"role_arn": "arn:aws:iam::333333333333:role/r"},
    "tags": {"env": "dev", "a=b": "c=d"},
}


class Tenant:
    """Calls of one tenant."""

    def __init__(self, api, name, *roles) -> None:
        self._api = api
        self.headers = {"Authorization": f"Bearer {api.token(name, *(roles or ROLES))}"}

    def call(self, method, path, body=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._api.send(method, path, {**self.headers, **sent}, body)

    def register(self, **more):
        answer = self.call("POST", "/v1/cloud-accounts", {**ACCOUNT, **more})
        assert answer.status_code == 201, answer.text
        return answer.json()


@pytest.fixture
def tenant(api):
    """A tenant that only this test uses. It owns nothing yet."""
    return Tenant(api, f"rules-{next(NUMBERS)}")


@pytest.fixture
def acme(api):
    """The tenant that has a verified account."""
    return Tenant(api, "acme")


def problem(answer, status, error_type):
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert answer.headers["cache-control"] == "no-store"
    document = answer.json()
    assert (document["status"], document["error_type"]) == (status, error_type), document
    assert document["instance"] == answer.request.url.path
    assert document["request_id"]
    return document


def test_errors_have_pointers_also_for_missing_fields_and_unusual_names(acme):
    body = {
        "name": "a_b",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "secret": "canary-secret",
        "tags": {"a/b~c": "\n", "aws:x": "1"},
        "settings": {"region_name": "us-east-1", "autoscaler_node_groups": [{"role": "worker", "min_size": -1}]},
        "colour": "red",
    }
    refusal = problem(acme.call("POST", "/v1/clusters", body), 422, "InvalidInput")
    group = "/settings/autoscaler_node_groups/0"
    assert {error["pointer"] for error in refusal["errors"]} >= {
        "/name",
        "/secret",
        "/tags/a~1b~0c",
        "/colour",
        *(f"{group}/{name}" for name in ("name", "min_size", "max_size", "instance_types")),
    }
    assert "canary" not in str(refusal)


@pytest.mark.parametrize("path", ["/v1/clusters", "/v1/cloud-accounts"])
@pytest.mark.parametrize("text", ["env", "=dev", "%3D"])
def test_an_invalid_tag_filter_is_refused_and_does_not_list_everything(acme, path, text):
    problem(acme.call("GET", f"{path}?tag={text}"), 422, "InvalidInput")


def test_accounts_are_listed_by_tag(tenant):
    accounts = [tenant.register(tags=tags) for tags in ({"env": "dev"}, {"env": "prod"}, {"env": "dev", "a=b": "c=d"})]

    def listed_ids(query):
        return [account["id"] for account in tenant.call("GET", f"/v1/cloud-accounts?{query}").json()["items"]]

    assert listed_ids("tag=env%3Ddev") == [accounts[0]["id"], accounts[2]["id"]]
    assert listed_ids("tag=a%3Db%3Dc%3Dd") == [accounts[2]["id"]]
    assert listed_ids("tag=env%3D") == []
    first = tenant.call("GET", "/v1/cloud-accounts?tag=env%3Ddev&page_size=1").json()
    assert [account["id"] for account in first["items"]] == [accounts[0]["id"]]
    token = first["next_page_token"]
    second = tenant.call("GET", f"/v1/cloud-accounts?tag=env%3Ddev&page_size=5&page_token={token}").json()
    assert ([account["id"] for account in second["items"]], second["next_page_token"]) == ([accounts[2]["id"]], None)
    problem(tenant.call("GET", f"/v1/cloud-accounts?page_token={token}"), 422, "InvalidInput")
    problem(tenant.call("GET", f"/v1/cloud-accounts?tag=env%3Dprod&page_token={token}"), 422, "InvalidInput")


def test_changes_need_the_version_that_was_read(tenant):
    path, change = f"/v1/cloud-accounts/{tenant.register()['id']}", {"description": "new"}
    etag = tenant.call("GET", path).headers["etag"]
    for precondition in ({}, {"If_Match": "*"}, {"If_Match": ""}):
        problem(tenant.call("PATCH", path, change, **precondition), 428, "PreconditionRequired")
    for stale in ('"9"', f"W/{etag}", f'"9", {etag}', etag.strip('"'), '"01"'):
        problem(tenant.call("PATCH", path, change, If_Match=stale), 412, "PreconditionFailed")
    merge = {"If_Match": etag, "Content_Type": "application/merge-patch+json"}
    changed = tenant.call("PATCH", path, change, **merge)
    assert (changed.status_code, changed.json()["description"], changed.headers["etag"]) == (200, "new", '"2"')
    problem(tenant.call("PATCH", path, change, If_Match=etag), 412, "PreconditionFailed")


def test_an_idempotency_key_gives_one_answer(tenant):
    def register(name, body):
        return tenant.call("POST", "/v1/cloud-accounts", body, Idempotency_Key=name)

    first, other_order = register("k", ACCOUNT), register("k", dict(reversed(ACCOUNT.items())))
    assert (first.status_code, other_order.status_code) == (201, 201)
    assert other_order.headers["idempotent-replayed"] == "true"
    assert (first.content, first.headers["etag"]) == (other_order.content, other_order.headers["etag"])
    problem(register("k", {**ACCOUNT, "name": "other"}), 422, "IdempotencyConflict")
    assert register("K", ACCOUNT).json()["id"] != first.json()["id"]
    for odd in ("x" * 256, "a\tb", ""):
        problem(register(odd, ACCOUNT), 422, "InvalidInput")
    assert len(tenant.call("GET", "/v1/cloud-accounts").json()["items"]) == 2


def test_dry_runs_answer_like_the_call_and_write_nothing(tenant, acme, api):
    path = f"/v1/cloud-accounts/{tenant.register()['id']}"
    for method, path_or_list, body in (
        ("POST", "/v1/cloud-accounts", ACCOUNT),
        ("PATCH", path, {"name": "other"}),
        ("DELETE", path, None),
    ):
        planned = tenant.call(method, f"{path_or_list}?dry_run=true", body, If_Match='"1"')
        parts = {"POST": "creates", "PATCH": "changes", "DELETE": "deletes"}
        assert (planned.status_code, len(planned.json()["plan"][parts[method]])) == (200, 1)
    problem(tenant.call("PATCH", f"{path}?dry_run=true", {}), 428, "PreconditionRequired")
    problem(tenant.call("PATCH", f"{path}?dry_run=true", {}, If_Match='"9"'), 412, "PreconditionFailed")
    listed = tenant.call("GET", "/v1/cloud-accounts").json()["items"]
    assert [(account["name"], account["version"]) for account in listed] == [("rules", 1)]
    platform = Tenant(api, "acme", "stockyard-platform")
    quota = platform.call("PUT", "/v1/quotas/clusters?dry_run=true", {"limit": 7}, If_Match='"0"').json()
    assert quota["plan"]["changes"] == [
        {"kind": "quota", "name": "clusters", "field": "limit", "pointer": "/limit", "before": 20, "after": 7}
    ]
    problem(
        platform.call("PUT", "/v1/quotas/clusters?dry_run=true", {"limit": 7}, If_Match='"1"'),
        412,
        "PreconditionFailed",
    )
    assert platform.call("GET", "/v1/quotas?page_size=1").json()["items"][0]["limit"] == 20


def test_a_request_for_a_cluster_gives_what_the_source_demands_unless_it_prefers_to_be_read_leniently(acme):
    bare = {"name": "bare", "cloud_account_id": 1, "cluster_type": "k8s"}
    whole = {**bare, "description": "a cluster", "settings": {"key_pair": "my-key"}}
    lacking = {
        name: {**whole, "settings": {}} if name == "settings/key_pair" else dict(whole)
        for name in ("description", "settings", "settings/key_pair")
    }
    for name, body in lacking.items():
        body.pop(name, None)
        for query in ("", "?dry_run=true"):
            refusal = problem(acme.call("POST", f"/v1/clusters{query}", body), 422, "InvalidInput")
            assert refusal["errors"] == [{"pointer": f"/{name}", "detail": "this field is required"}]
    # mirror is a setting of all clusters: only the account says whose settings these are
    undecided = acme.call("POST", "/v1/clusters", {**whole, "settings": {"mirror": True}})
    assert problem(undecided, 422, "InvalidInput")["errors"][0]["pointer"] == "/settings/key_pair"
    planned = acme.call("POST", "/v1/clusters?dry_run=true", bare, Prefer="handling=lenient")
    assert (planned.status_code, planned.json()["plan"]["price"]["complete"]) == (200, True)


def test_a_dry_run_on_a_resource_in_use_is_refused_like_the_call(acme):
    body = {
        "description": "a cluster",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key"},
    }
    created = acme.call("POST", "/v1/clusters", {"name": "user", "tags": {"a=b": "c=d"}, **body})
    assert created.status_code == 202, created.text
    role = {"attributes": {"role_arn": "arn:aws:iam::222222222222:role/other"}}
    etag = acme.call("GET", "/v1/cloud-accounts/1").headers["etag"]
    for query in ("", "?dry_run=true"):
        problem(acme.call("DELETE", f"/v1/cloud-accounts/1{query}"), 409, "InUse")
        moved = acme.call("PATCH", f"/v1/cloud-accounts/1{query}", role, If_Match=etag)
        problem(moved, 409, "InUse")
        assert moved.json()["detail"] == "Cloud account 1 is used by user."
        problem(acme.call("POST", f"/v1/clusters{query}", {"name": "user", **body}), 409, "ClusterNameInUse")
    assert [cluster["name"] for cluster in acme.call("GET", "/v1/clusters?tag=a%3Db%3Dc%3Dd").json()["items"]] == [
        "user"
    ]
    assert acme.call("GET", "/v1/clusters?tag=a%3Db").json()["items"] == []


@pytest.mark.parametrize(
    ("raw", "headers", "status", "error_type"),
    [
        (b"", JSON, 400, "MalformedBody"),
        (b"{", JSON, 400, "MalformedBody"),
        (b"\xef\xbb\xbf{}", JSON, 400, "MalformedBody"),
        (b'{"name": "\xff"}', JSON, 400, "MalformedBody"),
        (b'{"name": "\\ud800"}', JSON, 400, "MalformedBody"),
        (b'{"name": "a", "name": "b"}', JSON, 400, "MalformedBody"),
        (b'{"name": NaN}', JSON, 400, "MalformedBody"),
        (b'{"name": 1e999}', JSON, 400, "MalformedBody"),
        (b"[" * 5000 + b"]" * 5000, JSON, 400, "MalformedBody"),
        (b'"' + b"x" * 262_143 + b'"', JSON, 413, "BodyTooLarge"),
        (b'"' + b"x" * 262_142 + b'"', JSON, 422, "InvalidInput"),
        (b"[]", JSON, 422, "InvalidInput"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "UnsupportedMediaType"),
        (b"{}", {}, 415, "UnsupportedMediaType"),
        (b"{}", {"Content-Type": "application/json; charset=latin-1"}, 415, "UnsupportedMediaType"),
        (b"{}", {**JSON, "Content-Encoding": "gzip"}, 415, "UnsupportedMediaType"),
        (b"{}", {**JSON, "Content-Encoding": "identity"}, 422, "InvalidInput"),
    ],
)
def test_invalid_bodies_are_refused(acme, raw, headers, status, error_type):
    names = {name.replace("-", "_"): value for name, value in headers.items()}
    problem(acme.call("POST", "/v1/clusters", raw, **names), status, error_type)


def test_a_body_over_the_gateways_limit_is_refused_by_the_gateway(acme):
    answer = acme.call("POST", "/v1/clusters", b"x" * (10 * 1024 * 1024 + 1), Content_Type="application/json")
    assert (answer.status_code, answer.json()) == (413, {"message": "Request Entity Too Large"})


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "ODD"])
def test_an_unknown_method_is_refused_with_the_allowed_methods(acme, method):
    answer = acme.call(method, "/v1/clusters")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/nothing", "/V1/clusters", "/v1/clusters/", "/v1/clusters/a%2Fb", "/v1/clusters/%00"]
    + [f"/v1/{kind}/{odd}" for kind in ("clusters", "cloud-accounts", "operations") for odd in ("x" * 999, "%C3%A9")]
    + [f"/v1/cloud-accounts/{number}" for number in ("01", "1.0", "-1", "0", "%D9%A1", "9" * 40)],
)
def test_impossible_paths_are_not_found(acme, path):
    problem(acme.call("GET", path), 404, "NotFound")


def test_names_with_several_unicode_spellings_are_refused(acme):
    body = {
        "description": "a cluster",
        "cloud_account_id": 1,
        "cluster_type": "k8s",
        "settings": {"key_pair": "my-key"},
    }
    for name in ("caf\u00e9", "cafe\u0301", "\uff21", "a\u200b"):
        refusal = problem(acme.call("POST", "/v1/clusters", {"name": name, **body}), 422, "InvalidInput")
        assert [error["pointer"] for error in refusal["errors"]] == ["/name"]
    refusal = problem(
        acme.call("POST", "/v1/clusters", {"name": "n", **body, "tags": {"e\u0301": ""}}), 422, "InvalidInput"
    )
    assert [error["pointer"] for error in refusal["errors"]] == ["/tags/e\u0301"]


def test_page_tokens_are_bound_to_tenant_list_and_query_but_not_to_size_or_person(acme, api):
    first = acme.call("GET", "/v1/events?page_size=1").json()
    token = first["next_page_token"]
    again = Tenant(api, "acme", "stockyard-viewer").call("GET", f"/v1/events?page_size=2&page_token={token}").json()
    assert first["items"][0]["id"] < again["items"][0]["id"]
    for path in ("/v1/operations?", "/v1/events?subject=x&"):
        problem(acme.call("GET", f"{path}page_token={token}"), 422, "InvalidInput")
    for altered in (f"{token}A", f"{token}=", token[:-1]):
        problem(acme.call("GET", f"/v1/events?page_token={altered}"), 422, "InvalidInput")
    problem(Tenant(api, "globex").call("GET", f"/v1/events?page_token={token}"), 422, "InvalidInput")


@pytest.mark.parametrize("query", ["page_size=0", "page_size=201", "page_size=1e1", "foo=1", "tag=a%3Db&tag=a%3Db"])
def test_invalid_queries_are_refused(acme, query):
    problem(acme.call("GET", f"/v1/clusters?{query}"), 422, "InvalidInput")
