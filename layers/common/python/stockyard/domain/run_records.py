"""The records of runs: a node provider's own programs that work for a claim or an environment, and their states."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

RunStatus = Literal["created", "started", "begun", "ended"]
RunEnd = Literal["done", "failed", "interrupted", "killed", "lost"]
"""``interrupted`` at its time-out; ``killed`` ten minutes later, when that did not end it; ``lost`` when its machine
ended and the program had told nothing."""
DIED: frozenset[str] = frozenset({"killed", "lost"})
"""Ends after which nobody knows whether the state has everything that was made."""


@dataclass(frozen=True, slots=True)
class RunAccount:
    """Cloud account in which a run is carried out: its tenant, its number there, and the region."""

    tenant: str
    number: str
    region: str


@dataclass(frozen=True, slots=True)
class ProviderRun(VersionedRecord):
    """One run of a provider's program. ``id`` is derived from its state and its number there.

    ``created``: on record; ``started``: a machine has taken it; ``begun``: its program has fetched the task, which is
    given out once; ``ended``: its token is of no use any more.
    """

    subject: str
    """Id of the claim or the environment that it works for."""
    workspace: str
    """State that it works on."""
    operation_id: str
    attempt: int
    name: str
    number: int
    """Counts the runs on the state."""
    command: str
    makes: bool
    """Whether it may make or remove something."""
    phase: str
    created_at: str
    retries: int = 0
    """Number of runs of the same work right before it that were lost."""
    status: RunStatus = "created"
    vendor_id: str | None = None
    begun_at: str | None = None
    ended_at: str | None = None
    end: RunEnd | None = None
    error: str | None = None
    """Why it failed, in a sentence; None where it did not, or runs."""
    has_result: bool = False
    commit: str | None = None
    """The commit of a repository that it had its template from; None for another source, or while it is not known."""
    fingerprint: str | None = None
    """Fingerprint of what it was made from, as its provider's source makes it; None for none."""
    account: RunAccount | None = None
    """Account in which it is carried out; None for a run of an earlier release."""


@dataclass(frozen=True, slots=True)
class StateLock:
    """Lock of a state: its id as the program made it, and the run that holds it."""

    id: str
    run: str
    info: dict[str, Any] = field(default_factory=dict)
    """What the program says of itself to others who wait for it."""


@dataclass(frozen=True, slots=True)
class RunState(VersionedRecord):
    """State that runs keep of what they have made. ``id`` is its subject's id, a slash, and its name."""

    created_at: str
    run: str | None = None
    """The last run that was created on it."""
    runs: int = 0
    """Number of runs so far."""
    kept_by: str | None = None
    """The run that has written it last, whose object it is; None while nothing was kept."""
    lock: StateLock | None = None
    applied_by: str | None = None
    """The last run that was to make something: its task is kept beside the state, so that what it made is removed by
    the same."""
    commit: str | None = None
    """The commit of a repository that was applied last; None for another source. What was made is removed by the
    template of that commit."""
    is_applied: bool = False
    """Whether an apply has succeeded, and what it made was not destroyed since: one that fails later destroys
    nothing."""
    is_touched: bool = False
    """Whether a run has begun that may have made something."""
    account: RunAccount | None = None
    """Account of the last run that was to make something. What it made is removed there, whatever the provider's
    document says by then; None for a run of an earlier release."""
    is_unsure: bool = False
    """Whether such a run died, so that what it made may be missing here: the next run applies again before anything
    else."""
