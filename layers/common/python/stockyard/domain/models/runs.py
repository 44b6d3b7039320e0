"""Requests of the programs of runs, and what they are answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from stockyard.domain.models.base import Input, View

MOST_LINES = 500
Line = Annotated[str, StringConstraints(max_length=1_000_000)]
LockText = Annotated[str, StringConstraints(max_length=1_000)] | None
Word = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class RunBegin(Input):
    """A start of a run's program."""


class RunTask(View):
    """The task of a run."""

    model_config = ConfigDict(extra="allow", frozen=True)

    command: str
    """``apply``, ``destroy``, ``plan`` or ``validate``."""
    variables: dict[str, Any]
    """Variables of the template by name."""
    environment: dict[str, str]
    """Environment variables of OpenTofu."""
    secrets: list[str]
    """Values that the log may not show."""
    timeout_seconds: float
    """Time until the command is interrupted."""
    passphrase: str
    """Secret by which OpenTofu seals the state."""
    unsure: bool
    """Whether a run before died, so that what it made may be missing in the state."""
    keep: bool
    """Whether something was applied with success and stands: an apply that fails destroys nothing of it."""
    kubeconfig: str | None = None
    """The kubeconfig of the cluster that the template is for; absent where it gets none."""
    unlock: str | None = None
    """The id of the lock that the run before has left behind; absent for none."""
    commit: str | None = None
    """The commit of the repository to take in any case: what was applied. Absent where the task says it."""


class RunLines(Input):
    """Lines that a run printed."""

    first: Annotated[int, Field(ge=1)]
    """The number of the first of them."""
    lines: Annotated[list[Line], Field(max_length=MOST_LINES)]
    """The lines in order."""


class RunEnded(Input):
    """End of a run."""

    end: Literal["done", "failed", "interrupted", "killed"]
    """``interrupted`` at its time-out; ``killed`` when that did not end it."""
    error: Annotated[str, StringConstraints(max_length=100_000)] | None = None
    """Why it failed; null where it did not."""
    is_empty: bool = False
    """Whether nothing is left of what the state names."""
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40,64}$")] | None = None
    """The commit of the repository that the template came from; null for another source."""
    result: dict[str, Any] | None = None
    """Outputs, or what differs."""


class RunAccepted(View):
    """Answer to what was kept."""

    status: str
    """``accepted``."""


class RunHeard(RunAccepted):
    """Answer to lines, and to a program that shows that it is alive."""

    stop: bool
    """Whether the run is not needed any more, so that OpenTofu is to be interrupted."""


class SealedState(Input):
    """A state that OpenTofu has sealed."""

    model_config = ConfigDict(extra="allow", frozen=True)

    encrypted_data: str
    """The sealed state."""
    encryption_version: str
    """The version of its format."""
    meta: dict[str, Any]
    """Parameters of the key."""


class LockInfo(Input):
    """A lock of a state, as OpenTofu describes it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: Annotated[Word, Field(alias="ID")]
    """The id of the lock."""
    operation: Annotated[LockText, Field(alias="Operation")] = None
    """The command that holds it."""
    holder: Annotated[LockText, Field(alias="Who")] = None
    """The process that holds it."""
    version: Annotated[LockText, Field(alias="Version")] = None
    """The version of OpenTofu."""
    created: Annotated[LockText, Field(alias="Created")] = None
    """When it was taken."""
    info: Annotated[LockText, Field(alias="Info")] = None
    """Further words."""
    path: Annotated[LockText, Field(alias="Path")] = None
    """The path of the state; empty."""
