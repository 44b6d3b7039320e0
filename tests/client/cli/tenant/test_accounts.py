"""``stockyard account``."""

from __future__ import annotations

import json

import pytest
import yaml

ACCOUNT = {"id": 1, "name": "prod", "provider": "aws", "verification": "unverified", "version": 1}


def test_create_from_options(cli, api):
    api.answer("POST", "/v1/cloud-accounts", ACCOUNT, status=201)
    arn = "arn:aws:iam::222222222222:role/stockyard"
    result = cli("account", "create", "--name", "prod", "--role-arn", arn, "--region", "us-east-1", "-o", "name")
    assert (result.exit_code, result.stdout) == (0, "1\n")
    assert api.bodies("POST") == [
        {"name": "prod", "provider": "aws", "attributes": {"role_arn": arn, "region": "us-east-1"}}
    ]
    assert "stockyard account template 1" in result.stderr


def test_options_win_over_the_file(cli, api):
    api.answer("POST", "/v1/cloud-accounts", ACCOUNT, status=201)
    document = {"provider": "aws", "name": "old", "attributes": {"role_arn": "r", "region": "us-east-1"}}
    cli("account", "create", "-f", "-", "--name", "new", "--region", "us-west-2", stdin=json.dumps(document))
    assert api.bodies("POST") == [
        {"provider": "aws", "name": "new", "attributes": {"role_arn": "r", "region": "us-west-2"}}
    ]


def test_the_key_of_an_account_in_cudo_comes_from_the_environment(cli, api, monkeypatch):
    monkeypatch.setenv("CUDO_API_KEY", "key-of-the-project")
    monkeypatch.setenv("CUDO_PROJECT_ID", "acme-project")
    api.answer("POST", "/v1/cloud-accounts", {**ACCOUNT, "provider": "cudo", "secrets": ["api_key"]}, status=201)
    options = ("--name", "gpus", "--provider", "cudo", "--data-center-id", "us-dallas-1")
    result = cli("account", "create", *options)
    attributes = {"data_center_id": "us-dallas-1", "project_id": "acme-project", "api_key": "key-of-the-project"}
    assert api.bodies("POST") == [{"name": "gpus", "provider": "cudo", "attributes": attributes}]
    assert "key-of-the-project" not in result.stdout + result.stderr
    assert "Next: verify it by `stockyard account verify 1`." in result.stderr


def test_the_secret_id_of_a_vault_comes_from_the_environment(cli, api, monkeypatch):
    monkeypatch.setenv("VAULT_SECRET_ID", "secret-id-of-the-role")
    api.answer("POST", "/v1/cloud-accounts", {**ACCOUNT, "provider": "cudo", "secrets": ["api_key"]}, status=201)
    vault = ("--vault-address", "https://vault.example.com", "--vault-role-id", "role")
    project = ("--project-id", "acme-project", "--data-center-id", "us-dallas-1")
    result = cli("account", "create", "--name", "gpus", "--provider", "cudo", *project, *vault)
    assert "secret-id-of-the-role" not in result.stdout
    attributes = api.bodies("POST")[0]["attributes"]
    assert attributes["vault_address"] == "https://vault.example.com"
    assert attributes["vault_role_id"] == "role"
    assert attributes["vault_secret_id"] == "secret-id-of-the-role"


@pytest.mark.parametrize("arguments", [(), ("--name", "x", "--tag", "novalue")])
def test_create_without_enough_is_a_usage_error(cli, api, arguments):
    assert cli("account", "create", *arguments).exit_code == 2
    assert api.requests == []


def test_a_refusal_names_the_option_that_was_given(cli, api):
    errors = [{"pointer": f"/attributes/{name}", "detail": "is wrong"} for name in ("role_arn", "region")]
    api.problem("POST", "/v1/cloud-accounts", 422, "InvalidInput", errors=errors)
    result = cli("account", "create", "--name", "x", "--role-arn", "y")
    assert "--role-arn: is wrong" in result.stderr
    assert "attributes.region: is wrong" in result.stderr


def test_list_and_get(cli, api):
    api.answer("GET", "/v1/cloud-accounts", {"items": [ACCOUNT], "next_page_token": None})
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT)
    assert cli("account", "list").stdout.splitlines()[1].split() == ["1", "prod", "aws", "unverified", "-", "-"]
    assert json.loads(cli("account", "get", "1", "-o", "json").stdout) == ACCOUNT


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        ({"Resources": {"template": 1}}, '{"Resources":{"template":1}}\n'),
        ({"template": {"Resources": {}}}, '{"Resources":{}}\n'),
        ("Resources: {}\n", "Resources: {}\n"),
    ],
)
def test_template_is_ready_for_cloudformation(cli, api, body, printed):
    api.answer("GET", "/v1/cloud-accounts/1/template", body)
    assert cli("account", "template", "1").stdout == printed


def test_template_for_runs_is_another(cli, api):
    api.answer("GET", "/v1/cloud-accounts/1/template", {"Resources": {}})
    assert cli("account", "template", "1", "--runs").stdout == '{"Resources":{}}\n'
    assert dict(api.requests[-1].url.params) == {"runs": "true"}


