"""Least rights: every call is granted, every grant is needed, and what is not granted is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent import roles
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent import mirror_objects
from agent.stockyard_agent.certificates import CLIENT, SERVING
from agent.stockyard_agent.commands import tokens
from agent.stockyard_agent.kubernetes import APPLY, MERGE, Kubernetes, Refused
from local.kubernetes import certificates
from local.kubernetes.certificates import CertificateRequest
from local.kubernetes.resources import RESOURCES
from local.kubernetes.rules import grants
from tests.unit.agent.rig import KUBE, Rig
from tests.unit.agent.story import Story


def test_roles_grant_exactly_the_calls_that_are_made(record_property: Callable[[str, object], None]) -> None:
    story = Story().run()
    # Beside the rounds: the certificates of kubelets.
    kube = story.rig.kube
    story.rig.around = None
    for user, group, wish in (
        ("system:bootstrap:abcdef", "system:bootstrappers:stockyard:node:w", CertificateRequest("w")),
        (
            "system:node:b",
            "system:nodes",
            CertificateRequest("b", usages=("digital signature", "server auth"), signer=SERVING),
        ),
    ):
        certificates.request(kube.store, user, frozenset({group}), wish)
    story.rig.agent().look()
    assert sum("certificate request" in line for line in story.rig.logs) == 2
    granted = set(grants(story.rig.kube.store, (NAMESPACE, NAME)))
    assert story.rig.kube.used - granted == set()
    assert granted - story.rig.kube.used == set()
    assert not any(call.status == 403 for call in story.rig.kube.calls)
    record_property("figure:agent_rights", {"grants": len(granted), "used": len(granted & story.rig.kube.used)})


def every_call() -> list[tuple[str, str, str]]:
    requests: list[tuple[str, str, str]] = []
    # Everybody may ask what itself may do.
    for resource in (each for each in RESOURCES if not each.verbs):
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
        for namespace in (NAMESPACE, "kube-system", "web") if resource.namespaced else ("",):
            path = f"{root}/namespaces/{namespace}/{resource.name}" if namespace else f"{root}/{resource.name}"
            requests += [("POST", path, resource.kind), ("GET", path, resource.kind)]
            requests += [(method, f"{path}/x", resource.kind) for method in ("GET", "PUT", "PATCH", "DELETE")]
    return requests


ALLOWED = {
    ("GET", "/api/v1/nodes"),
    ("GET", "/api/v1/persistentvolumes"),
    ("GET", "/apis/storage.k8s.io/v1/storageclasses"),
    ("GET", "/apis/storage.k8s.io/v1/csinodes"),
    ("GET", "/api/v1/namespaces"),
    *(
        ("GET", f"{root}/namespaces/{name}/{resource}")
        for root, resource in (
            ("/api/v1", "persistentvolumeclaims"),
            ("/api/v1", "limitranges"),
            ("/apis/apps/v1", "daemonsets"),
            ("/apis/policy/v1", "poddisruptionbudgets"),
        )
        for name in (NAMESPACE, "kube-system", "web")
    ),
    ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
    ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("GET", "/api/v1/nodes/x"),
    ("PATCH", "/api/v1/nodes/x"),
    ("DELETE", "/api/v1/nodes/x"),
    *(("GET", f"/api/v1/namespaces/{name}/pods") for name in (NAMESPACE, "kube-system", "web")),
    *(("DELETE", f"/api/v1/namespaces/{name}/pods/x") for name in (NAMESPACE, "kube-system", "web")),
    *(
        request
        for name in (NAMESPACE, "kube-system", "web")
        for request in (
            ("POST", f"/api/v1/namespaces/{name}/secrets"),
            ("PUT", f"/api/v1/namespaces/{name}/secrets/x"),
            ("DELETE", f"/api/v1/namespaces/{name}/secrets/x"),
        )
    ),
    ("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps"),
    ("PATCH", f"/api/v1/namespaces/{NAMESPACE}/configmaps/x"),
}


@pytest.mark.parametrize(("method", "path", "kind"), every_call())
def test_roles_forbid_every_other_request(rig: Rig, method: str, path: str, kind: str) -> None:
    kube = Kubernetes(KUBE, rig.deliver, lambda: rig.account)
    body: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}
    content = None if method == "GET" else body
    try:
        kube.call(method, path, content, content_type=MERGE)
        forbidden = False
    except Refused as refused:
        forbidden = refused.status == 403
    assert forbidden is ((method, path) not in ALLOWED)


def test_roles_allow_patching_own_deployment_only(rig: Rig) -> None:
    kube = Kubernetes(KUBE, rig.deliver, lambda: rig.account)
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}}
    root = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/"
    kube.call("PATCH", root + NAME, body, query={"fieldManager": "m", "force": "true"}, content_type=APPLY)
    with pytest.raises(Refused, match="cannot patch"):
        kube.call("PATCH", root + "other", body, query={"fieldManager": "m"}, content_type=APPLY)


def test_admission_policy_matches_agent_account_and_secrets() -> None:
    policy, requests, definitions, mirror, own_pools = (
        item["spec"] for item in roles.documents() if item["kind"] == "ValidatingAdmissionPolicy"
    )
    bindings = [item for item in roles.documents() if item["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert [item["spec"]["validationActions"] for item in bindings] == [["Deny"]] * 4 + [["Warn"]]
    assert own_pools["failurePolicy"] == "Ignore"
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConditions"] == [
        {"name": "by-the-agent", "expression": f"request.userInfo.username == '{roles.USER}'"}
    ]
    assert f"system:serviceaccount:{NAMESPACE}:{NAME}" == roles.USER
    assert policy["matchConstraints"]["resourceRules"][0]["resources"] == ["secrets"]
    # What each rule does is tried on a real API server, in tests/kubernetes; the agent's own constants are repeated.
    own = (roles.JOINERS, roles.NODE_GROUP, roles.TYPE, roles.PREFIX, roles.CLIENT, roles.SERVING)
    assert own == (tokens.JOINERS, tokens.NODE_GROUP, tokens.TYPE, tokens.PREFIX, CLIENT, SERVING)
    assert requests["matchConditions"] == policy["matchConditions"]
    assert (len(policy["validations"]), len(requests["validations"])) == (7, 3)
    assert definitions["matchConditions"] == policy["matchConditions"]
    # What is mirrored is kept from everybody's hands.
    assert "matchConditions" not in mirror
    assert (roles.MIRROR, roles.MIRRORED) == (mirror_objects.GROUP, mirror_objects.LABEL)
    names = mirror["matchConstraints"]["resourceRules"][0]["resources"]
    assert names == [path for name in mirror_objects.PLURALS.values() for path in (name, f"{name}/status")]
