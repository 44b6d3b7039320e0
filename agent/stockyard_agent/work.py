"""What a command is, what it is carried out with, and what comes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .kubernetes import Kubernetes

DONE, RUNNING, FAILED = "done", "running", "failed"
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_TEXT = 1000


class Unfit(Exception):
    """A command that cannot be carried out as it is. The text begins with a JSON pointer into it."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``deadline`` None: there is none. ``arguments`` are the other members of its object."""

    id: str
    kind: str
    deadline: datetime | None
    arguments: Mapping[str, Any]

    @property
    def node(self) -> str:
        """The node it is about; empty when it is about none."""
        name = self.arguments.get("node")
        return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class Result:
    """What is posted about a command. ``running``: it is tried again with the next round."""

    status: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def final(self) -> bool:
        """Whether nothing more is done about it."""
        return self.status != RUNNING

    def posted(self, id: str) -> dict[str, Any]:
        """As the post has it."""
        return {"id": id, "status": self.status, "message": self.message[:_TEXT], "data": dict(self.data)}


@dataclass(frozen=True, slots=True)
class Work:
    """All that a step may use. ``so_far`` is the data of the command's last result; ``own_pod`` namespace and name."""

    kube: Kubernetes
    now: datetime
    command: Command
    so_far: Mapping[str, Any]
    own_pod: tuple[str, str]

    def text(self, name: str, pattern: re.Pattern[str]) -> str:
        """An argument that is text of a form. Raises ``Unfit``, without the value: it may be a secret."""
        value = self.command.arguments.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise Unfit(f"/{name}: text of the form {pattern.pattern} is needed")
        return value

    def optional(self, name: str) -> str | None:
        """An argument that is text or null. Raises ``Unfit``."""
        value = self.command.arguments.get(name)
        if value is not None and not isinstance(value, str):
            raise Unfit(f"/{name}: text or null is needed")
        return value

    def seconds(self, name: str) -> int | None:
        """An argument that is a whole number from 0, or null. Raises ``Unfit``."""
        value = self.command.arguments.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Unfit(f"/{name}: a whole number from 0, or null, is needed")
        return value

    def objects(self, name: str, *, needed: bool = True) -> list[Mapping[str, Any]]:
        """An argument that is a list of objects. Raises ``Unfit``."""
        value = self.command.arguments.get(name, None if needed else [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise Unfit(f"/{name}: a list of objects is needed")
        return value


def moment(text: Any, pointer: str) -> datetime | None:
    """A time in RFC 3339, or None for null. Raises ``Unfit``."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise Unfit(f"{pointer}: a time in RFC 3339 with an offset, or null, is needed")
    return found


def command(given: Mapping[str, Any]) -> Command:
    """A command as it came. Raises ``Unfit`` for a malformed deadline; ``id`` and ``kind`` were looked at before."""
    rest = {name: value for name, value in given.items() if name not in ("id", "kind", "deadline")}
    return Command(given["id"], given["kind"], moment(given.get("deadline"), "/deadline"), rest)
