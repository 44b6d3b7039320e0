"""Runs of node providers' own programs: on record, with sealed tasks, and with the states that they keep."""

from __future__ import annotations

from stockyard.operations.runs.program import RunReport, begin, end_of, is_needless, keep_lines, proven_run
from stockyard.operations.runs.states import (
    read_state,
    remove_state,
    take_lock,
    unlock,
    write_state,
)
from stockyard.operations.runs.store import StoreRuns

__all__ = [
    "RunReport",
    "StoreRuns",
    "begin",
    "end_of",
    "is_needless",
    "keep_lines",
    "proven_run",
    "read_state",
    "remove_state",
    "take_lock",
    "unlock",
    "write_state",
]
