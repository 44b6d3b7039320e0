"""Answers of the API. Fields that this release does not know are kept and shown, so a newer API does no harm."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

HOURS_A_MONTH = 730
"""What a price by the month is reckoned with."""


class Model(BaseModel):
    """Base of all: frozen, lenient about unknown fields, exact in what it gives back."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), defer_build=True)

    def document(self) -> dict[str, Any]:
        """The record as the API sent it."""
        return self.model_dump(mode="json", exclude_unset=True)


class Resource(Model):
    """A record with a version. ``etag`` is what ``If-Match`` needs."""

    version: int = 1
    _etag: str | None = PrivateAttr(default=None)
    _location: str | None = PrivateAttr(default=None)

    @property
    def started_operation(self) -> str | None:
        """The id of the operation that the answer with this record pointed to; None where it began none."""
        front, _, identifier = (self._location or "").rpartition("/")
        return identifier if front.endswith("/operations") else None

    @property
    def etag(self) -> str:
        """The ``ETag`` the API sent with this record, else the quoted version."""
        return self._etag or f'"{self.version}"'

    def with_etag(self, etag: str | None) -> Self:
        """Remember the header that the record came with, and return the record."""
        self._etag = etag
        return self

    def with_location(self, location: str | None) -> Self:
        """Remember the location that the answer named, and return the record."""
        self._location = location
        return self


class Condition(Model):
    """One observed aspect; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class CloudAccount(Resource):
    """Credentials of one cloud, without any secret."""

    id: int
    provider: str
    name: str = ""
    description: str = ""
    verification: str | None = None
    verification_message: str | None = None
    secrets: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    created_at: str | None = None
    updated_at: str | None = None


class Cluster(Resource):
    """One Kubernetes cluster. ``status`` is preparing, ready, failed or deleting."""

    id: str
    name: str
    description: str = ""
    cluster_type: str = "k8s"
    provider: str = ""
    cloud_account_id: int | None = None
    client_id: str = ""
    status: str
    phase: str | None = None
    conditions: tuple[Condition, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)
    limits: dict[str, str] = Field(default_factory=dict)
    """What the cluster may have with its nodes: ``usd_month``, what a month may cost."""
    created_at: str | None = None
    updated_at: str | None = None
    operation_id: str | None = None
    queue: tuple[str, ...] = ()
    """Operations that begin one after the other when that one has ended."""
    warnings: tuple[dict[str, Any], ...] = ()
    """What to mind of a creation or a change; only in the answer to that."""
    price: Price | None = None
    """What it costs as its plan has it; only in the answer to its creation."""


class Phase(Model):
    """Progress of one phase; ``state`` is pending, running, succeeded, failed or skipped."""

    name: str
    state: str
    started_at: str | None = None
    ended_at: str | None = None
    attempt: int = 0
    message: str | None = None


class OperationError(Model):
    """Reason why an operation failed: phase, cause in words (``cause_type`` by name, when there is one), what can be
    done."""

    error_type: str
    cause_type: str = ""
    phase: str | None = None
    cause: str = ""
    hint: str | None = None
    console: str = ""
    """What the console of the machine showed last that did not come up."""


class OperationFailure(Model):
    """End of an earlier attempt of an operation, which stays when a resume has succeeded."""

    attempt: int
    failed_at: str | None = None
    phase: str = ""
    error_type: str = ""
    cause: str = ""
    hint: str = ""
    cause_type: str = ""


class Run(Model):
    """A program's work for an operation; ``error`` says why it failed, ``ended_at`` is None while it runs."""

    name: str
    attempt: int = 1
    phase: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    error: str | None = None


class LogLine(Model):
    """One line that a run has printed; ``number`` counts from 1 within the run."""

    run: str
    attempt: int = 1
    number: int = 0
    time: str = ""
    text: str = ""


class Operation(Resource):
    """One long-running change; ``progress`` is 0 to 100."""

    id: str
    kind: str
    subject: str
    subject_name: str = ""
    """What the subject is called, even when it is gone; empty where it has no name."""
    status: str
    phases: tuple[Phase, ...] = ()
    runs: tuple[Run, ...] = ()
    """Programs that have worked for it; :meth:`Operations.log` has what they printed."""
    changes: tuple[dict[str, Any], ...] = ()
    """Of a change of a ready cluster: ``pointer``, ``before`` and ``after``."""
    error: OperationError | None = None
    failures: tuple[OperationFailure, ...] = ()
    """How its earlier attempts ended, the oldest first."""
    progress: int = 0
    created_at: str | None = None
    updated_at: str | None = None

    @property
    def done(self) -> bool:
        """Whether nothing more will happen without a person."""
        return self.status in {"succeeded", "failed", "cancelled", "reverted"}


class Event(Model):
    """Event of a resource; ``sequence`` rises per subject."""

    id: str
    subject: str
    name: str | None = None
    """The name of a node claim that it happened to; None for other subjects."""
    sequence: int = 0
    time: str | None = None
    actor: str | None = None
    reason: str = ""
    message: str = ""


class Price(Model):
    """Money; ``hour`` and ``month`` are totals in ``currency``, ``items`` say what they are made of; ``complete``
    is false when a line has no known price: then there are no totals, and ``known_hour`` and ``known_month`` say what
    is known of them."""

    currency: str = "USD"
    hour: float | None = 0.0
    month: float | None = 0.0
    complete: bool = True
    known_hour: float = 0.0
    known_month: float = 0.0
    items: tuple[dict[str, Any], ...] = ()


class Plan(Model):
    """Effects that a change would have; nothing is written."""

    creates: tuple[Any, ...] = ()
    changes: tuple[Any, ...] = ()
    deletes: tuple[Any, ...] = ()
    price: Price | None = None
    price_before: Price | None = None
    """What is paid now, where a change has a price."""
    steps: tuple[str, ...] = ()
    """What a change of a ready cluster does, in order."""
    rejected: tuple[Any, ...] = ()
    warnings: tuple[Any, ...] = ()
    unnamed: tuple[dict[str, Any], ...] = ()
    """Of manifests of a set: what it has applied before and no document names."""
    run: dict[str, Any] | None = None
    """The run of a template that would make a claim's node, where that was asked for: ``template``, ``variables``."""