@pytest.mark.parametrize(("state", "code"), [("verified", 0), ("failed", 1)])
def test_verify_tells_by_its_exit_code(cli, api, state, code):
    api.answer(
        "POST", "/v1/cloud-accounts/1/verify", {**ACCOUNT, "verification": state, "verification_message": "So it is."}
    )
    result = cli("account", "verify", "1")
    assert result.output.count("So it is.") == 1
    assert result.exit_code == code
    assert state in result.stdout
    assert "So it is." in result.stderr


def test_delete(cli, api):
    api.answer("DELETE", "/v1/cloud-accounts/1", status=204)
    result = cli("account", "delete", "1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "removed" in result.stderr


def test_delete_in_use_is_a_conflict(cli, api):
    api.problem("DELETE", "/v1/cloud-accounts/1", 409, "InUse", retryable=False)
    assert cli("account", "delete", "1").exit_code == 5


def test_dry_runs_change_nothing(cli, api):
    api.answer("DELETE", "/v1/cloud-accounts/1", {"plan": {"deletes": ["cloud account 1"]}})
    api.answer("POST", "/v1/cloud-accounts", {"plan": {}})
    assert cli("account", "delete", "1", "--dry-run").stdout == "- cloud account 1\n"
    assert cli("account", "create", "--name", "x", "--dry-run").stdout == "Nothing would change.\n"
    assert [request.url.params.get("dry_run") for request in api.requests] == ["true", "true"]


def test_verify_shows_warnings(cli, api):
    account = {"id": 1, "provider": "aws", "name": "main", "verification": "verified", "version": 2}
    account |= {"verification_message": "It works.", "warnings": ["The template is version 1."]}
    api.answer("POST", "/v1/cloud-accounts/1/verify", account)
    result = cli("account", "verify", "1")
    assert result.exit_code == 0
    assert "Warning: The template is version 1." in result.stderr


def choice(condition: str, sid: str, otherwise: object) -> dict[str, object]:
    return {"Fn::If": [condition, {"Sid": sid}, otherwise]}


TEMPLATE = {
    "Parameters": {"Kubeadm": {"Default": "yes"}, "Efs": {"Default": "yes"}, "Earlier": {"Default": "no"}},
    "Conditions": {
        "HasKubeadm": {"Fn::Equals": [{"Ref": "Kubeadm"}, "yes"]},
        "HasEfs": {"Fn::And": [{"Condition": "HasKubeadm"}, {"Fn::Equals": [{"Ref": "Efs"}, "yes"]}]},
        "HasEarlier": {"Fn::Equals": [{"Ref": "Earlier"}, "yes"]},
    },
    "Resources": {
        "Choices": {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {
                "PolicyDocument": {
                    "Statement": [
                        choice("HasEfs", "files", {"Ref": "AWS::NoValue"}),
                        choice("HasEarlier", "earlier", {"Ref": "AWS::NoValue"}),
                        {"Sid": "both", "Condition": choice("HasEarlier", "earlier", {"Null": {}})},
                        {"Sid": "none", "Condition": choice("HasEarlier", "earlier", {"Ref": "AWS::NoValue"})},
                    ]
                }
            },
        },
        "Permissions": {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {
                "PolicyDocument": {"Statement": [{"Resource": [{"Fn::Sub": "arn:${AWS::Partition}:ec2:*:1:vpc/*"}]}]}
            },
        },
        "Boundary": {
            "Type": "AWS::IAM::ManagedPolicy",
            "Condition": "HasKubeadm",
            "Properties": {"ManagedPolicyName": "yard-boundary", "PolicyDocument": {"Statement": []}},
        },
        "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
    },
}


def test_policies_are_those_of_the_template_as_iam_takes_them(cli, api, tmp_path):
    role = {"role_arn": "arn:aws-us-gov:iam::111122223333:role/stockyard"}
    api.answer("GET", "/v1/cloud-accounts/1/template", TEMPLATE)
    api.answer("GET", "/v1/cloud-accounts/1", {**ACCOUNT, "attributes": role})
    table = cli("account", "policies", "1", "--directory", str(tmp_path / "policies"))
    assert [line.split()[:2] for line in table.stdout.splitlines()] == [
        ["yard-boundary", "Kubeadm"],
        ["Choices", "always"],
        ["Permissions", "always"],
    ]
    assert "managed policies" in " ".join(table.stderr.split())
    document = {"Statement": [{"Resource": ["arn:aws-us-gov:ec2:*:1:vpc/*"]}]}
    assert json.loads((tmp_path / "policies/Permissions.json").read_text()) == document
    documents = json.loads(cli("account", "policies", "1", "-o", "json").stdout)
    assert documents["Permissions"] == document
    by_default = [{"Sid": "files"}, {"Sid": "both", "Condition": {"Null": {}}}, {"Sid": "none"}]
    assert documents["Choices"] == {"Statement": by_default}


def test_a_cloud_without_policies_is_refused(cli, api):
    api.answer("GET", "/v1/cloud-accounts/1/template", {"Resources": {}})
    api.answer("GET", "/v1/cloud-accounts/1", ACCOUNT)
    assert cli("account", "policies", "1").exit_code == 2


KUBECONFIG = {
    "current-context": "a",
    "contexts": [
        {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "machines"}},
        {"name": "b", "context": {"cluster": "c", "user": "v"}},
        {"name": "files", "context": {"cluster": "files", "user": "files"}},
        {"name": "login", "context": {"cluster": "c", "user": "login"}},
        {"name": "nobody", "context": {"cluster": "c", "user": "nobody"}},
        {"name": "open", "context": {"cluster": "open", "user": "u"}},
        {"name": "lost", "context": {"cluster": "x", "user": "u"}},
        {"name": "gone", "context": {"cluster": "gone", "user": "u"}},
    ],
    "clusters": [
        {"name": "c", "cluster": {"server": "https://h.example.test:6443", "certificate-authority-data": "Q0E="}},
        {"name": "open", "cluster": {"server": "https://h.example.test", "insecure-skip-tls-verify": True}},
        {"name": "files", "cluster": {"server": "https://h.example.test", "certificate-authority": "ca.pem"}},
        {"name": "gone", "cluster": {"server": "https://h.example.test", "certificate-authority": "gone.pem"}},
    ],
    "users": [
        {"name": "u", "user": {"token": "token-of-a-service-account"}},
        {"name": "v", "user": {"client-certificate-data": "Q1JU", "client-key-data": "S0VZ"}},
        {"name": "files", "user": {"tokenFile": "token"}},
        {"name": "login", "user": {"exec": {"command": "aws"}}},
        {"name": "nobody", "user": {}},
    ],
}
HOST = {"server": "https://h.example.test:6443", "certificate_authority": "Q0E="}


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(KUBECONFIG))
    (tmp_path / "ca.pem").write_text("CA")
    (tmp_path / "token").write_text("token-of-a-file\n")
    return path


