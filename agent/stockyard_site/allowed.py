"""The allow-list: which methods, paths and query keys the site's owner lets through. Everything else is refused.

A path is compared as it is sent, and never decoded: what could be read in two ways is refused before. A host that takes
all its calls at one path is told what it may be asked by fields of their bodies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
HEADERS: Mapping[str, re.Pattern[str]] = {
    "accept": re.compile(r"[A-Za-z0-9!#$&^_.+/*;=, -]{1,200}"),
    "content-type": re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?charset=[A-Za-z0-9-]+)?"),
    "if-match": re.compile(r'[A-Za-z0-9"/_*-]{1,200}'),
    "if-none-match": re.compile(r'[A-Za-z0-9"/_*-]{1,200}'),
}
"""Headers that a request may have, and what their values may be. None of them says who somebody is, or changes what the
connection is for."""
_MOST_PATH, _MOST_QUERY = 2_000, 4_000
_SEGMENT = re.compile(r"[A-Za-z0-9._~:-]{1,253}")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_VALUE = re.compile(r"(?:[A-Za-z0-9._~*,:!()/+=@-]|%[0-9A-Fa-f]{2})*")
_DOTS = frozenset({".", ".."})
ANY = "*"
"""In a line it stands for one whole segment; in a field's path for every element of a list."""
_FIELD_PATH = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}(?:\.(?:[A-Za-z][A-Za-z0-9_]{0,63}|[0-9]{1,3}|\*)){0,7}")
_WORD = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_JSON = "application/json"


class NotAllowed(Exception):
    """The request is not carried out; the text says why."""


class BadList(ValueError):
    """A line of the allow-list cannot be read."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: methods, segments of a path, the query keys that may be there, and the values that fields of a JSON
    body have to have, by the paths of the fields."""

    methods: frozenset[str]
    segments: tuple[str, ...]
    keys: frozenset[str]
    fields: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)

    def allows(self, method: str, segments: Sequence[str]) -> bool:
        """Whether the line has the method and the path."""
        if method not in self.methods or len(segments) != len(self.segments):
            return False
        return all(own in (ANY, segment) for own, segment in zip(self.segments, segments, strict=True))


