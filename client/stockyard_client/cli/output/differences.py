"""Differences between two values, field by field, and merge patches (RFC 7386) that lead from one to the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stockyard_client.cli.documents.pointers import dotted

if TYPE_CHECKING:
    from stockyard_client.cli.context import Context


class _Absent:
    """Absence of a value, which is something else than null."""


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: its path, and what it was and becomes; ``ABSENT`` where it is not there."""

    path: str
    before: Any
    after: Any

    @property
    def text(self) -> str:
        """The field as a line, with a sign of what becomes of it."""
        if self.before is ABSENT:
            return f"+ {self.path}: {_as_text(self.after)}"
        if self.after is ABSENT:
            return f"- {self.path}: {_as_text(self.before)}"
        return f"~ {self.path}: {_as_text(self.before)} -> {_as_text(self.after)}"

    @property
    def lines(self) -> list[str]:
        """The same in as many lines as it takes: of a long object that is new each field has one, but those that say
        nothing (null, an empty list or text)."""
        is_new = self.before is ABSENT or self.before is None
        if not (is_new and isinstance(self.after, Mapping)) or len(_as_text(self.after)) <= LONGEST:
            return [self.text]
        fields = {key: value for key, value in self.after.items() if value is not None and value not in ("", [], {})}
        return [f"+ {self.path}:", *(f"{key}: {_as_text(_without_nulls(value))}" for key, value in fields.items())]


LONGEST = 100
"""Letters of a new object that stand in one line; of a longer one each field has a line."""


def differences(before: Any, after: Any, path: str = "") -> list[Difference]:
    """Each field that differs, in order of the path. Items of lists are told apart by ``name`` where all have one."""
    return list(_differences(before, after, path))


def show(context: Context, rows: list[Difference], indent: str = "") -> None:
    """Writes differences to stdout, a line each."""
    from rich.text import Text

    styles = {"+": "green", "-": "red", "~": "yellow"}
    for row in rows:
        first, *below = row.lines
        for line in (first, *(f"    {line}" for line in below)):
            context.out.print(Text(indent + line, style=styles[first[0]]), soft_wrap=True)


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Merge patch that makes ``after`` of ``before``: a key that goes becomes null, a list is replaced as a whole."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key, ABSENT)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif old is ABSENT or old != value:
            patch[key] = value
    return patch


def _differences(before: Any, after: Any, path: str) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _by_key(before, after, lambda key: _below(path, str(key)))
    elif isinstance(before, list) and isinstance(after, list):
        named = all(_has_names(items) for items in (before, after))
        old, new = _by_name(before, named=named), _by_name(after, named=named)
        yield from _by_key(old, new, lambda key: f"{path}[{key}]")
    elif before != after:
        yield Difference(path, before, after)


def _by_key(before: Mapping[Any, Any], after: Mapping[Any, Any], path: Any) -> Iterator[Difference]:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key, ABSENT), after.get(key, ABSENT)
        if old is ABSENT or new is ABSENT:
            yield Difference(path(key), old, new)
        else:
            yield from _differences(old, new, path(key))


def _has_names(items: list[Any]) -> bool:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _by_name(items: list[Any], *, named: bool) -> dict[Any, Any]:
    return {item["name"]: item for item in items} if named else dict(enumerate(items))


def _below(path: str, key: str) -> str:
    step = dotted([key])
    return f"{path}{step}" if step.startswith("[") or not path else f"{path}.{step}"


def _without_nulls(value: Any) -> Any:
    """The value without fields that are null."""
    return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, Mapping) else value


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
