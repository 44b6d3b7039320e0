"""The manifest: what it holds, what it must not hold, and that it is the code which runs."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent import manifest
from agent.roles import NAME, NAMESPACE

SETTINGS = manifest.Settings("https://api.example.test/", "clu_1", "https://id.example.test/token", "python:3.12-slim")


@pytest.fixture(scope="module")
def documents() -> dict[tuple[str, str], dict[str, Any]]:
    """As a YAML reader sees them, by kind and namespace; the first of each."""
    objects = list(yaml.safe_load_all(manifest.render(SETTINGS)))
    return {(item["kind"], item["metadata"].get("namespace", "")): item for item in reversed(objects)}


def test_manifest_is_small_and_deterministic() -> None:
    text = manifest.render(SETTINGS)
    assert len(text.encode()) < manifest.LIMIT == 260_000
    assert text == manifest.render(SETTINGS)


def test_manifest_above_size_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="over 260000"):
        manifest.render(manifest.Settings("https://" + "a" * 256_000, "", ""))


def test_manifest_has_every_object_once_in_creation_order() -> None:
    objects = manifest.documents(SETTINGS)
    policy = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    assert [item["kind"] for item in objects] == [
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
        *policy * 5, "ClusterRole", "ClusterRoleBinding", *["Role", "RoleBinding"] * 2, "ConfigMap",
        "Deployment",
    ]  # fmt: skip
    keys = [(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in objects]
    assert len(set(keys)) == len(objects)
    assert {namespace for _, namespace, _ in keys} == {"", "kube-system", NAMESPACE}


def test_manifest_contains_no_secret(documents: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert not any(kind == "Secret" for kind, _ in documents)
    pod = documents["Deployment", NAMESPACE]["spec"]["template"]["spec"]
    assert {"name": "client", "secret": {"secretName": "stockyard-agent", "defaultMode": 0o440}} in pod["volumes"]
    assert not any("SECRET" in variable["name"] for variable in pod["containers"][0]["env"])


def test_manifest_pod_meets_restricted_standard(documents: dict[tuple[str, str], dict[str, Any]]) -> None:
    spec = documents["Deployment", NAMESPACE]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    pod, container = spec["template"]["spec"], spec["template"]["spec"]["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert {"configMap", "secret"} == {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    enforced = documents["Namespace", ""]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert enforced == "restricted"
    assert {"key": manifest.CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    assert container["resources"]["limits"]["memory"] == "256Mi"
    assert container["image"] == "python:3.12-slim"


def test_manifest_default_image_is_pinned() -> None:
    assert re.fullmatch(
        r"public\.ecr\.aws/docker/library/python:3\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", manifest.IMAGE
    )


def test_roles_have_no_wildcard_and_cannot_read_secrets(documents: dict[tuple[str, str], dict[str, Any]]) -> None:
    # Machines that join may read the sealed authorities by their name.
    roles = [
        item
        for (kind, _), item in documents.items()
        if kind in ("ClusterRole", "Role") and item["metadata"]["name"] == NAME
    ]
    rules = [rule for role in roles for rule in role["rules"]]
    assert "*" not in json.dumps(rules)
    for rule in rules:
        if "secrets" in rule["resources"]:
            assert not {"get", "list", "watch", "patch"} & set(rule["verbs"])
    # Kubeconfigs stand in the namespace that somebody asks for; the policy says which Secrets these are.
    (of_secrets,) = (rule for rule in documents["ClusterRole", ""]["rules"] if "secrets" in rule["resources"])
    assert of_secrets["verbs"] == ["create", "update", "delete"]


def test_code_change_rolls_the_pod(
    documents: dict[tuple[str, str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = documents["ConfigMap", NAMESPACE]["data"]
    folder = Path(manifest.__file__).parent / "stockyard_agent"
    volumes = documents["Deployment", NAMESPACE]["spec"]["template"]["spec"]["volumes"]
    (source,) = [volume["configMap"] for volume in volumes if volume["name"] == "code"]
    files = {folder / item["path"]: data[item["key"]] for item in source["items"]}
    assert files == {path: path.read_text() for path in folder.rglob("*.py")}
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", key) for key in data), "as Kubernetes wants keys of ConfigMaps"
    mount = documents["Deployment", NAMESPACE]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]
    assert mount == {"name": "code", "mountPath": "/opt/stockyard/stockyard_agent", "readOnly": True}

    def mark() -> str:
        template = manifest.upgrade(SETTINGS)[1]["spec"]["template"]
        return str(template["metadata"]["annotations"]["stockyard.dev/code"])

    before = mark()
    monkeypatch.setattr(manifest, "sources", lambda: {**data, "new.py": ""})
    assert mark() != before


def test_agent_imports_standard_library_only() -> None:
    modules: set[str] = set()
    for text in manifest.sources().values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules.add(str(node.module).partition(".")[0])
    assert modules <= sys.stdlib_module_names


def test_manifest_command_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--api-url", SETTINGS.api_url, "--cluster-id", "clu_1", "--token-url", SETTINGS.token_url]
    assert manifest.main([*arguments, "--image", SETTINGS.image]) == 0
    assert capsys.readouterr().out == manifest.render(SETTINGS)
    manifest.main(arguments)
    assert manifest.IMAGE in capsys.readouterr().out
    assert NAME == manifest.SECRET
