"""Custom resources on a simulated and on a real API server: each of them refuses, prunes and stores the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.stockyard_agent.transport import HttpResponse
from local.kubernetes.definitions import KUBEVIRT, METAL3, definitions
from tests.kubernetes.custom_resources import (
    APPLY,
    AS_US,
    BMH,
    HOSTS,
    INVALID,
    MERGE,
    NOT_APPLIED,
    TYPED,
    VM,
    VMS,
    host,
    vm,
)
from tests.kubernetes.rigs import ContractRig, until


@pytest.fixture
def served(rig: ContractRig) -> ContractRig:
    """The rig, with the kinds of both projects."""
    for document in (*definitions(KUBEVIRT), *definitions(METAL3)):
        name = document["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        rig.administer("PATCH", f"{path}?fieldManager=owner&force=true", document, APPLY)
    until(lambda: all(ask(rig, "GET", path).status == 200 for path in (VMS, HOSTS)))
    for path in (VMS, HOSTS):
        for item in ask(rig, "GET", path).json_object()["items"]:
            ask(rig, "DELETE", f"{path}/{item['metadata']['name']}")
    return rig


def ask(
    rig: ContractRig, method: str, path: str, body: Any = None, content_type: str = "application/json"
) -> HttpResponse:
    """The administrator's request, whatever is answered."""
    return rig.ask(method, path, body, content_type)


def subject(document: Any) -> str:
    return f"{VMS if document['kind'] == VM else HOSTS}/{document['metadata']['name']}"


def apply(rig: ContractRig, document: Any, query: str = "", part: str = "") -> HttpResponse:
    return ask(rig, "PATCH", f"{subject(document)}{part}{AS_US}{query}", document, APPLY)


def stored(answer: HttpResponse, status: int = 200) -> Any:
    document = json.loads(answer.body)
    assert answer.status == status, document
    return document


def test_server_side_apply_refuses_what_has_no_field_by_500(served: ContractRig) -> None:
    for document, fault in NOT_APPLIED:
        answer = stored(apply(served, document), 500)
        assert answer["message"] == f"{TYPED}{fault}"
        assert "reason" not in answer


def test_values_are_refused_by_422_with_their_fields(served: ContractRig) -> None:
    for document, causes in INVALID:
        for answer in (apply(served, document), apply(served, document, "&dryRun=All")):
            refused = stored(answer, 422)
            faults = {
                f"{each['reason'].removeprefix('FieldValue')} {each['field']}" for each in refused["details"]["causes"]
            }
            assert faults == causes
            kind, group = document["kind"], document["apiVersion"].partition("/")[0]
            assert refused["message"].startswith(f'{kind}.{group} "{document["metadata"]["name"]}" is invalid: ')
            assert (refused["details"]["kind"], refused["details"]["group"]) == (kind, group)
    assert stored(apply(served, host("b") | {"spec": {}}), 422)["message"] == (
        'BareMetalHost.metal3.io "b" is invalid: spec.online: Required value'
    )
    assert not any(ask(served, "GET", path).json_object()["items"] for path in (VMS, HOSTS))


def test_what_is_applied_has_defaults_and_counts_its_changes(served: ContractRig) -> None:
    assert stored(apply(served, host("h"), "&dryRun=All"), 201)["spec"]["automatedCleaningMode"] == "metadata"
    assert ask(served, "GET", f"{HOSTS}/h").status == 404
    first = stored(apply(served, host("h")), 201)
    assert first["spec"] == {"online": True, "automatedCleaningMode": "metadata"}
    assert first["metadata"]["generation"] == 1
    again = stored(apply(served, {**host("h"), "status": {"poweredOn": True}}))
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"], (
        "a status has a path of its own"
    )
    assert stored(apply(served, host("h", description="x")))["metadata"]["generation"] == 2
    assert "description" not in stored(apply(served, host("h")))["spec"]
    refused = stored(apply(served, host("h") | {"spec": {}}), 422)
    assert "spec.online: Required value" in refused["message"], "nobody else owns it"
    machine = vm("m", {"resources": {"requests": {"cpu": 2, "memory": "2Gi"}}}, dataVolumeTemplates=None)
    spec = stored(apply(served, machine), 422)
    assert "dataVolumeTemplates" in spec["message"]


