"""``stockyard cluster kubeconfig`` against the fake API."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml


@pytest.fixture
def config(api):
    user = {"exec": {"command": "stockyard", "args": ["token"]}}
    document = {
        "clusters": [{"name": "demo", "cluster": {"server": "https://demo:6443"}}],
        "users": [{"name": "demo", "user": user}],
        "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
        "current-context": "demo",
    }
    api.answer("GET", "/v1/clusters/demo/kubeconfig", document)
    return document


def test_kubeconfig_is_put_into_the_person_s_file(cli, config, tmp_path):
    result = cli("cluster", "kubeconfig", "demo")
    assert (result.exit_code, result.stdout) == (0, "")
    written = yaml.safe_load((tmp_path / ".kube" / "config").read_text())
    # a file that had no current context gets one
    assert written["current-context"] == "demo"
    assert Path(written["users"][0]["user"]["exec"]["command"]).is_absolute()
    assert "pip install" in written["users"][0]["user"]["exec"]["installHint"]
    assert "Context demo is current" in result.stderr


def test_kubeconfig_leaves_the_current_context_alone_unless_told(cli, config, tmp_path):
    file = tmp_path / ".kube" / "config"
    cli("cluster", "kubeconfig", "demo", "--context", "prod")
    result = cli("cluster", "kubeconfig", "demo")
    assert yaml.safe_load(file.read_text())["current-context"] == "prod"
    assert "prod stays the current one" in result.stderr
    assert "kubectl --context demo get nodes" in result.stderr
    cli("cluster", "kubeconfig", "demo", "--use")
    written = yaml.safe_load(file.read_text())
    assert written["current-context"] == "demo"
    assert [entry["name"] for entry in written["contexts"]] == ["prod", "demo"]


def test_who_has_not_logged_in_to_a_cluster_is_told_to(cli, config):
    next_step = "Next: stockyard login --cluster demo"
    # nothing says how people log in
    assert next_step not in cli("cluster", "kubeconfig", "demo").stderr
    arguments = ["token", "--issuer", "https://id.test/realms/x", "--client-id", "demo"]
    config["users"][0]["user"]["exec"]["args"] = arguments
    cli.api.answer("GET", "/v1/clusters/named/kubeconfig", config)
    assert "Next: stockyard login --cluster named" in cli("cluster", "kubeconfig", "named").stderr
    assert "login" not in cli("cluster", "kubeconfig", "named", "--print").stderr
    cli.environment["STOCKYARD_CLUSTER_TOKEN"] = "t"
    assert "login" not in cli("cluster", "kubeconfig", "named").stderr


def test_kubeconfig_of_a_simulated_cluster_says_what_will_not_answer(cli, config, api):
    assert "is simulated" not in cli("cluster", "kubeconfig", "demo").stderr
    api.answer("GET", "/v1/clusters/local/kubeconfig", config, X_Stockyard_Simulated="kubernetes")
    assert "This cluster is simulated" in cli("cluster", "kubeconfig", "local").stderr


@pytest.mark.parametrize("option", ["--static", "--print"])
@pytest.mark.usefixtures("config")
def test_static_kubeconfig_that_would_run_a_program_is_refused(cli, tmp_path, option):
    result = cli("cluster", "kubeconfig", "demo", "--static", option)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the cluster's kubeconfig is refused: users has 'exec'" in result.stderr
    assert not (tmp_path / ".kube").exists()


def test_static_kubeconfig_is_put_into_the_person_s_file(cli, config, api, tmp_path):
    config["users"][0]["user"] = {"client-certificate-data": "Yw==", "client-key-data": "aw=="}
    api.answer("GET", "/v1/clusters/static/kubeconfig", {"kubeconfig": yaml.safe_dump(config)})
    result = cli("cluster", "kubeconfig", "static", "--static")
    assert result.exit_code == 0, result.stderr
    written = yaml.safe_load((tmp_path / ".kube" / "config").read_text())
    assert written["users"] == [{"name": "static", "user": config["users"][0]["user"]}]


def test_kubeconfig_can_be_printed(cli, config, api, tmp_path):
    config["users"][0]["user"] = {"token": "t"}
    api.answer("GET", "/v1/clusters/printed/kubeconfig", config)
    result = cli("cluster", "kubeconfig", "printed", "--print", "--static")
    assert yaml.safe_load(result.stdout)["clusters"] == [{**config["clusters"][0], "name": "printed"}]
    assert api.requests[0].url.params["static"] == "true"
    assert not (tmp_path / ".kube").exists()


KUBECONFIG_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "demo-kubeconfig-1a2b3"},
    "data": {"kubeconfig": "e30="},
}


def test_a_secret_with_the_kubeconfig_is_printed(cli, api, tmp_path):
    api.answer("GET", "/v1/clusters/demo/kubeconfig", KUBECONFIG_SECRET)
    result = cli("cluster", "kubeconfig", "demo", "--secret")
    assert (result.exit_code, yaml.safe_load(result.stdout), result.stderr) == (0, KUBECONFIG_SECRET, "")
    assert dict(api.requests[0].url.params) == {"form": "secret"}
    assert not (tmp_path / ".kube").exists()


@pytest.mark.parametrize("option", [("--static",), ("--file", "config")])
def test_a_secret_is_no_file(cli, api, option):
    assert cli("cluster", "kubeconfig", "demo", "--secret", *option).exit_code == 2
    assert api.requests == []


def test_a_kubeconfig_that_asks_the_api_says_which_one(cli, api, tmp_path):
    users = [{"name": "demo", "user": {"exec": {"command": "stockyard", "args": ["token", "--cluster", "clu_01"]}}}]
    document = {"clusters": [{"name": "demo", "cluster": {"server": "https://demo"}}], "users": users}
    api.answer("GET", "/v1/clusters/demo/kubeconfig", document)
    assert cli("cluster", "kubeconfig", "demo").exit_code == 0
    written = yaml.safe_load((tmp_path / ".kube" / "config").read_text())["users"][0]["user"]["exec"]
    assert written["args"] == ["token", "--cluster", "clu_01"]
    assert [variable["name"] for variable in written["env"]] == ["STOCKYARD_URL"]


def test_a_kubeconfig_says_whom_somebody_of_the_platform_means(cli, api, tmp_path):
    users = [{"name": "demo", "user": {"exec": {"command": "stockyard", "args": ["token", "--cluster", "clu_01"]}}}]
    document = {"clusters": [{"name": "demo", "cluster": {"server": "https://demo"}}], "users": users}
    api.answer("GET", "/v1/clusters/demo/kubeconfig", document)
    assert cli("--tenant", "acme", "cluster", "kubeconfig", "demo").exit_code == 0
    written = yaml.safe_load((tmp_path / ".kube" / "config").read_text())["users"][0]["user"]["exec"]["env"]
    assert {variable["name"]: variable["value"] for variable in written} == {
        "STOCKYARD_URL": "https://api.test",
        "STOCKYARD_TENANT": "acme",
    }
