"""Expressions of DynamoDB as far as the product's adapter writes them, parsed once for each text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Item = Mapping[str, Any]
Holds = Callable[[Item, Mapping[str, str], Mapping[str, Any]], bool]
"""Whether an item fulfils a condition, by the names and values behind its placeholders."""
_TOKEN = re.compile(r"[#:]?\w+|<=|>=|[()=<>,+-]")


class Unknown(Exception):
    """An expression that nobody has needed yet."""


@dataclass(slots=True)
class _Reader:
    """``position`` is the next token."""

    tokens: list[str]
    position: int = 0

    def take(self) -> str:
        """The next token, which is behind us then."""
        self.position += 1
        return self.tokens[self.position - 1]

    def sees(self, text: str) -> bool:
        """Whether the next token is this one; it is taken then."""
        is_next = self.position < len(self.tokens) and self.tokens[self.position] == text
        self.position += is_next
        return is_next


@lru_cache(1024)
def condition(text: str) -> Holds:
    """The condition of a text. Raises ``Unknown``."""
    reader = _Reader(_TOKEN.findall(text))
    holds = _any(reader)
    if reader.position != len(reader.tokens):
        raise Unknown(text)
    return holds


def _any(reader: _Reader) -> Holds:
    parts = [_all(reader)]
    while reader.sees("OR"):
        parts.append(_all(reader))
    return parts[0] if len(parts) == 1 else lambda item, names, values: any(p(item, names, values) for p in parts)


def _all(reader: _Reader) -> Holds:
    parts = [_term(reader)]
    while reader.sees("AND"):
        parts.append(_term(reader))
    return parts[0] if len(parts) == 1 else lambda item, names, values: all(p(item, names, values) for p in parts)


def _term(reader: _Reader) -> Holds:
    if reader.sees("("):
        inner = _any(reader)
        reader.take()
        return inner
    name = reader.take()
    if name in ("attribute_exists", "attribute_not_exists", "begins_with"):
        return _function(name, reader)
    operator, first = reader.take(), reader.take()
    if operator == "BETWEEN":
        reader.take()
        second = reader.take()
        return lambda item, names, values: (
            (own := _own(item, names, name)) is not None and _plain(values[first]) <= own <= _plain(values[second])
        )
    compare = _COMPARISONS[operator]
    return lambda item, names, values: (
        (own := _own(item, names, name)) is not None and compare(own, _plain(values[first]))
    )


def _function(function: str, reader: _Reader) -> Holds:
    reader.take()
    name = reader.take()
    if function == "begins_with":
        reader.take()
        prefix = reader.take()
        reader.take()
        return lambda item, names, values: str(_own(item, names, name) or "").startswith(values[prefix]["S"])
    reader.take()
    there = function == "attribute_exists"
    return lambda item, names, _: (names.get(name, name) in item) == there


def _own(item: Item, names: Mapping[str, str], name: str) -> Any:
    attribute = item.get(names.get(name, name))
    return None if attribute is None else _plain(attribute)


def _plain(attribute: Mapping[str, Any]) -> Any:
    ((tag, value),) = attribute.items()
    return float(value) if tag == "N" else value


def _equal(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def _below(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value < other)


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": _equal,
    "<": _below,
    ">": lambda value, other: _below(other, value),
    "<=": lambda value, other: _below(value, other) or _equal(value, other),
    ">=": lambda value, other: _below(other, value) or _equal(value, other),
}


@dataclass(frozen=True, slots=True)
class Range:
    """The part of a partition that a query reads: sort keys from ``low`` to ``high``, None for no bound."""

    attribute: str
    partition: str
    low: str | None = None
    high: str | None = None


LAST = "\U0010ffff"
"""Sorts behind every other character."""


def key_range(text: str, names: Mapping[str, str], values: Mapping[str, Any]) -> Range:
    """The range of a key condition. Raises ``Unknown``."""
    tokens = _tokens(text)
    attribute, partition = names.get(tokens[0], tokens[0]), values[tokens[2]]["S"]
    sort = tokens[4:]
    if not sort:
        return Range(attribute, partition)
    if sort[0] == "begins_with":
        prefix = values[sort[4]]["S"]
        return Range(attribute, partition, prefix, prefix + LAST)
    first = values[sort[2]]["S"]
    if sort[1] == "BETWEEN":
        return Range(attribute, partition, first, values[sort[4]]["S"])
    if sort[1] in (">=", "<="):
        return Range(attribute, partition, *((first, None) if sort[1] == ">=" else (None, first)))
    raise Unknown(text)


@lru_cache(1024)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text))


def updated(text: str, names: Mapping[str, str], values: Mapping[str, Any], old: Item) -> dict[str, Any]:
    """The attributes after an update of ``SET`` and ``ADD``; those of ``old`` that it does not name stay."""
    item, mode, tokens = dict(old), "", list(_tokens(text))
    while tokens:
        word = tokens.pop(0)
        if word in ("SET", "ADD"):
            mode = word
        elif word != ",":
            name = names.get(word, word)
            if mode == "SET":
                tokens.pop(0)
                item[name] = values[tokens.pop(0)]
            else:
                number = int(values[tokens.pop(0)]["N"]) + int(item.get(name, {"N": "0"})["N"])
                item[name] = {"N": str(number)}
    return item
