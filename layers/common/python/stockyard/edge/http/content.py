"""Files that are served as they are: compressed to who takes that, and not again to who has them already."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stockyard.edge.http import etag
from stockyard.edge.identity import header

_NO_WEIGHT = re.compile(r"q=0(\.0*)?")
_WEIGHT = re.compile(r"[01](\.\d*)?")


_LEVEL = 6
"""Of compression: 9 takes four times as long for one or two of a hundred bytes."""


def compressed(raw: bytes) -> bytes:
    """The bytes as who takes gzip is sent them: always the same of the same."""
    return gzip.compress(raw, _LEVEL, mtime=0)


@dataclass(frozen=True)
class Content:
    """A file, of which either ``raw_data`` is there or what it becomes by gzip, ``gzip_data``; the other is made
    when somebody takes it. ``media`` is its type, ``headers`` are header fields of its own, ``tag`` changes when the
    file does.

    ``other_types`` are types that the same bytes have to who prefers one of them by ``Accept``; all others get
    ``media``. No cache keeps one that is ``private``.
    """

    media: str
    headers: Mapping[str, str]
    tag: str
    raw_data: bytes | None = field(default=None, repr=False)
    gzip_data: bytes | None = field(default=None, repr=False)
    other_types: tuple[str, ...] = ()
    private: bool = False

    @cached_property
    def raw(self) -> bytes:
        """The file itself."""
        return gzip.decompress(self.gzip_data or b"") if self.raw_data is None else self.raw_data

    @cached_property
    def compressed(self) -> bytes:
        """The same as who takes gzip is sent it."""
        return compressed(self.raw_data or b"") if self.gzip_data is None else self.gzip_data

    @classmethod
    def of(
        cls,
        media: str,
        raw: bytes,
        headers: Mapping[str, str] | None = None,
    ) -> Content:
        """The file that ``raw`` is, which is text in UTF-8."""
        return cls(media, headers or {}, _tag(raw), raw)

    @classmethod
    def of_compressed(cls, media: str, data: bytes, other_types: tuple[str, ...] = ()) -> Content:
        """The private file that has become ``data`` by ``compressed``."""
        return cls(media, {}, _tag(data), None, data, other_types, private=True)

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


def _tag(data: bytes) -> str:
    """The entity tag of these bytes. Weak, because it names the file and not the bytes that are sent, which may be
    compressed."""
    return f'W/"{hashlib.sha256(data).hexdigest()[:32]}"'


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
