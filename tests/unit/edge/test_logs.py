"""The keys of a function's log: Lambda's context and what the event names, and nothing of the event before."""

from __future__ import annotations

import io
import itertools
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from stockyard.edge.logs import logged
from tests.harness.worlds.inprocess import Context

_NUMBERS = itertools.count()
PHASE = {
    "tenant": "acme",
    "cluster_id": "clu_1",
    "operation_id": "op_1",
    "attempt": 2,
    "phase": "network",
    "action": "run",
    "task_token": "secret",
}


def lines_of(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Lines that one process logs when it serves these events one after the other."""
    stream = io.StringIO()
    logger = Logger(service=f"logs-{next(_NUMBERS)}", stream=stream)

    @logged(logger)
    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        logger.info("served")
        return {}

    for number, event in enumerate(events):
        handler(event, Context("function", f"invocation-{number}"))
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_phase_is_logged_with_its_operation_and_attempt() -> None:
    (line,) = lines_of(PHASE)
    assert {name: line.get(name) for name in PHASE} == {**PHASE, "task_token": None}
    assert line["function_request_id"] == "invocation-0"
    assert isinstance(line["cold_start"], bool)


@pytest.mark.parametrize("event", [{"requestContext": {"requestId": "r-1"}}, {"id": "r-1", "detail": {}}])
def test_a_request_is_logged_with_its_id(event: dict[str, Any]) -> None:
    (line,) = lines_of(event)
    assert line["request_id"] == "r-1"


def test_the_keys_of_one_event_are_not_in_the_lines_of_the_next() -> None:
    _, second, third = lines_of(PHASE, {"id": "r-1"}, {"requestContext": {}})
    assert not set(PHASE) & set(second)
    assert not {"request_id", *PHASE} & set(third)
    assert (second["function_request_id"], second["cold_start"]) == ("invocation-1", False)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in Path("functions").glob("*/handler.py")))
def test_every_function_logs_with_these_keys(name: str) -> None:
    handler = import_module(f"functions.{name}.handler").lambda_handler
    assert handler.__wrapped__.__qualname__ == "logged.<locals>.decorate.<locals>.with_keys"
