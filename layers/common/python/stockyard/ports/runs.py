"""Ports to runs: a node provider's own programs that work for a claim or an environment, outside of Stockyard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from stockyard.domain.records import CloudAccount
from stockyard.domain.run_records import ProviderRun, RunAccount, RunState
from stockyard.domain.values.frozen import dataclass

RunnerPhase = Literal["queued", "running", "ended"]


@dataclass(frozen=True, slots=True)
class RunnerAccount:
    """Account of the tenant's where programs run, and a region of it."""

    tenant: str
    account: CloudAccount
    region: str
    session: str
    """Session name for assumed roles: the operation's id."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """Start of one run. ``program`` is a zip application that needs Python's standard library alone."""

    id: str
    program: bytes = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    """Environment variables of the program. One of them is the run's token."""
    secret_variables: Mapping[str, str]
    """Further variables, by name, whose values are secrets in the account's own store: the name of each secret there,
    and after a colon that of a field, where it has fields. The machine reads them; nothing of ours ever does."""
    limit_seconds: int
    """When the machine ends whatever still runs; the program ends itself before."""


@dataclass(frozen=True, slots=True)
class RunnerState:
    """State of a run as its machine has it. ``reason`` says why it ended, where the machine knows that."""

    phase: RunnerPhase
    reason: str | None = None


class Runner(Protocol):
    """Machines that carry out programs. What a program does, prints and how it ends it tells the API by itself.

    Raises ``VendorError`` leaves; ``PermissionDenied`` where the account lacks what runs need.
    """

    usd_a_minute: float
    """Price of a minute of a machine, each begun one counted."""

    def start(self, target: RunnerAccount, start: RunStart) -> str:
        """Start the run; the machine's own id of it. An answer may be lost and the run be started twice: then the
        program finds that it has begun already, and ends."""
        ...

    def state(self, target: RunnerAccount, vendor_id: str) -> RunnerState:
        """State of the run. One that is not known any more has ended."""
        ...

    def log(self, target: RunnerAccount, vendor_id: str) -> Sequence[str]:
        """Last lines of what the machine itself printed, for a run whose program told nothing; none where there are
        none. They may hold what the program printed."""
        ...

    def stop(self, target: RunnerAccount, vendor_id: str) -> None:
        """End the run at once. One that has ended, or is not known, is no error."""
        ...


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to begin: its subject, its name among the runs of the operation, and the state that it works on.

    ``subject`` is the id of a claim or of an environment. ``makes``: it may make or remove something. ``task`` is what
    the program is to do; None: what the last run did that was to make something, with another ``command``. It may hold
    secrets, so it is sealed, and the program alone is given it.
    """

    subject: str
    operation_id: str
    attempt: int
    name: str
    phase: str
    command: str
    workspace: str
    makes: bool
    task: Mapping[str, Any] | None = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that no log may show."""
    fingerprint: str | None = None
    """Fingerprint of what it is made from, which its record keeps."""
    account: RunAccount | None = None
    """Account in which it is to be carried out, which its record keeps."""


class Runs(Protocol):
    """Runs of a tenant on record, with their sealed tasks and the states that they keep.

    A state has one run at a time: the next is created when the one before has ended.
    """

    def state(self, workspace: str) -> RunState | None:
        """The state; None when no run was ever created on it, or it is forgotten."""
        ...

    def current(self, workspace: str) -> ProviderRun | None:
        """The last run that was created on the state; None for none."""
        ...

    def create(self, new: NewRun) -> ProviderRun:
        """Put a run on record, with its task sealed. The current one of the state while that has not ended.

        ``Fenced`` when the claim is no longer the operation's attempt's.
        """
        ...

    def started(self, run: ProviderRun, vendor_id: str) -> ProviderRun:
        """Record that a machine has taken the run."""
        ...

    def lost(self, run: ProviderRun, reason: str) -> ProviderRun:
        """Record that the run ended without saying how. Where it said so meanwhile, that counts. One that had not
        begun never does."""
        ...

    def result(self, run: ProviderRun) -> Mapping[str, Any]:
        """Outputs or differences that a run has told at its end. Empty where it told nothing, or is over long ago."""
        ...

    def applied(self, workspace: str) -> Mapping[str, Any] | None:
        """Task of the last run that was to make something, which may hold secrets; None for none."""
        ...

    def url(self, run: ProviderRun) -> str:
        """Address of the run at the API."""
        ...

    def token(self, run: ProviderRun) -> str:
        """Secret by which the program of the run proves which one it is; of no use once the run has ended."""
        ...

    def forget(self, workspace: str) -> None:
        """Remove a state whose things are gone."""
        ...
