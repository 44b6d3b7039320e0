"""JSON pointers, and how people write a path to a field."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")


def dotted(tokens: Sequence[str]) -> str:
    """Keys and numbers as people write a path: ``spec.nodeTypes[0].name``; odd keys stand in quotes."""
    text = ""
    for token in tokens:
        if token.isdecimal():
            text += f"[{token}]"
        elif _PLAIN_KEY.fullmatch(token):
            text += f".{token}" if text else token
        else:
            text += f"[{json.dumps(token, ensure_ascii=False)}]"
    return text


def pointer(*tokens: str) -> str:
    """The JSON pointer (RFC 6901) of these keys."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def tokens_of(pointer: str) -> list[str]:
    """The keys and numbers of a JSON pointer (RFC 6901)."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
