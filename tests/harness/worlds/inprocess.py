"""Workflow documents in one process, without a server: for the tests of workflows.

``workflow_world`` starts moto with its corrections, runs the state machines you create from their document's text, and
calls Python callables where the document names a function. Waits and retry intervals are scaled.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import boto3
from moto import mock_aws
from moto.iam.models import iam_backends
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

from local.aws.accounts import OWN_ACCOUNT, REGION
from local.aws.corrections.tables import atomic_tables
from local.aws.corrections.workflows import MOTO_CONFIG, functions_run, scaled_waits
from local.functions.invocation import Invocation, failure

Handler = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Context:
    """The part of Lambda's context that handlers read."""

    function_name: str
    aws_request_id: str
    memory_limit_in_mb: int = 512
    function_version: str = "$LATEST"
    deadline: float = field(default_factory=lambda: time.monotonic() + 900)

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:{REGION}:{OWN_ACCOUNT}:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.deadline - time.monotonic()) * 1000))


@dataclass(frozen=True, slots=True)
class Callables:
    """Calls handlers in this process. An exception becomes the answer of a failed function, by its class name."""

    handlers: Mapping[str, Handler]

    def invoke(self, function: str, payload: bytes) -> Invocation:
        """See ``Invoker``."""
        handler = self.handlers[function]
        try:
            answer = handler(json.loads(payload), Context(function, str(uuid.uuid4())))
            return Invocation(json.dumps(answer).encode())
        except Exception as error:  # A Lambda runtime does the same with any exception.
            return failure(type(error).__name__, str(error))


@dataclass(frozen=True, slots=True)
class EndedExecution:
    """End of an execution: ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT`` or ``ABORTED``."""

    status: str
    output: Any
    error: str | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class World:
    """The running world. ``sfn`` is a boto3 client of Stockyard's own account."""

    sfn: Any

    def create(self, name: str, document: str, substitutions: Mapping[str, str] | None = None) -> str:
        """Create a state machine from its document; ``${key}`` is replaced as CloudFormation does. Returns the ARN.

        A substitution without ``:`` is a function's name and becomes its ARN.
        """
        for key, value in (substitutions or {}).items():
            target = value if ":" in value else f"arn:aws:lambda:{REGION}:{OWN_ACCOUNT}:function:{value}"
            document = document.replace(f"${{{key}}}", target)
        role = f"arn:aws:iam::{OWN_ACCOUNT}:role/workflow"
        return str(self.sfn.create_state_machine(name=name, definition=document, roleArn=role)["stateMachineArn"])

    def start(self, machine: str, name: str, value: Any) -> str:
        """Start an execution (a name twice with the same input is one execution). Returns its ARN."""
        answer = self.sfn.start_execution(stateMachineArn=machine, name=name, input=json.dumps(value))
        return str(answer["executionArn"])

    def wait(self, execution: str, timeout: float = 60) -> EndedExecution:
        """Wait for the end. Raises ``TimeoutError`` after ``timeout`` real seconds, with the last states entered."""
        end = time.monotonic() + timeout
        pause = threading.Event()
        while time.monotonic() < end:
            description = self.sfn.describe_execution(executionArn=execution)
            if description["status"] != "RUNNING":
                output = json.loads(description["output"]) if description.get("output") else None
                return EndedExecution(description["status"], output, description.get("error"), description.get("cause"))
            pause.wait(0.005)
        raise TimeoutError(f"{execution} still runs; states so far: {self.states(execution)[-5:]}")

    def history(self, execution: str) -> list[dict[str, Any]]:
        """The events of the execution, oldest first."""
        pages = self.sfn.get_paginator("get_execution_history").paginate(executionArn=execution)
        return [event for page in pages for event in page["events"]]

    def states(self, execution: str) -> list[str]:
        """Names of the states entered, in order."""
        return [
            event["stateEnteredEventDetails"]["name"]
            for event in self.history(execution)
            if "stateEnteredEventDetails" in event
        ]


@contextmanager
def credentials(account: str) -> Iterator[dict[str, str]]:
    """Keys of ``account`` (twelve digits) in the running moto, also set in the environment of this process."""
    user = f"local-{uuid.uuid4().hex[:8]}"
    backend = iam_backends[account]["aws"]
    backend.create_user(REGION, user)
    key = backend.create_access_key(user)
    names = {
        "AWS_ACCESS_KEY_ID": key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": key.secret_access_key,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
    }
    # The default session of boto3 keeps the keys that it has read.
    with patch.dict(os.environ, names), patch("boto3.DEFAULT_SESSION", None):
        os.environ.pop("AWS_SESSION_TOKEN", None)
        yield names


@contextmanager
def workflow_world(
    handlers: Mapping[str, Handler], *, scale: float = 0.0, timeouts: float = 1.0, account: str = OWN_ACCOUNT
) -> Iterator[World]:
    """moto in this process with the corrections; Lambda tasks call ``handlers[function name](event, context)``.

    Waits and retries take ``scale`` times what the document says, time-outs of task tokens ``timeouts`` times. boto3
    clients made inside reach moto with the keys of ``account``. Executions still running at the end are stopped.
    """
    with ExitStack() as stack:
        stack.enter_context(mock_aws(config=MOTO_CONFIG))
        stack.enter_context(atomic_tables())
        stack.enter_context(functions_run(Callables(handlers)))
        stack.enter_context(scaled_waits(scale, timeouts))
        stack.enter_context(credentials(account))
        stack.callback(_stop_all, account)
        yield World(boto3.client("stepfunctions", region_name=REGION))


def _stop_all(account: str) -> None:
    client = boto3.client("stepfunctions", region_name=REGION)
    for machine in stepfunctions_parser_backends[account][REGION].state_machines:
        for execution in machine.executions:
            if execution.exec_status == "RUNNING" and execution.exec_worker and execution.exec_worker.env:
                client.stop_execution(executionArn=execution.exec_arn)
