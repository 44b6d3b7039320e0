"""Kubernetes to ours: what an answer of an API server means to us.

An API server quotes values in its messages: a Secret's data in a 422, whatever a webhook has to say in a 403. So an
error's text is built from the status, the reason and the names of fields. The server's own words are added only where
they are about names (``_SPOKEN``), and never when the object is a Secret.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.errors import (
    CredentialsRevoked,
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

SECRET = "Secret"  # noqa: S105 - a kind
EXPIRED = "Expired"
"""The code of an answer that says that a list cannot be continued: it is to be begun again."""
CONFLICT = "Conflict"
"""The code of an answer that says that the object is another by now, or that another manager owns a field."""
_LONGEST = 300
"""Letters of the server's own words that an error repeats."""
_LONGEST_PAUSE = 10
"""Seconds: who asks us to wait longer is asked again by the workflow."""
_TABLE: Mapping[int, tuple[type[VendorError], str]] = {
    401: (CredentialsRevoked, "The cluster does not accept the token; check the role and its access to the cluster."),
    403: (PermissionDenied, "The role lacks a permission in the cluster."),
    404: (VendorNotFound, "It does not exist in the cluster."),
    408: (VendorTimeout, "It is tried again."),
    409: (VendorConflict, "It has changed meanwhile; it is tried again."),
    429: (VendorThrottled, "The cluster limits the rate of calls; it is tried again."),
    504: (VendorTimeout, "It is tried again."),
}
_SPOKEN = frozenset({401, 404, 409, 429})
"""Statuses whose messages name objects, fields and people, and no value."""
_WORD = re.compile(r"[A-Za-z]{1,64}", re.ASCII)
_FIELD = re.compile(r"[A-Za-z0-9_.\[\]\-/]{1,120}", re.ASCII)
_UNFIT = ("failed to create typed patch object", "failed to convert new object")
"""How the message of a 500 begins that says that the object does not fit its kind: to try again is of no use."""
_FAULT = re.compile(
    r"(?P<path>(?:\.[A-Za-z0-9_$/-]{1,80}|\[[^\[\]\s]{0,80}\]){1,40})"
    r": (?P<reason>field not declared in schema|expected [a-z]{1,16}|duplicate entries|missing key)",
    re.ASCII,
)
"""One fault of such an object: the field's path, and the part of the reason that has no value of it."""
_KEYED = re.compile(r"\[(?!\d+\])[^\]]*\]", re.ASCII)
"""An entry of a list that is named by values of its own."""
_WEBHOOK = "admission webhook"
"""How the message begins of what a webhook refuses: it may choose any status, and say anything."""
_ENDING = "NamespaceTerminating"
_QUOTA = re.compile(
    r"exceeded quota: (?P<quota>[a-z0-9][a-z0-9.-]{0,62}, requested: [A-Za-z0-9=., :/_-]{1,300})", re.ASCII
)
"""A quota of a namespace that is used up, with its name, and names and numbers of what it counts."""
_UNCOUNTED = "status unknown for quota"
"""Part of the message of a 403 for a kind that a quota names and that the cluster has begun to serve a moment ago."""


class ObjectChanged(VendorConflict):
    """The object that was compared is another by now, or a field of it is somebody else's. Whoever compares handles it:
    workflows do not try it again."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a call, as its errors name it."""

    verb: str
    kind: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        full_name = "/".join(part for part in (self.namespace, self.name) if part)
        return f"kubernetes {self.verb} {self.kind}{' ' + full_name if full_name else ''}"


def refused(subject: Subject, status: int, body: bytes, retry_after: str = "") -> VendorError:
    """The error that an answer other than 2xx stands for; its code is the server's reason, else the status."""
    document = _status_document(body)
    reason = _word(document.get("reason"))
    message = document.get("message") if isinstance(document.get("message"), str) else ""
    causes = list(_causes(document))
    leaf, hint = _meaning(status, str(message), causes)
    parts = [f"{status} {reason}".strip(), _explanation(subject, status, str(message), causes)]
    code = EXPIRED if status == 410 else reason or str(status)
    error = leaf(f"{subject}: {': '.join(filter(None, parts))}", code=code, hint=hint)
    if retry_after.isascii() and retry_after.isdigit():
        error.retry_after = min(int(retry_after), _LONGEST_PAUSE)
    return error


def unanswered(subject: Subject, error: Exception) -> VendorError:
    """The error for one of the connection. Its own text is not repeated."""
    import httpx  # kept out of cold starts

    code = type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return VendorTimeout(f"{subject}: no answer in time", code=code, hint="It is tried again.")
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _chain(error)):
        return VendorRefused(
            f"{subject}: the server's certificate is not of the cluster's authority",
            code="CertificateVerification",
            hint="Something else answers at the cluster's address, or the cluster's authority has changed.",
        )
    if any(isinstance(cause, ssl.SSLError) for cause in _chain(error)):
        code = "TLS"
    return VendorUnavailable(f"{subject}: the cluster cannot be reached", code=code, hint="It is tried again.")


def _meaning(status: int, message: str, causes: Sequence[Mapping[str, Any]]) -> tuple[type[VendorError], str]:
    if status == 403:
        return _meaning_of_403(message, causes)
    if status == 500 and message.startswith(_UNFIT):
        return VendorRefused, "The object does not fit its kind."
    if status in _TABLE:
        return _TABLE[status]
    if status >= 500:
        return VendorUnavailable, "The cluster's API server has a fault; it is tried again."
    return VendorRefused, "The cluster refuses the object as it is."


def _meaning_of_403(message: str, causes: Sequence[Mapping[str, Any]]) -> tuple[type[VendorError], str]:
    if any(cause.get("reason") == _ENDING for cause in causes):
        return VendorConflict, "Its namespace is being deleted; it is tried again."
    if _UNCOUNTED in message:
        return VendorUnavailable, "A ResourceQuota of the namespace is not counted yet; it is tried again."
    if _QUOTA.search(message):
        return VendorQuotaExceeded, "The owner of the namespace may raise its ResourceQuota."
    return _TABLE[403]


def _explanation(subject: Subject, status: int, message: str, causes: Sequence[Mapping[str, Any]]) -> str:
    """Explanation beside the status without a value of the object."""
    quota = _QUOTA.search(message) if status == 403 else None
    if quota is not None:
        return f"exceeded quota {quota['quota']}"
    if subject.kind == SECRET:
        return ""
    if status == 500 and message.startswith(_UNFIT):
        return ", ".join(_unfit_fields(message))
    if status in _SPOKEN and not message.startswith(_WEBHOOK):
        return " ".join(message.split())[:_LONGEST]
    return ", ".join(_fields(causes))


def _status_document(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _causes(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    details = document.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return (cause for cause in causes if isinstance(cause, dict)) if isinstance(causes, list) else iter(())


def _fields(causes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Fields that are refused and why, without their values."""
    pairs = [(str(cause.get("field") or ""), _word(cause.get("reason"))) for cause in causes[:5]]
    return [f"{field} ({reason})" if reason else field for field, reason in pairs if _FIELD.fullmatch(field)]


def _unfit_fields(message: str) -> list[str]:
    """Fields that do not fit, each with a reason and without a value."""
    faults = (match for match in map(_FAULT.search, message.splitlines()) if match)
    return [f"{_KEYED.sub('[]', match['path'])} ({match['reason']})" for match in faults][:5]


def _word(value: object) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