@dataclass(frozen=True, slots=True)
class AllowList:
    """The lines that a site's owner has installed. Without a line nothing is carried out."""

    rules: tuple[Rule, ...]
    lines: tuple[str, ...]
    """As they were written, for people."""

    def check(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Raises ``NotAllowed`` unless a line has the method, the path, each key of the query of ``target``, and what
        the body says in the line's fields."""
        if method not in METHODS:
            raise NotAllowed(f"the method {_excerpt(method)} is never carried out")
        path, separator, query = target.partition("?")
        segments = path_segments(path)
        keys = query_keys(query) if separator else []
        check_headers(headers)
        fitting = [rule for rule in self.rules if rule.allows(method, segments)]
        if not fitting:
            raise NotAllowed(f"the allow-list has no {method} {path}")
        in_query = [rule for rule in fitting if rule.keys.issuperset(keys)]
        if in_query and all(rule.fields for rule in in_query):
            document = plain_object(headers, body)
            if not any(_has_fields(rule, document) for rule in in_query):
                raise NotAllowed(f"the allow-list has {method} {path} for other bodies alone")
        elif not in_query:
            extra = sorted(set(keys).difference(*(rule.keys for rule in fitting)))
            raise NotAllowed(f"the allow-list has {method} {path} without the query {', '.join(extra) or 'as it is'}")


def path_segments(path: str) -> list[str]:
    """The segments of a path in its one plain form. Raises ``NotAllowed`` for any other."""
    if not path.startswith("/") or len(path) > _MOST_PATH:
        raise NotAllowed("the path is not one that begins with a slash")
    segments = path[1:].split("/")
    if any(_SEGMENT.fullmatch(segment) is None or segment in _DOTS for segment in segments):
        raise NotAllowed(
            f"the path {_excerpt(path)} is not in plain form: no empty or dotted parts, no %, no other signs"
        )
    return segments


def query_keys(query: str) -> list[str]:
    """The keys of a query, each once, with a plain value. Raises ``NotAllowed`` for any other."""
    if len(query) > _MOST_QUERY:
        raise NotAllowed("the query is too long")
    keys: list[str] = []
    for part in query.split("&"):
        key, equals, value = part.partition("=")
        plain = equals and _KEY.fullmatch(key) and _VALUE.fullmatch(value)
        if not plain or key in keys or any(byte < 32 or byte == 127 for byte in unquote_to_bytes(value)):
            raise NotAllowed(f"the query part {_excerpt(part)} is not one key with one plain value")
        keys.append(key)
    return keys


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises ``NotAllowed`` for a header that no request may have, or a value that it may not have."""
    for name, value in headers.items():
        form = HEADERS.get(name)
        if form is None or form.fullmatch(value) is None:
            raise NotAllowed(f"the header {_excerpt(name)} is not passed on as it is")


def plain_object(headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    """The object of a JSON body that everybody reads as the same. Raises ``NotAllowed`` for any other: a name that
    comes twice, at the top in two spellings, a number that is none, bytes that are no UTF-8."""
    if headers.get("content-type", "").partition(";")[0] != _JSON:
        raise NotAllowed(f"the body is not said to be {_JSON}")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a name comes twice")
        return dict(pairs)

    def never(text: str) -> Any:
        raise ValueError(text)

    try:
        document = json.loads(body.decode("utf-8"), object_pairs_hook=once, parse_constant=never)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or len({name.casefold() for name in document}) != len(document):
        raise NotAllowed("the body is not one plain JSON object")
    return document


def _has_fields(rule: Rule, document: Mapping[str, Any]) -> bool:
    return all(_values(document, path, allowed) for path, allowed in rule.fields.items())


def _values(value: Any, path: Sequence[str], allowed: frozenset[str]) -> bool:
    """Whether the value at that path is an allowed text; with ``*`` each of a list that is not empty."""
    if not path:
        return isinstance(value, str) and value in allowed
    name, below = path[0], path[1:]
    if name == ANY:
        return isinstance(value, list) and bool(value) and all(_values(each, below, allowed) for each in value)
    if name.isdecimal():
        return isinstance(value, list) and int(name) < len(value) and _values(value[int(name)], below, allowed)
    return isinstance(value, dict) and name in value and _values(value[name], below, allowed)


def read(text: str) -> AllowList:
    """The allow-list of a text: ``METHOD[,METHOD] PATH[?KEY,KEY] [FIELD=VALUE[,VALUE] ...]`` a line, ``#`` begins a
    remark. A field is a path in a JSON body: names, numbers and ``*`` with dots between them.

    Raises ``BadList`` that names the line.
    """
    rules: list[Rule] = []
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        rules.append(_rule(number, words))
        lines.append(" ".join(words))
    return AllowList(tuple(rules), tuple(lines))


def _rule(number: int, words: Sequence[str]) -> Rule:
    if len(words) < 2:
        raise BadList(f"line {number}: a line is methods, a space, and a path")
    methods = frozenset(words[0].split(","))
    if not methods <= METHODS:
        raise BadList(f"line {number}: methods are {', '.join(sorted(METHODS))}")
    path, _, keys = words[1].partition("?")
    named = frozenset(keys.split(",")) if keys else frozenset()
    try:
        segments = path_segments(path.replace(ANY, "any"))
    except NotAllowed as fault:
        raise BadList(f"line {number}: {fault}") from None
    own = path[1:].split("/")
    if len(own) != len(segments) or any(ANY in segment and segment != ANY for segment in own):
        raise BadList(f"line {number}: * stands for a whole part of the path")
    if any(_KEY.fullmatch(key) is None for key in named):
        raise BadList(f"line {number}: query keys are words with commas between them")
    return Rule(methods, tuple(own), named, dict(_field(number, word) for word in words[2:]))


def _field(number: int, word: str) -> tuple[tuple[str, ...], frozenset[str]]:
    path, _, values = word.partition("=")
    named = values.split(",")
    if _FIELD_PATH.fullmatch(path) is None or any(_WORD.fullmatch(value) is None for value in named):
        raise BadList(f"line {number}: behind the path stand fields of the body, as name=value")
    return tuple(path.split(".")), frozenset(named)


def _excerpt(text: str) -> str:
    """A piece of what was asked for, short and printable."""
    return ascii(text[:80])
