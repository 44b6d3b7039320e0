"""Workflow documents, interpreted in one thread under a clock that only the interpreter moves.

For tests that need thousands of executions and the same answer every time. It knows the part of the Amazon States
Language (JSONPath) that our documents use and refuses any other when a machine is created. Waits, retry intervals and
time-outs pass on the clock and take no real time. A test compares it with moto's executor.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from local.functions.invocation import Invocation, failure, function_name
from tests.harness.worlds import state_values

SYNC, CALLBACK = "arn:aws:states:::lambda:invoke", "arn:aws:states:::lambda:invoke.waitForTaskToken"
DEFAULT_TIMEOUT = 99_999_999
MOST_EVENTS = 25_000
"""Of one execution: Step Functions ends it for good with the last, and no document can catch that."""
TASK_EVENTS, RETRY_EVENTS, TOKEN_EVENTS, OTHER_EVENTS, END_EVENTS = 5, 3, 1, 2, 3
"""A task is entered, scheduled, started, succeeded (or failed) and left. A call that is made again is scheduled,
started and failed. A task that waits for its token was submitted. Any other state is entered and left. At last the
execution itself succeeds or fails."""
_COMMON = {"Type", "Comment", "Next"}
FIELDS: Mapping[str, set[str]] = {
    "Task": _COMMON
    | {"Resource", "Parameters", "ResultSelector", "ResultPath", "TimeoutSeconds", "Retry", "Catch", "End"},
    "Choice": {"Type", "Comment", "Choices", "Default"},
    "Wait": _COMMON | {"Seconds", "SecondsPath", "End"},
    "Pass": _COMMON | {"Result", "ResultPath", "End"},
    "Succeed": {"Type", "Comment"},
    "Fail": {"Type", "Comment", "Error", "Cause"},
}
_RETRY = {"ErrorEquals", "IntervalSeconds", "BackoffRate", "MaxAttempts", "MaxDelaySeconds", "JitterStrategy"}
_CATCH = {"ErrorEquals", "ResultPath", "Next"}


class MovingClock(Protocol):
    """A clock that can be moved."""

    def now(self) -> datetime:
        """The moment it shows."""
        ...

    def advance(self, seconds: float) -> datetime:
        """Move it forward."""
        ...


class ExecutionAlreadyExists(Exception):
    """An execution of that name exists, with other input or ended."""


@dataclass
class Execution:
    """One execution. ``status`` is ``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT`` or ``ABORTED``."""

    machine: str
    name: str
    input: Any
    started: datetime
    state: str
    data: Any
    wake: datetime | None
    status: str = "RUNNING"
    output: Any = None
    error: str | None = None
    cause: str | None = None
    token: str | None = None
    answer: Invocation | None = None
    deadline: datetime | None = None
    retried: dict[int, int] = field(default_factory=dict)
    events: int = 1
    """Of its history: ``ExecutionStarted`` first, and the events of states that were left."""
    trail: list[str] = field(default_factory=list)
    """Names of the states entered, in order; a retried state is entered once."""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status == "RUNNING"


Invoke = Callable[[str, Any], Invocation]


class States:
    """State machines and their executions. ``invoke(function name, payload)`` runs a function, at once."""

    def __init__(self, clock: MovingClock, invoke: Invoke, seed: int = 0) -> None:
        self._clock = clock
        self._invoke = invoke
        self._random = random.Random(seed)
        self._tokens = 0
        self.documents: dict[str, dict[str, Any]] = {}
        self.executions: dict[tuple[str, str], Execution] = {}
        self.current: Execution | None = None
        """The execution whose state is being carried out."""

    def create(self, machine: str, document: str) -> None:
        """A state machine from its text. ``ValueError`` for what this interpreter does not know."""
        parsed = json.loads(document)
        _check(parsed)
        self.documents[machine] = parsed

    def start(self, machine: str, name: str, value: Any) -> Execution:
        """Start; a running one of the same name and input is that one. Else ``ExecutionAlreadyExists``."""
        earlier = self.executions.get((machine, name))
        if earlier is not None:
            if earlier.running and earlier.input == value:
                return earlier
            raise ExecutionAlreadyExists(name)
        now, first = self._clock.now(), self.documents[machine]["StartAt"]
        execution = Execution(machine, name, copy.deepcopy(value), now, first, copy.deepcopy(value), now, trail=[first])
        self.executions[(machine, name)] = execution
        return execution

    def stop(self, machine: str, name: str) -> bool:
        """Stop a running execution. False when there is none of that name."""
        execution = self.executions.get((machine, name))
        if execution is not None and execution.running:
            _end(execution, "ABORTED")
        return execution is not None

    def succeed(self, token: str, output: Any) -> bool:
        """Answer a waiting task. False when nobody waits for that token."""
        for execution in self.executions.values():
            if execution.running and execution.token == token and execution.answer is None:
                execution.answer = Invocation(json.dumps(output).encode())
                if execution.wake is None:
                    execution.wake = self._clock.now()
                return True
        return False

    def waiting(self) -> list[Execution]:
        """The executions that wait for an answer to their token."""
        return [e for e in self.executions.values() if e.running and e.wake is None]

    def failed(self) -> list[Execution]:
        """The executions that have failed or timed out."""
        return [e for e in self.executions.values() if e.status in ("FAILED", "TIMED_OUT")]

    def run(self) -> None:
        """Carry on, moving the clock, until every execution has ended or waits for its token."""
        while due := [e for e in self.executions.values() if e.running and e.wake is not None]:
            execution = min(due, key=lambda e: e.wake or e.started)
            self.carry_on(execution)

    def expire(self) -> None:
        """Move the clock to the earliest time-out of a waiting token, and let it time out."""
        execution = min(self.waiting(), key=lambda e: e.deadline or e.started)
        execution.answer = failure("States.Timeout", "")
        execution.wake = execution.deadline

    def carry_on(self, execution: Execution) -> None:
        """Move the clock to the moment of an execution's next state, and carry that state out."""
        wake = execution.wake or execution.started
        limit = self.documents[execution.machine].get("TimeoutSeconds", DEFAULT_TIMEOUT)
        end = execution.started + timedelta(seconds=limit)
        self._clock.advance(max(0.0, (min(wake, end) - self._clock.now()).total_seconds()))
        if wake >= end or self._clock.now() >= end:
            _end(execution, "TIMED_OUT", error="States.Timeout")
            return
        if execution.events >= MOST_EVENTS - TASK_EVENTS:
            cause = "The execution reached the maximum number of history events (25000)."
            _end(execution, "FAILED", error="States.Runtime", cause=cause)
            return
        self.current = execution
        try:
            self._step(execution, self.documents[execution.machine]["States"][execution.state])
        finally:
            self.current = None

    # --- states -----------------------------------------------------------------------------------------------------

    def _step(self, execution: Execution, spec: Mapping[str, Any]) -> None:
        kind, data = spec["Type"], execution.data
        if kind == "Succeed":
            execution.events += END_EVENTS
            _end(execution, "SUCCEEDED", output=data)
        elif kind == "Fail":
            execution.events += END_EVENTS - 1  # It is not left.
            _end(execution, "FAILED", error=spec.get("Error"), cause=spec.get("Cause"))
        elif kind == "Choice":
            context = self._context(execution)
            target = next((rule["Next"] for rule in spec["Choices"] if state_values.holds(rule, data, context)), None)
            self._enter(execution, target or spec["Default"], data)
        elif kind == "Wait":
            seconds = spec["Seconds"] if "Seconds" in spec else state_values.read(spec["SecondsPath"], data, {})
            self._go_on(execution, spec, data, delay=float(seconds))
        elif kind == "Pass":
            result = spec.get("Result", data)
            self._go_on(execution, spec, state_values.with_result(spec.get("ResultPath", "$"), data, result))
        else:
            self._task(execution, spec)

    def _task(self, execution: Execution, spec: Mapping[str, Any]) -> None:
        callback = spec["Resource"] == CALLBACK
        answer, execution.answer = execution.answer, None
        if answer is None:
            if callback:
                self._tokens += 1
                execution.token = f"token-{self._tokens}"
            parameters = state_values.render(spec["Parameters"], execution.data, self._context(execution))
            execution.wake = None
            invoked = self._invoke(function_name(parameters["FunctionName"]), parameters.get("Payload"))
            if not execution.running:
                return  # stopped meanwhile: nobody reads the answer
            if callback and invoked.error is None:
                self._await(execution, spec)
                return
            answer = invoked
            result: Any = {"ExecutedVersion": "$LATEST", "Payload": answer.value(), "StatusCode": 200}
        else:
            result = answer.value()
        execution.token = execution.deadline = None
        if answer.error is not None:
            body = answer.value()
            cause = answer.payload.decode() if body["errorType"] != "States.Timeout" else ""
            self._failed(execution, spec, body["errorType"], cause)
            return
        if "ResultSelector" in spec:
            result = state_values.render(spec["ResultSelector"], result, self._context(execution))
        self._go_on(execution, spec, state_values.with_result(spec.get("ResultPath", "$"), execution.data, result))

    def _await(self, execution: Execution, spec: Mapping[str, Any]) -> None:
        execution.deadline = self._clock.now() + timedelta(seconds=spec.get("TimeoutSeconds", DEFAULT_TIMEOUT))
        execution.wake = None if execution.answer is None else self._clock.now()

    def _failed(self, execution: Execution, spec: Mapping[str, Any], error: str, cause: str) -> None:
        for index, rule in enumerate(spec.get("Retry", ())):
            if _names(rule, error):
                before = execution.retried.get(index, 0)
                if before < rule.get("MaxAttempts", 3):
                    execution.retried[index] = before + 1
                    execution.events += RETRY_EVENTS
                    self._sleep(execution, self._interval(rule, before))
                    return
                break
        for rule in spec.get("Catch", ()):
            if _names(rule, error):
                error_output = {"Error": error, "Cause": cause}
                data = state_values.with_result(rule.get("ResultPath", "$"), execution.data, error_output)
                self._enter(execution, rule["Next"], data)
                return
        _end(execution, "FAILED", error=error, cause=cause)

    def _interval(self, rule: Mapping[str, Any], before: int) -> float:
        seconds = rule.get("IntervalSeconds", 1) * float(rule.get("BackoffRate", 2)) ** before
        seconds = min(seconds, rule.get("MaxDelaySeconds", seconds))
        return self._random.uniform(0, seconds) if rule.get("JitterStrategy") == "FULL" else seconds

    # --- between states ---------------------------------------------------------------------------------------------

    def _sleep(self, execution: Execution, seconds: float) -> None:
        execution.wake = self._clock.now() + timedelta(seconds=seconds)

    def _go_on(self, execution: Execution, spec: Mapping[str, Any], data: Any, delay: float = 0.0) -> None:
        if spec.get("End"):
            _end(execution, "SUCCEEDED", output=data)
        else:
            self._enter(execution, spec["Next"], data, delay)

    def _enter(self, execution: Execution, state: str, data: Any, delay: float = 0.0) -> None:
        spec = self.documents[execution.machine]["States"][execution.state]
        execution.events += TASK_EVENTS if spec["Type"] == "Task" else OTHER_EVENTS
        execution.events += TOKEN_EVENTS if spec.get("Resource") == CALLBACK else 0
        execution.state, execution.data, execution.retried = state, data, {}
        execution.trail.append(state)
        self._sleep(execution, delay)

    def _context(self, execution: Execution) -> dict[str, Any]:
        return {
            "Execution": {"Name": execution.name, "Input": execution.input},
            "State": {"Name": execution.state, "RetryCount": sum(execution.retried.values())},
            "Task": {"Token": execution.token},
        }


