"""The API server's own answers, simulated and real: the places where the two were found to differ."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import yaml

from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.transport import HttpResponse
from local.kubernetes.api import APPLY, MERGE
from tests.kubernetes.rigs import WEB, ContractRig

NODES = "/api/v1/nodes"
SITE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/site"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"


def status(answer: HttpResponse, code: int) -> dict[str, Any]:
    """The Status of an answer."""
    document: dict[str, Any] = yaml.safe_load(answer.body)
    assert (answer.status, document["kind"], document["code"]) == (code, "Status", code), answer.body
    return document


def config(**members: Any) -> dict[str, Any]:
    meta = {"name": "site", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **members}


def apply(rig: ContractRig, manager: str, document: Any) -> HttpResponse:
    return rig.call("PATCH", f"{SITE}?fieldManager={manager}", document, APPLY)


def evict(rig: ContractRig, name: str, namespace: str = "web") -> HttpResponse:
    meta = {"name": name, "namespace": namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    return rig.call("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"data1": {}}, ".data1: field not declared in schema"),
        ({"data": {"a": 1}}, ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
    ],
    ids=["field", "type"],
)
def test_server_side_apply_checks_the_schema(rig: ContractRig, members: Any, text: str) -> None:
    answer = status(apply(rig, "one", config(**members)), 500)
    subject = f"{NAMESPACE}/site; /v1, Kind=ConfigMap"
    assert answer["message"] == f"failed to create typed patch object ({subject}): {text}"
    assert "reason" not in answer


def test_server_side_apply_needs_a_manager_and_names_conflicts(rig: ContractRig) -> None:
    answer = status(rig.call("PATCH", SITE, config(), APPLY), 422)
    assert "fieldManager: Required value: is required for apply patch" in answer["message"]
    assert apply(rig, "one", config(data={"a": "1"})).status == 201
    answer = status(apply(rig, "two", config(data={"a": "2"})), 409)
    assert answer["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    causes = answer["details"]["causes"]
    assert [(cause["reason"], cause["message"]) for cause in causes] == [
        ("FieldManagerConflict", 'conflict with "one"')
    ]


def test_an_eviction_that_a_budget_refuses_names_it_and_no_time(rig: ContractRig) -> None:
    rig.put("p", "a", labels={"app": "x"})
    rig.budget("x", {"app": "x"}, 1)
    answer = evict(rig, "p")
    (cause,) = status(answer, 429)["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget x needs 1 healthy pods and has 1 currently"
    assert "retry-after" not in answer.headers
    rig.budget("y", {"app": "x"}, 1)
    document = status(evict(rig, "p"), 500)
    assert "more than one PodDisruptionBudget" in document["message"]
    assert "reason" not in document


def test_an_eviction_elsewhere_misses_the_namespace_first(rig: ContractRig) -> None:
    document = status(evict(rig, "p", "nowhere"), 404)
    assert document["message"] == 'namespaces "nowhere" not found'
    assert document["details"] == {"name": "nowhere", "kind": "namespaces"}
    assert status(evict(rig, "p"), 404)["message"] == 'pods "p" not found'


def test_a_wrong_uid_in_a_precondition_names_the_kind(rig: ContractRig) -> None:
    path = rig.put("p", "a")
    document = status(rig.call("DELETE", path, {"preconditions": {"uid": "other"}}), 409)
    assert document["message"].startswith('Operation cannot be fulfilled on Pod "p": the UID in the precondition (oth')
    assert document["reason"] == "Conflict"
    assert (document["details"]["name"], document["details"]["kind"]) == ("p", "Pod")


def test_who_may_not_ask_is_refused_before_the_path_is_known(rig: ContractRig) -> None:
    for method, path, text in (
        ("GET", "/api/v1/novelties", f'novelties is forbidden: User "{USER}" cannot list resource "novelties" in API'),
        ("DELETE", NODES, f'nodes is forbidden: User "{USER}" cannot deletecollection resource "nodes" in API'),
        ("GET", f"{NODES}/a/log", f'nodes "a" is forbidden: User "{USER}" cannot get resource "nodes/log" in API'),
    ):
        document = status(rig.call(method, path), 403)
        assert document["message"].startswith(text)
        assert document["reason"] == "Forbidden"
    assert rig.call("GET", "/apis/example.test/v1").body.decode().strip() == "404 page not found"


def test_what_is_not_there_is_named_in_details(rig: ContractRig) -> None:
    document = status(rig.call("GET", f"{NODES}/missing"), 404)
    assert document["reason"] == "NotFound"
    assert document["details"] == {"name": "missing", "kind": "nodes"}
    assert rig.call("GET", f"{NODES}?continue=x").status == 400
    assert rig.call("GET", f"{NODES}?fieldSelector=spec.colour=red").status == 400
    assert rig.call("PATCH", f"{NODES}/missing", {}, "text/plain").status == 415


def test_what_remains_of_a_list_is_counted_without_a_field_selector_alone(rig: ContractRig) -> None:
    for number in range(3):
        rig.put(f"p{number}", "a")
    page = rig.administer("GET", f"{WEB}?limit=1")
    assert page["metadata"]["remainingItemCount"] == 2
    page = rig.administer("GET", f"{WEB}?limit=1&fieldSelector={quote('spec.nodeName=a')}")
    assert page["metadata"]["continue"]
    assert "remainingItemCount" not in page["metadata"]


def test_a_changed_object_refuses_an_old_version_and_an_equal_one_keeps_its_own(rig: ContractRig) -> None:
    old = rig.add_node("a")["metadata"]["resourceVersion"]
    new = rig.call("PATCH", f"{NODES}/a", {"metadata": {"labels": {"x": "1"}}}, MERGE).json_object()
    assert new["metadata"]["resourceVersion"] != old
    late = {"metadata": {"resourceVersion": "1", "labels": {"x": "2"}}}
    assert status(rig.call("PATCH", f"{NODES}/a", late, MERGE), 409)["reason"] == "Conflict"
    again = rig.call("PATCH", f"{NODES}/a", {"metadata": {"labels": {"x": "1"}}}, MERGE).json_object()
    assert again["metadata"]["labels"]["x"] == "1"


def test_a_second_deletion_of_a_pod_can_only_shorten_its_grace(rig: ContractRig) -> None:
    path = rig.put("p", "a", grace=300)

    def delete(**options: Any) -> str:
        answer = rig.call("DELETE", path, options).json_object()
        return str(answer["metadata"]["deletionTimestamp"])

    first = delete()
    assert delete(gracePeriodSeconds=600) == first
    assert delete(gracePeriodSeconds=5) < first
    assert rig.call("DELETE", path, {"gracePeriodSeconds": 0}).status == 200
    assert rig.pods("a") == []
