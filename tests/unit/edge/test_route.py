"""The HTTP edge as a caller meets it."""

from __future__ import annotations

import base64
import json

import pytest

from stockyard.domain.models.clusters.clusters import ClusterCreate
from stockyard.domain.models.clusters.machines import HealthView
from stockyard.domain.models.plan import PlanView
from stockyard.edge.contract import model_of
from stockyard.edge.route import Answer, Roles
from stockyard.errors import (
    ClusterNameInUse,
    Conflict,
    NotFound,
    StoreUnavailable,
    Throttled,
    VendorThrottled,
)

CLUSTER = {
    "name": "one",
    "description": "a cluster",
    "cloud_account_id": 1,
    "cluster_type": "k8s",
    "settings": {"key_pair": "my-key"},
}


def create_route(world, use, **more):
    settings = {
        "summary": "Create",
        "action": "CreateCluster",
        "roles": Roles.OPERATOR,
        "body": "clusters.clusters:ClusterCreate",
        "answers": {202: "clusters.views:ClusterView"},
        "idempotent": True,
        "dry_run": True,
    }
    world.http.route("POST /v1/clusters", **{**settings, **more})(use)


def read_route(world, use, **more):
    settings = {"summary": "Read", "action": "GetCluster", "roles": Roles.READERS, "answers": {200: None}}
    world.http.route("GET /v1/clusters/{id}", **{**settings, **more})(use)


def patch_route(world, use):
    world.http.route(
        "PATCH /v1/clusters/{id}",
        summary="Change",
        action="ChangeCluster",
        roles=Roles.OPERATOR,
        body="clusters.patch:ClusterPatch",
        answers={200: "clusters.views:ClusterView"},
        if_match=True,
    )(use)


def raising(error):
    def use(_):
        raise error

    return use


def test_a_function_gets_a_typed_request_and_its_answer_becomes_http(world):
    requests = []

    def create(request):
        requests.append(request)
        return Answer.accepted({"id": "clu_1"}, "op_1", version=3)

    create_route(world, create)
    result = world.call("POST", "/v1/clusters", body=CLUSTER)

    assert (result.status, result.json) == (202, {"id": "clu_1"})
    assert result.headers["ETag"] == '"3"'
    assert result.headers["Location"] == "/v1/operations/op_1"
    assert result.headers["Content-Type"] == "application/json"
    assert result.headers["Cache-Control"] == "no-store"
    request = requests[0]
    assert isinstance(request.body, ClusterCreate)
    assert (request.caller.tenant, request.caller.actor) == ("acme", "user:bob")
    assert request.caller.roles == Roles.VIEWER | Roles.OPERATOR
    assert (request.request_id, request.dry_run, request.lease) == ("req-1", False, None)


def test_a_body_is_read_leniently_where_the_request_prefers_it_and_the_route_has_a_form_for_it(world):
    bare = {name: CLUSTER[name] for name in ("name", "cloud_account_id", "cluster_type")}
    lenient = []

    def create(request):
        lenient.append(request.lenient)
        return Answer(200, {"id": "clu_1"})

    create_route(world, create, lenient_body="clusters.clusters:LenientClusterCreate")
    for preference in ("handling=lenient", "respond-async, Handling=Lenient; x=1"):
        assert world.call("POST", "/v1/clusters", body=bare, headers={"Prefer": preference}).status == 200
    assert world.call("POST", "/v1/clusters", body=CLUSTER).status == 200
    for preference in ("", "handling=strict", "lenient"):
        assert world.call("POST", "/v1/clusters", body=bare, headers={"Prefer": preference}).status == 422
    assert lenient == [True, True, False]


def test_input_faults_name_their_fields_and_no_value(world):
    create_route(world, raising(AssertionError("not reached")))
    secret = "short-secret"
    sent = {**CLUSTER, "secret": secret, "colour": "red", "settings": {"vpc_id": "vpc-01234567"}}
    result = world.call("POST", "/v1/clusters", body=sent)
    assert result.status == 422
    assert result.headers["Content-Type"] == "application/problem+json"
    assert result.json["error_type"] == "InvalidInput"
    assert {problem["pointer"] for problem in result.json["errors"]} == {"/secret", "/settings/key_pair", "/colour"}
    assert secret not in result.text
    assert result.json["instance"] == "/v1/clusters"
    assert result.json["request_id"] == "req-1"
    assert result.json["type"] == "urn:stockyard:problem:InvalidInput"


