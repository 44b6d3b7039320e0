"""The body of a request: bounded, JSON without surprises, and then a model. No error repeats a value."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from stockyard.domain.values.patterns import pattern
from stockyard.edge.identity import header
from stockyard.errors import BodyTooLarge, MalformedBody, UnsupportedMediaType

LIMIT = 256 * 1024
LARGE = 5 * 1024 * 1024
"""Of what a cluster's agent posts, inflated."""
MAX_DEPTH = 32
_JSON = frozenset({"application/json"})
_PATCH = frozenset({"application/json", "application/merge-patch+json"})
YAML = "application/yaml"
_KINDS_OF_YAML = frozenset({YAML, "application/x-yaml", "text/yaml", "text/x-yaml"})
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"\\'))
_STRINGS, _NO_BRACKETS = pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL), pattern(r"[^][{}]+")
"""A string, to its end if it has one, or a bracket."""
_EXPECTED = (
    ("Expecting value", "a value is expected"),
    ("Expecting property name", "a name in double quotes is expected"),
    ("Expecting ':'", "a colon is expected"),
    ("Expecting ','", "a comma or the end of the list or object is expected"),
    ("Illegal trailing comma", "no comma stands before the end"),
    ("Extra data", "the end is expected"),
    ("Unterminated string", "a string begins here that has no end"),
    ("Invalid control character", "a string has no line ends or other control characters"),
    ("Invalid \\", "JSON has no such escape"),
)
"""How the parser's messages begin, and our words for them. Those of the parser differ between versions of Python."""
GZIP = "application/gzip"
"""JSON that was compressed, said by the type: a gateway may take everything that is called JSON for text."""


def is_lenient(event: Mapping[str, Any]) -> bool:
    """Whether the request has the preference ``handling=lenient`` (RFC 7240): its body may leave out what the route's
    lenient form does not demand. Other preferences mean nothing here."""
    preferences = (header(event, "prefer") or "").split(",")
    return any(preference.partition(";")[0].strip().lower() == "handling=lenient" for preference in preferences)


def raw_body(event: Mapping[str, Any], limit: int = LIMIT) -> bytes:
    """The bytes of the body, empty when there is none. ``BodyTooLarge`` above ``limit`` bytes."""
    text = event.get("body") or ""
    if event.get("isBase64Encoded"):
        if len(text) > limit * 2:
            raise _too_large(limit)
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise MalformedBody("The body cannot be decoded.") from None
    else:
        raw = text.encode("utf-8", "surrogatepass")
    if len(raw) > limit:
        raise _too_large(limit)
    return raw


def check_media_type(event: Mapping[str, Any], *, patch: bool, yaml: bool = False, gzip: bool = False) -> str:
    """The type of the content. ``UnsupportedMediaType`` unless it is JSON (of a PATCH also a merge patch, with ``yaml``
    also YAML) in UTF-8, not compressed (with ``gzip`` it may be so, by its encoding or by its type)."""
    kind, *parameters = _media_type(event)
    allowed = _PATCH if patch else _JSON | {YAML} if yaml else _JSON | {GZIP} if gzip else _JSON
    charset = [
        value.strip('"')
        for name, _, value in (parameter.partition("=") for parameter in parameters)
        if name == "charset"
    ]
    if kind not in allowed or any(value not in ("utf-8", "utf8") for value in charset):
        elsewhere = "; POST /v1/apply takes YAML" if kind in _KINDS_OF_YAML and not yaml else ""
        raise UnsupportedMediaType(f"Send the body as {' or '.join(sorted(allowed))} in UTF-8{elsewhere}.")
    if _encoding(event) not in ("identity", *(["gzip"] if gzip and kind != GZIP else [])):
        raise UnsupportedMediaType("Send the body as it is, without a Content-Encoding.")
    return kind


def inflated(event: Mapping[str, Any], raw: bytes, limit: int) -> bytes:
    """The body as it was before it was compressed. ``BodyTooLarge`` above ``limit`` bytes, however small it came."""
    if _encoding(event) != "gzip" and _media_type(event)[0] != GZIP:
        return raw
    stream = zlib.decompressobj(wbits=31)
    try:
        document = stream.decompress(raw, limit + 1)
    except zlib.error:
        raise MalformedBody("The body is not gzip.") from None
    if len(document) > limit:
        raise _too_large(limit)
    if not stream.eof or stream.unused_data:
        raise MalformedBody("The body is not one whole gzip stream.")
    return document


def _media_type(event: Mapping[str, Any]) -> list[str]:
    """The type of the content, then its parameters."""
    return [part.strip().lower() for part in (header(event, "content-type") or "").split(";")]


def _encoding(event: Mapping[str, Any]) -> str:
    return (header(event, "content-encoding") or "identity").strip().lower()


@contextmanager
def checked_text(kind: str, faults: tuple[type[Exception], ...] = (ValueError, RecursionError)) -> Iterator[None]:
    """Raise what a parser raises in the block, ``faults``, as ``MalformedBody``. Its own words may repeat the body."""
    try:
        yield
    except UnicodeDecodeError:
        raise MalformedBody("The body is not UTF-8.") from None
    except UnicodeEncodeError:
        raise MalformedBody("The body has half of a surrogate pair.") from None
    except faults as fault:
        raise MalformedBody(f"The body is not {kind}{_position(fault)}.") from None


def _position(fault: Exception) -> str:
    """Position where a parser stopped and what it expected there, as far as it says so; never what stands there."""
    if isinstance(fault, json.JSONDecodeError):
        words = next((words for begin, words in _EXPECTED if fault.msg.startswith(begin)), "")
        return f": line {fault.lineno}, column {fault.colno}" + (f": {words}" if words else "")
    position = getattr(fault, "problem_mark", None)  # of a parser of YAML, which is not loaded for JSON
    return "" if position is None else f": line {position.line + 1}, column {position.column + 1}"


def parse(raw: bytes) -> Any:
    """``raw`` as JSON. ``MalformedBody`` for no JSON, NaN and Infinity, repeated names, deep nesting, lone surrogates.

    A number without a fraction is whole, however it is written (``1.0``), as JSON Schema has it.
    """
    with checked_text("JSON"):
        text = raw.decode("utf-8")
        if _depth(raw, text) > MAX_DEPTH:
            raise MalformedBody(f"The body is nested deeper than {MAX_DEPTH} levels.")
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=number)
        if "\\u" in text:  # only an escape can name half of a surrogate pair: the bytes were UTF-8
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    return document


def _depth(raw: bytes, text: str) -> int:
    """The deepest nesting of brackets outside strings, counted before the parser recurses."""
    # Where nothing is left between the quotes of each string, no string has a bracket: most bodies are read so.
    marks = raw.translate(None, _NO_MARKS).replace(b'""', b"")
    brackets = marks.decode() if b'"' not in marks and b"\\" not in marks else _outside_strings(text)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _outside_strings(text: str) -> str:
    return _NO_BRACKETS.sub("", _STRINGS.sub("", text))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise MalformedBody("The body has a name twice in one object.")
    return members


def _constant(name: str) -> Any:
    raise MalformedBody(f"The body has {name}, which is no JSON.")


def number(text: str) -> float | int:
    """A number with a fraction or an exponent; whole where it can be."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise MalformedBody("The body has a number that is too large.")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body may have at most {limit // 1024} KiB.")
