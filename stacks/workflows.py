"""The workflow documents, generated from the table of phases: a state a phase, named as the phase, or one for all.

What is the same for every phase is said once here: how long a call may take, which errors are retried and how, and
what follows an error. ``make synth`` writes the documents as readable JSON to ``cdk.out/workflows``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockyard.lifecycle.phases import PROCEDURES
from stockyard.lifecycle.procedure import BLOCK, COMPENSATE, Phase, Procedure

CALL_SECONDS = 150
"""How long one call of a phase may take; longer than the function's own time-out."""
THROTTLED = "VendorThrottled"
"""A vendor's bucket refills slowly: tried for longer than the others, about three minutes in all, six at most."""
NO_ROOM = "Lambda.TooManyRequestsException"
"""All that may run of the function, or of the account, runs: nothing was done. A new account has room for ten functions
at a time, so many nodes at once wait for each other: tried for seven minutes, 15 at most."""
RETRIED = (
    "VendorUnavailable",
    "VendorTimeout",
    "NotYetVisible",
    "VendorConflict",
    "StoreUnavailable",
    "Conflict",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
)
"""Errors after which the same call is made again: ours that are retryable, a write that somebody else was faster
with, and those of the function's service. A phase may run twice, so it looks anew."""
FUNCTIONS: Mapping[str, str] = {"cluster": "cluster_phases", "claim": "node_phases"}
"""The function that does the phases, by what the procedure is about."""
TOGETHER = "work"
"""The state that stands for all phases of a procedure whose calls go through them together."""

State = dict[str, Any]


def documents() -> dict[str, State]:
    """Every document, by the name of its state machine."""
    return {procedure.workflow: document(procedure) for procedure in PROCEDURES.values()}


def text(document: State) -> str:
    """A document as people read it and as it is deployed."""
    return json.dumps(document, indent=2) + "\n"


def document(procedure: Procedure) -> State:
    """The document of a procedure. A phase that is not done is asked again after a wait.

    Where calls go through all phases together, one state stands for them: each state that is entered is paid for, and
    takes time.
    """
    phases = [phase for phase in procedure.phases if not phase.before_workflow]
    success, failure = procedure.ends
    states: dict[str, State] = {}
    if procedure.resumable:
        states["start"] = {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.from_phase", "StringEquals": phase.name, "Next": phase.name} for phase in phases
            ],
            "Default": phases[0].name,
        }
    if procedure.together:
        caught = _catch(procedure.on_failure, "$.error")
        states |= _polled(procedure, TOGETHER, {"action": "run"}, caught, success)
        states[TOGETHER]["Comment"] = f"Phases: {', '.join(phase.name for phase in phases)}."
    followers = [*(phase.name for phase in phases[1:]), success]
    for phase, following in zip(phases, followers, strict=True):
        states |= {} if procedure.together else _phase(procedure, phase, following)
    states[success] = {"Type": "Succeed"}
    states |= _failure(procedure)
    states[failure] = {"Type": "Fail", "Error": procedure.failure or procedure.error, "Cause": _cause(procedure)}
    states["continued"] = {
        "Type": "Succeed",
        "Comment": "The history of this execution has become long; the next one of the attempt goes on.",
    }
    states["superseded"] = {
        "Type": "Succeed",
        "Comment": f"Another operation or attempt owns the {procedure.subject} now.",
    }
    return {
        "Comment": f"{procedure.comment} Input: tenant, {procedure.subject}_id, operation_id, attempt, from_phase.",
        "StartAt": "start" if procedure.resumable else TOGETHER if procedure.together else phases[0].name,
        "TimeoutSeconds": procedure.timeout_seconds,
        "States": states,
    }