@pytest.mark.parametrize(
    ("error", "status", "error_type", "retryable"),
    [
        (NotFound("no"), 404, "NotFound", False),
        (ClusterNameInUse("no"), 409, "ClusterNameInUse", False),
        (Throttled("slow", retry_after=7), 429, "Throttled", True),
        (VendorThrottled("aws said canary-secret"), 502, "UnexpectedBehavior", True),
        (StoreUnavailable("gone"), 503, "StoreUnavailable", True),
        (Conflict("race"), 409, "IllegalTransition", False),
        (RuntimeError("canary-secret"), 500, "Internal", False),
    ],
)
def test_every_error_becomes_a_problem_document(world, capsys, error, status, error_type, retryable):
    read_route(world, raising(error))
    result = world.call("GET", "/v1/clusters/one")
    assert (result.status, result.json["error_type"], result.json["retryable"]) == (status, error_type, retryable)
    assert result.json["status"] == status
    assert result.headers["Content-Type"] == "application/problem+json"
    assert "canary-secret" not in result.text + capsys.readouterr().out
    if status == 429:
        assert result.headers["Retry-After"] == "7"
    if status == 503:
        assert result.headers["Retry-After"] == "1"


def test_an_unexpected_error_is_found_in_the_log_by_its_request(world, capsys):
    def broken(_):
        try:
            json.loads("{")
        except ValueError as inner:
            raise RuntimeError("canary-secret") from inner

    read_route(world, broken)
    world.call("GET", "/v1/clusters/one")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = next(line for line in lines if line["message"] == "request failed")
    assert failed["request_id"] == "req-1"
    assert failed["chain"][0].startswith("RuntimeError at test_route.py:")
    assert failed["chain"][1].startswith("JSONDecodeError at ")


def test_one_line_is_logged_for_each_request(world, capsys):
    read_route(world, lambda _: Answer(200, {"id": "x"}))
    world.call("GET", "/v1/clusters/one")
    (line,) = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert (line["status"], line["tenant"], line["actor"], line["route"]) == (
        200,
        "acme",
        "user:bob",
        "/v1/clusters/{id}",
    )


@pytest.mark.parametrize("document", [{"id": "clu_1", "operation_id": "op_1"}, {"id": "op_1"}])
def test_a_request_is_logged_with_the_operation_and_the_subject_it_was_about(world, capsys, document):
    read_route(world, lambda _: Answer(200, document, subject="clu_1"))
    world.call("GET", "/v1/clusters/one")
    (line,) = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert (line["request_id"], line["operation_id"], line["subject"]) == ("req-1", "op_1", "clu_1")


def test_what_no_route_takes_is_404_or_405(world):
    missing = world.call("GET", "/v1/nothing")
    assert (missing.status, missing.json["error_type"]) == (404, "NotFound")
    slash = world.call("GET", "/v1/clusters/")
    assert slash.status == 404
    wrong = world.call("PUT", "/v1/clusters")
    assert (wrong.status, wrong.json["error_type"], wrong.headers["Allow"]) == (405, "MethodNotAllowed", "GET, POST")
    assert world.call("DELETE", "/v1/quotas/clusters").headers["Allow"] == "PUT"


def test_an_event_that_is_none_is_a_problem_too(world):
    answer = world.http.handle({}, None)
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["error_type"] == "Internal"
    assert answer["headers"]["Content-Type"] == "application/problem+json"


def test_roles_decide_who_comes_in(world, make_event):
    create_route(world, raising(AssertionError("not reached")))
    viewer = {"sub": "u", "organization": ["acme"], "realm_access": {"roles": ["stockyard-viewer"]}}
    result = world.call("POST", "/v1/clusters", claims=viewer, body=CLUSTER)
    assert (result.status, result.json["error_type"]) == (403, "Forbidden")
    assert "stockyard-operator" in result.json["detail"]
    nobody = world.call("POST", "/v1/clusters", claims=None, body=CLUSTER)
    assert (nobody.status, nobody.json["error_type"]) == (401, "Unauthorized")
    assert nobody.headers["WWW-Authenticate"] == "Bearer"
    assert [(tenant, record.outcome) for tenant, record in world.audits] == [("acme", "Forbidden")]