def test_a_status_is_written_at_its_own_path_and_judged_there(served: ContractRig) -> None:
    stored(apply(served, host("h")), 201)
    whole = {
        "errorCount": 0,
        "errorMessage": "",
        "operationalStatus": "OK",
        "poweredOn": True,
        "provisioning": {"ID": "", "state": "available", "image": {"url": ""}},
    }
    refused = stored(ask(served, "PATCH", f"{HOSTS}/h/status", {"status": {"poweredOn": True}}, MERGE), 422)
    fields = {each["field"] for each in refused["details"]["causes"]}
    assert fields == {"status.errorMessage", "status.operationalStatus", "status.provisioning"}
    body = {"status": whole, "spec": {"description": "no"}}
    after = stored(ask(served, "PATCH", f"{HOSTS}/h/status", body, MERGE))
    assert (after["metadata"]["generation"], after["status"]["poweredOn"]) == (1, True)
    assert "description" not in after["spec"]
    bad = {"status": {"operationalStatus": "Fine"}}
    assert stored(ask(served, "PATCH", f"{HOSTS}/h/status", bad, MERGE), 422)["details"]["causes"][0]["field"] == (
        "status.operationalStatus"
    )
    document = {key: value for key, value in host("h").items() if key != "spec"}
    off = stored(apply(served, {**document, "status": {**whole, "poweredOn": False}}, part="/status"))
    assert (off["status"]["poweredOn"], off["spec"]["online"]) == (False, True)
    assert stored(ask(served, "PATCH", f"{HOSTS}/h", {"status": {"poweredOn": True}}, MERGE))["status"] == off["status"]


def test_who_does_not_apply_loses_fields_that_are_not_there(served: ContractRig) -> None:
    assert "foo" not in stored(ask(served, "POST", HOSTS, host("p", foo=1)), 201)["spec"]
    strict = vm("q", template={"volumes": [{"name": "v", "foo": 1}], "bar": 2})
    assert stored(ask(served, "POST", f"{VMS}?fieldValidation=Strict", strict), 400)["message"] == (
        'VirtualMachine in version "v1" cannot be handled as a VirtualMachine: strict decoding error: '
        'unknown field "spec.template.spec.bar", unknown field "spec.template.spec.volumes[0].foo"'
    )
    wrong = stored(ask(served, "POST", HOSTS, host("q", online="yes")), 422)
    assert wrong["message"].endswith(
        'spec.online: Invalid value: "string": spec.online in body must be of type boolean: "string"'
    )
    changed = stored(ask(served, "PATCH", f"{HOSTS}/p", {"spec": {"description": "y", "foo": 1}}, MERGE))
    assert changed["spec"] == {"online": True, "automatedCleaningMode": "metadata", "description": "y"}
    assert stored(ask(served, "PATCH", f"{HOSTS}/p", {"spec": {"online": None}}, MERGE), 422)
    assert "resourceVersion" in stored(ask(served, "PUT", f"{HOSTS}/p", host("p")), 422)["message"]
    version = {"name": "p", "namespace": "web", "resourceVersion": changed["metadata"]["resourceVersion"]}
    put = stored(ask(served, "PUT", f"{HOSTS}/p", {**host("p", foo=2), "metadata": version}))
    assert put["spec"] == {"online": True, "automatedCleaningMode": "metadata"}


def test_names_kinds_and_namespaces_have_to_be_those_of_the_path(served: ContractRig) -> None:
    other = {**host("z"), "apiVersion": "metal3.io/v1"}
    assert stored(ask(served, "PATCH", f"{HOSTS}/z{AS_US}", other, APPLY), 400)["message"] == (
        f"invalid object type: metal3.io/v1, Kind={BMH}"
    )
    assert stored(ask(served, "PATCH", f"{HOSTS}/y{AS_US}", host("z"), APPLY), 400)["message"] == (
        "the name of the object (z) does not match the name on the URL (y)"
    )
    nowhere = {**host("z"), "metadata": {"name": "z", "namespace": "nowhere"}}
    path = f"{HOSTS.replace('/web/', '/nowhere/')}/z{AS_US}"
    assert stored(ask(served, "PATCH", path, nowhere, APPLY), 404)["message"] == 'namespaces "nowhere" not found'
