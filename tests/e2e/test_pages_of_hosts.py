"""Every command of the pages of hosts works as written, in order, on a local cloud with a site."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.cloud import ROOT
from local.testing.serving import Served, serving
from tests.e2e.test_readme import commands, script

SITE = "machine-room"
PAGES = {"metal3": r"racks\.compute", "kubevirt": r"vms\.small .* 8/8 "}
"""Pages, and a node type that the commands of each show; of the second with the room that its host was counted to
have."""
SECONDS = 600
LEFT_OUT = {
    r"make serve.*": "starts the local cloud, as this test does with the same option",
    r"stockyard os-image create .*": "needs an image of somebody's own",
}
"""Commands that are not run here -> why."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serving(tmp_path_factory.mktemp("site") / "home", "--site", SITE)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page_work_in_order(
    page: str, soaking: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not soaking:
        pytest.skip("a local cloud and a cluster of its own: in the soak")
    cloud = request.getfixturevalue("cloud")
    listed = commands(f"docs/{page}.md")
    run = [command for command in listed if not any(re.fullmatch(pattern, command) for pattern in LEFT_OUT)]
    text = script(run).replace(".local/env", str(cloud.home / "env"))
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    python = os.pathsep.join(str(ROOT / part) for part in (".", "layers/common/python", "client"))
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path, "PYTHONPATH": python}
    done = subprocess.run(
        ["bash", "-c", text], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(PAGES[page], done.stdout)
    assert "verified" in done.stdout
