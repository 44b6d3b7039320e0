"""The provider framework of the CDK between CloudFormation and two functions, step by step as its own code does it.

``onEvent`` says which resource a request is about, and starts a waiter, which asks ``isComplete`` again and again. Each
of its steps may go wrong as it does in a region: an invocation whose answer is lost, an answer that does not get
through, a request that is delivered twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.cloudformation.timeline import Timeline

CREATE_FAILED = "AWSCDK::CustomResourceProviderFramework::CREATE_FAILED"
MISSING_ID = "AWSCDK::CustomResourceProviderFramework::MISSING_PHYSICAL_ID"
_MOST_REASON = 3_000
Function = Callable[[dict[str, Any]], dict[str, Any] | None]
Put = Callable[[bytes], None]
"""Sends an answer to a response URL. Raises ``Unreached`` when it does not get there."""
Fault = Callable[[str], bool]
"""(name of a step) -> whether it goes wrong now: ``invocation``, ``answer``, ``answer twice``, ``request lost``,
``request twice``, ``request late``, ``request too late``."""


class Unreached(Exception):
    """An answer did not get to the response URL."""


def _no_fault(_step: str) -> bool:
    return False


@dataclass(slots=True)
class Provider:
    """The framework with the functions of one provider.

    ``interval`` and ``total`` are seconds: between two questions, and of all together. ``put`` is what an answer is
    sent with, by the request's id.
    """

    on_event: Function
    is_complete: Function
    timeline: Timeline
    interval: float = 15.0
    total: float = 3_300.0
    fault: Fault = _no_fault
    invocations: list[tuple[str, str]] = field(default_factory=list)
    """What was invoked: the function, and the type of the request."""

    def deliver(self, request: Mapping[str, Any], put: Put, tries: int = 3) -> None:
        """Hand a request to the framework's first function, which Lambda tries again after a failure."""
        event = json.loads(json.dumps(request))
        try:
            self._safely(event, put, lambda: self._begin(event, put))
        except Unreached:
            if tries > 1:
                self.timeline.after(60, lambda: self.deliver(request, put, tries - 1))

    def _begin(self, event: dict[str, Any], put: Put) -> None:
        result = self._invoke("onEvent", self.on_event, event) or {}
        previous = event.get("PhysicalResourceId")
        physical_id = result.get("PhysicalResourceId") or previous or event["RequestId"]
        if event["RequestType"] == "Delete" and physical_id != previous:
            raise RuntimeError(
                f'DELETE: cannot change the physical resource ID from "{previous}" to "{physical_id}" during deletion'
            )
        waiting = {**event, **result, "PhysicalResourceId": physical_id}
        attempts = max(1, round(self.total / self.interval))
        self.timeline.after(1, lambda: self._ask(waiting, put, attempts))

    def _ask(self, event: dict[str, Any], put: Put, attempts: int) -> None:
        """One question of the waiter."""
        unfinished = False

        def once() -> None:
            nonlocal unfinished
            result = self._invoke("isComplete", self.is_complete, event) or {}
            if not result.get("IsComplete"):
                if result.get("Data"):
                    raise RuntimeError('"Data" is not allowed if "IsComplete" is "False"')
                unfinished = True
                return
            data = {**event.get("Data", {}), **result.get("Data", {})}
            self._submit("SUCCESS", {**event, **result, "Data": data}, put)

        try:
            self._safely(event, put, once)
        except Unreached:
            unfinished = True
        if not unfinished:
            return
        if attempts > 1:
            self.timeline.after(self.interval, lambda: self._ask(event, put, attempts - 1))
            return
        try:
            self._submit("FAILED", event, put, "Operation timed out")
        except Unreached:
            return

    def _invoke(self, name: str, function: Function, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer of a function. A lost one is asked for once more, as the framework does it."""
        for is_last in (False, True):
            self.invocations.append((name, str(event["RequestType"])))
            result = function(json.loads(json.dumps(event)))
            if not self.fault("invocation"):
                return None if result is None else dict(json.loads(json.dumps(result)))
            if is_last:
                break
        raise RuntimeError("the function did not answer")

    def _safely(self, event: dict[str, Any], put: Put, block: Callable[[], None]) -> None:
        if event["RequestType"] == "Delete" and event.get("PhysicalResourceId") == CREATE_FAILED:
            self._submit("SUCCESS", event, put)
            return
        try:
            block()
        except Exception as error:  # the framework answers FAILED whatever went wrong
            failed = dict(event)
            if not failed.get("PhysicalResourceId"):
                failed["PhysicalResourceId"] = CREATE_FAILED if event["RequestType"] == "Create" else MISSING_ID
                event["PhysicalResourceId"] = failed["PhysicalResourceId"]
            self._submit("FAILED", failed, put, f"{error}\n\nLogs: /aws/lambda/local\n")

    def _submit(self, status: str, event: Mapping[str, Any], put: Put, reason: str = "") -> None:
        answer = {
            "Status": status,
            "Reason": (reason or status)[:_MOST_REASON],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "PhysicalResourceId": event.get("PhysicalResourceId") or MISSING_ID,
            "LogicalResourceId": event["LogicalResourceId"],
            **({"Data": event["Data"]} if event.get("Data") else {}),
        }
        content = json.dumps(answer).encode()
        if self.fault("answer"):
            raise Unreached
        put(content)
        if self.fault("answer twice"):
            put(content)
