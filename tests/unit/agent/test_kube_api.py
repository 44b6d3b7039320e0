"""The simulated Kubernetes API keeps to the rules of the real one that the agent depends on."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from local.kubernetes import apply as kube_apply
from local.kubernetes import certificates
from local.kubernetes import pods as kube_pods
from local.kubernetes.api import APPLY, MERGE, ConnectionReset, Fault, StatusError, key_of, node
from local.kubernetes.certificates import CertificateRequest
from local.kubernetes.store import Key
from tests.unit.agent.rig import TOKEN, Rig

NODES = "/api/v1/nodes"


def ask(rig: Rig, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {rig.account}", "content-type": content_type}
    return rig.kube.request(method, path, headers, json.dumps(body or {}).encode())


def test_kube_api_requires_valid_token(rig: Rig) -> None:
    for header in ("", "Bearer wrong", f"Basic {rig.account}"):
        status, body = rig.kube.request("GET", NODES, {"authorization": header})
        assert (status, body["reason"]) == (401, "Unauthorized")
    rig.kube.revoke(rig.account)
    assert ask(rig, "GET", NODES)[0] == 401


def test_kube_api_words_forbidden_like_rbac(rig: Rig) -> None:
    status, body = ask(rig, "GET", "/api/v1/namespaces/kube-system/secrets/x")
    assert status == 403
    assert body["message"] == (
        'secrets "x" is forbidden: User "system:serviceaccount:stockyard-system:stockyard-agent" cannot get resource '
        '"secrets" in API group "" in the namespace "kube-system"'
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/novelties", 403),
        ("GET", "/apis/example.test/v1", 404),
        ("GET", "/elsewhere", 404),
        ("GET", NODES + "/missing", 404),
        ("DELETE", NODES, 403),
        ("GET", NODES + "/a/log", 403),
        ("GET", NODES + "?continue=x", 400),
        ("GET", NODES + "?fieldSelector=spec.colour=red", 400),
        ("GET", "/version", 200),
        ("GET", "/apis/apps/v1", 200),
    ],
)
def test_kube_api_status_by_path_and_method(rig: Rig, method: str, path: str, status: int) -> None:
    assert ask(rig, method, path)[0] == status


def test_kube_api_pages_lists_and_filters_by_field(rig: Rig) -> None:
    for number in range(5):
        rig.add_pod(f"p{number}", "a" if number % 2 else "b", phase="Failed" if number == 3 else "Running")
    names_read: list[str] = []
    following = ""
    while True:
        _, page = ask(rig, "GET", f"/api/v1/pods?limit=2&continue={following}")
        names_read += [item["metadata"]["name"] for item in page["items"]]
        following = page["metadata"].get("continue", "")
        if not following:
            break
    assert names_read == [f"p{number}" for number in range(5)]
    for selector, names in {
        "spec.nodeName=a": ["p1", "p3"],
        "spec.nodeName!=a": ["p0", "p2", "p4"],
        "spec.nodeName==a,status.phase!=Failed": ["p1"],
        "metadata.name=p4": ["p4"],
    }.items():
        _, page = ask(rig, "GET", f"/api/v1/pods?fieldSelector={selector}")
        assert [item["metadata"]["name"] for item in page["items"]] == names


def test_kube_api_expires_continue_token(rig: Rig) -> None:
    for name in ("a", "b"):
        rig.add_node(name)
    _, page = ask(rig, "GET", NODES + "?limit=1")
    rig.kube.store.compact()
    status, body = ask(rig, "GET", f"{NODES}?limit=1&continue={page['metadata']['continue']}")
    assert (status, body["reason"]) == (410, "Expired")
    _, page = ask(rig, "GET", f"{NODES}?limit=1&continue={body['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in page["items"]] == ["b"], "what is left, as it is now"


def test_kube_api_merge_patch_checks_resource_version(rig: Rig) -> None:
    old = rig.add_node("a")["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": old, "labels": {"x": "1", "kubernetes.io/os": None}}}
    status, body = ask(rig, "PATCH", NODES + "/a", change, MERGE)
    assert status == 200
    assert body["metadata"]["labels"] == {"kubernetes.io/hostname": "a", "x": "1"}
    assert body["metadata"]["resourceVersion"] != old
    assert ask(rig, "PATCH", NODES + "/a", change, MERGE)[0] == 409
    assert ask(rig, "PATCH", NODES + "/a", {}, "application/other+json")[0] == 415
    assert ask(rig, "PATCH", NODES + "/a", {}, APPLY)[0] == 422, "an apply needs a field manager"
    again = {"metadata": {"labels": {"x": "1"}}}
    unchanged = ask(rig, "PATCH", NODES + "/a", again, MERGE)[1]["metadata"]["resourceVersion"]
    assert unchanged == body["metadata"]["resourceVersion"]


def test_kube_api_apply_conflicts_unless_forced(rig: Rig) -> None:
    store = rig.kube.store
    document = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "web"}, "data": {"a": "1"},
    }  # fmt: skip
    key = key_of(document)
    kube_apply.apply(store, key, document, "one", force=False)
    with pytest.raises(StatusError) as caught:
        kube_apply.apply(store, key, {**document, "data": {"a": "2"}}, "two", force=False)
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert caught.value.causes == (("FieldManagerConflict", 'conflict with "one"'),)
    with pytest.raises(StatusError) as caught:
        kube_apply.apply(store, key, {**document, "data1": {}}, "two", force=False)
    assert (caught.value.status, caught.value.reason) == (500, "")
    assert "failed to create typed patch object (web/x; /v1, Kind=ConfigMap)" in caught.value.message
    kube_apply.apply(store, key, document, "two", force=False)
    kube_apply.apply(store, key, {**document, "data": {}}, "one", force=False)
    assert store.get(key)["data"] == {"a": "1"}, "the other manager still wants it"
    kube_apply.apply(store, key, {**document, "data": {"b": "3"}}, "two", force=True)
    assert store.get(key)["data"] == {"b": "3"}


def test_kube_api_deletion_respects_preconditions_and_finalizers(rig: Rig) -> None:
    uid = rig.add_node("a")["metadata"]["uid"]
    status, body = ask(rig, "DELETE", NODES + "/a", {"preconditions": {"uid": "other"}})
    assert (status, body["details"]) == (409, {"name": "a", "kind": "Node"})
    assert body["message"].startswith('Operation cannot be fulfilled on Node "a": the UID in the precondition (other)')
    rig.node("a")["metadata"]["finalizers"] = ["x"]
    status, body = ask(rig, "DELETE", NODES + "/a", {"preconditions": {"uid": uid}})
    assert (status, body["kind"]) == (200, "Node")
    assert "deletionTimestamp" in rig.node("a")["metadata"]


def test_kube_api_second_pod_deletion_can_only_shorten_grace(rig: Rig) -> None:
    pod = rig.add_pod("p", "a", grace=30)
    path = "/api/v1/namespaces/web/pods/p"
    first = ask(rig, "DELETE", path)[1]["metadata"]["deletionTimestamp"]
    rig.clock.later(5)
    assert ask(rig, "DELETE", path, {"gracePeriodSeconds": 60})[1]["metadata"]["deletionTimestamp"] == first
    assert ask(rig, "DELETE", path, {"gracePeriodSeconds": 5})[1]["metadata"]["deletionTimestamp"] < first
    assert ask(rig, "DELETE", path, {"preconditions": {"uid": "other"}})[0] == 409
    assert ask(rig, "DELETE", path, {"gracePeriodSeconds": 0})[1]["status"] == "Success"
    assert pod not in rig.kube.store.objects


def test_kube_api_budget_counts_healthy_pods_only(rig: Rig) -> None:
    for number in range(3):
        rig.add_pod(f"p{number}", "a", labels={"app": "x"}, phase="Running" if number else "Pending")
    budget = rig.add_budget("x", {"app": "x"}, 1)

    def evict(name: str) -> tuple[int, Any]:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "web"}}
        return ask(rig, "POST", f"/api/v1/namespaces/web/pods/{name}/eviction", eviction)

    assert evict("p0")[0] == 201, "one that is not running disrupts nothing"
    assert evict("p1")[0] == 201
    status, body = evict("p2")
    assert (status, body["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
    assert evict("p1")[0] == 201, "one that is ending already"
    kube_pods.reap(rig.kube.store, all_marked=True)
    rig.kube.store.get(budget)["spec"] = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    assert evict("p2")[0] == 201
    assert evict("missing")[0] == 404
    nowhere = "/api/v1/namespaces/nowhere/pods/p/eviction"
    assert ask(rig, "POST", nowhere, {})[1]["message"] == 'namespaces "nowhere" not found'
    assert ask(rig, "POST", "/api/v1/namespaces/web/pods/p2/eviction", {"kind": "Eviction"})[0] == 400


def test_kube_api_two_budgets_are_an_error_without_a_reason(rig: Rig) -> None:
    rig.add_pod("p", "a", labels={"app": "x"})
    for name in ("x", "y"):
        rig.add_budget(name, {"app": "x"}, 0)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "web"}}
    status, body = ask(rig, "POST", "/api/v1/namespaces/web/pods/p/eviction", eviction)
    assert (status, "reason" in body) == (500, False)


def test_kube_api_counts_what_is_left_only_without_a_field_selector(rig: Rig) -> None:
    for number in range(3):
        rig.add_pod(f"p{number}", "a")
    _, page = ask(rig, "GET", "/api/v1/pods?limit=1")
    assert page["metadata"]["remainingItemCount"] == 2
    _, page = ask(rig, "GET", "/api/v1/pods?limit=1&fieldSelector=spec.nodeName=a")
    assert page["metadata"]["continue"]
    assert "remainingItemCount" not in page["metadata"]


def test_kube_api_answers_an_unknown_group_in_plain_text(rig: Rig) -> None:
    assert ask(rig, "GET", "/apis/example.test/v1") == (404, "404 page not found")


def test_stubborn_pod_has_its_whole_grace(rig: Rig) -> None:
    """A drain that hangs on a program can be seen in the local cloud too."""
    stubborn = rig.add_pod("p", "a", grace=60, annotations={kube_pods.STUBBORN: "true"})
    kube_pods.delete(rig.kube.store, stubborn, {})
    assert kube_pods.reap(rig.kube.store, all_marked=True) == 0
    rig.clock.later(61)
    assert kube_pods.reap(rig.kube.store, all_marked=True) == 1


def test_kube_api_secret_type_is_immutable_and_string_data_is_encoded(rig: Rig) -> None:
    path = "/api/v1/namespaces/kube-system/secrets"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "a", "stringData": {"k": "v"}}
    status, body = ask(rig, "POST", path, secret)
    assert (status, body["data"]) == (201, {"k": base64.b64encode(b"v").decode()})
    assert ask(rig, "POST", path, secret)[1]["reason"] == "AlreadyExists"
    assert ask(rig, "PUT", path + "/s", {**secret, "stringData": {"n": "w"}})[1]["data"] == {"n": "dw=="}
    assert ask(rig, "PUT", path + "/s", {**secret, "type": "b"})[0] == 422


def test_kube_api_injected_fault_happens_once_and_is_recorded(rig: Rig) -> None:
    rig.add_node("a")
    rig.kube.faults += [Fault("delete", "nodes", reset="after"), Fault("*", "*", 503)]
    with pytest.raises(ConnectionReset):
        ask(rig, "DELETE", NODES + "/a")
    assert Key("", "nodes", "", "a") not in rig.kube.store.objects
    assert ask(rig, "GET", NODES)[0] == 503
    assert ask(rig, "GET", NODES)[0] == 200
    assert [call.status for call in rig.kube.calls] == [0, 503, 200]


def test_kube_api_takes_certificate_requests_of_complete_tokens(rig: Rig) -> None:
    data = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "auth-extra-groups": "system:bootstrappers:other"}
    usages = {"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
    }
    for content, status in ((data, 401), (data | usages, 403)):
        rig.kube.install([{**secret, "stringData": content}])
        with pytest.raises(StatusError) as caught:
            rig.kube.request_certificate(TOKEN, CertificateRequest("a"))
        assert caught.value.status == status
    assert "cannot create resource" in caught.value.message


def test_kube_api_decides_a_certificate_request_once(rig: Rig) -> None:
    name = certificates.request(
        rig.kube.store, "system:node:a", frozenset(), CertificateRequest("a", signer=certificates.SERVING)
    )
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
    _, listed = ask(rig, "GET", path.rpartition("/")[0] + f"?fieldSelector=spec.signerName={certificates.SERVING}")
    (document,) = listed["items"]

    def decided(*types: str) -> int:
        document["status"] = {"conditions": [{"type": kind, "status": "True"} for kind in types]}
        status, answer = ask(rig, "PUT", f"{path}/approval", document)
        if status == 200:
            document.update(answer)
        return status

    assert decided("Approved", "Denied") == 422
    assert decided("Approved") == 200
    assert decided("Denied") == 422, "a decision stays"
    assert decided("Approved") == 200
    document["metadata"]["resourceVersion"] = "1"
    assert decided("Approved") == 409
    # The role names two signers.
    other = certificates.request(
        rig.kube.store, "system:node:a", frozenset(), CertificateRequest("a", signer="example.test/other")
    )
    status, answer = ask(rig, "PUT", f"{path.rpartition('/')[0]}/{other}/approval", {"status": {}})
    assert (status, "cannot approve resource" in answer["message"]) == (403, True)


def test_kube_api_registers_a_node_under_the_name_of_its_certificate(rig: Rig) -> None:
    name = certificates.request(rig.kube.store, "system:bootstrap:abcdef", frozenset(), CertificateRequest("a"))
    assert rig.kube.register(name, node("a")) is None, "nobody has decided"
    with pytest.raises(StatusError, match='"b" is not allowed'):
        rig.kube.register(name, node("b"))
