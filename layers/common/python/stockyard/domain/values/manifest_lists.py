"""Lists of manifests, as ``kubectl get -o yaml`` and the API of a cluster write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.domain.values.pointers import pointer

_LIST = "List"


def taken_apart(document: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The document with its place, or each item of a list with its own.

    A list is a ``List``, and one of a single kind, such as a ``NodePoolList``: its items need not repeat version and
    kind. Lists in lists are taken apart as well. ``ValueError`` with the pointer where ``items`` is no list.
    """
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if not isinstance(kind, str) or not (kind == _LIST or (kind.endswith(_LIST) and "items" in document)):
        yield path, document
        return
    items = document.get("items")
    if not isinstance(items, list):
        raise ValueError(f"{pointer(*path, 'items')}: a list is needed")
    of_kind = {} if kind == _LIST else {"kind": kind.removesuffix(_LIST)}
    if of_kind and "apiVersion" in document:
        of_kind["apiVersion"] = document["apiVersion"]
    for number, item in enumerate(items):
        named = {**of_kind, **item} if isinstance(item, Mapping) else item
        yield from taken_apart(named, (*path, "items", number))
