"""Background workflows (``ports.Workflows``) on Step Functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stockyard.adapters.aws_errors import translated

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


def execution_arn(workflow: str, name: str) -> str:
    """The ARN of the execution ``name`` of the state machine ``workflow``."""
    return f"{workflow.replace(':stateMachine:', ':execution:', 1)}:{name}"


class StepFunctionsWorkflows:
    """``ports.Workflows`` over a boto3 client of Step Functions."""

    def __init__(self, client: SFNClient, prefix: str = "") -> None:
        """``prefix`` is what the ARNs of all state machines begin with; the name of the workflow follows."""
        self._client = client
        self._prefix = prefix

    def _arn(self, workflow: str) -> str:
        return self._prefix + workflow

    def start(self, workflow: str, name: str, payload: Mapping[str, Any]) -> None:
        """Start an execution. A running or finished one of that name is success, whatever its input was."""
        text = json.dumps(payload, separators=(",", ":"), sort_keys=True)
        with translated(), suppress(self._client.exceptions.ExecutionAlreadyExists):
            self._client.start_execution(stateMachineArn=self._arn(workflow), name=name, input=text)

    def succeed(self, task_token: str, output: Mapping[str, Any]) -> bool:
        """Wake a waiting task. False when its token is gone, timed out or was never one."""
        exceptions = self._client.exceptions
        with translated():
            try:
                self._client.send_task_success(taskToken=task_token, output=json.dumps(output))
            except (exceptions.TaskTimedOut, exceptions.TaskDoesNotExist, exceptions.InvalidToken):
                return False
        return True

    def running(self, workflow: str, name: str) -> bool:
        """Whether the execution exists and has not ended."""
        with translated():
            try:
                answer = self._client.describe_execution(executionArn=execution_arn(self._arn(workflow), name))
            except self._client.exceptions.ExecutionDoesNotExist:
                return False
        return answer["status"] in {"RUNNING", "PENDING_REDRIVE"}

    def stop(self, workflow: str, name: str) -> None:
        """Stop an execution; one that is not running is no error."""
        with translated(), suppress(self._client.exceptions.ExecutionDoesNotExist):
            self._client.stop_execution(executionArn=execution_arn(self._arn(workflow), name), error="Stopped")
