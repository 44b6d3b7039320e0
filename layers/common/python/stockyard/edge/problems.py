"""Problem documents (RFC 9457): the only place where our errors become HTTP."""

from __future__ import annotations

from typing import Any

from stockyard.errors import (
    CallerError,
    Conflict,
    FieldProblem,
    IllegalTransition,
    Internal,
    PreconditionFailed,
    ServiceError,
    StockyardError,
    StoreUnavailable,
    UnexpectedBehavior,
    VendorError,
)

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:stockyard:problem:"


def public_error(error: Exception, *, guarded: bool = False) -> StockyardError:
    """The error a caller may see for ``error``. ``guarded``: the request carried ``If-Match``.

    What is not ours says nothing but that it happened; the request id finds it in the logs.
    """
    if isinstance(error, (CallerError, ServiceError, StoreUnavailable)):
        return error
    if isinstance(error, VendorError):
        return UnexpectedBehavior(f"A service we depend on failed ({error.error_type}). Try again later.")
    if isinstance(error, Conflict):
        text = "The resource was changed by someone else at the same time. Read it again."
        return PreconditionFailed(text) if guarded else IllegalTransition(text)
    return Internal("Something went wrong on our side. The request id finds it in the logs.")


def document(error: StockyardError, *, instance: str, request_id: str) -> dict[str, Any]:
    """``error`` as a problem document. ``instance`` is the path of the request."""
    return {
        "type": TYPE_PREFIX + error.error_type,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "instance": instance,
        "error_type": error.error_type,
        "retryable": error.retryable,
        "request_id": request_id,
        "errors": [_fault(field) for field in error.errors],
    }


def _fault(field: FieldProblem) -> dict[str, Any]:
    fault: dict[str, Any] = {"pointer": field.pointer, "detail": field.detail}
    return fault if field.index is None else {**fault, "index": field.index, "kind": field.kind, "name": field.name}


def headers(error: StockyardError) -> dict[str, str]:
    """Header fields that belong to the error: ``Retry-After``, ``WWW-Authenticate``."""
    fields: dict[str, str] = {}
    if error.retry_after is not None:
        fields["Retry-After"] = str(error.retry_after)
    elif error.status in (429, 503) or error.error_type == "RequestInProgress":
        fields["Retry-After"] = "1"
    if error.status == 401:
        fields["WWW-Authenticate"] = "Bearer"
    return fields
