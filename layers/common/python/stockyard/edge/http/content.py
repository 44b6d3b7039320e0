"""Files that are served as they are: compressed to who takes that, and not again to who has them already."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stockyard.edge.http import etag
from stockyard.edge.identity import header

_NO_WEIGHT = re.compile(r"q=0(\.0*)?")


@dataclass(frozen=True, slots=True)
class Content:
    """A file. ``media`` is its type, ``headers`` are header fields of its own, ``tag`` changes when the file does."""

    media: str
    raw: bytes = field(repr=False)
    headers: Mapping[str, str]
    tag: str
    compressed: bytes = field(repr=False)

    @classmethod
    def of(cls, media: str, raw: bytes, headers: Mapping[str, str] | None = None) -> Content:
        """The file that ``raw`` is, which is text in UTF-8."""
        # Weak, because it names the file and not the bytes that are sent, which may be compressed.
        tag = f'W/"{hashlib.sha256(raw).hexdigest()[:32]}"'
        return cls(media, raw, headers or {}, tag, gzip.compress(raw, mtime=0))

    def answer(self, event: Mapping[str, Any]) -> tuple[int, dict[str, str], str, bool]:
        """Status, header fields, body, and whether that is in base 64: 304 to who has the file already.

        A cache may keep it, but has to ask each time whether it is still the same.
        """
        headers = {
            **self.headers,
            "Cache-Control": "no-cache",
            "ETag": self.tag,
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if etag.matches(header(event, "if-none-match"), self.tag.removeprefix("W/")):
            return 304, headers, "", False
        headers["Content-Type"] = f"{self.media}; charset=utf-8" if self.media.startswith("text/") else self.media
        if not _takes_gzip(header(event, "accept-encoding") or ""):
            return 200, headers, self.raw.decode(), False
        return 200, {**headers, "Content-Encoding": "gzip"}, base64.b64encode(self.compressed).decode(), True


def _takes_gzip(accept_encoding: str) -> bool:
    """Whether the caller takes gzip: named, or by ``*``, without the weight 0."""
    weights: dict[str, bool] = {}
    for part in accept_encoding.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weights[name] = not any(map(_NO_WEIGHT.fullmatch, parameters))
    return weights.get("gzip", weights.get("*", False))
