"""Content of a site's requests and answers that is sealed, as bytes: small, because a record is."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from stockyard.domain.values.frozen import dataclass
from stockyard.errors import VendorRefused

MOST_BYTES = 200_000
"""The most that a request or an answer may have when it is packed. Sealed, and as text, it fits a record."""
MOST_UNPACKED = 3_000_000
"""The most that a body may have: requests go out, and answers come in, with others through one answer of the API."""
HEADERS = frozenset({"accept", "content-type", "if-match", "if-none-match"})
"""Headers of a request that go with it: the connector adds the credential, and nobody acts as another person."""
REFUSAL = "stockyard-site"
"""Header of an answer that is the connector's own refusal: it has carried nothing out."""
ANSWER_HEADERS = frozenset({"content-type", "etag", "last-modified", "retry-after", "warning", REFUSAL})


@dataclass(frozen=True, slots=True)
class SiteCall:
    """One request for what stands in a site. ``path`` begins with a slash and has the query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class SiteReply:
    """One answer. With a ``failure`` nothing was answered there: the text says why."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    failure: str | None = None


def packed_call(call: SiteCall) -> bytes:
    """Headers and body of a request. ``VendorRefused`` for one that is too large for a site."""
    headers = {name.lower(): value for name, value in call.headers.items() if name.lower() in HEADERS}
    return _packed({"headers": headers, "body": _text(call.body)}, "the request", len(call.body))


def unpacked_call(method: str, path: str, content: bytes) -> SiteCall:
    """The request again, from ``packed_call``."""
    document = _unpacked(content)
    return SiteCall(method, path, document["headers"], base64.b64decode(document["body"]))


def packed_reply(reply: SiteReply) -> bytes:
    """The answer as bytes. ``VendorRefused`` for one that is too large for a site."""
    headers = {name.lower(): value for name, value in reply.headers.items() if name.lower() in ANSWER_HEADERS}
    document = {"status": reply.status, "headers": headers, "body": _text(reply.body), "failure": reply.failure}
    return _packed(document, "the answer", len(reply.body))


def unpacked_reply(content: bytes) -> SiteReply:
    """The answer again, from ``packed_reply``."""
    document = _unpacked(content)
    body = base64.b64decode(document["body"])
    return SiteReply(document["status"], document["headers"], body, document["failure"])


def _packed(document: Mapping[str, Any], thing: str, size: int) -> bytes:
    if size > MOST_UNPACKED:
        raise VendorRefused(f"{thing} has {size} bytes; through a site go at most {MOST_UNPACKED}", code="TooLarge")
    content = zlib.compress(json.dumps(document, separators=(",", ":")).encode())
    if len(content) > MOST_BYTES:
        text = f"{thing} has {len(content)} bytes when it is packed; through a site go at most {MOST_BYTES}"
        raise VendorRefused(text, code="TooLarge")
    return content


def _unpacked(content: bytes) -> Any:
    return json.loads(zlib.decompress(content))


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()
