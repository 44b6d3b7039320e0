"""Both runners for the contract of ``ports.runs.Runner``: each plays the same small program."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import boto3
from botocore.client import BaseClient
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from local.aws.corrections.builds import Builds, played_builds
from local.builds.processes import BuildProcesses, Program
from stockyard.errors import VendorTimeout
from stockyard.ports.runs import Runner, RunnerAccount, RunnerState, RunStart
from stockyard.providers.clouds.aws.runs import names
from stockyard.providers.clouds.aws.runs.runner import CodeBuildRunner
from stockyard.providers.clouds.aws.sessions import Sessions
from tests.harness.runs.memory_runner import Machine, MemoryRunner
from tests.harness.worlds.memory import FixedClock

LIMIT = 300
MOST_SECONDS = 120
"""How long a busy machine may take for one of these programs."""
PREFIX = "stockyard-test"
MOST = 2
"""How many programs an account of these worlds runs at once."""
PROGRAM = """
import hashlib, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("begun", flush=True)
print("token", os.environ["STOCKYARD_RUN_TOKEN"], flush=True)
print("secret", os.environ.get("SECRET"), flush=True)
print("program", hashlib.sha256(open(sys.argv[0], "rb").read()).hexdigest(), flush=True)
print("environment", *sorted(os.environ), flush=True)
act = os.environ["ACT"]
if act == "wait":
    time.sleep(600)
sys.exit(3 if act == "fail" else 0)
"""


def zipped(text: str = PROGRAM) -> bytes:
    """A zip application of one module."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", (1980, 1, 1, 0, 0, 0)), text)
    return buffer.getvalue()


def start(name: str = "run_1", act: str = "end", program: bytes | None = None, **variables: str) -> RunStart:
    """A start of the small program, which ends, fails or waits."""
    return RunStart(
        id=name,
        program=program or zipped(),
        variables={"ACT": act, "STOCKYARD_RUN_TOKEN": "canary-token-0123456789", **variables},
        secret_variables={},
        limit_seconds=LIMIT,
    )


class World(Protocol):
    """A runner, and what happens around it."""

    @property
    def runner(self) -> Runner: ...

    def until(self, target: RunnerAccount, vendor_id: str, phase: str) -> RunnerState:
        """The state of that phase, once it is there."""

    def pass_limit(self) -> None:
        """Let the time go by that a program may take."""

    def forget_tokens(self) -> None:
        """Let the time go by in which two starts are one."""

    def forget(self, vendor_id: str) -> None:
        """Delete the machine, as its account's owner may."""

    def without_machines(self, target: RunnerAccount) -> None:
        """Take from the account what runs need."""

    def lose_answer(self) -> None:
        """Lose the answer of the next start."""

    def close(self) -> None:
        """End everything."""


class MemoryWorld:
    """The runner in memory."""

    def __init__(self, _folder: Path) -> None:
        self.runner = MemoryRunner(self._program, FixedClock())
        self.runner.most = MOST

    def _program(self, machine: Machine) -> Iterator[float]:
        machine.print("begun")
        if machine.variables["ACT"] == "wait":
            yield 600
        if machine.variables["ACT"] == "fail":
            raise ValueError("failed")

    def until(self, target: RunnerAccount, vendor_id: str, phase: str) -> RunnerState:
        """See ``World``."""
        state = self.runner.state(target, vendor_id)
        assert state.phase == phase
        return state

    def pass_limit(self) -> None:
        """See ``World``."""
        self.runner.clock.advance(LIMIT)

    forget_tokens = pass_limit

    def forget(self, vendor_id: str) -> None:
        """See ``World``."""
        self.runner.forget(vendor_id)

    def without_machines(self, target: RunnerAccount) -> None:
        """See ``World``."""
        self.runner.absent.add(target.tenant)

    def lose_answer(self) -> None:
        """See ``World``."""
        self.runner.faults.after("start", VendorTimeout("no answer in time"))

    def close(self) -> None:
        """See ``World``."""


class Tofu:
    """Stands for OpenTofu, which these programs do not start."""

    path = Path("/bin/true")

    def missing(self) -> str:
        """Nothing is."""
        return ""


class CodeBuildWorld:
    """CodeBuild as moto plays it with our corrections; the programs are processes. ``tofu``: their OpenTofu; None: a
    program that stands for it."""

    def __init__(self, folder: Path, tofu: Program | None = None) -> None:
        self._stack = ExitStack()
        self._stack.enter_context(mock_aws())
        self.processes = BuildProcesses(folder, tofu=tofu or Tofu())
        self._stack.callback(self.processes.close)
        self.builds = self._stack.enter_context(played_builds(Builds(self.processes, at_once=MOST, queued=0)))
        self.sessions = Sessions(boto3.Session)
        self.runner = CodeBuildRunner(self.sessions, PREFIX)

    def with_machines(self, target: RunnerAccount) -> None:
        """Make what the template for runs makes."""
        make_project(self.client(target), target)

    def client(self, target: RunnerAccount, service: str = "codebuild") -> Any:
        """A client with all rights in the account."""
        return self.sessions.of(target.account, "owner", target.tenant).get(service, target.region)

    def until(self, target: RunnerAccount, vendor_id: str, phase: str) -> RunnerState:
        """See ``World``."""
        end = time.monotonic() + MOST_SECONDS
        while (state := self.runner.state(target, vendor_id)).phase != phase:
            assert time.monotonic() < end, state
            time.sleep(0.02)
        return state

    def pass_limit(self) -> None:
        """See ``World``."""
        self.builds.end_at_limit()

    def forget_tokens(self) -> None:
        """See ``World``."""
        self.builds.forget_tokens()

    def forget(self, vendor_id: str) -> None:
        """See ``World``."""
        self.builds.forget(vendor_id)

    def without_machines(self, target: RunnerAccount) -> None:
        """See ``World``."""
        self.client(target).delete_project(name=names.project_name(target.account, PREFIX))

    def lose_answer(self) -> None:
        """See ``World``."""
        original: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

        def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
            answer = original(client, operation, parameters)
            if operation == "StartBuild" and not lost:
                lost.append(operation)
                raise ReadTimeoutError(endpoint_url="https://codebuild.example")
            return answer

        lost: list[str] = []
        self._stack.enter_context(patch.object(BaseClient, "_make_api_call", call))

    def close(self) -> None:
        """See ``World``."""
        self._stack.close()


def make_project(client: Any, target: RunnerAccount) -> None:
    """Make the project of the template for runs."""
    name = names.project_name(target.account, PREFIX)
    client.create_project(
        name=name,
        source={"type": "NO_SOURCE", "buildspec": "{}"},
        artifacts={"type": "NO_ARTIFACTS"},
        environment={"type": "ARM_CONTAINER", "image": "image", "computeType": "BUILD_GENERAL1_SMALL"},
        serviceRole=f"arn:aws:iam::{target.account.attributes['role_arn'].split(':')[4]}:role/{name}",
        logsConfig={
            "cloudWatchLogs": {"status": "ENABLED", "groupName": names.log_group(target.account, PREFIX)},
        },
    )
