"""The invocation of a function, independent of how the function runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Invocation:
    """The answer of a function. ``error`` is None, ``Handled`` or ``Unhandled`` as Lambda reports it."""

    payload: bytes
    error: str | None = None

    def value(self) -> Any:
        """The payload as JSON."""
        return json.loads(self.payload or b"null")


class Invoker(Protocol):
    """Runs functions by name and waits for their answers."""

    def invoke(self, function: str, payload: bytes) -> Invocation:
        """Run ``function`` on a JSON payload. Raises ``KeyError`` when there is none of that name."""
        ...


def failure(error_type: str, message: str, *, unhandled: bool = True) -> Invocation:
    """The answer of a function that raised an error or, when ``unhandled``, died."""
    body = {"errorType": error_type, "errorMessage": message}
    return Invocation(json.dumps(body).encode(), "Unhandled" if unhandled else "Handled")


def function_name(name_or_arn: str) -> str:
    """The name in a function's ARN (a version or alias is dropped), or the name itself."""
    parts = name_or_arn.split(":")
    return parts[6] if len(parts) >= 7 else parts[-1]
