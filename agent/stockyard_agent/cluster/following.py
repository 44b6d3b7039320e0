"""Objects of one kind as the agent knows them: a list once, then what a watch says has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from ..kubernetes import Kubernetes, Object, Refused

T = TypeVar("T")
WATCH_SECONDS = 1
"""How long one watch lasts: what it says is known when it ends, and the next one goes on from there."""
_EXPIRED = 410


class Following(Generic[T]):
    """Not for threads. ``entry`` says of an object under which key it is known, and as what. ``changed`` is called with
    what an entry was and is, None for what is not there; also where both are equal."""

    def __init__(
        self,
        kube: Kubernetes,
        path: str,
        query: Mapping[str, str],
        entry: Callable[[Object], tuple[str, T]],
        page: int,
        changed: Callable[[T | None, T | None], None],
    ) -> None:
        self._kube, self._path, self._query, self._page = kube, path, query, page
        self._entry, self._changed = entry, changed
        self._entries: dict[str, T] = {}
        self._version = ""

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries.values())

    @property
    def complete(self) -> bool:
        """Whether the objects were listed, and are followed since."""
        return bool(self._version)

    def follow(self, patience: float | None = None) -> None:
        """List the objects, or hear for a moment what changes; with ``patience`` what has changed already, and what
        comes within so many seconds. Raises ``Refused``, ``Unreachable``.

        When the server no longer knows what has changed since (410), the objects are listed with the next call.
        """
        if not self._version:
            self.list()
            return
        query = {**self._query, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        try:
            for kind, item in self._kube.watch(self._path, query, WATCH_SECONDS, patience):
                self._hear(kind, item)
        except Refused as refused:
            if refused.status != _EXPIRED:
                raise
            self._version = ""

    def list(self) -> None:
        """List all objects. Raises ``Refused``, ``Unreachable``."""
        entries, version = self._kube.listed(self._path, self._query, self._entry, self._page)
        before, self._entries = self._entries, dict(entries)
        for key in before.keys() | self._entries.keys():
            self._changed(before.get(key), self._entries.get(key))
        self._version = version

    def _hear(self, kind: str, item: Object) -> None:
        version = (item.get("metadata") or {}).get("resourceVersion")
        if kind in ("ADDED", "MODIFIED"):
            key, entry = self._entry(item)
            self._changed(self._entries.get(key), entry)
            self._entries[key] = entry
        elif kind == "DELETED":
            key, _ = self._entry(item)
            self._changed(self._entries.pop(key, None), None)
        elif kind != "BOOKMARK":
            return
        self._version = version or self._version
