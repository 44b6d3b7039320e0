"""The program of a run with a real OpenTofu, where it is built: apply, plan, destroy, its sealed state and its lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.opentofu.real.build import TOFU
from stockyard.providers.nodes.terraform import stockyard_run
from stockyard.providers.nodes.terraform.stockyard_run import __main__ as program
from tests.harness.worlds.run_api import TOKEN, RunApi, archive, serving

pytestmark = pytest.mark.skipif(bool(TOFU.missing()), reason=TOFU.missing() or "built")
TEMPLATE = """
variable "vcluster" { type = any }
resource "terraform_data" "first" {
  input = var.vcluster.name
  provisioner "local-exec" {
    command     = "echo made-$NAME; env | sort > ${var.vcluster.room}/environment"
    environment = { NAME = self.input }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo gone-${self.input}"
  }
}
resource "terraform_data" "machine" {
  depends_on = [terraform_data.first]
  triggers_replace = [var.vcluster.type]
  provisioner "local-exec" { command = "touch ${var.vcluster.room}/began; sleep ${var.vcluster.seconds}" }
}
output "name" { value = var.vcluster.name }
output "password" {
  value     = "secret-${var.vcluster.name}"
  sensitive = true
}
output "ports" { value = [1, 2] }
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunApi]:
    vcluster = {"name": "node-canary", "type": "small", "room": str(tmp_path), "seconds": 0}
    task = {
        "command": "apply",
        "files": archive({"main.tf": TEMPLATE}),
        "variables": {"vcluster": vcluster},
        "environment": {},
        "secrets": [],
        "passphrase": os.urandom(32).hex(),
        "timeout_seconds": 120,
    }
    with serving(RunApi(task)) as api:
        yield api


def environment(api: RunApi) -> dict[str, str]:
    """Environment of the run's program."""
    return {
        "PATH": os.environ["PATH"],
        "STOCKYARD_RUN_URL": api.url,
        "STOCKYARD_RUN_TOKEN": TOKEN,
        "STOCKYARD_TOFU": str(TOFU.path),
    }


def run(api: RunApi, command: str, **more: Any) -> dict[str, Any]:
    """End of a run of that command."""
    api.task |= {"command": command, **more}
    api.run += 1
    assert program.main(environment(api)) == 0
    assert api.foreign == 0
    return {**(api.ends[-1]["result"] or {}), **api.ends[-1]}


def test_a_template_lives_from_its_apply_to_its_destroy(api: RunApi, tmp_path: Path) -> None:
    end = run(api, "apply")
    assert (end["end"], end["error"]) == ("done", None), api.lines
    assert end["outputs"] == {
        "name": {"value": "node-canary", "sensitive": False},
        "password": {"value": "secret-node-canary", "sensitive": True},
        "ports": {"value": [1, 2], "sensitive": False},
    }
    assert api.state is not None
    assert b"canary" not in api.state, "the state is sealed before it comes to us"
    assert api.lock is None
    inside = (tmp_path / "environment").read_text()
    assert TOKEN not in inside.replace(f"TF_HTTP_PASSWORD={TOKEN}", ""), "only the backend's own password"
    assert "STOCKYARD" not in inside
    assert run(api, "plan")["drifted"] is False
    api.task["variables"]["vcluster"]["type"] = "large"
    end = run(api, "plan")
    assert (end["drifted"], end["summary"]) == (True, "Plan: 1 to add, 0 to change, 1 to destroy.")
    api.task["variables"]["vcluster"]["type"] = "small"
    api.lines.clear()
    assert run(api, "destroy")["end"] == "done"
    assert any("gone-node-canary" in line for line in api.lines)


def test_a_state_opens_with_its_own_key_alone(api: RunApi) -> None:
    run(api, "apply")
    own = api.task["passphrase"]
    end = run(api, "plan", passphrase="f" * 64)
    assert end["end"] == "failed"
    assert run(api, "plan", passphrase=own)["drifted"] is False


def test_a_run_that_was_killed_leaves_its_lock_and_the_next_attempt_goes_on(api: RunApi, tmp_path: Path) -> None:
    api.task["variables"]["vcluster"]["seconds"] = 60
    folder = Path(stockyard_run.__file__).parent
    command = [sys.executable, "-c", f"import runpy, sys; sys.path.insert(0, {str(folder.parent)!r});"
               " runpy.run_module('stockyard_run', run_name='__main__')"]  # fmt: skip
    process = subprocess.Popen(command, env=environment(api), start_new_session=True)
    until = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < until:
        time.sleep(0.05)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False
    )
    for child in [*map(int, children.stdout.split()), process.pid]:
        os.kill(child, signal.SIGKILL)
    process.wait()
    assert api.lock is not None
    api.task["variables"]["vcluster"]["seconds"] = 0
    api.task["timeout_seconds"] = 30
    end = run(api, "apply", unlock=api.lock["ID"])
    assert (end["end"], end["error"], api.lock) == ("done", None, None), api.lines


def test_a_validated_template_needs_no_state(api: RunApi) -> None:
    assert run(api, "validate")["end"] == "done"
    end = run(api, "validate", files=archive({"main.tf": 'output "x" { value = var.nothing }'}))
    assert end["end"] == "failed"
    assert "Reference to undeclared input variable" in end["error"]
    assert json.dumps(api.calls).count("POST state") == 0
