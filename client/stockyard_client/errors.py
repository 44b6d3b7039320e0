"""Errors that the SDK raises.

::

    StockyardClientError
    ├── ApiError            the API answered with a problem document (or the gateway with its own text)
    ├── ConnectionFailed    no answer: the name, the connection, the time limit of one call
    ├── LoginFailed         nobody is logged in, and the issuer lets nobody in
    ├── UnexpectedAnswer    an answer that is not what the API documents
    ├── OperationFailed     a waited-for operation ended in ``failed``
    ├── WaitTimedOut        the operation still runs after the given time
    └── PoolsNotReady       pools still lack nodes after the given time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stockyard_client.models import Operation


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One fault of the input; ``pointer`` is a JSON pointer into the request's body."""

    pointer: str
    detail: str


class StockyardClientError(Exception):
    """Root of the tree."""


class ApiError(StockyardClientError):
    """A refusal. ``error_type`` is stable and may be switched on; ``retry_after`` is in seconds."""

    def __init__(
        self,
        status: int,
        error_type: str,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        request_id: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {error_type}: {detail}")
        self.status = status
        self.error_type = error_type
        self.detail = detail
        self.errors = tuple(errors)
        self.request_id = request_id
        self.retryable = retryable
        self.retry_after = retry_after

    @property
    def passes(self) -> bool:
        """Whether it may be another answer later: it says so itself, or is a fault of the API's."""
        return self.retryable or self.status >= 500


class ConnectionFailed(StockyardClientError):
    """The API did not answer. ``unreached``: nothing was sent, because nobody listens there; otherwise whether the
    request arrived is unknown. ``final``: another attempt is of no use, because there is no such host."""

    def __init__(self, text: str, *, unreached: bool = False, final: bool = False) -> None:
        super().__init__(text)
        self.unreached = unreached
        self.final = final


class LoginFailed(StockyardClientError):
    """The issuer refused, the code expired, the kept session cannot be refreshed, or the token can be none."""


class UnexpectedAnswer(StockyardClientError):
    """The answer has not the documented form: most often the URL is not that of a Stockyard API."""


class OperationFailed(StockyardClientError):
    """``operation`` ended in ``failed``, ``cancelled`` or ``reverted``; its ``error`` has phase, cause and hint."""

    def __init__(self, operation: Operation) -> None:
        error = operation.error
        verb = "failed" if operation.status == "failed" else f"was {operation.status}"
        super().__init__(error.cause if error else f"operation {operation.id} {verb}")
        self.operation = operation


class WaitTimedOut(StockyardClientError):
    """``operation``, as last seen, has not ended after ``seconds``. It goes on by itself."""

    def __init__(self, operation: Operation, seconds: float) -> None:
        super().__init__(f"operation {operation.id} is still {operation.status} after {seconds:g} s")
        self.operation = operation
        self.seconds = seconds


class PoolsNotReady(StockyardClientError):
    """Nodes that were waited for are not there, or not gone, after ``seconds``. The work on them goes on by itself."""

    def __init__(self, name: str, state: str, seconds: float) -> None:
        super().__init__(f"{name} after {seconds:g} s: {state}")
        self.seconds = seconds
