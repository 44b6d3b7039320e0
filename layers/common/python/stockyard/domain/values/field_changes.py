"""Differences between two documents, field by field, as plans tell them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.pointers import pointer

FieldPath = tuple[str | int, ...]
_IDENTITIES = ("name", "id", "key")
"""Fields that name the entries of a list, the first that all of them have and none has twice."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field. ``path`` leads to it in the later document; an entry that is there no more has the place that it had.

    ``field`` is the same for people: ``nodeTypes[small].usdPerHour``. What is not there is None.
    """

    path: FieldPath
    field: str
    before: Any
    after: Any


def field_changes(before: Any, after: Any, path: FieldPath = (), field: str = "") -> list[FieldChange]:
    """Every field that differs, in the order of the later document; entries of lists are matched by their names.

    Numbers that are equal are no change, whatever they are written as. Entries without names are one field together.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return list(_of_objects(before, after, path, field))
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        name = _identity(before, after)
        if name is not None:
            return list(_of_lists(before, after, name, path, field))
    return [] if before == after else [FieldChange(path, field, before, after)]


def change_views(
    changes: Iterable[FieldChange], *at: str | int, kind: str = "", name: str = ""
) -> list[dict[str, Any]]:
    """The entries of a plan, with pointers below ``at``; ``kind`` and ``name`` say whose fields they are."""
    return [
        {
            "kind": kind,
            "name": name,
            "pointer": pointer(*at, *change.path),
            "field": change.field,
            "before": change.before,
            "after": change.after,
        }
        for change in changes
    ]


def with_subject(
    entries: Iterable[Mapping[str, Any]], kind: str, name: str, document: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Entries that have a pointer alone, with whose they are and the field for people; pointers are into ``document``,
    but those of an entry of a list that goes."""
    return [{"kind": kind, "name": name, "field": _field_of(entry, document), **entry} for entry in entries]


def _field_of(entry: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    path, leaving = str(entry["pointer"]), entry["before"] if entry["after"] is None else None
    head, _, last = path.rpartition("/")
    if last.isdigit() and isinstance(leaving, Mapping):
        return f"{field_at(head, document)}[{_name_of(leaving, last)}]"
    return field_at(path, document)


def field_at(path: str, document: Any = None) -> str:
    """A JSON pointer for people: ``/settings/groups/0/size`` is ``settings.groups[workers].size`` in a ``document``
    that has that group, and ``settings.groups[0].size`` where nobody knows."""
    text, current = "", document
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if name.isdigit():
            current = current[int(name)] if isinstance(current, list | tuple) and int(name) < len(current) else None
            text += f"[{_name_of(current, name)}]"
        else:
            current = current.get(name) if isinstance(current, Mapping) else None
            text = _joined(text, name)
    return text


def _name_of(entry: Any, number: str) -> str:
    names = (entry.get(key) for key in _IDENTITIES) if isinstance(entry, Mapping) else ()
    return next((name for name in names if isinstance(name, str)), number)


def _joined(text: str, name: str) -> str:
    return f"{text}[{name}]" if "/" in name or "." in name else f"{text}.{name}" if text else name


def _of_objects(
    before: Mapping[str, Any], after: Mapping[str, Any], path: FieldPath, field: str
) -> Iterator[FieldChange]:
    for name in (*after, *(name for name in before if name not in after)):
        yield from field_changes(before.get(name), after.get(name), (*path, name), _joined(field, name))


def _identity(before: Sequence[Any], after: Sequence[Any]) -> str | None:
    entries = [*before, *after]
    if not entries or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    for name in _IDENTITIES:
        if all(isinstance(entry.get(name), str) for entry in entries) and all(
            len({entry[name] for entry in listed}) == len(listed) for listed in (before, after)
        ):
            return name
    return None


def _of_lists(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], name: str, path: FieldPath, field: str
) -> Iterator[FieldChange]:
    earlier = {entry[name]: entry for entry in before}
    later_names = {entry[name] for entry in after}
    for number, entry in enumerate(after):
        yield from field_changes(earlier.get(entry[name]), entry, (*path, number), f"{field}[{entry[name]}]")
    for number, entry in enumerate(before):
        if entry[name] not in later_names:
            yield FieldChange((*path, number), f"{field}[{entry[name]}]", dict(entry), None)
