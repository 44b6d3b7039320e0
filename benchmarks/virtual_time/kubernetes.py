"""The API of a cluster as its agent asks it, in virtual time: lists, and watches that end when they are over."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agent.stockyard_agent.transport import HttpRequest, HttpResponse
from benchmarks.virtual_time.delays import Delays
from benchmarks.virtual_time.engine import VirtualTime

STEP = 0.005
"""How exactly the moment is known at which something came, in seconds."""


@dataclass
class PlayedKubernetes:
    """``objects`` by the path of their list and their name; ``changes`` by path, each with when it came."""

    time: VirtualTime
    delays: Delays
    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    changes: dict[str, list[tuple[float, dict[str, Any]]]] = field(default_factory=dict)

    def put(self, path: str, thing: dict[str, Any]) -> None:
        """Make or change an object."""
        things, log = self.objects.setdefault(path, {}), self.changes.setdefault(path, [])
        name = thing["metadata"]["name"]
        kind = "MODIFIED" if name in things else "ADDED"
        things[name] = thing
        self._note(log, kind, thing)

    def remove(self, path: str, name: str) -> None:
        """Delete an object that is there."""
        self._note(self.changes.setdefault(path, []), "DELETED", self.objects[path].pop(name))

    def _note(self, log: list[tuple[float, dict[str, Any]]], kind: str, thing: dict[str, Any]) -> None:
        thing["metadata"]["resourceVersion"] = str(len(log) + 2)
        seen_at = self.time.now + self.delays.draw("watch")
        log.append((seen_at, {"type": kind, "object": json.loads(json.dumps(thing))}))

    def exchange(self, request: HttpRequest) -> HttpResponse:
        """See ``agent.stockyard_agent.transport.Exchange``."""
        parts = urlsplit(request.url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if query.get("watch") == "true":
            body, cut = self._watched(parts.path, query, request.quiet, request.patience)
            return HttpResponse(200, {}, body, cut)
        self.time.sleep(self.delays.draw("read"))
        items = list(self.objects.get(parts.path, {}).values())
        version = str(len(self.changes.get(parts.path, ())) + 1)
        return _answer(json.dumps({"items": items, "metadata": {"resourceVersion": version}}).encode())

    def _watched(
        self, path: str, query: Mapping[str, str], quiet: float | None, patience: float | None
    ) -> tuple[bytes, bool]:
        """The lines of a watch until it is over, or is cut: nothing has come for ``quiet`` seconds after a line, or for
        ``patience`` seconds at all."""
        log, position = self.changes.setdefault(path, []), int(query["resourceVersion"]) - 1
        end, reached = self.time.now + float(query["timeoutSeconds"]), position
        heard_at, silence = self.time.now, patience
        while self.time.now < end and (silence is None or self.time.now - heard_at < silence):
            while reached < len(log) and log[reached][0] <= self.time.now:
                reached, heard_at, silence = reached + 1, self.time.now, quiet
            self.time.sleep(STEP)
        lines = [json.dumps(event) for _, event in log[position:reached]]
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(reached + 1)}}}
        return "\n".join([*lines, json.dumps(bookmark)]).encode(), self.time.now < end


def _answer(body: bytes) -> HttpResponse:
    return HttpResponse(200, {}, body)


Exchange = Callable[[HttpRequest], HttpResponse]
