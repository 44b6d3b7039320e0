"""An operator's and an administrator's packs in one cluster of the local cloud, from the request to the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local.testing.serving import Answer, Served

CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: tools}, data: {a: b}}"
SPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: tools, labels: {stockyard.dev/packs: operators}}}"
GRAB = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: grab}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "oidc:operator"}]
"""
OPERATOR = "STOCKYARD_TOKEN_OPERATOR"


def make(served: Served, name: str, content: str, token: str) -> None:
    manifests = [{"name": "m", "content": content}]
    pack = {"layer": "cni" if name == "space" else "addon", "name": name, "tag": "1", "manifests": manifests}
    document = {"name": name, "version": "1.0.0", "packs": [pack]}
    answer = served.call("POST", "/v1/cluster-profiles", document, token=token)
    assert answer.status == 201, answer.text


def test_packs_have_the_rights_of_whoever_chose_them(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> None:
    creation = served.call("POST", "/v1/clusters", body(name="packs"))
    assert served.operation(creation.body["operation_id"])["status"] == "succeeded"
    path = f"/v1/clusters/{creation.body['id']}/profiles"
    for name, content, token in (
        ("space", SPACE, "STOCKYARD_TOKEN"),
        ("config", CONFIG, OPERATOR),
        ("grab", GRAB, OPERATOR),
    ):
        make(served, name, content, token)

    def put(token: str, *names: str) -> Answer:
        return served.change("PUT", path, {"profiles": [{"name": name} for name in names]}, token=token)

    def done(token: str, *names: str) -> dict[str, Any]:
        answer = put(token, *names)
        assert answer.status == 202, answer.text
        return served.operation(answer.body["id"])

    def conditions() -> dict[str, str]:
        return {pack["name"]: pack["condition"] for pack in served.call("GET", path).body["packs"]}

    refused = put(OPERATOR, "grab")
    assert (refused.status, [fault["pointer"] for fault in refused.body["errors"]]) == (422, ["/profiles/0"])
    assert "ClusterRoleBinding grab: kind" in refused.text
    operation = done(OPERATOR, "config")
    assert operation["status"] == "failed"
    assert "tools is not open to packs that an operator has chosen" in operation["error"]["cause"]
    assert conditions() == {"config": "Failed"}
    operation = done(OPERATOR, "space", "config")
    assert operation["status"] == "succeeded", operation["error"]
    assert conditions() == {"space": "Ready", "config": "Ready"}
    choice_rights = {choice["name"]: choice["rights"] for choice in served.call("GET", path).body["profiles"]}
    assert choice_rights == {"space": "admin", "config": "operator"}, "an administrator has made the one"
    assert served.call("GET", f"{path}?refresh=true", token=OPERATOR).body["drift"] == []
    assert remove(creation.body["id"])["status"] == "succeeded"
