"""Executions of Step Functions in virtual time, by the documents that are deployed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.virtual_time.delays import Delays
from benchmarks.virtual_time.engine import VirtualTime
from stacks.workflows import documents

PREFIX = "workflow:"
"""How the name of each state machine begins here."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened: ``invoked NAME``, ``ended NAME``, ``state NAME``, ``claim created``, ``claim bound``,
    ``claim gone``, or the name of a call."""

    moment: float
    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Executions:
    """``invoke`` runs a function and waits for its answer."""

    time: VirtualTime
    delays: Delays
    marks: list[Mark]
    counts: Counter[str]
    invoke: Callable[[str, Mapping[str, Any]], Any]
    _documents: Mapping[str, Mapping[str, Any]] = field(default_factory=documents)
    _states: dict[str, str] = field(default_factory=dict)
    """By the name of the execution."""

    def answer(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        """The answer to a call of Step Functions."""
        if operation == "StartExecution":
            return self._started(client, parameters)
        name = parameters["executionArn"].rpartition(":")[2]
        if operation == "StopExecution":
            self._states[name] = "ABORTED"
        return {"status": self._states.get(name, "SUCCEEDED")}

    def _started(self, client: Any, parameters: Mapping[str, Any]) -> Any:
        name, workflow = parameters["name"], parameters["stateMachineArn"].removeprefix(PREFIX)
        if name in self._states:
            error = {"Error": {"Code": "ExecutionAlreadyExists", "Message": "it does"}}
            raise client.exceptions.ExecutionAlreadyExists(error, "StartExecution")
        self._states[name] = "RUNNING"
        data = json.loads(parameters["input"])
        self.time.spawn(lambda: self._execute(workflow, name, data), self.delays.draw("execution"))
        return {"executionArn": name}

    def _execute(self, workflow: str, name: str, data: dict[str, Any]) -> None:
        states = self._documents[workflow]["States"]
        state, retries = str(self._documents[workflow]["StartAt"]), 0
        while self._states[name] == "RUNNING":
            row = states[state]
            self.time.sleep(self.delays.draw("transition"))
            self.counts["transitions"] += 1
            self.marks.append(Mark(self.time.now, f"state {state}", data))
            if row["Type"] in ("Succeed", "Fail"):
                self._states[name] = "SUCCEEDED" if row["Type"] == "Succeed" else "FAILED"
            elif row["Type"] == "Wait":
                self.time.sleep(float(_at(data, row["SecondsPath"])))
                state = row["Next"]
            elif row["Type"] == "Choice":
                state = next((c["Next"] for c in row["Choices"] if _holds(c, data)), row["Default"])
            else:
                state, retries = self._task(row, state, name, data, retries)

    def _task(
        self, row: Mapping[str, Any], state: str, name: str, data: dict[str, Any], retries: int
    ) -> tuple[str, int]:
        context = {"$$.Execution.Name": name, "$$.State.RetryCount": retries, "$$.Task.Token": f"{name}/{state}"}
        payload = {
            key.removesuffix(".$"): context.get(value, _at(data, value)) if key.endswith(".$") else value
            for key, value in row["Parameters"]["Payload"].items()
        }
        self.time.sleep(self.delays.draw("invoke"))
        try:
            answer = self.invoke(row["Parameters"]["FunctionName"].strip("${}"), payload)
        except Exception as error:  # as the runtime, which answers with the name of the class
            kind = getattr(error, "workflow_name", type(error).__name__)
            for rule in row["Retry"]:
                if kind in rule["ErrorEquals"] and retries < rule["MaxAttempts"]:
                    longest = min(rule["IntervalSeconds"] * rule["BackoffRate"] ** retries, rule["MaxDelaySeconds"])
                    self.time.sleep(self.delays.between(0, longest))
                    return state, retries + 1
            catch = next(c for c in row["Catch"] if kind in c["ErrorEquals"] or "States.ALL" in c["ErrorEquals"])
            if catch["ResultPath"]:
                data[catch["ResultPath"][2:]] = {"Error": kind, "Cause": str(error)}
            return str(catch["Next"]), 0
        data["result"] = {"answer": answer}
        return str(row["Next"]), 0


def _at(data: Any, path: str) -> Any:
    """The value at a path, ``$.a.b``; None where there is none."""
    if not path.startswith("$") or path.startswith("$$"):
        return None
    for name in path.removeprefix("$").strip(".").split("."):
        data = data if not name else data.get(name) if isinstance(data, dict) else None
    return data


def _holds(choice: Mapping[str, Any], data: Any) -> bool:
    if "And" in choice:
        return all(_holds(part, data) for part in choice["And"])
    value = _at(data, choice["Variable"])
    if "IsPresent" in choice:
        return bool((value is not None) == choice["IsPresent"])
    return bool(value == choice.get("BooleanEquals", choice.get("StringEquals")))
