"""Errors of the handler. Their text becomes the reason that CloudFormation shows."""

from __future__ import annotations


class StackResourceError(Exception):
    """Ends a request: the stack fails with this text."""


class Refused(StackResourceError):
    """The API refuses a request for good. ``status`` is that of its answer, ``error_type`` its word for the error."""

    def __init__(self, text: str, status: int, error_type: str) -> None:
        super().__init__(text)
        self.status = status
        self.error_type = error_type


class Busy(StackResourceError):
    """A request may be granted later: the API is busy, is not reached, or the record has changed meanwhile."""


class Superseded(StackResourceError):
    """CloudFormation has gone on without the answer to this request, so nothing more may be done for it."""
