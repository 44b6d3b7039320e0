"""YAML of people, read as the JSON that it stands for: nothing that JSON has not. Pure.

Plain texts have the core types of YAML 1.2, as the readers of Kubernetes have it: ``On``, ``17:00``, ``=`` and ``010``
are texts. Aliases, tags of types and names that are given twice are refused.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

MAX_DEPTH = 64
"""Levels of objects and lists in each other."""
_PREFIX = "tag:yaml.org,2002:"
_PLAIN: tuple[tuple[str, str, str], ...] = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
)
"""Type, what a plain text of it looks like, and the characters that such a text begins with."""
_LARGEST_WHOLE = 2**53


class YamlFault(ValueError):
    """Fault of the text, as the end of a sentence that begins with its name. ``line`` and ``column`` count from 1; None
    where no position is known."""

    def __init__(self, detail: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(detail)
        self.detail, self.line, self.column = detail, line, column


def read_documents(text: str, *, max_depth: int = MAX_DEPTH, texts_of_names: bool = False) -> list[Any]:
    """The documents of the text, None for an empty one. ``YamlFault`` for anything that is no such YAML.

    ``texts_of_names``: a name that is a number or a boolean is taken as its text, as Kubernetes does; otherwise it is
    refused.
    """
    import yaml  # only where somebody has sent YAML

    loader = _loader(texts_of_names)
    try:
        _check(text, loader, max_depth)
        documents = list(yaml.load_all(text, Loader=loader))
        json.dumps(documents, ensure_ascii=False, allow_nan=False).encode()
        return documents
    except UnicodeEncodeError:
        raise YamlFault("has half of a surrogate pair") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, YamlFault):
            raise
        position = getattr(error, "problem_mark", None)
        raise YamlFault("is no YAML", *(() if position is None else (position.line + 1, position.column + 1))) from None


def number(text: str) -> float | int:
    """A number with a fraction or an exponent; whole where it can be. ``OverflowError`` for one that no JSON has."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise OverflowError
    return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE else value


def _check(text: str, loader: Any, max_depth: int) -> None:
    """Before anything is built: how deep it is, and whether a part stands for another one or says its own type."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        position = event.start_mark
        line_column = (position.line + 1, position.column + 1) if position is not None else ()
        if isinstance(event, yaml.AliasEvent):
            raise YamlFault("has an alias; write the part out", *line_column)
        if getattr(event, "tag", None) is not None:
            raise YamlFault("has a tag of a type; leave it out", *line_column)
        depth += isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent)
        depth -= isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent)
        if depth > max_depth:
            raise YamlFault(f"is nested deeper than {max_depth} levels", *line_column)


@cache
def _loader(texts_of_names: bool) -> Any:
    """The safe loader without the types and spellings that JSON does not have."""
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # some wheels have no libyaml
    loader: Any = type("JsonLoader", (base,), {})
    loader.yaml_implicit_resolvers = _resolvers()
    loader.add_constructor(f"{_PREFIX}map", lambda self, node: _mapping(self, node, texts_of_names))
    loader.add_constructor(f"{_PREFIX}float", _float)
    return loader


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, pattern, starts in _PLAIN:
        for start in starts:
            table.setdefault(start.replace("\0", ""), []).append((_PREFIX + name, re.compile(f"^(?:{pattern})$")))
    return table


def _mapping(loader: Any, node: Any, texts_of_names: bool) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        line_column = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if not isinstance(key, str) and texts_of_names and isinstance(key_node.value, str) and key is not None:
            key = key_node.value
        if not isinstance(key, str):
            raise YamlFault("has a name that is no text; put it into quotes", *line_column)
        if key in members:
            raise YamlFault("has a name twice in one object", *line_column)
        members[key] = loader.construct_object(value_node, deep=True)
    return members


def _float(loader: Any, node: Any) -> float | int:
    try:
        return number(loader.construct_scalar(node))
    except OverflowError:
        position = node.start_mark
        raise YamlFault("has a number that is too large", position.line + 1, position.column + 1) from None
