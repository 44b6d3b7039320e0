"""Signatures of presigned requests (SigV4 in the query), as AWS checks them. moto checks none of STS."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

UNSIGNED = "UNSIGNED-PAYLOAD"
"""What S3 takes instead of a digest of the body."""
LIFE = timedelta(minutes=15)
_STAMP = "%Y%m%dT%H%M%SZ"


def holds(
    host: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    secret_key: str,
    method: str = "GET",
    payload: str | None = None,
) -> bool:
    """Whether the request was signed so with this key. Header names are in lower case. ``payload`` is what was signed
    of the body; None: that it is empty."""
    pairs = parse_qsl(query, keep_blank_values=True)
    parameters = dict(pairs)
    try:
        scope = parameters["X-Amz-Credential"].split("/", 1)[1]
        date, signature = parameters["X-Amz-Date"], parameters["X-Amz-Signature"]
        names = parameters["X-Amz-SignedHeaders"].split(";")
        values = {**headers, "host": host}
        signed = "".join(f"{name}:{values[name].strip()}\n" for name in names)
    except (KeyError, IndexError):
        return False
    quoted = sorted((_quoted(name), _quoted(value)) for name, value in pairs if name != "X-Amz-Signature")
    canonical = "\n".join(
        [
            method,
            path,
            "&".join(f"{name}={value}" for name, value in quoted),
            signed,
            ";".join(names),
            _digest("") if payload is None else payload,
        ]
    )
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, _digest(canonical)])
    return hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), signature)


def is_current(query: str, now: datetime) -> bool:
    """Whether STS takes a presigned request of this date still, or already: for 15 minutes, whatever it says itself."""
    try:
        signed_at = datetime.strptime(dict(parse_qsl(query))["X-Amz-Date"], _STAMP).replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return False
    return abs(now - signed_at) <= LIFE


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
