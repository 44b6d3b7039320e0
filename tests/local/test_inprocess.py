"""Workflow documents run in one process with scaled waits and Python callables as functions."""

from __future__ import annotations

import json
import time
from threading import Event
from typing import Any

import boto3
import pytest

from tests.harness.worlds.inprocess import workflow_world


class NotYet(Exception):
    """An error that the document's Retry names."""


class Broken(Exception):
    """An error that the document's Catch names."""


def task(payload: dict[str, Any], *, token: bool = False, **more: Any) -> dict[str, Any]:
    resource = "arn:aws:states:::lambda:invoke" + (".waitForTaskToken" if token else "")
    parameters = {"FunctionName": "${phases}", "Payload": payload}
    return {"Type": "Task", "Resource": resource, "Parameters": parameters, **more}


DOCUMENT = json.dumps(
    {
        "StartAt": "Flaky",
        "States": {
            "Flaky": task(
                {"step": "flaky", "name.$": "$.name"},
                ResultSelector={"done.$": "$.Payload.done"},
                ResultPath="$.flaky",
                Retry=[{"ErrorEquals": ["NotYet"], "IntervalSeconds": 30, "MaxAttempts": 5, "JitterStrategy": "FULL"}],
                TimeoutSeconds=60,
                Next="Pause",
            ),
            "Pause": {"Type": "Wait", "Seconds": 600, "Next": "Report"},
            "Report": task(
                {"step": "report", "token.$": "$$.Task.Token"},
                token=True,
                ResultPath="$.report",
                TimeoutSeconds=3600,
                Catch=[{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.error", "Next": "Late"}],
                Next="Choose",
            ),
            "Choose": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.report.ok", "BooleanEquals": True, "Next": "Break"}],
                "Default": "Late",
            },
            "Break": task(
                {"step": "break"},
                Catch=[{"ErrorEquals": ["Broken"], "ResultPath": "$.error", "Next": "Compensated"}],
                End=True,
            ),
            "Compensated": {"Type": "Succeed"},
            "Late": {"Type": "Fail", "Error": "TooLate", "Cause": "no report"},
        },
    }
)


def test_a_document_with_retry_wait_token_choice_and_catch_runs_to_its_end() -> None:
    calls: list[str] = []
    token: list[str] = []
    waiting = Event()

    def phases(event: dict[str, Any], context: Any) -> dict[str, Any]:
        calls.append(event["step"])
        assert context.get_remaining_time_in_millis() > 0
        if event["step"] == "flaky" and len(calls) < 3:
            raise NotYet("again")
        if event["step"] == "report":
            token.append(event["token"])
            waiting.set()
        if event["step"] == "break":
            raise Broken("for good")
        return {"done": True}

    started = time.monotonic()
    with workflow_world({"phases": phases}) as world:
        machine = world.create("provision", DOCUMENT, {"phases": "phases"})
        execution = world.start(machine, "one", {"name": "x"})
        assert world.start(machine, "one", {"name": "x"}) == execution
        assert waiting.wait(20)
        world.sfn.send_task_success(taskToken=token[0], output=json.dumps({"ok": True}))
        result = world.wait(execution)
        assert result.status == "SUCCEEDED"
        assert result.output["error"]["Error"] == "Broken"
        assert json.loads(result.output["error"]["Cause"])["errorMessage"] == "for good"
        assert world.states(execution) == ["Flaky", "Pause", "Report", "Choose", "Break", "Compensated"]
    assert calls == ["flaky", "flaky", "flaky", "report", "break"]
    assert time.monotonic() - started < 20


def test_a_missing_token_times_out_by_the_scaled_clock() -> None:
    with workflow_world({"phases": lambda event, context: {"done": True}}, timeouts=0.0001) as world:
        machine = world.create("provision", DOCUMENT, {"phases": "phases"})
        result = world.wait(world.start(machine, "two", {"name": "x"}))
        assert (result.status, result.error) == ("FAILED", "TooLate")


def test_a_running_execution_is_stopped_at_the_end_and_named_when_waited_for() -> None:
    with workflow_world({"phases": lambda event, context: {"done": True}}) as world:
        machine = world.create("provision", DOCUMENT, {"phases": "phases"})
        execution = world.start(machine, "three", {"name": "x"})
        with pytest.raises(TimeoutError, match="Report"):
            world.wait(execution, timeout=2)


def test_an_unknown_function_is_an_error_of_the_task() -> None:
    with workflow_world({}) as world:
        machine = world.create("provision", DOCUMENT, {"phases": "phases"})
        result = world.wait(world.start(machine, "four", {"name": "x"}))
        assert result.status == "FAILED"
        assert result.error == "Lambda.ResourceNotFoundException"


def test_the_keys_in_the_environment_are_of_our_own_account() -> None:
    with workflow_world({}):
        assert boto3.client("sts").get_caller_identity()["Account"] == "111111111111"
