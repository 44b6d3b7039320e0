"""Routes of runs: a token reaches its own run alone, a state is sealed and locked, and no secret is in a log."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from functions.runs import handler
from stockyard import wiring
from stockyard.domain.records import AuditRecord, NodeEnvironment, Operation
from stockyard.domain.run_records import ProviderRun, RunState
from stockyard.domain.values import ids
from stockyard.operations.engine.run_logs import lines_after
from stockyard.operations.listing import every
from stockyard.operations.runs import StoreRuns
from stockyard.operations.services import Services
from stockyard.ports import Create, Replace
from stockyard.ports.runs import NewRun
from tests.harness.runs.played_tofu import PlainSeals
from tests.harness.worlds.inprocess import Context
from tests.unit.operations.conftest import World, make_world

KEY = b"the installation's key"
STATE = {"encrypted_data": "c2VhbGVk", "encryption_version": "v0", "meta": {}}
LOCK = {"ID": "lock-1", "Who": "somebody"}
CALLS: tuple[tuple[str, str, Any], ...] = (
    ("POST", "begin", {}),
    ("PUT", "lock", LOCK),
    ("POST", "state", STATE),
    ("GET", "state", None),
    ("POST", "log", {"first": 1, "lines": ["x"]}),
    ("DELETE", "state", None),
    ("DELETE", "lock", None),
    ("POST", "end", {"end": "done"}),
)
TENANTS = ("acme", "globex")


@dataclass
class Routes:
    """The routes of runs over tenants in memory."""

    world: World
    seals: PlainSeals

    def services(self, tenant: str) -> Services:
        return replace(self.world.services, store=self.world.registry.store(tenant))

    def runs(self, tenant: str) -> StoreRuns:
        return StoreRuns(self.services(tenant), self.seals)

    def new(self, tenant: str, number: int, *, secrets: tuple[str, ...] = (), operation: str = "op_0") -> ProviderRun:
        """A run of an environment of the tenant's."""
        services = self.services(tenant)
        now = services.now()
        environment = NodeEnvironment(
            ids.make("nev", services.clock.now(), f"{tenant}{number:04}".encode().ljust(10)[-10:]), "clu", "npr", "p",
            now, now,
        )  # fmt: skip
        if services.store.get(NodeEnvironment, environment.id) is None:
            services.store.commit(Create(environment))
        workspace = f"{environment.id}/infrastructure"
        task = {"variables": {"owner": tenant}, "environment": {}, "timeout_seconds": 60}
        new = NewRun(environment.id, operation, 1, "apply", "environment", "apply", workspace, True, task, secrets)
        return self.runs(tenant).create(new)

    def call(
        self, run_id: str, method: str, part: str, body: Any, token: str | None, query: str = "", scheme: str = "Bearer"
    ) -> tuple[int, Any]:
        """Status and document of the answer."""
        headers = {"content-type": "application/json"}
        if token is not None:
            basic = base64.b64encode(f"run:{token}".encode()).decode()
            headers["authorization"] = f"Bearer {token}" if scheme == "Bearer" else f"Basic {basic}"
        event = {
            "rawPath": f"/v1/runs/{run_id}/{part}",
            "rawQueryString": query,
            "routeKey": f"{method} /v1/runs/{{id}}/{part}",
            "requestContext": {"http": {"method": method}, "requestId": "r"},
            "headers": headers,
            "body": None if body is None else json.dumps(body),
        }
        answer = handler.lambda_handler(event, Context("runs", "r"))
        return answer["statusCode"], json.loads(answer["body"] or "null")

    def good(self, run: ProviderRun, token: str, method: str, part: str, body: Any = None, query: str = "") -> Any:
        """Document of an answer that is no refusal."""
        status, document = self.call(run.id, method, part, body, token, query, "Basic")
        assert status in (200, 202), (method, part, document)
        return document