def _names(rule: Mapping[str, Any], error: str) -> bool:
    error_names = rule["ErrorEquals"]
    return (
        error in error_names
        or "States.ALL" in error_names
        or ("States.TaskFailed" in error_names and error != "States.Timeout")
    )


def _end(
    execution: Execution, status: str, *, output: Any = None, error: str | None = None, cause: str | None = None
) -> None:
    execution.status, execution.output, execution.error, execution.cause = status, output, error, cause
    execution.wake = execution.token = execution.deadline = None


def _check(document: Mapping[str, Any]) -> None:
    states = document["States"]
    unknown = document.keys() - {"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage"}
    if unknown or document.get("QueryLanguage", "JSONPath") != "JSONPath":
        raise ValueError(f"the document has fields that are not supported: {sorted(unknown)}")
    for name, spec in states.items():
        _check_state(name, spec)
        following = [spec.get("Next"), spec.get("Default")]
        following += [rule["Next"] for rule in (*spec.get("Choices", ()), *spec.get("Catch", ()))]
        lost = {target for target in following if target is not None} - states.keys()
        if lost:
            raise ValueError(f"the state {name} leads to {sorted(lost)}, which are not there")


def _check_state(name: str, spec: Mapping[str, Any]) -> None:
    if spec["Type"] not in FIELDS:
        raise ValueError(f"the state {name} is a {spec['Type']}, which is not supported")
    unknown = spec.keys() - FIELDS[spec["Type"]]
    for rule in spec.get("Retry", ()):
        unknown |= rule.keys() - _RETRY
    for rule in spec.get("Catch", ()):
        unknown |= rule.keys() - _CATCH
    if spec["Type"] == "Task" and spec["Resource"] not in (SYNC, CALLBACK):
        unknown |= {str(spec["Resource"])}
    if unknown:
        raise ValueError(f"the state {name} uses {sorted(unknown)}, which are not supported")
