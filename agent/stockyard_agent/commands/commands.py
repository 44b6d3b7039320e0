"""Commands from Stockyard: their model, the context that handlers get, and their results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..kubernetes import Kubernetes

DONE, RUNNING, FAILED = "done", "running", "failed"
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_TEXT = 1000


class InvalidCommand(Exception):
    """The command is malformed. The text begins with a JSON pointer to the wrong member."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``deadline`` is None when it has none. ``arguments`` are the remaining members of its object."""

    id: str
    kind: str
    deadline: datetime | None
    arguments: Mapping[str, Any]

    @property
    def node(self) -> str:
        """The name of the node that it changes; empty when it changes no node."""
        name = self.arguments.get("node")
        return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a command, as it is posted. With status ``running`` the next round tries the command again."""

    status: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def final(self) -> bool:
        """Whether the command has ended."""
        return self.status != RUNNING

    def posted(self, id: str) -> dict[str, Any]:
        """The result as a post sends it."""
        return {"id": id, "status": self.status, "message": self.message[:_TEXT], "data": dict(self.data)}


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Means and facts for the handler of a command. ``progress`` is the data of the command's last result.

    ``own_pod`` is namespace and name of the agent's pod. ``out_of_time`` says that the round has to end; the next one
    does the rest.
    """

    kube: Kubernetes
    now: datetime
    command: Command
    progress: Mapping[str, Any]
    own_pod: tuple[str, str]
    out_of_time: Callable[[], bool] = lambda: False

    def text(self, name: str, pattern: re.Pattern[str]) -> str:
        """A text argument that matches ``pattern``. ``InvalidCommand`` omits the value, which may be a secret."""
        value = self.command.arguments.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise InvalidCommand(f"/{name}: text of the form {pattern.pattern} is needed")
        return value

    def optional(self, name: str) -> str | None:
        """An argument that is text or null. Raises ``InvalidCommand``."""
        value = self.command.arguments.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidCommand(f"/{name}: text or null is needed")
        return value

    def seconds(self, name: str) -> int | None:
        """An argument that is a whole number from 0, or null. Raises ``InvalidCommand``."""
        value = self.command.arguments.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidCommand(f"/{name}: a whole number from 0, or null, is needed")
        return value

    def objects(self, name: str, *, needed: bool = True) -> list[Mapping[str, Any]]:
        """An argument that is a list of objects. Raises ``InvalidCommand``."""
        value = self.command.arguments.get(name, None if needed else [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise InvalidCommand(f"/{name}: a list of objects is needed")
        return value


def moment(text: Any, pointer: str) -> datetime | None:
    """A time in RFC 3339, or None for null. Raises ``InvalidCommand``."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidCommand(f"{pointer}: a time in RFC 3339 with an offset, or null, is needed")
    return time


def parse_command(item: Mapping[str, Any]) -> Command:
    """The command of a JSON object whose ``id`` and ``kind`` are already checked.

    Raises ``InvalidCommand`` for a malformed deadline.
    """
    arguments = {name: value for name, value in item.items() if name not in ("id", "kind", "deadline")}
    return Command(item["id"], item["kind"], moment(item.get("deadline"), "/deadline"), arguments)
