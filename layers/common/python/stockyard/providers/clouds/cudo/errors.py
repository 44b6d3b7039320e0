"""Cudo's errors (AIP-193) as the product's own. Nothing of a request, and no key, is ever part of an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.errors import (
    CredentialsRevoked,
    InsufficientCapacity,
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorNotFound,
    VendorQuotaExceeded,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)

_LONGEST = 300
"""Letters of Cudo's own text that are kept."""
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""What a status of HTTP stands for where the body does not say it: the published schema has no ``status``."""
_GRPC = {
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    16: "UNAUTHENTICATED",
}
"""What a ``code`` below 100 stands for: that of gRPC."""
_LEAVES: Mapping[str, type[VendorError]] = {
    "UNAUTHENTICATED": CredentialsRevoked,
    "PERMISSION_DENIED": PermissionDenied,
    "NOT_FOUND": VendorNotFound,
    "ALREADY_EXISTS": VendorConflict,
    "ABORTED": VendorConflict,
    "FAILED_PRECONDITION": VendorConflict,
    "RESOURCE_EXHAUSTED": VendorThrottled,
    "DEADLINE_EXCEEDED": VendorTimeout,
    "UNAVAILABLE": VendorUnavailable,
    "INTERNAL": VendorUnavailable,
    "CANCELLED": VendorUnavailable,
    "UNKNOWN": VendorUnavailable,
}
_CAPACITY = re.compile(r"(UNAVAILABLE|INSUFFICIENT|CAPACITY|NO_HOST|OUT_OF_STOCK)", re.ASCII)
"""Reasons of ``ErrorInfo`` that say that a data center has no room."""
_SECONDS = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)s", re.ASCII)


def translated(status: int, body: bytes) -> VendorError:
    """The error that an answer stands for, with Cudo's status as its code."""
    document = _document(body)
    name = _name(status, document)
    details = list(_details(document))
    reasons = [str(part["reason"]) for part in details if isinstance(part.get("reason"), str)]
    code = reasons[0] if reasons else name
    text = f"Cudo answered {name}: {_text(document)}"
    if any("violations" in part for part in details) and name == "RESOURCE_EXHAUSTED":
        return VendorQuotaExceeded(text, code=code, hint="Ask Cudo for a larger quota of the project.")
    if name in ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED") and any(
        map(_CAPACITY.search, reasons)
    ):
        return InsufficientCapacity(text, code=code)
    return _LEAVES.get(name, VendorRefused)(text, code=code)


def retry_delay(body: bytes) -> float | None:
    """Seconds after which Cudo wants to be asked again; None where it does not say."""
    for part in _details(_document(body)):
        match = _SECONDS.fullmatch(str(part.get("retryDelay", "")))
        if match is not None:
            return float(match[1])
    return None


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    if isinstance(document, dict) and isinstance(document.get("error"), dict):
        document = document["error"]
    return document if isinstance(document, dict) else {}


def _details(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    details = document.get("details")
    return (part for part in details if isinstance(part, dict)) if isinstance(details, list) else iter(())


def _name(status: int, document: Mapping[str, Any]) -> str:
    written = document.get("status")
    if isinstance(written, str) and written:
        return written
    code = document.get("code")
    if isinstance(code, int) and code in _GRPC:
        return _GRPC[code]
    return _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")


def _text(document: Mapping[str, Any]) -> str:
    text = document.get("message")
    return " ".join(text.split())[:_LONGEST] if isinstance(text, str) else "no reason given"