def _phase(procedure: Procedure, phase: Phase, following: str) -> dict[str, State]:
    caught = _catch(procedure.on_failure, "$.error")
    if not phase.token_seconds:
        return _polled(procedure, phase.name, {"action": "run", "phase": phase.name}, caught, following)
    payload = {"action": "await", "phase": phase.name, "task_token.$": "$$.Task.Token"}
    waiting = _task(procedure, payload, caught, following)
    waiting |= {
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "ResultPath": None,
        "TimeoutSeconds": phase.token_seconds,
        # A token that nobody answered is no call that may be made again.
        "Retry": _retry(*RETRIED),
    }
    del waiting["ResultSelector"]
    return {phase.name: waiting}


def _failure(procedure: Procedure) -> dict[str, State]:
    """States that follow a phase that failed for good."""
    _, failed = procedure.ends
    failure = {"error.$": "$.error"}
    if procedure.on_failure == BLOCK:
        return {"block": _task(procedure, {"action": "block", **failure}, [], failed)}
    fail = {"fail": _task(procedure, {"action": "fail", **failure}, [], failed)}
    if procedure.on_failure != COMPENSATE:
        return fail
    caught = _catch("fail", "$.compensation_error")
    return {**_polled(procedure, "compensate", {"action": "compensate"}, caught, "fail"), **fail}


def _polled(
    procedure: Procedure, name: str, payload: Mapping[str, str], caught: list[State], following: str
) -> dict[str, State]:
    """Calls again, after the wait in the answer, until the work is done or the next execution goes on. Name, data and
    retries of the execution let the function count events."""
    counted = {"state.$": "$", "retries.$": "$$.State.RetryCount"}
    answer = "$.result.answer"
    continued = [
        {"Variable": f"{answer}.continued", "IsPresent": True},
        {"Variable": f"{answer}.continued", "BooleanEquals": True},
    ]
    return {
        name: _task(procedure, {**payload, **counted}, caught, f"{name}_done"),
        f"{name}_done": {
            "Type": "Choice",
            "Choices": [
                {"Variable": f"{answer}.done", "BooleanEquals": True, "Next": following},
                # A function of an earlier release, after a deploy that was rolled back, does not say it.
                {"And": continued, "Next": "continued"},
            ],
            "Default": f"{name}_wait",
        },
        f"{name}_wait": {"Type": "Wait", "SecondsPath": f"{answer}.wait", "Next": name},
    }


def _task(procedure: Procedure, payload: Mapping[str, str], caught: list[State], following: str) -> State:
    fence = ("tenant", f"{procedure.subject}_id", "operation_id", "attempt")
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {
            "FunctionName": f"${{{FUNCTIONS[procedure.subject]}}}",
            "Payload": {
                **payload,
                **{f"{name}.$": f"$.{name}" for name in fence},
                "execution.$": "$$.Execution.Name",
            },
        },
        "ResultSelector": {"answer.$": "$.Payload"},
        "ResultPath": "$.result",
        "TimeoutSeconds": CALL_SECONDS,
        "Retry": _retry(*RETRIED, "States.Timeout"),
        "Catch": [{"ErrorEquals": ["Fenced"], "ResultPath": None, "Next": "superseded"}, *caught],
        "Next": following,
    }


def _retry(*errors: str) -> list[State]:
    return [
        _rule(("InsufficientCapacity",), 30, 4, 300),
        _rule((NO_ROOM,), 1, 20, 60),
        _rule((THROTTLED,), 2, 10, 60),
        _rule(errors, 2, 7, 60),
    ]


def _rule(errors: tuple[str, ...], seconds: int, attempts: int, longest: int) -> State:
    return {
        "ErrorEquals": list(errors),
        "IntervalSeconds": seconds,
        "BackoffRate": 2,
        "MaxAttempts": attempts,
        "MaxDelaySeconds": longest,
        "JitterStrategy": "FULL",
    }


def _catch(following: str, path: str) -> list[State]:
    return [{"ErrorEquals": ["States.ALL"], "ResultPath": path, "Next": following}]


def _cause(procedure: Procedure) -> str:
    if procedure.on_failure == BLOCK:
        return f"The {procedure.subject} says what is left and why; the sweep tries again."
    return "The operation says which phase failed and why."
