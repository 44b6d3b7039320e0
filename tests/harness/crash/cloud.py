"""Cloud as the crash world needs it: an account, a cluster to create there, what stands there, and stories."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from stockyard.domain.records import CloudAccount, Cluster
from tests.harness.crash.faults import Call, Tap
from tests.harness.worlds.memory import FixedClock


@dataclass(frozen=True, slots=True)
class Story:
    """A life with troubles of its own, so that the compensating states of the workflows are reached too.

    ``refused``: calls that are refused until a person repairs the cause. ``own_points``: points at which it does what
    no earlier story does there. ``changes``: merge patches that the ready cluster is changed by, one after the
    other. ``keeps_failed``: a machine that did not come up is kept, until somebody resumes or,
    with ``is_swept``, until its time is over.
    """

    refused: tuple[Call, ...] = ()
    own_points: tuple[str, ...] = ()
    keeps_failed: bool = False
    is_swept: bool = False
    changes: tuple[Mapping[str, Any], ...] = ()


class CrashCloud(Protocol):
    """One account of one cloud, which every life finds empty."""

    rows: str
    """The rows of ``lifecycle.phases`` for clusters in this cloud; empty for those of every driver."""
    body: Mapping[str, Any]
    """The request that creates the cluster."""
    stories: Mapping[str, Story]
    chance: random.Random
    """What the cloud's own randomness is drawn from."""

    def installed(self, tap: Tap, clock: FixedClock) -> AbstractContextManager[None]:
        """The product calls this cloud through the tap. Entered once, before the first life."""
        ...

    def begin(self, story: str) -> AbstractContextManager[None]:
        """Forget everything that was made, and be as the story wants it. Left before the next life."""
        ...

    def account(self, moment: str) -> CloudAccount:
        """The record of the verified account."""
        ...

    def secrets(self) -> Mapping[str, str]:
        """The secrets of the account, by their whole names."""
        ...

    def repair(self) -> None:
        """A person has ended the story's own trouble."""
        ...

    def things(self) -> set[tuple[str, str]]:
        """(kind, id) of all that lives in the account."""
        ...

    def differences(self, cluster: Cluster) -> list[str]:
        """Differences between the account and the cluster's record, after a change."""
        ...

    def alive(self, machine_id: str) -> bool:
        """Whether the machine runs."""
        ...

    def machine_token(self, machine_id: str) -> str | None:
        """Proof of the machine: the token of its user data. None for one that signs."""
        ...
