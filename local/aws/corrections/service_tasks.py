"""Step Functions: tasks that put events or answer a task token act in the account of their state machine. moto would
call an endpoint of its own as nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.events.models import events_backends
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_aws_sdk import (
    StateTaskServiceAwsSdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_events import (
    SfnFailedEntryCountException,
    StateTaskServiceEvents,
)
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

Task = Callable[..., None]


@contextmanager
def tasks_of_their_account() -> Iterator[None]:
    """``events:putEvents``, and the calls of Step Functions' own API that answer a task token."""
    original: Task = StateTaskServiceAwsSdk._eval_service_task

    def put_events(task: Any, env: Any, **arguments: Any) -> None:
        target, parameters = arguments["resource_runtime_part"], arguments["normalised_parameters"]
        task._normalised_request_parameters(env=env, parameters=parameters)
        answers = events_backends[target.account][target.region].put_events(parameters["Entries"])
        failed = sum("ErrorCode" in answer for answer in answers)
        response = {"FailedEntryCount": failed, "Entries": answers}
        if failed:
            raise SfnFailedEntryCountException(cause=response)
        env.stack.append(response)

    def call(task: Any, env: Any, **arguments: Any) -> None:
        target, parameters = arguments["resource_runtime_part"], arguments["normalised_parameters"]
        answer = _ANSWERS.get(task.resource.api_action)
        if answer is None or task._get_boto_service_name() != "stepfunctions":
            original(task, env, **arguments)
            return
        answer(stepfunctions_parser_backends[target.account][target.region], parameters)
        env.stack.append({})

    with (
        patch.object(StateTaskServiceEvents, "_eval_service_task", put_events),
        patch.object(StateTaskServiceAwsSdk, "_eval_service_task", call),
    ):
        yield


def _success(backend: Any, parameters: Mapping[str, Any]) -> None:
    backend.send_task_success(parameters["TaskToken"], parameters["Output"])


def _failure(backend: Any, parameters: Mapping[str, Any]) -> None:
    backend.send_task_failure(parameters["TaskToken"], parameters.get("Error"), parameters.get("Cause"))


_ANSWERS = {"sendTaskSuccess": _success, "sendTaskFailure": _failure}
