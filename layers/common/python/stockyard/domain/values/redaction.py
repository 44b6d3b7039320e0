"""Report of a machine about itself, freed of what nobody may read: people see it when an operation fails."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stockyard.domain.values.patterns import pattern

_SECRETS = (
    # A key that is cut at its beginning or at its end is one too.
    pattern(r"\A(?:(?!-----BEGIN)[\s\S])*?-----END[A-Z0-9 ]* KEY-----"),
    pattern(r"-----BEGIN[A-Z0-9 ]* (?:KEY|CERTIFICATE)-----[\s\S]*?(?:-----END[^-]+-----|\Z)"),
    # Tokens of kubeadm, JWTs, and long random texts.
    pattern(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\beyJ[\w-]+\.[\w-]+\.[\w-]*|(?<![\w+/-])[\w+/-]{40,}={0,2}"),
    # Whatever is named as a secret.
    pattern(
        r"(?P<name>(?:secret|password|passwd|token|credential|(?:api|access|private)[_-]?key)\w*[\"']?\s*[:=]\s*"
        r"(?:bearer\s+)?)[^\s,;}]+",
        re.IGNORECASE,
    ),
)
_ESCAPES = pattern(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, cursor movements and titles of a terminal."""
_BREAKS = pattern(r"[\r\n]+")
_UNPRINTABLE = pattern(r"[^\n\x20-\x7e]")


def redact(text: str) -> str:
    """``text`` in printable ASCII and lines, without what looks like a token, a key or a password."""
    text = _UNPRINTABLE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")))
    for secret in _SECRETS:
        text = secret.sub(_hidden, text)
    return text


def redact_lines(lines: Sequence[str]) -> list[str]:
    """As ``redact``, of lines that keep their number: what stands in several of them leaves empty ones."""
    text = "\n".join(_BREAKS.sub(" ", line) for line in lines)
    text = _UNPRINTABLE.sub("", _ESCAPES.sub("", text.replace("\t", " ")))
    for secret in _SECRETS:
        text = secret.sub(lambda match: _hidden(match) + "\n" * match[0].count("\n"), text)
    return text.split("\n")


def _hidden(match: re.Match[str]) -> str:
    return f"{match.groupdict().get('name') or ''}(hidden)"


def last_part(text: str, most: int) -> str:
    """The last lines of an ASCII text with at most ``most`` characters; of one line that is longer, its end."""
    if len(text) <= most:
        return text
    cut = text[-most:]
    return cut.partition("\n")[2] or cut
