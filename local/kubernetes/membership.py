"""The members of one simulated cluster's etcd: who votes, whose machine is on, and whether that is a quorum."""

from __future__ import annotations

import threading
from collections.abc import Iterable


class Unhealthy(Exception):
    """etcd takes no change of its members now; the text says why."""


class Membership:
    """Members by the names of their nodes. A member that is dead stays one until another takes it out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._voters: set[str] = set()
        self._on: set[str] = set()
        self._releases: dict[str, str] = {}

    def begin(self, name: str, release: str = "") -> None:
        """The first member, with the release of its API server. A second call does nothing."""
        with self._lock:
            self._voters.add(name)
            self._on.add(name)
            self._releases[name] = release

    def add(self, name: str, release: str = "") -> None:
        """A further member. Raises ``Unhealthy`` while a voter cannot be reached, as etcd does."""
        with self._lock:
            silent = sorted(self._voters - self._on)
            if silent:
                raise Unhealthy(f"etcd takes no member while {', '.join(silent)} cannot be reached")
            self._voters.add(name)
            self._on.add(name)
            self._releases[name] = release

    def remove(self, names: Iterable[str]) -> list[str]:
        """Take members out; those that are out of it. Raises ``Unhealthy`` without a quorum."""
        with self._lock:
            if not self._has_quorum():
                raise Unhealthy("etcd has lost its quorum")
            self._voters.difference_update(names)
            return sorted(names)

    def switch(self, name: str, *, on: bool) -> None:
        """The member's machine was switched on or off."""
        with self._lock:
            (self._on.add if on else self._on.discard)(name)

    @property
    def release(self) -> str:
        """Release that the balancer's API may answer to be: the oldest release of a member that is on; empty for none
        known."""
        with self._lock:
            releases = [self._releases[name] for name in self._voters & self._on if self._releases.get(name)]
            return min(releases, key=lambda release: [int(part) for part in release.split(".")], default="")

    @property
    def has_quorum(self) -> bool:
        """Whether the API server can answer."""
        with self._lock:
            return self._has_quorum()

    @property
    def is_dead(self) -> bool:
        """Whether no member's machine is on."""
        with self._lock:
            return not self._voters & self._on

    def _has_quorum(self) -> bool:
        return len(self._voters & self._on) >= len(self._voters) // 2 + 1
