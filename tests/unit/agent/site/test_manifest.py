"""Both forms of the connector: what they hold, that they hold no secret, and that what is installed runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent import site_manifest
from agent.stockyard_site.settings import Settings

SETTINGS = site_manifest.Settings("https://api.example/", "sit_1", "https://id.example/token")
ENVIRONMENT = {
    "STOCKYARD_API_URL": "https://api.example",
    "STOCKYARD_SITE_ID": "sit_1",
    "STOCKYARD_TOKEN_URL": "https://id.example/token",
}


def test_the_objects_are_a_deployment_without_rights_and_what_it_mounts():
    items = {
        (item["kind"], item["metadata"]["name"]): item
        for item in map(json.loads, site_manifest.render(SETTINGS, "kubernetes").split("\n---\n"))
    }
    assert [kind for kind, _ in items] == ["Namespace", "ServiceAccount", "ConfigMap", "Deployment"]
    pod = items["Deployment", "stockyard-site"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    code = items["ConfigMap", "stockyard-site-code"]["data"]
    assert {item["key"] for item in volumes["code"]["configMap"]["items"]} == set(code)
    assert "optional" not in volumes["allowed"]["configMap"], "nothing runs before somebody has said what it may do"
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert all("secret" not in variable["name"].lower() for variable in container["env"])


def test_what_the_script_installs_runs_and_a_second_run_keeps_the_host(tmp_path: Path):
    script = site_manifest.render(SETTINGS, "systemd")
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-c", script], env={**os.environ, "ROOT": str(tmp_path)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        host = tmp_path / "etc" / "stockyard-site" / "host.env"
        assert host.read_text().startswith("# SITE_SERVER=")
        host.write_text("# SITE_SERVER=kept\n")
    code = tmp_path / "opt" / "stockyard-site"
    for path, text in site_manifest.sources().items():
        assert (code / path).read_text() == text
    environment = {"PYTHONPATH": str(code), "STOCKYARD_API_URL": "https://api.example"}
    command = [sys.executable, "-m", "agent.stockyard_site"]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "cannot start: not set: STOCKYARD_SITE_ID, STOCKYARD_TOKEN_URL" in run.stderr


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({}, "no pod of a cluster"),
        ({"SITE_SERVER": "https://host:6443"}, "SITE_TOKEN, or SITE_CERTIFICATE"),
        ({"SITE_SERVER": "https://host:6443", "SITE_CERTIFICATE": "/c"}, "belong together"),
        ({"SITE_SERVER": "https://host/path", "SITE_TOKEN": "/t"}, "without a path"),
        ({"SITE_SERVER": "http://host", "SITE_TOKEN": "/t"}, "no https:// URL"),
        ({"SITE_SERVER": "https://user@host", "SITE_TOKEN": "/t"}, "without a path"),
        ({"SITE_SERVER": "https://host", "SITE_TOKEN": "/t", "SITE_CERTIFICATE": "/c", "SITE_KEY": "/k"}, "set SITE"),
    ],
)
def test_settings_that_do_not_fit_are_named(more: dict[str, str], fault: str):
    with pytest.raises(ValueError, match=fault):
        Settings.read({**ENVIRONMENT, **more})


def test_a_host_of_its_own_and_the_cluster_around_it(tmp_path: Path):
    own = Settings.read({**ENVIRONMENT, "SITE_SERVER": "https://host:6443/", "SITE_CERTIFICATE": "c", "SITE_KEY": "k"})
    assert (own.server, own.token_file, own.certificate) == ("https://host:6443", None, Path("c"))
    around = {"KUBERNETES_SERVICE_HOST": "fd00::1", "STOCKYARD_ACCOUNT_DIR": str(tmp_path)}
    (tmp_path / "token").write_text("one\n")
    inside = Settings.read({**ENVIRONMENT, **around})
    assert (inside.server, inside.authority, inside.token()) == ("https://[fd00::1]:443", tmp_path / "ca.crt", "one")
