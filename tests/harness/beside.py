"""Parts of a story that need nothing of each other, told at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def side_by_side(*parts: Callable[[], Any]) -> list[Any]:
    """Return what the parts return, each run in its own thread. After all have ended it raises what went wrong."""
    with ThreadPoolExecutor(len(parts)) as pool:
        futures = [pool.submit(part) for part in parts]
    faults = [fault for future in futures if (fault := future.exception()) is not None]
    if faults:
        raise BaseExceptionGroup(f"{len(faults)} of {len(parts)} parts", faults)
    return [future.result() for future in futures]
