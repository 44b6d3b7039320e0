"""Step Functions: tasks run our functions, waits can be shorter than in the document, and StopExecution ends waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from moto.awslambda.models import LambdaFunction
from moto.awslambda_simple.models import LambdaSimpleBackend
from moto.stepfunctions.parser.api import ExecutionFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackEndpoint
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.program_state import ProgramStopped
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

from local.functions.invocation import Invocation, Invoker, failure, function_name

MOST_EVENTS = 25_000
"""Of one execution of a standard workflow."""
MOTO_CONFIG: Mapping[str, Mapping[str, bool]] = {
    "stepfunctions": {"execute_state_machine": True},
    "lambda": {"use_docker": False},
}
"""The configuration with which moto runs workflow documents without Docker."""


@contextmanager
def functions_run(invoker: Invoker) -> Iterator[None]:
    """Lambda's Invoke and the Lambda tasks of workflows call ``invoker``. moto would answer a constant."""

    def task(parameters: Mapping[str, Any], region: str, state_credentials: Any) -> dict[str, Any]:
        del region, state_credentials
        answer = _invoke(invoker, str(parameters["FunctionName"]), parameters.get("Payload") or b"{}")
        response: dict[str, Any] = {"StatusCode": 200, "ExecutedVersion": "$LATEST", "Payload": answer.value()}
        if answer.error:
            response["FunctionError"] = answer.error
        return response

    def api(
        backend: Any, name: str, qualifier: str | None, body: Any, headers: Mapping[str, str], answer_headers: Any
    ) -> bytes:
        del backend, qualifier
        payload = body.encode() if isinstance(body, str) else bytes(body or b"{}")
        if headers.get("X-Amz-Invocation-Type") == "Event":
            threading.Thread(target=_invoke, args=(invoker, name, payload), daemon=True).start()
            return b""
        answer = _invoke(invoker, name, payload)
        if answer.error:
            answer_headers["x-amz-function-error"] = answer.error
        return answer.payload

    with (
        patch.object(lambda_eval_utils, "_invoke_lambda_function", task),
        patch.object(LambdaSimpleBackend, "invoke", api),
        patch.object(LambdaFunction, "invoke", _never),
    ):
        yield


@contextmanager
def unread_documents() -> Iterator[None]:
    """A workflow document is parsed when it is first executed. moto parses it when it is made, too: the stage has
    fourteen, which takes a second, and most are never executed."""
    with patch.object(StepFunctionsParserBackend, "_validate_definition", staticmethod(_left_alone)):
        yield


def _left_alone(definition: str) -> None:
    del definition


def _invoke(invoker: Invoker, name: str, payload: bytes) -> Invocation:
    try:
        return invoker.invoke(function_name(name), payload)
    except KeyError:
        return failure("Lambda.ResourceNotFoundException", f"There is no function {function_name(name)}")


def _never(*_: Any) -> bytes:
    raise RuntimeError("moto would start Docker for this function")


@contextmanager
def limited_histories(most: int = MOST_EVENTS) -> Iterator[None]:
    """An execution whose history is full fails for good, and no document can catch that. moto's have no end."""
    original = Environment.is_running

    def is_running(environment: Any) -> bool:
        # Asked before every part of every state. The last event is that of the failure.
        if original(environment) and len(environment.event_manager._history_event_list) >= most - 1:
            cause = f"The execution reached the maximum number of history events ({most})."
            environment.set_error(ExecutionFailedEventDetails(error="States.Runtime", cause=cause))
        running: bool = original(environment)
        return running

    with patch.object(Environment, "is_running", is_running):
        yield


@contextmanager
def scaled_waits(scale: float, timeouts: float = 1.0) -> Iterator[None]:
    """Multiplies wait states and retry intervals by ``scale``, and time-outs of task tokens by ``timeouts``.

    Time-outs of running tasks do not change. StopExecution also ends the wait for a task token, unlike in moto.
    """
    with (
        patch.object(WaitFunction, "_wait_interval", _waiting(scale)),
        patch.object(retrier_decl, "time", SimpleNamespace(sleep=lambda seconds: time.sleep(seconds * scale))),
        patch.object(CallbackEndpoint, "wait", _token_wait(timeouts)),
        patch.object(Environment, "set_stop", _waking(Environment.set_stop)),
        patch.object(Environment, "set_error", _unless_stopped(Environment.set_error)),
    ):
        yield


def _waiting(scale: float) -> Callable[[Any, Any, float], None]:
    def wait_interval(_function: Any, env: Any, wait_seconds: float) -> None:
        end = time.monotonic() + wait_seconds * scale
        while (remaining := end - time.monotonic()) > 0 and env.is_running():
            env.program_state_event.wait(remaining)

    return wait_interval


def _token_wait(scale: float) -> Callable[..., Any]:
    original = CallbackEndpoint.wait

    def wait(endpoint: Any, timeout: float | None = None) -> Any:
        return original(endpoint, None if timeout is None else timeout * scale)

    return wait


def _waking(original: Callable[..., None]) -> Callable[..., None]:
    def set_stop(environment: Any, *args: Any, **kwargs: Any) -> None:
        original(environment, *args, **kwargs)
        for endpoint in list(environment.callback_pool_manager._pool.values()):
            endpoint.interrupt_all()

    return set_stop


def _unless_stopped(original: Callable[..., None]) -> Callable[..., None]:
    def set_error(environment: Any, *args: Any, **kwargs: Any) -> None:
        # A wait that the stop has ended looks like a time-out, but is none.
        if not isinstance(environment.program_state(), ProgramStopped):
            original(environment, *args, **kwargs)

    return set_error
