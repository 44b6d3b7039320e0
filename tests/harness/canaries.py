"""Canary secrets: each escaped form of them differs from the others, and each form is searched for."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import secrets
import string
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MARKS = '"/+&<%=?\\~'
DISK_KEY = re.compile(r"[A-Za-z0-9+/]{86}==")
"""How the key of an encrypted disk is written."""
STEM_LETTERS = 16
"""This many letters and digits in a row are equal in every escaped form, and do not occur by accident."""


@dataclass(frozen=True, slots=True)
class Output:
    """A text that somebody may read. ``kind`` says what it is: a log, a record, an answer."""

    kind: str
    name: str
    text: str


def canary() -> str:
    """A secret of 30 characters whose escaped forms all differ from the plain one."""
    return "".join(secrets.choice(string.ascii_letters) for _ in range(20)) + MARKS


def forms(value: str) -> frozenset[str]:
    """All texts that the value can appear as: plain, URL, JSON, HTML, hex, and once or twice in base 64, anywhere.
    The longest run of letters and digits is included too: it finds parts of the value and mixtures of escapes."""
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    texts = {value, value.encode().hex(), html.escape(value), repr(value)[1:-1]}
    texts |= {urllib.parse.quote(value), urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)}
    texts |= {once, twice, json.dumps(twice)[1:-1], once.replace("/", "\\/")}
    texts.add(once.replace("&", "\\u0026").replace("<", "\\u003c"))
    texts |= _in_base64(value)
    stem = max(re.findall(r"[A-Za-z0-9]+", value), key=len, default="")
    if len(stem) >= STEM_LETTERS:
        texts |= {stem, stem.encode().hex(), *_in_base64(stem)}
        texts |= {outer for inner in _in_base64(stem) for outer in _in_base64(inner)}
    return frozenset(texts)


def _in_base64(value: str) -> frozenset[str]:
    """The fixed part of the encoded text, for each of the three positions in a group where the value can begin."""
    texts = set()
    for before in range(3):
        padded = b"\0" * before + value.encode()
        whole = len(padded) // 3 * 3
        start = 4 if before else 0  # The first group also encodes the text before the value.
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            texts.add(encode(padded[:whole]).decode()[start:])
    return frozenset(texts)


def hits(canaries: Mapping[str, str], outputs: Iterable[Output]) -> list[str]:
    """``canary in place`` for each canary that a place contains in any form."""
    forms_of_canaries = {name: forms(value) for name, value in canaries.items()}
    return [
        f"{name} in {output.kind} {output.name}"
        for output in outputs
        for name, shapes in forms_of_canaries.items()
        if any(shape in output.text for shape in shapes)
    ]


def disk_key_hits(digest: str, outputs: Iterable[Output]) -> list[str]:
    """The places that contain the disk's key whose SHA-256 this is: the key itself is known to its machine alone."""
    return [
        f"a disk's key in {output.kind} {output.name}"
        for output in outputs
        if any(
            hashlib.sha256(key.encode()).hexdigest() == digest
            for key in DISK_KEY.findall(output.text.replace("\\/", "/"))
        )
    ]
