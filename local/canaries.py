"""Secrets to look for: made so that each way of writing them differs, and found in whatever form they were written."""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
import string
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MARKS = '"/+&<%=?\\~'
STEM_LETTERS = 16
"""A run of so many letters and digits is the same in every escaped form, and no accident."""


@dataclass(frozen=True, slots=True)
class Place:
    """A text that somebody may read. ``kind`` is what it is one of: a log, a record, an answer."""

    kind: str
    name: str
    text: str


def canary() -> str:
    """A secret of 30 characters whose escaped forms all differ from the plain one."""
    return "".join(secrets.choice(string.ascii_letters) for _ in range(20)) + MARKS


def forms(value: str) -> frozenset[str]:
    """The value as it may be written: plain, URL, JSON, HTML, hex, and in base 64 once or twice wherever in the encoded
    text it stands; its longest run of letters and digits likewise, which finds a part of it and mixtures of escapes."""
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    found = {value, value.encode().hex(), html.escape(value), repr(value)[1:-1]}
    found |= {urllib.parse.quote(value), urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)}
    found |= {once, twice, json.dumps(twice)[1:-1], once.replace("/", "\\/")}
    found.add(once.replace("&", "\\u0026").replace("<", "\\u003c"))
    found |= _in_base64(value)
    stem = max(re.findall(r"[A-Za-z0-9]+", value), key=len, default="")
    if len(stem) >= STEM_LETTERS:
        found |= {stem, stem.encode().hex(), *_in_base64(stem)}
        found |= {outer for inner in _in_base64(stem) for outer in _in_base64(inner)}
    return frozenset(found)


def _in_base64(value: str) -> frozenset[str]:
    """What surely stands in the encoded text, for each of the three places in a group where the value can begin."""
    found = set()
    for before in range(3):
        padded = b"\0" * before + value.encode()
        whole = len(padded) // 3 * 3
        start = 4 if before else 0  # the first group mixes in what stands before
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(encode(padded[:whole]).decode()[start:])
    return frozenset(found)


def hits(canaries: Mapping[str, str], places: Iterable[Place]) -> list[str]:
    """``which canary in which place``, for each that is found in any form."""
    wanted = {name: forms(value) for name, value in canaries.items()}
    return [
        f"{name} in {place.kind} {place.name}"
        for place in places
        for name, shapes in wanted.items()
        if any(shape in place.text for shape in shapes)
    ]
