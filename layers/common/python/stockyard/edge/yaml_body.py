"""A body of YAML documents, read as the JSON that it stands for: nothing that JSON has not.

Booleans, numbers and null are spelt as in YAML 1.2, so ``On`` and ``yes`` are texts. Aliases, names that are given
twice and tags of types are refused. Loaded only for requests that send YAML.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from stockyard.edge.body import checked_text, number
from stockyard.errors import MalformedBody

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # the wheel for this machine has no libyaml
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

_PREFIX = "tag:yaml.org,2002:"
_PLAIN: tuple[tuple[str, str, str], ...] = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
)
"""Type, what a plain text of it looks like, and the characters that such a text begins with."""
_OPEN = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSE = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class _Loader(_Base):
    """The safe loader without the types and spellings that JSON does not have."""


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, pattern, starts in _PLAIN:
        for start in starts:
            table.setdefault(start.replace("\0", ""), []).append((_PREFIX + name, re.compile(f"^(?:{pattern})$")))
    return table


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise MalformedBody("The body has a name that is no text; put it into quotes.")
        if key in members:
            raise MalformedBody("The body has a name twice in one object.")
        members[key] = loader.construct_object(value_node, deep=True)
    return members


def _float(loader: Any, node: yaml.ScalarNode) -> float | int:
    return number(loader.construct_scalar(node))


_Loader.yaml_implicit_resolvers = _resolvers()
_Loader.add_constructor(f"{_PREFIX}map", _mapping)
_Loader.add_constructor(f"{_PREFIX}float", _float)


def parse(raw: bytes, max_depth: int) -> list[Any]:
    """The documents that are not empty. ``MalformedBody`` for anything that is no such YAML, or deeper nested."""
    with checked_text("YAML that JSON could say", (yaml.YAMLError, ValueError, TypeError, RecursionError)):
        text = raw.decode("utf-8")
        _check(text, max_depth)
        documents = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
        json.dumps(documents, ensure_ascii=False, allow_nan=False).encode("utf-8")
    if not documents:
        raise MalformedBody("The body holds no document.")
    return documents


def _check(text: str, max_depth: int) -> None:
    """Before anything is built: how deep it is, and whether a part stands for another one or says its own type."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise MalformedBody("The body has an alias; write the part out.")
        if getattr(event, "tag", None) is not None:
            raise MalformedBody("The body has a tag of a type; leave it out.")
        depth += isinstance(event, _OPEN) - isinstance(event, _CLOSE)
        if depth > max_depth:
            raise MalformedBody(f"The body is nested deeper than {max_depth} levels.")