@pytest.fixture
def routes() -> Iterator[Routes]:
    all_routes = Routes(make_world(), PlainSeals())
    parts: dict[str, Any] = {
        "services": all_routes.services,
        "seals": lambda: all_routes.seals,
        "machine_key": lambda: KEY,
        "audit": lambda tenant, record: all_routes.services(tenant).store.commit(Create(record)),
    }
    with ExitStack() as stack:
        for name, part in parts.items():
            stack.enter_context(patch.object(wiring, name, part))
        dependencies = replace(handler.http._dependencies, clock=all_routes.world.clock.now)
        stack.enter_context(patch.object(handler.http, "_dependencies", dependencies))
        stack.enter_context(patch.object(handler.http, "_origin", None))
        yield all_routes


def test_no_token_of_twenty_runs_reaches_another_one(routes: Routes, soaking: bool) -> None:
    count = 10 if soaking else 4
    runs = {
        (tenant, n): routes.new(tenant, n, secrets=(f"canary-{tenant}-{n}",))
        for tenant in TENANTS
        for n in range(count)
    }
    tokens = {key: routes.runs(key[0]).token(run) for key, run in runs.items()}
    for key, run in runs.items():
        routes.good(run, tokens[key], "POST", "begin", {})
        routes.good(run, tokens[key], "PUT", "lock", LOCK)
        routes.good(run, tokens[key], "POST", "state", {**STATE, "meta": {"owner": list(key)}}, "ID=lock-1")
    pairs = 0
    for key, run in runs.items():
        for other, token in tokens.items():
            if other == key:
                continue
            for method, part, body in CALLS:
                status, document = routes.call(
                    run.id, method, part, body, token, "ID=lock-1" if part == "state" else ""
                )
                assert status == 401, (key, other, method, part)
                assert "owner" not in json.dumps(document)
            # the tenant's name in a token is part of what is signed
            forged = f"{key[0]}.{token.rpartition('.')[2]}"
            assert routes.call(run.id, "GET", "state", None, forged)[0] == 401
            pairs += 1
    assert pairs == len(runs) * (len(runs) - 1)
    for key, run in runs.items():
        assert routes.good(run, tokens[key], "GET", "state")["meta"] == {"owner": list(key)}


def test_a_token_is_of_use_from_the_begin_to_the_end_of_its_run(routes: Routes) -> None:
    run = routes.new("acme", 1)
    token = routes.runs("acme").token(run)
    for method, part, body in CALLS[1:]:
        assert routes.call(run.id, method, part, body, token)[0] == 401, "it has not begun"
    task = routes.good(run, token, "POST", "begin", {})
    assert (task["command"], task["variables"]) == ("apply", {"owner": "acme"})
    assert routes.call(run.id, "POST", "begin", {}, token)[0] == 409, "another start of the run"
    routes.good(run, token, "POST", "end", {"end": "done", "result": {"outputs": {}}})
    routes.good(run, token, "POST", "end", {"end": "failed", "error": "late"})
    run_now = routes.services("acme").store.get(ProviderRun, run.id)
    assert run_now is not None
    assert (run_now.end, run_now.error) == ("done", None), "the first end stays"
    for method, part, body in CALLS[:-1]:
        assert routes.call(run.id, method, part, body, token)[0] in (401, 409), part
    for bad in (None, "", "acme.", token + "0", "x" * 5000):
        assert routes.call(run.id, "GET", "state", None, bad)[0] == 401


def test_a_program_is_told_to_stop_when_nobody_needs_its_run(routes: Routes) -> None:
    run, services = routes.new("acme", 1), routes.services("acme")
    token = routes.runs("acme").token(run)
    routes.good(run, token, "POST", "begin", {})
    alive = {"first": 1, "lines": []}
    assert routes.good(run, token, "POST", "log", alive)["stop"] is False
    environment = services.store.get(NodeEnvironment, run.subject)
    assert environment is not None
    services.store.commit(Replace(replace(environment, removing=True, version=environment.version + 1)))
    assert routes.good(run, token, "POST", "log", alive)["stop"] is True


