"""The workflow of ``examples/gitops``: it is read, and its commands are run as a job runs them, against the stand-in of
Keycloak, the giver of ID tokens of a job, and the routes of a tenant in memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from local.cloud import ROOT
from local.identity.federation import SUBJECT
from local.identity.server import IdentityServer
from stockyard.domain.pools.records import Pool
from stockyard.operations.listing import every
from stockyard.ports import Remove
from tests.client.cli.tenant.test_program_logins import GitHub, github, identity
from tests.properties.test_sets_apart import Api
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

__all__ = ["github", "identity"]

FOLDER = ROOT / "examples" / "gitops"
LEFT_OUT = {"actions/checkout@v5": "the folder is here", "pip install stockyard-client": "this tree's client is run"}
ENVIRONMENT = "repo:acme/infra:environment:production"


def read(name: str) -> dict[str, Any]:
    """A workflow; ``on`` is a text in YAML 1.2, as GitHub reads it, and true in YAML 1.1."""
    text = re.sub(r"^on:", '"on":', (FOLDER / name).read_text(), flags=re.MULTILINE)
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def evaluated(text: str, inputs: dict[str, Any]) -> str:
    """The text with the inputs of the workflow in place of its expressions."""
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda name: str(inputs[name[1]]), text)


def is_due(step: dict[str, Any], inputs: dict[str, Any]) -> bool:
    condition = step.get("if", "")
    assert condition in ("", "${{ inputs.apply }}", "${{ !inputs.apply }}")
    return condition == "" or bool(inputs["apply"]) == ("!" not in condition)


@dataclass
class Job:
    """Runs the steps of the workflow's job; ``bearers`` are the tokens that the API has seen."""

    api: Api
    identity: IdentityServer
    home: Path
    variables: dict[str, str]
    bearers: set[str] = field(default_factory=set)

    def run(self, folder: Path, *, apply: bool) -> subprocess.CompletedProcess[str]:
        workflow = read("stockyard.yaml")
        inputs = {"url": self.variables["API"], "issuer": self.identity.issuer, "folder": str(folder)}
        inputs |= {"set": "shop/production", "apply": apply, "environment": "production"}
        assert set(inputs) == set(workflow["on"]["workflow_call"]["inputs"])
        (job,) = workflow["jobs"].values()
        environment = {name: evaluated(value, inputs) for name, value in job["env"].items()}
        steps = [step for step in job["steps"] if is_due(step, inputs)]
        commands = [step.get("run") or step["uses"] for step in steps]
        assert set(LEFT_OUT) < set(commands)
        script = "\n".join(command for command in commands if command not in LEFT_OUT)
        variables = {
            "PATH": f"{self.home}:{os.environ['PATH']}",
            "HOME": str(self.home),
            **self.variables,
            **environment,
        }
        command = ["bash", "-e", "-c", script]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)

    @property
    def summary(self) -> str:
        return Path(self.variables["GITHUB_STEP_SUMMARY"]).read_text()


@pytest.fixture
def job(github: tuple[GitHub, dict[str, str]], identity: IdentityServer, tmp_path: Path) -> Iterator[Job]:
    world = make_world()
    world.create("demo")
    api = Api(Nodes.of(world.registry, world.services, world.clock))
    for client in identity.realm.clients.values():
        if client["clientId"] == "infra":
            client["attributes"][SUBJECT] = ENVIRONMENT
    github[0].subject = ENVIRONMENT
    one_job = Job(api, identity, tmp_path, {**github[1], "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")})

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            one_job.bearers.add(self.headers["Authorization"].removeprefix("Bearer "))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = api(httpx.Request(self.command, f"http://api{self.path}", content=body))
            for pool in list(every(world.services.store, Pool)):
                if pool.deleting:
                    world.services.store.commit(Remove(Pool, pool.id))
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer.content)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def do_DELETE(self) -> None:
            self.answer()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    one_job.variables["API"] = f"http://127.0.0.1:{server.server_address[1]}"
    program = tmp_path / "stockyard"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/client exec {sys.executable} -m stockyard_client "$@"\n')
    program.chmod(0o755)
    yield one_job
    server.shutdown()
    server.server_close()


def test_the_workflows_commands_plan_apply_and_prune(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "production"
    folder.mkdir()
    for file in (FOLDER / "production").iterdir():
        (folder / file.name).write_text(file.read_text())
    planned = job.run(folder, apply=False)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "+ pool web" in planned.stdout
    assert "| + | pool web |" in job.summary
    assert not list(every(job.api.nodes.services.store, Pool))
    applied = job.run(folder, apply=True)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert {pool.name for pool in every(job.api.nodes.services.store, Pool)} == {"web", "batch"}
    (folder / "batch.yaml").unlink()
    assert "- pool batch of demo" in job.run(folder, apply=False).stdout
    pruned = job.run(folder, apply=True)
    assert pruned.returncode == 0, pruned.stdout + pruned.stderr
    assert {pool.name for pool in every(job.api.nodes.services.store, Pool)} == {"web"}
    assert job.bearers, "the API was not called"
    for text in (planned.stdout, planned.stderr, applied.stdout, applied.stderr, job.summary):
        assert not any(bearer in text for bearer in job.bearers)


def test_a_fault_is_annotated_at_its_line(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "wrong"
    folder.mkdir()
    text = (FOLDER / "production" / "nodes.yaml").read_text().replace("quantity: 1", "quantity: many")
    (folder / "nodes.yaml").write_text(text)
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "many" in row)
    for apply in (True, False):
        result = job.run(folder, apply=apply)
        assert result.returncode == 2
        assert f"::error file={folder}/nodes.yaml,line={line}::" in result.stdout
    (folder / "nodes.yaml").write_text("a: [\n")
    assert f"::error file={folder}/nodes.yaml,line=2::" in job.run(folder, apply=True).stdout
    assert "**Failed:**" in job.summary


def test_who_calls_the_workflow_gives_it_what_it_asks_for() -> None:
    shared, caller = read("stockyard.yaml"), read("deploy.yaml")
    (job,) = caller["jobs"].values()
    inputs = shared["on"]["workflow_call"]["inputs"]
    assert {name for name, entry in inputs.items() if entry.get("required")} <= set(job["with"]) <= set(inputs)
    for workflow in (shared, caller):
        assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
    assert job["uses"].endswith("/stockyard.yaml")
    assert json.dumps(shared).count("secrets.") == 0