def test_machines_come_in_where_a_route_says_so(world):
    machine = {"sub": "s", "azp": "one-0123", "organization": "acme", "realm_access": {"roles": ["default"]}}
    requests = []
    world.http.route(
        "POST /v1/clusters/{id}/ready",
        summary="Report",
        action="ReportReady",
        machine=True,
        body="clusters.machines:ReadyReport",
        answers={200: "clusters.machines:Accepted"},
    )(lambda request: requests.append(request) or Answer(200, {"status": "accepted"}))
    kubeconfig = "{clusters: [{name: k, cluster: {}}], users: [{name: k, user: {}}]}"
    report = {"kubeconfig": kubeconfig, "certificate_authority": "c"}
    assert world.call("POST", "/v1/clusters/one/ready", claims=machine, body=report).status == 200
    assert (requests[0].caller.client_id, requests[0].caller.machine, dict(requests[0].params)) == (
        "one-0123",
        True,
        {"id": "one"},
    )
    person = world.call("POST", "/v1/clusters/one/ready", body=report)
    assert (person.status, "own client" in person.json["detail"]) == (403, True)
    read_route(world, lambda _: Answer(200, {}))
    assert world.call("GET", "/v1/clusters/one", claims=machine).status == 403


def test_a_route_without_a_token_serves_anyone(world):
    world.http.route("GET /v1/health", summary="Health", action="Health", open_because="A probe.", answers={200: None})(
        lambda request: Answer(200, {"status": "ok", "actor": request.caller.actor})
    )
    assert world.call("GET", "/v1/health", claims=None).json == {"status": "ok", "actor": "anonymous"}


def test_a_route_that_lets_nobody_in_is_refused(world):
    with pytest.raises(ValueError, match="lets nobody in"):
        read_route(world, lambda _: Answer(200), roles=Roles.NONE)


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        ("", {}, 400),
        ("{", {}, 400),
        ('{"name": NaN}', {}, 400),
        ('{"name":"a","name":"b"}', {}, 400),
        ("[" * 5000 + "]" * 5000, {}, 400),
        ('{"name": "\\ud800"}', {}, 400),
        ('{"name": 1' + "0" * 5000 + "}", {}, 400),
        ("{}", {"content-type": "text/plain"}, 415),
        ("{}", {"content-type": "application/merge-patch+json"}, 415),
        ("{}", {"content-type": "application/json; charset=latin-1"}, 415),
        ("{}", {"content-encoding": "gzip"}, 415),
        ("{}", {"content-encoding": "Identity"}, 422),
        ("{}", {"content-type": 'application/json; charset="UTF-8"'}, 422),
        ('"' + "x" * 262_143 + '"', {}, 413),
        ("[]", {}, 422),
        ("null", {}, 422),
    ],
)
def test_bodies_that_are_refused(world, raw, headers, status):
    create_route(world, raising(AssertionError("not reached")))
    result = world.call("POST", "/v1/clusters", raw=raw, headers=headers)
    assert result.status == status
    assert result.json["status"] == status


def test_a_body_may_come_in_base64(world, make_event):
    create_route(world, lambda request: Answer(202, {"name": request.body.name}))
    request = make_event("POST", "/v1/clusters", body=CLUSTER)
    request |= {"body": base64.b64encode(request["body"].encode()).decode(), "isBase64Encoded": True}
    assert json.loads(world.http.handle(request, None)["body"]) == {"name": "one"}
    request["body"] = "*"
    assert world.http.handle(request, None)["statusCode"] == 400


def test_an_action_takes_no_body_but_an_empty_one(world):
    world.http.route(
        "POST /v1/clusters/{id}/resume",
        summary="Resume",
        action="ResumeCluster",
        roles=Roles.OPERATOR,
        answers={202: None},
    )(lambda _: Answer(202))
    assert world.call("POST", "/v1/clusters/x/resume").json == {}
    assert world.call("POST", "/v1/clusters/x/resume", body={}).status == 202
    assert world.call("POST", "/v1/clusters/x/resume", body={"force": True}).status == 422


def test_changes_need_if_match(world):
    patch_route(world, lambda request: Answer(200, {"seen": request.version}, version=request.version + 1))
    body = {"description": "new"}
    result = world.call("PATCH", "/v1/clusters/x", body=body, headers={"if-match": '"4"'})
    assert (result.status, result.json, result.headers["ETag"]) == (200, {"seen": 4}, '"5"')
    assert world.call("PATCH", "/v1/clusters/x", body=body).status == 428
    assert world.call("PATCH", "/v1/clusters/x", body=body, headers={"if-match": "*"}).status == 428
    for condition in ('W/"4"', '"04"', '"4", "5"', "4", '"-1"'):
        assert world.call("PATCH", "/v1/clusters/x", body=body, headers={"if-match": condition}).status == 412
    assert world.call("PATCH", "/v1/clusters/x", body=body, headers={"if-match": '"0"'}).status == 200
    merge = {"content-type": "application/merge-patch+json", "if-match": '"4"'}
    assert world.call("PATCH", "/v1/clusters/x", body=body, headers=merge).status == 200


