"""The agent's rights on a real API server, and the admission policy that the simulation does not judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from agent import roles
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent import kubeconfig_secrets
from agent.stockyard_agent.commands import tokens
from agent.stockyard_agent.transport import HttpResponse
from tests.kubernetes.rigs import RealRig


@pytest.fixture
def rig(real_rig: RealRig) -> RealRig:
    return real_rig


def test_the_agent_may_do_what_it_needs_and_nothing_else(rig: RealRig) -> None:
    def may(verb: str, resource: str, *options: str) -> bool:
        account = f"system:serviceaccount:{NAMESPACE}:{NAME}"
        kind, _, part = resource.partition("/")
        about = [kind, f"--subresource={part}"] if part else [kind]
        done = rig.plane.kubectl("auth", "can-i", verb, *about, "--as", account, *options, check=False)
        return done.stdout.strip() == "yes"

    assert may("list", "nodes")
    assert may("create", "pods/eviction", "-n", "web")
    assert may("watch", "pods", "-n", "web")
    for resource in ("persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io", "daemonsets.apps"):
        assert may("list", resource)
        assert not may("watch", resource)
    assert may("create", "secrets", "-n", "kube-system")
    for verb, resource, namespace in (
        ("get", "secrets", "kube-system"),
        ("list", "secrets", "web"),
        ("create", "serviceaccounts/token", "kube-system"),
        ("create", "clusterrolebindings", ""),
        ("get", "nodes/proxy", ""),
        ("create", "pods/exec", "web"),
    ):
        assert not may(verb, resource, *(["-n", namespace] if namespace else [])), (verb, resource)


def _only_kubeconfigs_of_its_own(rig: RealRig, call: Any, refused: Any) -> None:
    """Kubeconfigs that the agent writes are its own, with nothing else in them, outside of kube-system."""

    def kubeconfig(name: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
        return {**kubeconfig_secrets.secret_of(namespace, name, {"data": {"kubeconfig": "eA=="}}), **more}

    path = "/api/v1/namespaces/default/secrets"
    assert call("POST", path, kubeconfig("west")).status == 201
    assert call("PUT", f"{path}/west", kubeconfig("west")).status == 200
    stray = kubeconfig("east", data={"kubeconfig": "eA==", "password": "eA=="})
    assert "holds nothing else" in refused("POST", path, stray)
    unmarked = kubeconfig("east")
    unmarked["metadata"]["labels"].pop(kubeconfig_secrets.MANAGER)
    assert "carries its label" in refused("POST", path, unmarked)
    unmarked["metadata"].pop("labels")
    assert "bootstrap tokens and kubeconfigs only" in refused("POST", path, unmarked)
    assert "kubeconfigs only" in refused(
        "POST", "/api/v1/namespaces/kube-system/secrets", kubeconfig("a", "kube-system")
    )
    folder = rig.plane.folder / "theirs.json"
    folder.write_text(json.dumps({**kubeconfig("theirs"), "metadata": {"name": "theirs", "namespace": "default"}}))
    rig.plane.kubectl("create", "-f", str(folder))
    assert "its own Secrets only" in refused("PUT", f"{path}/theirs", kubeconfig("theirs"))
    assert "its own Secrets only" in refused("DELETE", f"{path}/theirs")
    assert call("DELETE", f"{path}/west").status == 200


def test_the_admission_policy_lets_the_agent_write_bootstrap_tokens_alone(rig: RealRig) -> None:
    """The agent's own writes pass (the join test above); each Secret here differs from that in one thing."""
    path = "/api/v1/namespaces/kube-system/secrets"

    def call(method: str, path: str, document: Any = None) -> HttpResponse:
        headers = {"Authorization": f"Bearer {rig.account}", "Content-Type": "application/json"}
        return rig.send(method, path, headers, json.dumps(document).encode() if document else None)

    def token(identity: str) -> dict[str, Any]:
        return tokens.secret_of(identity, "0123456789abcdef", "ncl_1", "worker-1", "2099-01-01T00:00:00Z")

    def refused(method: str, path: str, document: Any = None) -> str:
        answer = call(method, path, document)
        assert answer.status == 422, answer.body
        status = yaml.safe_load(answer.body)
        assert status["reason"] == "Invalid"
        return str(status["message"])

    of_another_type = {**token("zzzzzz"), "type": "Opaque"}
    assert "writes bootstrap tokens and kubeconfigs only" in refused("POST", path, of_another_type)
    renamed, unlabelled = token("zzzzzz"), token("zzzzzz")
    renamed["metadata"]["name"] = "stolen"
    assert "named after its id" in refused("POST", path, renamed)
    renamed["metadata"].pop("name")
    renamed["metadata"]["generateName"] = "bootstrap-token-"
    assert "named after its id" in refused("POST", path, renamed)
    groups = token("zzzzzz")["stringData"]["auth-extra-groups"]
    admins = "system:bootstrappers:admins"
    for stray in (admins, roles.JOINERS, f"{groups},{admins}", f"{groups}1,{admins}", f"{groups}12,{admins}"):
        changed = token("zzzzzz")
        changed["stringData"]["auth-extra-groups"] = stray
        assert "joins one node and nothing else" in refused("POST", path, changed), stray
    unlabelled["metadata"].pop("labels")
    assert "carries its label" in refused("POST", path, unlabelled)
    endless, empty = token("zzzzzz"), token("zzzzzz")
    endless["stringData"].pop("expiration")
    assert "ends" in refused("POST", path, endless)
    empty.pop("stringData")
    assert "named after its id" in refused("POST", path, empty)
    # A token of somebody else: it stays as it is.
    folder = rig.plane.folder / "foreign.json"
    foreign = token("yyyyyy")
    foreign["metadata"]["labels"] = {"owner": "somebody"}
    folder.write_text(json.dumps(foreign))
    rig.plane.kubectl("create", "-f", str(folder))
    assert "its own Secrets only" in refused("PUT", f"{path}/bootstrap-token-yyyyyy", token("yyyyyy"))
    assert "its own Secrets only" in refused("DELETE", f"{path}/bootstrap-token-yyyyyy")
    _only_kubeconfigs_of_its_own(rig, call, refused)
    # One of its own goes all the way.
    assert call("POST", path, token("xxxxxx")).status == 201
    assert call("PUT", f"{path}/bootstrap-token-xxxxxx", token("xxxxxx")).status == 200
    assert call("DELETE", f"{path}/bootstrap-token-xxxxxx").status == 200
