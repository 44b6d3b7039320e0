"""The table of the head node's errors. No error repeats what was sent."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.errors import (
    CredentialsRevoked,
    PermissionDenied,
    VendorConflict,
    VendorError,
    VendorNotFound,
    VendorRefused,
    VendorThrottled,
    VendorTimeout,
    VendorUnavailable,
)

_LONGEST = 300
_CARRYING = frozenset({"updateDevice"})
"""Calls that carry a machine's token: what is answered to them may repeat it."""
_AGAIN = "It is tried again."
_CERTIFICATE = "Change the account's attributes: give a client certificate that the head node knows, and its key."
_TABLE: dict[int, tuple[type[VendorError], str]] = {
    400: (VendorRefused, "The head node does not know the call or a field of it; its page /api says what it knows."),
    401: (CredentialsRevoked, _CERTIFICATE),
    403: (PermissionDenied, "The certificate's profile lacks a right on the head node."),
    404: (VendorNotFound, "It is not in the head node's inventory."),
    408: (VendorTimeout, _AGAIN),
    429: (VendorThrottled, _AGAIN),
    504: (VendorTimeout, _AGAIN),
}
_ALERTS = {
    "CERTIFICATE_EXPIRED": "the client certificate has expired",
    "CERTIFICATE_UNKNOWN": "the head node does not know the client certificate",
    "UNKNOWN_CA": "the client certificate is not of an authority that the head node knows",
    "BAD_CERTIFICATE": "the head node does not take the client certificate",
    "CERTIFICATE_REQUIRED": "the head node asks for a client certificate, and there was none",
    "HANDSHAKE_FAILURE": "the head node does not take the client certificate",
    "CERTIFICATE_REVOKED": "the client certificate was revoked",
    "DECRYPT_ERROR": "the client certificate is not of an authority that the head node knows",
}
"""Alerts by which a server ends the handshake: part of OpenSSL's reason, and the text."""
_EXPIRED, _NOT_YET = 10, 9
"""Codes of OpenSSL for a certificate whose time is over, or has not come."""


class DeviceChanged(VendorConflict):
    """The device is another than the one that was read. Whoever compares reads it again and decides anew."""


class HostRefused(VendorRefused):
    """The device is one that Stockyard must not touch; the text says why."""


def refused(call: str, status: int, body: bytes) -> VendorError:
    """The error that an answer other than 200 stands for."""
    leaf, hint = _TABLE.get(status, (VendorRefused, "The head node refuses it."))
    if status >= 500 and status not in _TABLE:
        leaf, hint = VendorUnavailable, _AGAIN
    message = _message(body) if status in (400, 404) and call not in _CARRYING else ""
    if status == 401:
        message = "the head node does not accept the client certificate, or was shown none"
    text = ": ".join(filter(None, (f"head node {call}", f"{status} {message}".strip())))
    return leaf(f"{text}.", code=str(status), hint=hint)


def unanswered(call: str, error: BaseException) -> VendorError:
    """The error for one of the connection. Its own text is not repeated."""
    import httpx  # kept out of cold starts

    code = type(error).__name__
    chain = list(_chain(error))
    if isinstance(error, httpx.TimeoutException):
        return VendorTimeout(f"head node {call}: no answer in time.", code=code, hint=_AGAIN)
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _of_server(call, cause)
    for cause in chain:
        reason = str(getattr(cause, "reason", None) or cause).upper().replace(" ", "_")
        alert = next((text for name, text in _ALERTS.items() if name in reason and "ALERT" in reason), None)
        if alert is not None:
            return CredentialsRevoked(f"head node {call}: {alert}.", code="ClientCertificate", hint=_CERTIFICATE)
    if any(isinstance(cause, ssl.SSLError) for cause in chain):
        code = "TLS"
    detail = _words_of_site(error)
    return VendorUnavailable(f"head node {call}: it cannot be reached{detail}.", code=code, hint=_AGAIN)


def _of_server(call: str, cause: ssl.SSLCertVerificationError) -> VendorError:
    """The error for a certificate of the head node that is not the one that was pinned."""
    reason = getattr(cause, "verify_code", None)
    if reason == _EXPIRED:
        text = "the head node's own certificate has expired"
    elif reason == _NOT_YET:
        text = "the head node's own certificate is not valid yet"
    else:
        text = "the head node's certificate is not the one that the account names"
    return VendorRefused(
        f"head node {call}: {text}.",
        code="CertificateVerification",
        hint="Something else answers at the endpoint, or the account's authority or fingerprint has to be given anew.",
    )


def _words_of_site(error: BaseException) -> str:
    """Words of a site's connector, which are ours; empty for any other error."""
    text = str(error)
    return f": {text[:_LONGEST]}" if text.startswith("site ") else ""


def _message(body: bytes) -> str:
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = document.get("errormessage") if isinstance(document, Mapping) else None
    return " ".join(message.split())[:_LONGEST] if isinstance(message, str) else ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