def test_a_lost_race_of_a_guarded_change_is_a_failed_precondition(world):
    patch_route(world, raising(Conflict("race")))
    result = world.call("PATCH", "/v1/clusters/x", body={}, headers={"if-match": '"4"'})
    assert (result.status, result.json["error_type"]) == (412, "PreconditionFailed")


@pytest.mark.parametrize(
    "query", ["dryrun=true", "dry_run=yes", "dry_run=true&dry_run=true", "dry_run=", "page_size=1", "a=%ff"]
)
def test_queries_that_are_refused(world, query):
    create_route(world, raising(AssertionError("not reached")))
    result = world.call("POST", "/v1/clusters", body=CLUSTER, query=query)
    assert (result.status, result.json["error_type"]) == (422, "InvalidInput")


def test_a_dry_run_is_neither_audited_nor_kept(world):
    create_route(world, lambda request: Answer.plan({"dry": request.dry_run}))
    headers = {"idempotency-key": "k"}
    result = world.call("POST", "/v1/clusters", body=CLUSTER, query="dry_run=true", headers=headers)
    assert (result.status, result.json) == (200, {"plan": {"dry": True, "changes": []}})
    assert world.audits == []
    assert world.keys == {}


def test_an_answer_may_be_a_model_and_the_route_may_name_one(world):
    world.http.route("GET /v1/health", summary="", action="Health", open_because="A probe.", answers={200: HealthView})(
        lambda _: Answer(200, HealthView())
    )
    assert model_of(HealthView) is HealthView
    assert world.call("GET", "/v1/health").json == {"status": "ok"}


def test_only_a_route_that_demands_if_match_has_a_version(world, capsys):
    read_route(world, lambda request: Answer(request.version))
    assert world.call("GET", "/v1/clusters/one").status == 500


@pytest.mark.parametrize("id", ["x" * 161, "caf\u00e9", ".a", "a+b", "..", "\u0661"])
def test_what_cannot_be_an_id_is_not_found_before_anything_is_asked(world, id):
    read_route(world, raising(AssertionError("not reached")))
    result = world.call("GET", f"/v1/clusters/{id}")
    assert (result.status, result.json["error_type"]) == (404, "NotFound")


def test_an_id_may_be_as_long_as_any_is(world):
    read_route(world, lambda request: Answer(200, {"id": request.params["id"]}))
    assert world.call("GET", "/v1/clusters/" + "x" * 160).status == 200


def test_a_plan_that_costs_nothing_is_a_whole_plan(world):
    create_route(world, lambda _: Answer.free_plan(changes=[{"pointer": "/limit", "before": 1, "after": 2}]))
    plan = world.call("POST", "/v1/clusters", body=CLUSTER, query="dry_run=true").json
    assert PlanView.model_validate(plan, strict=True).plan.changes[0].after == 2
    # Of a claim, and of manifests of a set.
    assert plan["plan"].keys() == model_of("plan:Plan").model_fields.keys() - {"run", "unnamed"}


def test_a_dry_run_of_a_change_shows_what_would_differ(world):
    current = {"limit": 1, "name": "clusters", "version": 3}
    create_route(world, lambda _: Answer.change_plan(current, {"limit": 2, "name": "clusters"}, "quota", "q"))
    plan = world.call("POST", "/v1/clusters", body=CLUSTER, query="dry_run=true").json["plan"]
    change = {"kind": "quota", "name": "q", "pointer": "/limit", "field": "limit", "before": 1, "after": 2}
    assert plan["changes"] == [change]


def test_a_stale_version_is_refused_by_name(world):
    def use(request):
        request.check_version("quota", 4)
        return Answer(200)

    patch_route(world, use)
    result = world.call("PATCH", "/v1/clusters/one", body={}, headers={"If-Match": '"3"'})
    assert (result.status, result.json["detail"]) == (412, "The quota is at version 4, not 3.")


@pytest.mark.parametrize("key", ["$default", "GET /v1/clusters", "POST /v1/clusters/{id}", ""])
def test_a_path_that_the_gateway_took_for_another_route_is_not_served(world, make_event, key):
    """The gateway matches the path as it was sent; ``%2f`` is a slash only here."""
    read_route(world, lambda _: Answer(200, {}))
    request = make_event("GET", "/v1/clusters/one")
    assert world.http.handle({**request, "routeKey": key}, None)["statusCode"] == 404
    assert world.http.handle({**request, "routeKey": "GET /v1/clusters/{id}"}, None)["statusCode"] == 200
