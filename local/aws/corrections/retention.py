"""Removal of what AWS forgets and moto keeps: read stream records, ended executions, and what a dashboard shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.common_models import BaseModel
from moto.stepfunctions.parser.backend.execution import ExecutionStatus
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.parser.utils import TMP_THREADS

EXECUTIONS = 50
"""Ended executions of a workflow that are kept; AWS keeps them for 90 days."""
RECORDS = 2000
"""Stream records that stay behind the slowest reader; AWS keeps them for a day."""
FIRST_RECORD = 1100000000017454423009
"""moto's number of a stream's first record."""


@contextmanager
def untracked_models() -> Iterator[None]:
    """moto keeps a reference to every object that it ever made, for its dashboard; here none is shown."""
    with patch.object(BaseModel, "__new__", lambda cls, *_args, **_options: object.__new__(cls)):
        yield


@contextmanager
def untracked_threads() -> Iterator[None]:
    """moto keeps every thread that ever ran a state of a workflow, some fifteen for a claim, and never looks at one."""
    start = StepFunctionsParserBackend.start_execution

    def start_execution(*args: Any, **options: Any) -> Any:
        TMP_THREADS.clear()
        return start(*args, **options)

    with patch.object(StepFunctionsParserBackend, "start_execution", start_execution):
        yield


@contextmanager
def forgotten_executions() -> Iterator[None]:
    """Ended executions of a workflow go when there are many later ones."""
    start = _forgetting(StepFunctionsParserBackend.start_execution)
    with patch.object(StepFunctionsParserBackend, "start_execution", start):
        yield


def trimmed(shard: Any, read: int) -> None:
    """Drop a stream's records that all readers have read; ``read`` is the position of the slowest."""
    surplus = read - first_position(shard) - RECORDS
    if surplus > RECORDS // 4:
        del shard.items[:surplus]
        shard.starting_sequence_number += surplus  # moto counts the numbers of later records from it


def first_position(shard: Any) -> int:
    """The position of the first record that is still there."""
    return int(shard.starting_sequence_number) - FIRST_RECORD


def _forgetting(original: Callable[..., Any]) -> Callable[..., Any]:
    def start_execution(backend: Any, *args: Any, **options: Any) -> Any:
        started = original(backend, *args, **options)
        for machine in backend.state_machines:
            if len(machine.executions) > 2 * EXECUTIONS:
                finished_executions = [
                    each for each in machine.executions if each.exec_status != ExecutionStatus.RUNNING
                ]
                surplus_ids = {id(each) for each in finished_executions[:-EXECUTIONS]}
                machine.executions[:] = [each for each in machine.executions if id(each) not in surplus_ids]
        return started

    return start_execution
