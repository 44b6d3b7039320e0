"""One check of every operation: the test goes on after a fault, and names every operation that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def check_each(operations: Iterable[Any], check: Callable[[Any], object]) -> None:
    """Call ``check`` for each operation. ``AssertionError`` with a line for each that fails, or where there is none."""
    faults, count = [], 0
    for count, operation in enumerate(operations, 1):  # noqa: B007 (the last is the number of all)
        try:
            check(operation)
        except AssertionError as fault:
            faults.append(f"{operation}: {fault}")
    assert count, "there is no operation to check"
    assert not faults, f"{len(faults)} of {count} operations:\n" + "\n".join(faults)
