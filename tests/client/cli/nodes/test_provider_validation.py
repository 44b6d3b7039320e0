"""``stockyard provider validate`` against the fake API, with a real OpenTofu where it is built."""

from __future__ import annotations

import json
import os
import textwrap

import pytest

from local.opentofu.real.build import TOFU
from stockyard_client.cli.nodes.template_checks import templates_of
from tests.harness.runs.git_server import GitServer
from tests.harness.runs.git_server import serving as serving_git

real = pytest.mark.skipif(bool(TOFU.missing()), reason=TOFU.missing() or "built")
GOOD = 'variable "vcluster" { type = any }\nresource "terraform_data" "node" { input = var.vcluster.name }\n'
BAD = 'variable "vcluster" { type = any }\noutput "x" { value = var.nothing }\n'
OF_A_VENDOR = 'resource "example_machine" "node" {\n  size = 1\n}\n'
BROKEN = f"{OF_A_VENDOR}resource {{\n"


@pytest.fixture(autouse=True)
def _no_registry(monkeypatch):
    """No plug-in of a vendor can be fetched."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")


@pytest.fixture
def validate(cli, api):
    def run(template: str, *options: str):
        api.answer("POST", "/v1/apply", {"plan": {"creates": [{"kind": "node-provider", "name": "tofu"}]}})
        manifest = (
            "apiVersion: stockyard/v1\nkind: NodeProvider\nmetadata: {name: tofu}\nspec:\n  terraform:\n"
            f"    nodeTypes: [{{name: small}}]\n    nodeTemplate:\n{textwrap.indent(template, ' ' * 6)}\n"
        )
        return cli("provider", "validate", "-f", "-", *options, stdin=manifest)

    return run


def inline(text: str) -> str:
    return f"inline: |\n{textwrap.indent(text, '  ')}"


def test_a_document_that_the_api_refuses_is_refused_with_the_field(cli, api):
    fault = {"pointer": "/0/spec/terraform/nodeTemplate", "detail": "this field is required"}
    api.problem("POST", "/v1/apply", 422, "InvalidInput", errors=[fault])
    manifest = "apiVersion: stockyard/v1\nkind: NodeProvider\nmetadata: {name: tofu}\nspec: {terraform: {}}\n"
    result = cli("provider", "validate", "-f", "-", stdin=manifest)
    assert result.exit_code == 2
    assert "NodeProvider tofu spec.terraform.nodeTemplate: this field is required" in result.stderr


def test_without_opentofu_it_is_said_that_templates_were_not_checked(validate, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    result = validate(inline(GOOD))
    assert result.exit_code == 0
    assert "spec.terraform.nodeTemplate: The template was not checked" in result.stderr
    result = validate(inline(GOOD), "--tofu", "/bin/true")
    assert "does not answer as OpenTofu does" in result.stderr


def test_a_provider_of_another_kind_has_no_templates(cli, api):
    api.answer("POST", "/v1/node-providers", {"plan": {}})
    result = cli("provider", "validate", "-f", "-", "-o", "json", stdin='{"kind": "simulated", "spec": {}}')
    assert json.loads(result.stdout)["templates"] == []
    assert api.requests[-1].url.params["dry_run"] == "true"


def test_every_template_of_a_document_is_found():
    template = {"inline": "x"}
    block = {
        "nodeTemplate": template,
        "nodeTypes": [{"name": "a"}, {"name": "b", "nodeTemplate": template}],
        "nodeEnvironmentTemplate": {"infrastructure": template, "kubernetes": template},
    }
    assert [pointer for pointer, _ in templates_of(block, "/spec")] == [
        "/spec/nodeTemplate",
        "/spec/nodeTypes/1/nodeTemplate",
        "/spec/nodeEnvironmentTemplate/infrastructure",
        "/spec/nodeEnvironmentTemplate/kubernetes",
    ]
    old = {"nodeEnvironmentTemplate": {**template, "timeout": "5m"}}
    assert [pointer for pointer, _ in templates_of(old, "/spec")] == ["/spec/nodeEnvironmentTemplate"]


@real
def test_templates_are_validated_by_opentofu(validate):
    tofu = ("--tofu", str(TOFU.path))
    result = validate(inline(GOOD), *tofu)
    assert result.exit_code == 0, result.stderr
    assert "spec.terraform.nodeTemplate: OpenTofu validated the template." in result.stderr
    result = validate(inline(BAD), *tofu)
    assert result.exit_code == 2
    assert "spec.terraform.nodeTemplate, main.tf line 2: Reference to undeclared input variable" in result.stderr


@real
def test_a_template_whose_plug_ins_cannot_be_fetched_is_parsed_and_that_is_said(validate):
    result = validate(inline(OF_A_VENDOR), "--tofu", str(TOFU.path), "-o", "json")
    assert result.exit_code == 0, result.stderr
    (check,) = json.loads(result.stdout)["templates"]
    assert (check["verdict"], check["pointer"]) == ("parsed", "/0/spec/terraform/nodeTemplate")
    assert "parsed, and not validated" in check["detail"]
    assert "example" in check["detail"], "the reason of OpenTofu itself"
    result = validate(inline(BROKEN), "--tofu", str(TOFU.path))
    assert result.exit_code == 2, "what does not parse is refused with and without plug-ins"
    assert "main.tf line 4" in result.stderr


@real
def test_a_template_of_a_repository_is_fetched_with_the_git_of_this_machine(validate, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HTTP_PROXY", raising=False)
    with serving_git(GitServer(tmp_path / "served")) as server:
        first = server.commit("nodes", {"ec2/main.tf": BAD}, tag="v1")
        server.commit("nodes", {"ec2/main.tf": GOOD})
        for pointer, verdict in (
            ("branch: main", "valid"),
            ("tag: v1", "invalid"),
            (f"commit: {first}", "invalid"),
            ("branch: gone", "unchecked"),
        ):
            git = f"git: {{repository: '{server.url}/nodes.git', subPath: ec2, {pointer}}}"
            result = validate(git, "--tofu", str(TOFU.path), "-o", "json")
            (check,) = json.loads(result.stdout)["templates"]
            assert check["verdict"] == verdict, (pointer, check)
        outside = f"git: {{repository: '{server.url}/nodes.git', subPath: ../../..}}"
        (check,) = json.loads(validate(outside, "--tofu", str(TOFU.path), "-o", "json").stdout)["templates"]
        assert (check["verdict"], check["detail"][:28]) == ("unchecked", "The repository has no folder")


@real
def test_opentofu_sees_nothing_of_the_login(validate, monkeypatch, tmp_path):
    program = tmp_path / "tofu"
    program.write_text(f'#!/bin/sh\nenv > {tmp_path}/environment\nexec {TOFU.path} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("STOCKYARD_CLUSTER_TOKEN", "canary")
    assert validate(inline(GOOD)).exit_code == 0
    assert "STOCKYARD" not in (tmp_path / "environment").read_text()