def test_a_state_is_written_by_who_holds_its_lock_and_only_sealed(routes: Routes) -> None:
    run = routes.new("acme", 1)
    token = routes.runs("acme").token(run)
    routes.good(run, token, "POST", "begin", {})
    assert routes.call(run.id, "GET", "state", None, token)[0] == 404
    assert routes.call(run.id, "POST", "state", STATE, token)[0] == 409, "nobody has locked it"
    assert routes.good(run, token, "PUT", "lock", LOCK) == LOCK
    assert routes.good(run, token, "PUT", "lock", LOCK) == LOCK, "an answer was lost"
    status, holder = routes.call(run.id, "PUT", "lock", {"ID": "lock-2"}, token)
    assert (status, holder) == (423, LOCK)
    assert routes.call(run.id, "POST", "state", STATE, token, "ID=lock-2")[0] == 409
    plain = {"version": 4, "resources": []}
    status, problem = routes.call(run.id, "POST", "state", plain, token, "ID=lock-1")
    assert status == 422
    assert "/encrypted_data" in {error["pointer"] for error in problem["errors"]}
    routes.good(run, token, "POST", "state", STATE, "ID=lock-1")
    assert routes.good(run, token, "GET", "state") == STATE
    routes.good(run, token, "DELETE", "lock")
    assert routes.call(run.id, "POST", "state", STATE, token, "ID=lock-1")[0] == 409


def test_a_run_that_is_believed_to_be_dead_writes_nothing_any_more(routes: Routes) -> None:
    services, runs = routes.services("acme"), routes.runs("acme")
    first = routes.new("acme", 1)
    token = runs.token(first)
    routes.good(first, token, "POST", "begin", {})
    routes.good(first, token, "PUT", "lock", LOCK)
    routes.good(first, token, "POST", "state", STATE, "ID=lock-1")
    runs.lost(first, "Its machine ended.")
    second = routes.new("acme", 1)
    assert second.id != first.id
    assert routes.call(first.id, "POST", "state", STATE, token, "ID=lock-1")[0] == 401
    task = routes.good(second, runs.token(second), "POST", "begin", {})
    assert (task["unlock"], task["unsure"]) == ("lock-1", True)
    state = services.store.get(RunState, first.workspace)
    assert state is not None
    assert state.lock is not None
    assert routes.call(second.id, "PUT", "lock", {"ID": "lock-2"}, runs.token(second))[0] == 423
    routes.good(second, runs.token(second), "DELETE", "lock")
    routes.good(second, runs.token(second), "PUT", "lock", {"ID": "lock-2"})
    assert routes.good(second, runs.token(second), "GET", "state") == STATE, "what the first one has kept"


def test_no_secret_is_kept_in_a_log_an_error_or_a_record(routes: Routes) -> None:
    services, runs = routes.services("acme"), routes.runs("acme")
    operation = services.new_id("op")
    now = services.now()
    services.store.commit(Create(Operation(operation, "create_node", "ncl", "running", (), now, now, "user:ann")))
    run = routes.new("acme", 1, secrets=("canary-of-the-task",), operation=operation)
    token = runs.token(run)
    passphrase = routes.good(run, token, "POST", "begin", {})["passphrase"]
    lines = ["canary-of-the-task", f"key {passphrase} end", f"Authorization: Bearer {token}", "two\nlines"]
    routes.good(run, token, "POST", "log", {"first": 1, "lines": lines})
    routes.good(run, token, "POST", "log", {"first": 1, "lines": lines})
    routes.good(run, token, "POST", "end", {"end": "failed", "error": "canary-of-the-task is no password"})
    stored = services.store.get(Operation, operation)
    assert stored is not None
    log_lines, _, _ = lines_after(services, stored, {}, 100)
    assert [line.text for line in log_lines][:2] == ["(hidden)", "key (hidden) end"]
    assert len(log_lines) == 4, "lines that come twice are kept once"
    records = [*every(services.store, ProviderRun), *every(services.store, AuditRecord), stored]
    text = repr([records, log_lines])
    for secret in ("canary", passphrase, token.rpartition(".")[2]):
        assert secret not in text
    assert stored.runs[0].error == "(hidden) is no password"
    actions = [record.action for record in every(services.store, AuditRecord)]
    assert sorted(actions) == ["BeginRun", "EndRun"]
