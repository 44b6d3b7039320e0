"""What comes in: documents from files or standard input, durations, pairs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from stockyard_client.cli.failures import BadInput

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


def read_document(source: str) -> dict[str, Any]:
    """The JSON or YAML object in the file ``source``, or on standard input for ``-``.

    Raises :class:`BadInput` with the place of a fault, never with the text there: it may be a secret.
    """
    documents = read_documents(source)
    if len(documents) != 1:
        raise BadInput(f"{source} does not hold one object")
    return documents[0]


def read_documents(source: str) -> list[dict[str, Any]]:
    """All JSON or YAML objects in the file ``source``, or on standard input for ``-``; a list's items count as well.

    Raises :class:`BadInput`, as ``read_document`` does.
    """
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot read {source}: {reason}") from None
    documents = _parsed(text, "standard input" if source == "-" else source)
    objects = [
        item
        for document in documents
        for item in (document if isinstance(document, list) else [document])
        if item is not None
    ]
    if not objects or not all(isinstance(item, dict) for item in objects):
        raise BadInput(f"{source} does not hold one object")
    return objects


def _parsed(text: str, name: str) -> list[Any]:
    if text.lstrip().startswith(("{", "[")):
        try:
            return [json.loads(text)]
        except json.JSONDecodeError as error:
            fault = f"{name}, line {error.lineno}, column {error.colno}: {error.msg}"
            # a flow mapping of YAML starts with a brace, too
            return _yaml(text, name, fault)
    return _yaml(text, name, None)


def _yaml(text: str, name: str, json_fault: str | None) -> list[Any]:
    try:
        return list(yaml.load_all(text, Loader=_Plain))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadInput(json_fault or f"{name}{place}: neither JSON nor YAML") from None
    except yaml.YAMLError:
        raise BadInput(json_fault or f"{name} is neither JSON nor YAML") from None


class _Plain(yaml.SafeLoader):
    """The safe loader with dates, ``On``, ``yes`` and the like left as text, as JSON has it."""


_TAG = "tag:yaml.org,2002:"
_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag not in (f"{_TAG}timestamp", f"{_TAG}bool")]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Plain.add_implicit_resolver(f"{_TAG}bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def seconds(text: str) -> float:
    """``90``, ``90s``, ``15m`` or ``1h30m`` as seconds. Raises ``ValueError``."""
    match = _DURATION.fullmatch(text.strip())
    if not match or not any(match.groups()):
        raise ValueError(f"{text!r} is no duration: write 90s, 15m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def pairs(texts: list[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadInput(f"{text!r} is not key=value")
        values[key] = value
    return values
