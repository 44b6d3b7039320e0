"""Every error the product raises, as one tree: each class says its HTTP status and what it means by its title.

``CallerError``: the caller can do something about it (translated to HTTP by the edge). ``ServiceError``: something
behind us failed. ``VendorError``: what a cloud or service answered, translated once, in the provider or adapter.
``StoreError``: the table refused or failed. Three more are shown on operations.

Class names are API: workflow documents name the retryable ones in ``Retry.ErrorEquals`` and callers see
``error_type``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One fault of the input. ``pointer`` is a JSON pointer (RFC 6901) into the body, or the name of a query parameter.

    Where the body is several documents, ``index`` is the number of the one that is meant, from 0, and ``kind`` and
    ``name`` are its own, empty where it has none.
    """

    pointer: str
    detail: str
    index: int | None = None
    kind: str = ""
    name: str = ""


class StockyardError(Exception):
    """Root of the tree. ``detail`` is for people and never carries a secret."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Error"
    retryable: ClassVar[bool] = False
    phase: str | None = None
    """The phase that raised it, where one call goes through several; else None."""

    def __init__(
        self, detail: str = "", *, errors: Sequence[FieldProblem] = (), retry_after: int | None = None
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = tuple(errors)
        self.retry_after = retry_after

    @property
    def error_type(self) -> str:
        """The stable name callers may switch on."""
        return type(self).__name__


class CallerError(StockyardError):
    """The caller can do something about it."""


class MalformedBody(CallerError):
    status, title = 400, "The body cannot be read"


class Unauthorized(CallerError):
    status, title = 401, "A valid token is needed"


class Forbidden(CallerError):
    status, title = 403, "Not allowed"


class QuotaExceeded(Forbidden):
    """Names the quota and its limit."""

    status, title = 403, "A quota is used up"


class BudgetReached(QuotaExceeded):
    """Names the budget of a month and its figures."""

    title = "The budget of the month is reached"


class NotFound(CallerError):
    status, title = 404, "Not found"


class MethodNotAllowed(CallerError):
    status, title = 405, "Method not allowed"


class ClusterNameInUse(CallerError):
    status, title = 409, "The cluster name is in use"


class RequestInProgress(CallerError):
    status, title, retryable = 409, "The first request with this key still runs", True


class IllegalTransition(CallerError):
    status, title = 409, "Not possible in this state"


class InUse(CallerError):
    """Names the users."""

    status, title = 409, "Still in use"


class PreconditionFailed(CallerError):
    status, title = 412, "The resource has changed"


class BodyTooLarge(CallerError):
    status, title = 413, "The body is too large"


class UnsupportedMediaType(CallerError):
    status, title = 415, "The body must be application/json"


class InvalidInput(CallerError):
    """``errors`` has a JSON pointer per field."""

    status, title = 422, "The input is not valid"

    @classmethod
    def at(cls, pointer: str, detail: str) -> InvalidInput:
        """The error of one fault in one place."""
        return cls(detail, errors=[FieldProblem(pointer, detail)])

    @classmethod
    def of_parameter(cls, name: str, detail: str) -> InvalidInput:
        """The error of a query parameter, whose place is named like that of a field."""
        return cls(f"{name} {detail}", errors=[FieldProblem(f"/{name}", detail)])

    @classmethod
    def of(cls, problems: Sequence[FieldProblem]) -> InvalidInput:
        """The error of these faults; its text is the fault with its place, or says how many there are."""
        if len(problems) == 1:
            return cls(f"{problems[0].pointer or 'the body'}: {problems[0].detail}", errors=problems)
        return cls(f"{len(problems)} fields are not valid.", errors=problems)


class IdempotencyConflict(CallerError):
    status, title = 422, "The Idempotency-Key was used with another body"


class PreconditionRequired(CallerError):
    status, title = 428, "If-Match is needed"


class Throttled(CallerError):
    status, title, retryable = 429, "Too many requests", True


class ServiceError(StockyardError):
    """Something behind us failed."""


class Internal(ServiceError):
    status, title = 500, "Internal error"


class UnexpectedBehavior(ServiceError):
    status, title, retryable = 502, "A service we depend on failed", True


class ClusterCouldNotBeDeployed(StockyardError):
    """A background phase failed for good."""

    title = "The cluster could not be deployed"


class ClusterCouldNotBeRetagged(StockyardError):
    """Resources of a ready cluster in the cloud could not be given its tags."""

    title = "The cluster's resources could not be tagged"


class ClusterCouldNotBeChanged(StockyardError):
    """Resources of a ready cluster could not be brought to its changed settings."""

    title = "The cluster could not be changed"


class ClusterCouldNotBeUpgraded(StockyardError):
    """A ready cluster could not be brought to the next minor of Kubernetes."""

    title = "The cluster could not be upgraded"


class NodeCouldNotBeProvisioned(StockyardError):
    """A phase of making a claim's node failed for good."""

    title = "The node could not be provisioned"


