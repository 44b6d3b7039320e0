"""Fields of manifests, read as the API server reads them: a text is a text, a number a number, and nothing is guessed.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from stockyard.domain.values.pointers import pointer

Document = Mapping[str, Any]
FieldPath = tuple[str | int, ...]
T = TypeVar("T")
MOST_ENTRIES = 100
"""Entries that a list of a pod may have, and texts by name: the work of one pod is bounded by them. Kubernetes sets no
limit but the size of the object."""
MOST_LABELS = 1000


def wrong(path: FieldPath, text: str) -> ValueError:
    """The error of a document, with the pointer to the place."""
    return ValueError(f"{pointer(*path)}: {text}")


def too_many(path: FieldPath, count: int, most: int = MOST_ENTRIES) -> ValueError:
    """The error of more than are possible."""
    return wrong(path, f"at most {most} entries are possible, not {count}")


def object_at(document: Document, key: str, path: FieldPath) -> Document:
    """The object under a key; empty where there is none. Raises ``ValueError`` with its place."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong((*path, key), "an object is needed")
    return value


def listed(value: Any, path: FieldPath) -> list[tuple[Document, FieldPath]]:
    """The objects of a list, each with its place; none for null. ``MOST_ENTRIES`` are possible."""
    if not isinstance(value, list | tuple | None):
        raise wrong(path, "a list is needed")
    if len(value or ()) > MOST_ENTRIES:
        raise too_many(path, len(value or ()))
    for number, document in enumerate(value or ()):
        if not isinstance(document, Mapping):
            raise wrong((*path, number), "an object is needed")
    return [(document, (*path, number)) for number, document in enumerate(value or ())]


def each(value: Any, path: FieldPath, read: Callable[[Document, FieldPath], T]) -> list[T]:
    """Read each object of a list."""
    return [read(document, where) for document, where in listed(value, path)]


def text(value: Any, path: FieldPath) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong(path, _needed("a text", value))
    return value


def optional_text(document: Document, key: str, path: FieldPath) -> str:
    """The text under a key; empty where there is none."""
    value = document.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong((*path, key), _needed("a text", value))
    return value


def choice(document: Document, key: str, path: FieldPath, choices: Sequence[str]) -> str:
    """One of some texts under a key; the first of them where there is none."""
    value = optional_text(document, key, path) or choices[0]
    if value not in choices:
        names = [name for name in choices if name]
        raise wrong((*path, key), f"{', '.join(names[:-1])} or {names[-1]} is needed, not {value!r}")
    return value


def texts(value: Any, path: FieldPath, most: int = MOST_ENTRIES) -> dict[str, str]:
    """Texts by name, such as labels, ``most`` at the most; none for null."""
    if not isinstance(value, Mapping | None):
        raise wrong(path, "texts by name are needed")
    if len(value or ()) > most:
        raise too_many(path, len(value or ()), most=most)
    for name, entry in (value or {}).items():
        if not isinstance(entry, str | None):
            raise wrong((*path, str(name)), _needed("a text", entry))
    return {str(name): entry or "" for name, entry in (value or {}).items()}


def text_list(value: Any, path: FieldPath) -> list[str]:
    """A list of texts; empty for null."""
    if not isinstance(value, list | tuple | None):
        raise wrong(path, "a list of texts is needed")
    for number, entry in enumerate(value or ()):
        if not isinstance(entry, str):
            raise wrong((*path, number), _needed("a text", entry))
    return list(value or ())


def integer(value: Any, path: FieldPath, least: int | None = None) -> int:
    """An integer, of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(path, "an integer is needed")
    if least is not None and value < least:
        raise wrong(path, f"{least} or more is needed")
    return value


def boolean(document: Document, key: str, path: FieldPath) -> bool:
    """The truth under a key; false where there is none."""
    value = document.get(key)
    if not isinstance(value, bool | None):
        raise wrong((*path, key), "true or false is needed")
    return bool(value)


def _needed(kind: str, value: object) -> str:
    quotes = " (in quotes)" if isinstance(value, bool | int | float) else ""
    return f"{kind} is needed{quotes}, not {value!r}" if value not in ("", None) else f"{kind} is needed"
