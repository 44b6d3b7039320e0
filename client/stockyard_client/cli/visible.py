"""Texts of other people, escaped so that they cannot control the terminal.

Names, descriptions and messages come from other users, from machines and from clusters. A control character or one that
turns the direction of writing is shown as its escape; a line's end and a tab stay.
"""

from __future__ import annotations

import json
import re
from typing import Any

import typer

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control characters of ASCII and of Latin-1 but tab and line end, and invisible ones that turn or break a line. What
joins letters or parts of one sign (U+200C, U+200D) is none of them."""


def visible(text: str) -> str:
    """The text with each character that would steer a terminal as its escape."""
    return STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def echo(value: object) -> None:
    """Write the value as a line to stdout, with nothing in it that steers a terminal."""
    typer.echo(visible(str(value)))


def json_text(document: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """The document as JSON. What would steer a terminal stands as JSON's own escape, so that nothing is lost."""
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False)
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def yaml_text(document: Any) -> str:
    """The document as YAML, likewise."""
    import yaml

    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    if STEERING.search(text):
        text = yaml.safe_dump(document, sort_keys=False)
    return text.rstrip("\n")