class VendorError(StockyardError):
    """Failure that a cloud or a service answered. ``code`` is the vendor's own code, ``hint`` what a person can do."""

    title = "A cloud call failed"

    def __init__(self, detail: str = "", *, code: str = "", hint: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.hint = hint


class VendorThrottled(VendorError):
    retryable = True


class VendorUnavailable(VendorError):
    """5xx, or the connection was lost."""

    retryable = True


class VendorTimeout(VendorError):
    """No answer in time: it may have happened."""

    retryable = True


class NotYetVisible(VendorError):
    """Made, but the cloud does not show it yet."""

    retryable = True


class VendorConflict(VendorError):
    """Busy with another change, or a dependency is still there."""

    retryable = True


class InsufficientCapacity(VendorError):
    """``refused``: type, capacity type and zone (``*``: all) of what could not be had, by the vendor's own names.
    ``own``: those of them that only this account was refused, because a quota is used up or a subnet is full. Others
    may have them."""

    retryable = True

    def __init__(
        self,
        detail: str = "",
        *,
        code: str = "",
        hint: str = "",
        refused: Sequence[tuple[str, str, str]] = (),
        own: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        super().__init__(detail, code=code, hint=hint)
        self.refused = tuple(refused)
        self.own = tuple(own)


class CapacityAwaited(InsufficientCapacity):
    """Room that was bought cannot be used now. ``reason`` names why, and the claim is looked at again at ``again_at``
    (RFC 3339), not before."""

    retryable = False

    def __init__(self, detail: str = "", *, reason: str, again_at: str, code: str = "") -> None:
        super().__init__(detail, code=code)
        self.reason = reason
        self.again_at = again_at


class VendorQuotaExceeded(VendorError):
    pass


class PermissionDenied(VendorError):
    pass


class CredentialsRevoked(VendorError):
    """The tenant's role cannot be assumed."""


class VendorNotFound(VendorError):
    pass


class VendorRefused(VendorError):
    """Any other permanent refusal."""


class RunFailed(VendorRefused):
    """A provider's own program failed."""


class RunInterrupted(RunFailed):
    """Such a program was interrupted at its time-out."""


class RunKilled(RunFailed):
    """Such a program was killed, since it did not end when it was interrupted."""


class RunLost(RunFailed):
    """Such a program ended without telling how."""


class StoreError(StockyardError):
    """The table refused or failed."""


class Conflict(StoreError):
    """A condition of a write did not hold. ``index`` is the position of the write in the transaction."""

    status, title = 409, "The record has changed"

    def __init__(self, detail: str = "", *, index: int | None = None) -> None:
        super().__init__(detail)
        self.index = index


class Fenced(Conflict):
    """The writer is stale: its operation is no longer the current one."""

    title = "A newer operation owns the record"


class StoreUnavailable(StoreError):
    status, title, retryable = 503, "The table did not answer", True


def rather_retryable(failure: Exception | None, other: Exception) -> Exception:
    """The one of two failures that is raised for both: the first, or the other where only that is worth a retry."""
    if failure is None or getattr(other, "retryable", False) > getattr(failure, "retryable", False):
        return other
    return failure
