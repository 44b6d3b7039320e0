"""Files that are served as they are: compressed to who takes that, and not again to who has them already."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.edge.http import etag
from stockyard.edge.identity import header

_NO_WEIGHT = re.compile(r"q=0(\.0*)?")
_WEIGHT = re.compile(r"[01](\.\d*)?")


@dataclass(frozen=True, slots=True)
class Content:
    """A file. ``media`` is its type, ``headers`` are header fields of its own, ``tag`` changes when the file does.

    ``other_types`` are types that the same bytes have to who prefers one of them by ``Accept``; all others get
    ``media``. No cache keeps one that is ``private``.
    """

    media: str
    raw: bytes = field(repr=False)
    headers: Mapping[str, str]
    tag: str
    compressed: bytes = field(repr=False)
    other_types: tuple[str, ...] = ()
    private: bool = False

    @classmethod
    def of(
        cls,
        media: str,
        raw: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        other_types: tuple[str, ...] = (),
        private: bool = False,
    ) -> Content:
        """The file that ``raw`` is, which is text in UTF-8."""
        # Weak, because it names the file and not the bytes that are sent, which may be compressed.
        tag = f'W/"{hashlib.sha256(raw).hexdigest()[:32]}"'
        return cls(media, raw, headers or {}, tag, gzip.compress(raw, mtime=0), other_types, private)

    def answer(self, event: Mapping[str, Any]) -> tuple[int, dict[str, str], str, bool]:
        """Status, header fields, body, and whether that is in base 64: 304 to who has the file already.

        A cache may keep one that is not private, but has to ask each time whether it is still the same.
        """
        headers = {
            **self.headers,
            "Cache-Control": "no-store" if self.private else "no-cache",
            "ETag": self.tag,
            "Vary": "Accept, Accept-Encoding" if self.other_types else "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if etag.matches(header(event, "if-none-match"), self.tag.removeprefix("W/")):
            return 304, headers, "", False
        media = preferred(header(event, "accept") or "", (self.media, *self.other_types))
        headers["Content-Type"] = f"{media}; charset=utf-8" if media.startswith("text/") else media
        if not _takes_gzip(header(event, "accept-encoding") or ""):
            return 200, headers, self.raw.decode(), False
        return 200, {**headers, "Content-Encoding": "gzip"}, base64.b64encode(self.compressed).decode(), True


def preferred(accept: str, offers: Sequence[str]) -> str:
    """The media type among ``offers`` that an ``Accept`` header weighs most, the first of equals, and the first of all
    where none is named. A range with a ``version`` is for the offer with the same one."""
    weights = [0.0] * len(offers)
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        weight = float(values["q"]) if _WEIGHT.fullmatch(values.get("q", "")) else 1.0
        for position, offer in enumerate(offers):
            media, _, own = offer.partition(";")
            fits = name == media or name == f"{media.partition('/')[0]}/*" or name == "*/*"
            if fits and ("version" not in values or f"version={values['version']};" in f"{own};"):
                weights[position] = max(weights[position], weight)
    return offers[weights.index(max(weights))]


def _takes_gzip(accept_encoding: str) -> bool:
    """Whether the caller takes gzip: named, or by ``*``, without the weight 0."""
    weights: dict[str, bool] = {}
    for part in accept_encoding.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weights[name] = not any(map(_NO_WEIGHT.fullmatch, parameters))
    return weights.get("gzip", weights.get("*", False))
