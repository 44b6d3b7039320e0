"""The apply command, within the agent's rights."""

from __future__ import annotations

from typing import Any

import pytest

from agent import manifest
from agent.roles import NAME, NAMESPACE
from local.kubernetes.api import Fault
from local.kubernetes.store import Key
from tests.unit.agent.rig import API, CLUSTER, TOKEN_URL, Rig


def config(name: str = "site", **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def carry_out(rig: Rig, *manifests: Any) -> dict[str, Any]:
    rig.platform.order("a", "apply", manifests=list(manifests))
    rig.until_ended(rig.agent())
    return rig.platform.results_by_id["cmd_a"]


def test_apply_is_idempotent_and_sets_field_manager(rig: Rig) -> None:
    for _ in range(2):
        done = carry_out(rig, config(a="1"), config("other", b="2"))
        assert (done["status"], done["data"]) == ("done", {"applied": 2})
    key = Key("", "configmaps", NAMESPACE, "site")
    applied = rig.kube.store.get(key)
    version = applied["metadata"]["resourceVersion"]
    assert [entry["manager"] for entry in applied["metadata"]["managedFields"]] == ["stockyard-agent"]
    carry_out(rig, config(a="1"))
    assert rig.kube.store.get(key)["metadata"]["resourceVersion"] == version
    carry_out(rig, config(c="3"))
    assert rig.kube.store.get(key)["data"] == {"c": "3"}, "what is no longer sent goes"


def test_apply_takes_over_fields_of_other_manager(rig: Rig) -> None:
    rig.kube.install([config(a="theirs", b="stays")])
    assert carry_out(rig, config(a="ours"))["status"] == "done"
    assert rig.kube.store.get(Key("", "configmaps", NAMESPACE, "site"))["data"] == {"a": "ours", "b": "stays"}


def test_agent_can_upgrade_itself_but_not_its_roles(rig: Rig) -> None:
    settings = manifest.Settings(API, CLUSTER, TOKEN_URL, "python:3.14-slim")
    assert carry_out(rig, *manifest.upgrade(settings))["status"] == "done"
    deployed = rig.kube.store.get(Key("apps", "deployments", NAMESPACE, NAME))
    assert deployed["spec"]["template"]["spec"]["containers"][0]["image"] == "python:3.14-slim"
    for document in manifest.documents(settings):
        if document not in manifest.upgrade(settings):
            refused = carry_out(rig, document)
            assert refused["status"] == "failed", document["kind"]
            assert "is forbidden" in refused["message"]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({**config(), "metadata": {"name": "site", "namespace": "kube-system"}}, "403 Forbidden"),
        ({**config(), "kind": "Secret"}, "403 Forbidden"),
        ({**config(), "kind": "Novelty"}, "/manifests/1/kind: "),
        ({**config(), "apiVersion": "example.test/v1"}, "/manifests/1/apiVersion: "),
        ({**config(), "apiVersion": 1}, "/manifests/1/apiVersion: "),
        ({**config(), "metadata": {"name": "site"}}, "/manifests/1/metadata/namespace: "),
        ({**config(), "metadata": {"name": "site", "namespace": 1}}, "/manifests/1/metadata/namespace: "),
        ({**config(), "metadata": {"namespace": NAMESPACE}}, "/manifests/1/metadata/name: "),
        ("text", "/manifests: "),
    ],
)
def test_apply_fails_with_reason(rig: Rig, document: Any, named: str) -> None:
    refused = carry_out(rig, config(), document)
    assert refused["status"] == "failed"
    assert named in refused["message"]


def test_apply_of_a_field_that_the_schema_lacks_fails(rig: Rig) -> None:
    """The API server answers 500, and the manifest will never be right."""
    text = "failed to create typed patch object (/v1, Kind=ConfigMap): .data1: field not declared in schema"
    rig.kube.faults.append(Fault("patch", "configmaps", 500, message=text))
    result = carry_out(rig, config(a="1"))
    assert result["status"] == "failed"
    assert "not declared in schema" in result["message"]


def test_apply_retries_conflict_and_server_error(rig: Rig) -> None:
    rig.kube.faults += [Fault("patch", "configmaps", 409), Fault("get", "/api/v1", 503)]
    rig.platform.order("a", "apply", manifests=[config(a="1")])
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results["a"]["status"] == "running"
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_a"]["status"] == "done"
