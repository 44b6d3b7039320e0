"""Answers of the simulated Cudo that are errors, as the vendor writes them (AIP-193)."""

from __future__ import annotations

from typing import Any


class Failure(Exception):
    """An answer of the vendor that is an error."""

    def __init__(self, status: int, name: str, message: str, details: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"code": status, "status": name, "message": message, "details": details or []}


def scarce(message: str) -> Failure:
    """A data center has no room for what was asked."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "MACHINE_TYPE_UNAVAILABLE"}
    return Failure(400, "FAILED_PRECONDITION", message, [info])
