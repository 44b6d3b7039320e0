"""Watches of a simulated Kubernetes API: what has changed since a version, once or until they end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from local.kubernetes.resources import Resource
from local.kubernetes.store import KubeStore, Object, selected

INITIAL = "k8s.io/initial-events-end"
"""Annotation of the bookmark behind the objects that a watch begins with."""


@dataclass
class Watch:
    """One watch. ``lock`` is the API's, ``form`` what clients get of objects, such as the rows of a table."""

    store: KubeStore
    lock: AbstractContextManager[Any]
    resource: Resource
    namespace: str
    query: Mapping[str, str]
    form: Callable[[list[Object]], Object] | None = None
    is_over: bool = False
    _since: int | None = None

    def text(self) -> str:
        """Changes since it was asked last, an event a line; at first since the version in the query.

        Raises ``StatusError`` 400 for a selector that cannot be read.
        """
        with self.lock:
            events = self._begin() if self._since is None else self._news()
            self._since = self.store.revision
        self.is_over = any(event["type"] == "ERROR" for event in events)
        return "".join(json.dumps(self._formed(event)) + "\n" for event in events)

    def wait(self, seconds: float) -> None:
        """Wait for a change of an object, no longer than some seconds."""
        self.store.wait(self._since or 0, seconds)

    def _begin(self) -> list[Object]:
        version, initial = self.query.get("resourceVersion") or "0", self.query.get("sendInitialEvents") == "true"
        if version != "0" and not initial:
            self._since = int(version)
            return self._news()
        page = self.store.listed(self.resource, self.namespace, {**self.query, "limit": "", "continue": ""})
        events = [{"type": "ADDED", "object": item} for item in page["items"]]
        if initial:
            meta = {"resourceVersion": str(self.store.revision), "annotations": {INITIAL: "true"}}
            about = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
            events.append({"type": "BOOKMARK", "object": {**about, "metadata": meta}})
        return events

    def _news(self) -> list[Object]:
        return self.store.changed(self.resource, self.namespace, selected(self.query), self._since or 0)

    def _formed(self, event: Object) -> Object:
        if self.form is None or event["type"] in ("ERROR", "BOOKMARK"):
            return event
        return {**event, "object": self.form([event["object"]])}
