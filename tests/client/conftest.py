"""A fake API on a mock transport, and a way to run the command line against it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import stamina
from typer.testing import CliRunner, Result

from stockyard_client import Client
from stockyard_client.cli.app import app
from stockyard_client.cli.context import Context

URL = "https://api.test"
TOKEN = "tok-e3b0c44298fc1c14"
PHASES = ("account", "network", "control_plane")


class FakeClock:
    """Time that only passes when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class FakeApi:
    """Answers given in advance, in turn; the last one of a route repeats. An unknown route is a 404 problem."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self._answers: dict[tuple[str, str], list[httpx.Response | BaseException]] = defaultdict(list)
        self.transport = httpx.MockTransport(self._handle)

    def answer(self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str) -> FakeApi:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        kind = "text/plain" if isinstance(body, str) else "application/json"
        response = httpx.Response(status, content=content, headers={"Content-Type": kind, **named})
        self._answers[(method, path)].append(response)
        return self

    def fault(self, method: str, path: str, error: BaseException) -> FakeApi:
        self._answers[(method, path)].append(error)
        return self

    def problem(self, method: str, path: str, status: int, error_type: str, **more: Any) -> FakeApi:
        headers = {"Retry_After": str(more.pop("retry_after"))} if "retry_after" in more else {}
        body = {"status": status, "error_type": error_type, "detail": f"It is {error_type}.", "request_id": "req-1"}
        return self.answer(method, path, {**body, **more}, status=status, **headers)

    def bodies(self, method: str) -> list[Any]:
        return [json.loads(request.content) for request in self.requests if request.method == method]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        waiting = self._answers.get((request.method, request.url.path))
        if not waiting:
            return httpx.Response(404, json={"error_type": "NotFound", "detail": "There is no such thing."})
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, BaseException):
            raise answer
        # a response can be read once, so each request gets its own
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)


def make_cluster(**changes: Any) -> dict[str, Any]:
    groups = [{"name": "workers", "role": "worker", "min_size": 0, "max_size": 3, "instance_types": ["t3.large"]}]
    return {
        "id": "clu_01",
        "name": "demo",
        "description": "A demo",
        "cluster_type": "k8s",
        "provider": "aws",
        "cloud_account_id": 1,
        "client_id": "demo-0123456789ab",
        "status": "preparing",
        "phase": "network",
        "conditions": [{"type": "Ready", "status": "False", "reason": "Provisioning", "message": "Network is made"}],
        "settings": {"region_name": "us-east-1", "autoscaler_node_groups": groups},
        "created_at": "2026-01-31T12:00:00.000Z",
        "version": 3,
        "operation_id": "op_01",
        **changes,
    }


def make_operation(status: str = "running", *states: str, **changes: Any) -> dict[str, Any]:
    all_states = [*states, *["pending"] * len(PHASES)]
    phases = [{"name": n, "state": s, "attempt": 1, "message": ""} for n, s in zip(PHASES, all_states, strict=False)]
    progress = 100 * all_states.count("succeeded") // len(PHASES)
    document = {"id": "op_01", "kind": "create_cluster", "subject": "clu_01", "status": status, "phases": phases}
    return {**document, "error": None, "progress": progress, "version": 1, **changes}


@dataclass
class Cli:
    """Runs the command line against the fake API, outside any terminal."""

    api: FakeApi
    clock: FakeClock
    environment: dict[str, str] = field(default_factory=dict)
    terminal: bool = False

    def __call__(self, *arguments: str, stdin: str | None = None) -> Result:
        context = Context(
            environment=self.environment,
            transport=self.api.transport,
            sleep=self.clock.sleep,
            clock=self.clock,
            now=self.clock,
            terminal=self.terminal,
        )
        return CliRunner().invoke(app, list(arguments), obj=context, input=stdin, prog_name="stockyard")


@pytest.fixture(autouse=True)
def _no_backoff() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield
    stamina.set_active(True)  # a completion turns it off in its process
    stamina.instrumentation.set_on_retry_hooks(None)


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(api: FakeApi, clock: FakeClock) -> Iterator[Client]:
    with Client(URL, TOKEN, transport=api.transport, sleep=clock.sleep, clock=clock) as client:
        yield client


@pytest.fixture
def cli(api: FakeApi, clock: FakeClock, tmp_path: Path) -> Cli:
    return Cli(api, clock, {"STOCKYARD_URL": URL, "STOCKYARD_TOKEN": TOKEN, "HOME": str(tmp_path)})


@pytest.fixture
def cluster_document() -> Callable[..., dict[str, Any]]:
    return make_cluster


@pytest.fixture
def operation_document() -> Callable[..., dict[str, Any]]:
    return make_operation
