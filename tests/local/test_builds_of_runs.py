"""The program of runs in a build: it reaches a real OpenTofu by the runner, as it does in a tenant's account."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.opentofu.real.build import TOFU
from stockyard.ports.runs import RunStart
from stockyard.providers.nodes import terraform
from tests.harness.runs.accounts import runner_account
from tests.harness.runs.worlds import CodeBuildWorld
from tests.harness.worlds.run_api import TOKEN, RunApi, archive, serving

pytestmark = pytest.mark.skipif(bool(TOFU.missing()), reason=TOFU.missing() or "built")
HERE = runner_account("acme")
BEGIN = "import os, sys\nfrom stockyard_run.__main__ import main\nsys.exit(main(dict(os.environ)))\n"
TEMPLATE = """
variable "vcluster" { type = any }
resource "terraform_data" "machine" {
  provisioner "local-exec" { command = "env | sort; cat /proc/$PPID/environ | tr '\\\\0' '\\\\n'" }
}
output "name" { value = var.vcluster.name }
"""


def program() -> bytes:
    """The zip application of runs."""
    buffer = io.BytesIO()
    folder = Path(str(terraform.__file__)).parent / "stockyard_run"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("__main__.py", BEGIN)
        for path in sorted(folder.glob("*.py")):
            file.write(path, f"stockyard_run/{path.name}")
    return buffer.getvalue()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeBuildWorld]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("CANARY", "canary-of-the-parent")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    built = CodeBuildWorld(tmp_path, TOFU)
    built.with_machines(HERE)
    yield built
    built.close()


def test_run_applies_a_template_once_and_shows_no_secret(world: CodeBuildWorld) -> None:
    task = {
        "command": "apply",
        "files": archive({"main.tf": TEMPLATE}),
        "variables": {"vcluster": {"name": "node-1"}},
        "environment": {"CLOUD_TOKEN": "canary-credential-0001"},
        "secrets": ["canary-credential-0001"],
        "passphrase": os.urandom(32).hex(),
        "timeout_seconds": 120,
    }
    with serving(RunApi(task)) as api:
        variables = {"STOCKYARD_RUN_URL": api.url, "STOCKYARD_RUN_TOKEN": TOKEN, "STOCKYARD_RUN_ATTEMPT": "1"}
        start = RunStart(id="run_1", program=program(), variables=variables, secret_variables={}, limit_seconds=600)
        build = world.runner.start(HERE, start)
        assert world.until(HERE, build, "ended").reason is None
        (end,) = api.ends
        assert (end["end"], end["result"]["outputs"]["name"]["value"]) == ("done", "node-1"), api.lines
        state, calls = api.state, len(api.calls)
        world.forget_tokens()
        again = world.runner.start(HERE, start)
        assert again != build
        assert world.until(HERE, again, "ended").reason is None
        assert (len(api.ends), api.state, api.calls[calls:]) == (1, state, ["POST begin"])
    texts = "\n".join([*api.lines, *world.runner.log(HERE, build), *world.runner.log(HERE, again)])
    assert "HOME=" in texts
    for secret in ("canary", TOKEN, str(task["passphrase"])):
        assert secret not in texts
