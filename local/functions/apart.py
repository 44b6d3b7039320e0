"""Functions that work for one tenant have processes and a core of their own: in Lambda no request shares a core with
another, here two cores are all there is. For measurements of what tenants do to each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

SHARED = ("relay", "scheduler")
"""Functions whose invocations are about several tenants at once."""
CORE = "STOCKYARD_LOCAL_CORE"
"""The variable that tells a process which core it may have."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Cores of invocations: with one of the ``marks`` in its event on the ``core``, all else on the ``other`` one."""

    signs: tuple[bytes, ...]
    core: int
    other: int

    @classmethod
    def of(cls, names: Sequence[str]) -> Apart | None:
        """Set events with these names, such as tenants, apart on the first of this process's cores; None for no name.
        ``ValueError`` where there is one core only."""
        if not names:
            return None
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) == 1:
            raise ValueError("to set somebody apart needs two cores")
        return cls(tuple(name.encode() for name in names), cores[0], cores[-1])

    def core_of(self, function: str, payload: bytes) -> int:
        """The core for one invocation."""
        is_apart = not function.endswith(SHARED) and any(sign in payload for sign in self.signs)
        return self.core if is_apart else self.other


def stay_on_core() -> None:
    """Keep this process to the core named in its environment, if there is one."""
    core = os.environ.get(CORE)
    if core:
        os.sched_setaffinity(0, {int(core)})
