"""Every command of docs/sites.md works as written, in order, on a local cloud with a site."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.cloud import ROOT
from local.kubernetes.simulated import ADMINISTRATOR, SimulatedCluster
from local.sites.served import VERSION
from local.testing.serving import Served, serving
from tests.e2e.test_readme import CLIENTS, commands, script

pytestmark = pytest.mark.skipif(not CLIENTS, reason="kubectl is not built: run make kubernetes")
SITE = "machine-room"
SECONDS = 420
LEFT_OUT = {
    r"make serve.*": "starts the local cloud, as this test does with the same option",
}
"""Commands that are not run here -> why."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serving(tmp_path_factory.mktemp("site") / "home", "--site", SITE)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SimulatedCluster]:
    """A cluster of somebody's own, into which the page's connector is installed; nothing runs in it."""
    folder = tmp_path / "host"
    folder.mkdir()
    cluster = SimulatedCluster("127.0.0.1:0", VERSION, folder, folder / "log")
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.mark.timeout(900)
def test_the_commands_of_the_page_work_in_order(cloud: Served, host: SimulatedCluster, tmp_path: Path):
    listed = commands("docs/sites.md")
    assert f"make serve SITE={SITE}" in listed
    run = [command for command in listed if not any(re.fullmatch(pattern, command) for pattern in LEFT_OUT)]
    text = script(run).replace(".local/env", str(cloud.home / "env")).replace(".local/lab-room", str(tmp_path))
    folders = [ROOT / ".venv" / "bin", CLIENTS[-1].parent]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    python = os.pathsep.join(str(ROOT / part) for part in (".", "layers/common/python", "client"))
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path, "PYTHONPATH": python}
    environment["KUBECONFIG"] = str(tmp_path / "host" / ADMINISTRATOR)
    done = subprocess.run(
        ["bash", "-c", text], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "an account is reached through it" in done.stdout
    assert "verified" in done.stdout
    assert "Node      first.configmap" in done.stdout
    with host.api.locked_store() as store:
        installed = {(key.resource, key.name) for key in store.objects}
    assert {("deployments", "stockyard-site"), ("secrets", "stockyard-site")} <= installed
    unit = tmp_path / "machine" / "etc" / "systemd" / "system" / "stockyard-site.service"
    assert "agent.stockyard_site" in unit.read_text()
    secret = (tmp_path / "client" / "client_secret").read_text()
    assert secret not in done.stdout + done.stderr