@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        ((), {**HOST, "token": "token-of-a-service-account", "namespaces": ["machines"]}),
        (
            ("--context", "b", "--namespace", "x", "--namespace", "y"),
            {**HOST, "client_certificate": "Q1JU", "client_key": "S0VZ", "namespaces": ["x", "y"]},
        ),
        (
            ("--context", "files", "--namespace", "x"),
            {
                "server": "https://h.example.test",
                "certificate_authority": "Q0E=",
                "token": "token-of-a-file",
                "namespaces": ["x"],
            },
        ),
    ],
)
def test_a_kubeconfig_is_split_into_the_attributes_of_a_host(cli, api, kubeconfig, options, attributes):
    api.answer("POST", "/v1/cloud-accounts", {**ACCOUNT, "provider": "kubernetes", "secrets": ["token"]}, status=201)
    result = cli("account", "create", "--name", "host", "--kubeconfig", str(kubeconfig), *options)
    assert api.bodies("POST") == [{"name": "host", "provider": "kubernetes", "attributes": attributes}], result.output
    for secret in ("token-of", "S0VZ"):
        assert secret not in result.stdout + result.stderr
    assert "stockyard account verify 1" in result.stderr


def test_a_host_behind_a_site_needs_no_kubeconfig(cli, api):
    api.answer("POST", "/v1/cloud-accounts", {**ACCOUNT, "provider": "kubernetes", "secrets": []}, status=201)
    result = cli("account", "create", "--name", "host", "--via", "basement", "--namespace", "machines")
    attributes = {"namespaces": ["machines"], "via": "basement"}
    assert api.bodies("POST") == [{"name": "host", "provider": "kubernetes", "attributes": attributes}]
    assert "template" not in result.stderr


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ("login", "logs in by exec"),
        ("nobody", "no token and no certificate"),
        ("open", "certificate-authority-data"),
        ("lost", "has no x in clusters"),
        ("gone", "cannot be read"),
        ("absent", "has no absent in contexts"),
    ],
)
def test_a_kubeconfig_that_works_here_alone_is_refused(cli, api, kubeconfig, context, text):
    result = cli("account", "create", "--name", "host", "--kubeconfig", str(kubeconfig), "--context", context)
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
    assert api.bodies("POST") == []


def test_a_file_that_is_no_kubeconfig_is_refused(cli, api, tmp_path):
    for content in (b"\xff", b"{", b"[]", b"a: b"):
        path = tmp_path / "kubeconfig"
        path.write_bytes(content)
        assert cli("account", "create", "--name", "host", "--kubeconfig", str(path)).exit_code == 2
    assert cli("account", "create", "--name", "host", "--kubeconfig", str(tmp_path / "none")).exit_code == 2
    assert cli("account", "create", "--name", "host", "--context", "a").exit_code == 2


def test_the_template_of_a_host_is_yaml_for_kubectl(cli, api):
    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "machines"}}]
    api.answer("GET", "/v1/cloud-accounts/1/template", {"apiVersion": "v1", "kind": "List", "items": items})
    printed = cli("account", "template", "1").stdout
    assert yaml.safe_load(printed) == {"apiVersion": "v1", "kind": "List", "items": items}
    assert not printed.startswith("{")
