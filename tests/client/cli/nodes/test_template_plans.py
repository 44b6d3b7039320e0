"""``stockyard claim create --dry-run --refresh`` against the fake API, with a real OpenTofu where it is built."""

from __future__ import annotations

import json

import pytest

from local.opentofu.real.build import TOFU

real = pytest.mark.skipif(bool(TOFU.missing()), reason=TOFU.missing() or "built")
GOOD = """
variable "vcluster" { type = any }
resource "terraform_data" "node" { input = var.vcluster.requirements["instance-type"] }
resource "terraform_data" "disk" { count = 2 }
"""
OWN_BACKEND = 'terraform {\n  backend "http" { address = "http://127.0.0.1:1/state" }\n}\n' + GOOD
BAD = 'variable "vcluster" { type = any }\nresource "terraform_data" "node" { input = var.vcluster.nothing }\n'
OF_A_VENDOR = 'resource "example_machine" "node" {}\n'
VARIABLES = {"vcluster": {"name": "one", "requirements": {"instance-type": "large"}}}


@pytest.fixture(autouse=True)
def _no_registry(monkeypatch):
    """No plug-in of a vendor can be fetched."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")


@pytest.fixture
def plan(cli, api):
    def run(template: str | None, *options: str):
        made_by = None if template is None else {"template": {"inline": template}, "variables": VARIABLES}
        body = {"creates": [{"kind": "node", "name": "tf.large"}], "run": made_by}
        warnings = [] if made_by else [{"pointer": "", "detail": "No template makes the node that would be chosen."}]
        api._answers.pop(("POST", "/v1/node-claims"), None)
        api.answer("POST", "/v1/node-claims", {"plan": {**body, "warnings": warnings}})
        options = ("--dry-run", "--refresh", "--tofu", str(TOFU.path), *options)
        return cli("claim", "create", "--cluster", "shop", *options)

    return run


@real
def test_the_plan_says_what_opentofu_would_make(plan, api):
    for template in (GOOD, OWN_BACKEND):
        result = plan(template)
        assert result.exit_code == 0, result.stderr
        for line in ("make 3 things of the template", "+ terraform_data.node", "+ terraform_data.disk[1]", "tf.large"):
            assert line in result.stdout, (line, result.stdout)
    assert dict(api.requests[-1].url.params) == {"dry_run": "true", "run": "true"}
    document = json.loads(plan(GOOD, "-o", "json").stdout)
    assert {"action": "create", "address": "terraform_data.node"} in document["tofu"]["changes"]
    assert document["plan"]["run"]["variables"] == VARIABLES


@real
def test_what_cannot_be_planned_is_said_with_its_reason(plan):
    for template, words in (
        (BAD, "main.tf line 2"),
        (OF_A_VENDOR, "OpenTofu cannot prepare the template here"),
        (None, "No template makes the node"),
    ):
        result = plan(template)
        assert (result.exit_code, words in result.stderr) == (2, True), (words, result.stderr)


def test_refresh_needs_a_dry_run_of_one_claim_and_opentofu(cli, api, monkeypatch):
    api.answer("POST", "/v1/node-claims", {"plan": {"run": {"template": {"inline": ""}, "variables": {}}}})
    monkeypatch.setenv("PATH", "/nonexistent")
    manifest = "apiVersion: stockyard/v1\nkind: NodeClaim\nmetadata: {name: one}\nspec: {}\n"
    for options, stdin, words in (
        (("--cluster", "shop", "--refresh"), "", "give --dry-run too"),
        (("-f", "-", "--dry-run", "--refresh"), manifest, "--refresh plans one claim"),
        (("--cluster", "shop", "--dry-run", "--refresh"), "", "There is no program tofu here"),
        (("--cluster", "shop", "--dry-run", "--refresh", "--tofu", "/bin/true"), "", "does not answer as OpenTofu"),
    ):
        result = cli("claim", "create", *options, stdin=stdin)
        assert (result.exit_code, words in result.stderr) == (2, True), (words, result.stderr)
