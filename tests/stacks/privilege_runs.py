"""Calls of the program of a run, in the run of the tests of permissions."""

from __future__ import annotations

import base64
import json
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any

from stacks.names import Names
from stockyard.adapters.clock import SystemClock
from stockyard.adapters.dynamodb.registry import DynamoRegistry
from stockyard.adapters.envelope import EnvelopeSecrets
from stockyard.adapters.object_storage import S3ObjectStorage
from stockyard.domain.records import NodeEnvironment
from stockyard.domain.run_records import ProviderRun, RunState
from stockyard.domain.values import ids, times
from stockyard.operations.runs.tokens import token_of
from stockyard.ports import Create

if TYPE_CHECKING:
    from local.testing.serving import Served

TENANT = "acme"
STATE = {"encrypted_data": "c2VhbGVk", "encryption_version": "v0", "meta": {}}


def runs_once(served: Served) -> None:
    """A run that is on record begins, locks and writes its state, sends lines, and ends."""
    run = _run_on_record(served)
    path = f"/v1/runs/{run.id}"
    key = served.aws("secretsmanager").get_secret_value(SecretId=Names("dev").machine_key)["SecretString"]
    token = token_of(key.encode(), TENANT, run.id)
    call = partial(_called, served.environment["STOCKYARD_URL"], token)
    assert call("POST", f"{path}/begin", {})["passphrase"]
    lock = {"ID": "lock-1", "Who": "test"}
    assert call("PUT", f"{path}/lock", lock) == lock
    call("POST", f"{path}/state?ID=lock-1", STATE)
    assert call("GET", f"{path}/state") == STATE
    call("POST", f"{path}/log", {"first": 1, "lines": ["one"]})
    call("DELETE", f"{path}/state")
    call("DELETE", f"{path}/lock")
    call("POST", f"{path}/end", {"end": "done", "is_empty": True, "result": {"outputs": {}}})


def _run_on_record(served: Served) -> ProviderRun:
    names, clock = Names("dev"), SystemClock()
    registry = DynamoRegistry(served.aws("dynamodb"), names.table)
    now = times.to_text(clock.now())
    environment = NodeEnvironment(ids.make("nev", clock.now(), b"0" * 10), "clu_x", "npr_x", "tofu", now, now)
    workspace = f"{environment.id}/infrastructure"
    run = ProviderRun(
        id=ids.derive(ids.RUN, environment.id, workspace, "1"),
        subject=environment.id,
        workspace=workspace,
        operation_id="op_none",
        attempt=1,
        name="apply",
        number=1,
        command="apply",
        makes=True,
        phase="environment",
        created_at=now,
    )
    seals = EnvelopeSecrets(partial(served.aws, "kms"), names.secrets_key, registry.store)
    task: dict[str, Any] = {
        "command": "apply",
        "variables": {},
        "environment": {},
        "secrets": [],
        "timeout_seconds": 60,
    }
    sealed = seals.seal(f"{TENANT}/{run.id}/task", json.dumps(task).encode())
    bucket = names.bucket.format(account="111111111111", region="us-east-1")
    S3ObjectStorage(partial(served.aws, "s3"), bucket, TENANT).put(f"runs/{run.id}/task", sealed.encode())
    registry.store(TENANT).commit(Create(environment), Create(run), Create(RunState(workspace, now, run.id, 1)))
    return run


def _called(url: str, token: str, method: str, path: str, body: Any = None) -> Any:
    basic = base64.b64encode(f"run:{token}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"{url}{path}", data, headers, method=method)  # noqa: S310 - our own address
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.loads(answer.read() or b"null")
